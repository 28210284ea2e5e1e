"""A switch that returns has its earlier entries, and its end ports use their earlier SLs."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from switch_tables import holding

from osm_plugin.config import PluginConfig
from osm_plugin.route_or_reroute import options_key
from osm_plugin.state import SavedTables
from osm_plugin.switch_changes import SwitchChanges
from osm_plugin.tables_in_force import State
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.faults.choose import every_switch
from routing.faults.model import apply_faults
from routing.reroute import Stability, reroute
from routing.topologies import generate

LOST = 5  # row of the switch that is lost and returns


def first_tables(engine, options):
    fabric = generate("torus", ["4x4"], cas=1)
    routing = ENGINES[engine].route(fabric, options)
    return SavedTables(fabric, routing, prove(fabric, routing), engine, options_key(options))


def tables_without_the_switch(full, options):
    fabric = apply_faults(full.fabric, [every_switch(full.fabric)[LOST]])
    made = reroute(ENGINES[full.engine], options, full, fabric, stability=Stability.FULL)
    return replace(full, fabric=fabric, routing=made.tables.routing, proof=made.tables.proof)


def lose_and_return(engine, changed=lambda lft: None):
    """Publish tables with all switches, tables without one, and the first tables again; return the last change."""
    options = EngineOptions(effort=0.1, vls=4)
    full = first_tables(engine, options)
    less = tables_without_the_switch(full, options)
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


def test_they_are_unknown_if_the_switch_has_other_entries():
    def change_an_entry(lft):
        first, other = np.flatnonzero(lft[LOST] > 1)[0], np.unique(lft[LOST, lft[LOST] != 255])[-1]
        assert lft[LOST, first] != other
        lft[LOST, first] = other

    _, (_, base, _) = lose_and_return("nue", change_an_entry)
    assert base.sls == "unknown"
