"""A switch that returns has its earlier entries, and its end ports use their earlier SLs."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from switch_tables import holding

from osm_plugin.config import PluginConfig
from osm_plugin.route_or_reroute import options_key
from osm_plugin.state import SavedTables
from osm_plugin.switch_changes import MOST_LEFT, SwitchChanges
from osm_plugin.tables_in_force import State
from osm_plugin.transition_check import check_transition
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.faults.choose import every_ca, every_switch
from routing.faults.model import apply_faults
from routing.reroute import Stability, reroute
from routing.topologies import generate

LOST = 5  # row of the switch that is lost and returns
OTHER = 20  # LID of an end port at another switch


def first_tables(engine, options):
    fabric = generate("torus", ["4x4"], cas=1)
    routing = ENGINES[engine].route(fabric, options)
    return SavedTables(fabric, routing, prove(fabric, routing), engine, options_key(options))


def tables_without(full, rows, options):
    return rerouted(full, options, apply_faults(full.fabric, [every_switch(full.fabric)[row] for row in rows]))


def rerouted(full, options, fabric):
    made = reroute(ENGINES[full.engine], options, full, fabric, stability=Stability.FULL)
    return replace(full, fabric=fabric, routing=made.tables.routing, proof=made.tables.proof)


def lose_and_return(engine, changed=lambda lft: None, sls=lambda sl: None):
    """Publish tables with all switches, tables without one, and the first tables again; return the last change."""
    options = EngineOptions(effort=0.1, vls=4)
    full = first_tables(engine, options)
    less = tables_without(full, [LOST], options)
    sl = less.routing.sl.copy()
    sls(sl)
    less = replace(less, routing=replace(less.routing, sl=sl))
    changes, config = SwitchChanges(State()), PluginConfig()
    changes.change(SimpleNamespace(fabric=full.fabric, switch_tables=None), full, config)
    changes.change(SimpleNamespace(fabric=less.fabric, switch_tables=holding(full, less.fabric)), less, config)
    present = holding(less, full.fabric)
    present.lft[LOST] = full.routing.lft[LOST]
    changed(present.lft)
    return full, changes.change(SimpleNamespace(fabric=full.fabric, switch_tables=present), full, config)


@pytest.mark.parametrize("engine", ["nue", "dfsssp", "lash", "updn"])
def test_the_sls_in_use_are_known(engine):
    full, (_, base, change) = lose_and_return(engine)
    assert base.sls == "published"
    assert np.array_equal(base.routing.lft[LOST], full.routing.lft[LOST])
    lids = full.fabric.lids.switch == LOST
    assert np.array_equal(base.routing.sl[..., lids], full.routing.sl[..., lids])
    if full.routing.service_levels.by_switch:
        assert np.array_equal(base.routing.sl[LOST], full.routing.sl[LOST])
    if full.routing.service_levels.by_source_lid:
        assert np.array_equal(base.routing.sl[lids], full.routing.sl[lids])
    assert not change.any_sls


def test_its_end_ports_may_use_other_sls_than_all_others():
    """The SL of an end port changes while the switch is away."""
    full, (_, base, _) = lose_and_return("nue", sls=lambda sl: sl.__setitem__(OTHER, sl[OTHER] ^ 1))
    assert base.sls == "published" and base.routing.service_levels.by_switch
    assert np.array_equal(base.routing.sl[LOST], full.routing.sl)
    differ = base.routing.sl[np.arange(16) != LOST] != full.routing.sl
    assert differ[:, OTHER].all() and np.count_nonzero(differ.any(axis=0)) == 1


def test_switches_that_left_at_different_times_return_together():
    options = EngineOptions(effort=0.1, vls=4)
    full = first_tables("dfsssp", options)
    less = tables_without(full, [LOST], options)
    least = tables_without(less, [LOST], options)  # The switch of the next row has this row now.
    changes, config = SwitchChanges(State()), PluginConfig()
    changes.change(SimpleNamespace(fabric=full.fabric, switch_tables=None), full, config)
    for before, after in ((full, less), (less, least)):
        changes.change(SimpleNamespace(fabric=after.fabric, switch_tables=holding(before, after.fabric)), after, config)
    present = holding(least, full.fabric)
    present.lft[LOST], present.lft[LOST + 1] = full.routing.lft[LOST], less.routing.lft[LOST]
    _, base, _ = changes.change(SimpleNamespace(fabric=full.fabric, switch_tables=present), full, config)
    assert base.sls == "published"
    for row, tables, old_row in ((LOST, full, LOST), (LOST + 1, less, LOST)):
        lids = np.flatnonzero(tables.fabric.lids.switch >= 0)
        assert np.array_equal(base.routing.sl[row, lids], tables.routing.sl[old_row, lids])
        assert tables.routing.service_levels.by_switch


@pytest.mark.parametrize("engine", ["dfsssp", "nue"])
def test_a_ca_that_returns_after_its_switch_has_other_sls_than_the_switch(engine):
    """All SLs change while switch and CA are away, so only the CA uses its earlier SLs."""
    options = EngineOptions(effort=0.1, vls=4)
    full = first_tables(engine, options)
    less = tables_without(full, [LOST], options)
    back = rerouted(full, options, apply_faults(full.fabric, [every_ca(full.fabric)[LOST]]))
    less, back = (replace(each, routing=replace(each.routing, sl=each.routing.sl ^ 1)) for each in (less, back))
    changes, config = SwitchChanges(State()), PluginConfig()
    before = None
    for now in (full, less, back):
        present = None if before is None else holding(before, now.fabric)
        changes.change(SimpleNamespace(fabric=now.fabric, switch_tables=present), now, config)
        before = now
    present = holding(back, full.fabric)
    _, base, change = changes.change(SimpleNamespace(fabric=full.fabric, switch_tables=present), full, config)
    assert base.sls == "published" and not check_transition(change).startswith("transition not judged")
    lids, sls = full.fabric.lids, base.routing.service_levels
    had = np.flatnonzero(back.fabric.lids.switch >= 0)
    (ca,) = np.setdiff1d(np.flatnonzero(lids.switch >= 0), had).tolist()
    for sender in np.flatnonzero(lids.switch >= 0).tolist():
        row = int(lids.switch[sender])
        used = full if sender == ca else back
        assert np.array_equal(
            sls.from_sender(row, sender)[had], used.routing.service_levels.from_sender(row, sender)[had]
        )
        assert sls.from_sender(row, sender)[ca] == full.routing.service_levels.from_sender(row, sender)[ca]


def two_losses(engine):
    """Publish three tables, each without one more switch, of which every second switch gets only the first tables."""
    options = EngineOptions(effort=0.1, vls=4)
    full = first_tables(engine, options)
    less = tables_without(full, [LOST], options)
    less = replace(less, routing=replace(less.routing, sl=less.routing.sl ^ 1))
    least = tables_without(less, [LOST], options)  # The switch of the next row has this row now.
    changes, config = SwitchChanges(State()), PluginConfig()
    changes.change(SimpleNamespace(fabric=full.fabric, switch_tables=None), full, config)
    changes.change(SimpleNamespace(fabric=less.fabric, switch_tables=holding(full, less.fabric)), less, config)
    present = holding(less, less.fabric)
    present.lft[::2] = holding(full, less.fabric).lft[::2]
    assert (present.lft != holding(less, less.fabric).lft).any()
    return full, less, least, present, changes


@pytest.mark.parametrize("engine", ["nue", "dfsssp", "updn"])
def test_the_sls_are_known_if_a_second_loss_interrupts_the_writing(engine):
    _, less, least, present, changes = two_losses(engine)
    rows = np.delete(np.arange(less.fabric.switches), LOST)
    mixture = replace(present, lft=present.lft[rows], known=present.known[rows], top=present.top[rows])
    _, base, change = changes.change(SimpleNamespace(fabric=least.fabric, switch_tables=mixture), least, PluginConfig())
    assert base.sls == "last" and base.cdg is None and base.known
    lids = np.flatnonzero(least.fabric.lids.switch >= 0)
    for lid in lids.tolist():
        row = int(least.fabric.lids.switch[lid])
        sls = less.routing.service_levels.from_sender(row + (row >= LOST), lid)
        assert np.array_equal(base.routing.service_levels.from_sender(row, lid)[lids], sls[lids])
    line = check_transition(change)
    assert not line.startswith("transition not judged")
    assert "; if senders use the SLs of the tables published last; " in line


def test_a_switch_that_left_while_it_was_written_returns():
    full, less, least, _, changes = two_losses("updn")
    changes.change(
        SimpleNamespace(fabric=least.fabric, switch_tables=holding(least, least.fabric)), least, PluginConfig()
    )
    back = holding(least, less.fabric)
    back.lft[LOST] = holding(full, less.fabric).lft[LOST]
    back.lft[LOST, 1::2] = less.routing.lft[LOST, 1::2]
    assert (back.lft[LOST] != less.routing.lft[LOST]).any()
    _, base, _ = changes.change(SimpleNamespace(fabric=less.fabric, switch_tables=back), less, PluginConfig())
    assert base.sls == "last"


def test_the_tables_of_few_losses_are_kept():
    options, changes = EngineOptions(effort=0.1, vls=1), SwitchChanges(State())
    tables = [first_tables("updn", options)]
    for _ in range(MOST_LEFT + 1):
        tables.append(tables_without(tables[-1], [LOST], options))
    for now in tables:
        changes.change(SimpleNamespace(fabric=now.fabric, switch_tables=None), now, PluginConfig())
    # Each switch has the tables that were in force when it left.  The tables of the first loss are forgotten.
    assert len({id(kept) for kept in changes._left.values() if kept is not None}) == MOST_LEFT
    assert changes._left[int(tables[0].fabric.switch_guid[LOST])] is None


def test_sls_are_unknown_if_the_switch_has_other_entries():
    def change_an_entry(lft):
        first, other = np.flatnonzero(lft[LOST] > 1)[0], np.unique(lft[LOST, lft[LOST] != 255])[-1]
        assert lft[LOST, first] != other
        lft[LOST, first] = other

    _, (_, base, _) = lose_and_return("nue", change_an_entry)
    assert base.sls == "unknown"


@pytest.mark.parametrize("device", ["switch", "restarted switch", "CA"])
@pytest.mark.parametrize("engine", ["dfsssp", "nue"])
def test_connections_to_a_returned_device_have_their_earlier_sls(engine, device):
    """The new tables have other SLs than the tables before the loss.  A restarted switch has no entries."""
    options = EngineOptions(effort=0.1, vls=4)
    full = first_tables(engine, options)
    gone = every_ca(full.fabric)[LOST] if device == "CA" else every_switch(full.fabric)[LOST]
    fabric = apply_faults(full.fabric, [gone])
    made = reroute(ENGINES[engine], options, full, fabric, stability=Stability.FULL)
    less = replace(full, fabric=fabric, routing=made.tables.routing, proof=made.tables.proof)
    new = replace(full, routing=replace(full.routing, sl=full.routing.sl ^ 1))
    changes, config = SwitchChanges(State()), PluginConfig()
    changes.change(SimpleNamespace(fabric=full.fabric, switch_tables=None), full, config)
    changes.change(SimpleNamespace(fabric=fabric, switch_tables=holding(full, fabric)), less, config)
    present = holding(less, full.fabric)
    if device == "switch":
        present.lft[LOST] = full.routing.lft[LOST]
    _, base, _ = changes.change(SimpleNamespace(fabric=full.fabric, switch_tables=present), new, config)
    assert base.sls == "published"
    had = full.fabric.lids.switch >= 0
    back = had & ~np.isin(np.arange(len(had)), np.flatnonzero(fabric.lids.switch >= 0))
    assert back.any() and np.array_equal(base.routing.sl[..., back], full.routing.sl[..., back])
    if device != "CA" and full.routing.service_levels.by_switch:
        assert np.array_equal(base.routing.sl[LOST, had], full.routing.sl[LOST, had])


def test_senders_at_a_switch_that_left_later_have_their_sls_towards_the_one_that_left_first():
    options = EngineOptions(effort=0.1, vls=4)
    full = first_tables("dfsssp", options)
    less = tables_without(full, [LOST], options)
    least = tables_without(less, [LOST], options)  # The switch of the next row has this row now.
    new = replace(full, routing=replace(full.routing, sl=full.routing.sl ^ 1))
    changes, config = SwitchChanges(State()), PluginConfig()
    changes.change(SimpleNamespace(fabric=full.fabric, switch_tables=None), full, config)
    for before, after in ((full, less), (less, least)):
        changes.change(SimpleNamespace(fabric=after.fabric, switch_tables=holding(before, after.fabric)), after, config)
    present = holding(least, full.fabric)
    _, base, _ = changes.change(SimpleNamespace(fabric=full.fabric, switch_tables=present), new, config)
    lids = full.fabric.lids.switch == LOST
    assert base.sls == "published" and full.routing.service_levels.by_switch
    assert np.array_equal(base.routing.sl[LOST + 1, lids], full.routing.sl[LOST + 1, lids])
