"""Check that re-routed tables are certified, as strong as before and little changed, and that they return to the
baseline.
"""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from campaigns import some_of
from routing_cases import ANY_FABRIC
from strategies import random_fabric

from routing.cdg.certificate import check_certificate
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions, Promise
from routing.faults import apply_faults, every_ca, every_switch, parse_fault
from routing.reroute import Published, Stability, reroute, spread
from routing.reroute.installed import installed
from routing.reroute.prove_changes import prove_changes
from routing.reroute.translate import translate_tables
from routing.topologies import generate

OPTIONS = EngineOptions(threads=1, effort=0.1)


@cache
def published(fabric, engine, options=OPTIONS):
    routing = ENGINES[engine].route(fabric, options)
    return Published(fabric, routing, prove(fabric, routing, threads=1))


def check(found, before, fabric, engine):
    """Check the properties that hold after every re-route."""
    proof = prove(fabric, found.routing, threads=1)
    assert proof.complete
    assert found.proof.complete
    assert np.array_equal(proof.hops, found.proof.hops)
    promised = ENGINES[engine].promise is Promise.DEADLOCK_FREE
    assert proof.certified or not promised
    if found.how not in ("fresh", "baseline") and before.proof.certified and promised:
        assert before.proof.strength == "forward" or proof.strength == "reversible"
    if found.proof.certificate is not None:
        check_certificate(fabric, found.routing, found.proof.certificate, threads=1)
    parts = fabric.component
    apart = (parts[:, None] != parts[fabric.lids.switch]) & (fabric.lids.switch >= 0)
    assert (found.routing.lft[apart] == 255).all()


FABRICS = {
    "torus": cache(lambda: generate("torus", ["4x4"], cas=2)),
    "tree": cache(lambda: generate("kary-ntree", ["3", "3"])),
    "random": cache(lambda: random_fabric(5, 10, 4, parallel=2, lmc=1)),
}


SINGLE = sorted({*ANY_FABRIC} - {"auto"})
"""All engines without auto, which repairs like the engine that it has chosen, and takes as long as all engines
together.
"""


EACH = [*product(FABRICS, SINGLE), ("tree", "ftree")]


# In every run, each engine has at least one fabric.
@pytest.mark.parametrize(("name", "engine"), some_of(EACH, EACH[::2]))
def test_links_there_and_back(name, engine):
    """Lose every twelfth link.  The first link differs between engines, so that all engines together lose each link."""
    fabric = FABRICS[name]()
    baseline = published(fabric, engine)
    first = (SINGLE.index(engine) if engine in SINGLE else 0) % 12
    for link in np.unique(fabric.channels.link).tolist()[first::12]:
        less = fabric.without_links([link])
        found = reroute(ENGINES[engine], OPTIONS, baseline, less, baseline=baseline)
        check(found, baseline, less, engine)
        if found.how == "repaired":
            installed = baseline.routing.lft != 255
            assert found.changed >= found.broken - int((~installed).sum())
        back = reroute(ENGINES[engine], OPTIONS, Published(less, found.routing, found.proof), fabric, baseline=baseline)
        assert np.array_equal(back.routing.lft, baseline.routing.lft)
        assert np.array_equal(back.routing.sl, baseline.routing.sl)
        assert back.how == "baseline"


def test_the_baseline_proof_does_not_cover_a_new_sender_without_a_lid():
    """Packets between switches are not part of this proof, and close a credit loop once CAs send them."""
    whole = generate("torus", ["4x4"], cas=1)
    fabric = apply_faults(whole, every_ca(whole)[::2])
    baseline = published(fabric, "dfsssp", replace(OPTIONS, vls=1))
    assert baseline.proof.scope == "endports"
    lid = np.where(np.isin(whole.endport_guid, fabric.endport_guid), whole.endport_lid, 0)
    now = replace(whole, endport_lid=lid.astype(np.uint16))
    found = reroute(ENGINES["dfsssp"], OPTIONS, baseline, now, baseline=baseline)
    check(found, baseline, now, "dfsssp")


def test_a_new_ca_at_the_only_switch_gets_its_entry():
    """The fabric has no channel between switches."""
    whole = generate("mesh", ["1"], cas=3)
    baseline = published(apply_faults(whole, every_ca(whole)[:1]), "updn")
    found = reroute(ENGINES["updn"], OPTIONS, baseline, whole)
    check(found, baseline, whole, "updn")
    assert (found.how, found.broken, found.changed) == ("repaired", 0, 1)


def test_a_ca_at_another_port_of_its_switch_is_not_reported_as_cut_off():
    fabric = generate("torus", ["3x3"], cas=1)
    baseline, ports = published(fabric, "updn"), fabric.link_port.copy()
    ports[fabric.endport_link[0]] = np.where(fabric.link_device[fabric.endport_link[0]] < fabric.switches, 9, 1)
    moved = replace(fabric, link_port=ports, switch_ports=np.full_like(fabric.switch_ports, 9))
    found = reroute(ENGINES["updn"], OPTIONS, baseline, moved)
    check(found, baseline, moved, "updn")
    assert (found.how, found.broken, found.changed) == ("repaired", 1, 1)
    assert found.reason == "single entries were replaced"


def test_up_down_is_repaired_on_trees_with_few_searches():
    fabric = generate("kary-ntree", ["8", "3"])
    baseline = published(fabric, "updn")
    searches = []
    for link in np.unique(fabric.channels.link).tolist()[10::43]:
        less = fabric.without_links([link])
        found = reroute(ENGINES["updn"], OPTIONS, baseline, less, baseline=baseline)
        check(found, baseline, less, "updn")
        assert found.changed <= 3 * found.broken
        searches.append(found.statistics.visits)
    assert np.median(searches) < len(fabric.channels)


@pytest.mark.parametrize("link", [82, 120, 256])
def test_turns_that_clash_are_found_before_an_order_is_repaired_for_them(link):
    """On the broken trees, many attempted paths do not fit.  An earlier version visited three times as many
    channels.
    """
    fabric = generate("torus", ["4x4x4"], cas=4)
    baseline = published(fabric, "nue")
    less = fabric.without_links([link])
    found = reroute(ENGINES["nue"], OPTIONS, baseline, less, baseline=baseline)
    check(found, baseline, less, "nue")
    assert 0 < found.statistics.visits < 60 * len(fabric.channels)


def test_links_one_after_the_other_until_none_is_left():
    """On this fabric, the switch that helped another one before is itself without a path the next time."""
    rng = np.random.default_rng(34)
    fabric = random_fabric(34, int(rng.integers(6, 20)), int(rng.integers(2, 5)), parallel=int(rng.integers(1, 3)))
    options = replace(OPTIONS, effort=0.02)
    baseline = before = published(fabric, "updn", options)
    order = rng.permutation(np.unique(fabric.channels.link)).tolist()
    for count in range(1, len(order) + 1):
        less = fabric.without_links(order[:count])
        found = reroute(ENGINES["updn"], options, before, less, baseline=baseline)
        check(found, before, less, "updn")
        before = Published(less, found.routing, found.proof)
    more = fabric.without_links(order[1:])
    check(reroute(ENGINES["updn"], options, before, more, baseline=baseline), before, more, "updn")


@pytest.mark.parametrize("engine", sorted(ANY_FABRIC))
def test_faults_one_after_the_other(engine):
    fabric = random_fabric(8, 12, 5)
    baseline = before = published(fabric, engine)
    order = np.random.default_rng(2).permutation(np.unique(fabric.channels.link)).tolist()
    most = 2 if engine == "auto" else 4  # A step of auto takes as long as a step of all other engines together.
    for count in range(1, most + 1):
        less = fabric.without_links(order[:count])
        found = reroute(ENGINES[engine], OPTIONS, before, less, baseline=baseline)
        check(found, before, less, engine)
        before = Published(less, found.routing, found.proof)
    for count in reversed(range(most)):
        more = fabric.without_links(order[:count])
        found = reroute(ENGINES[engine], OPTIONS, before, more, baseline=baseline)
        check(found, before, more, engine)
        before = Published(more, found.routing, found.proof)
    while before.left_baseline and not np.array_equal(before.routing.lft, baseline.routing.lft):
        found = spread(ENGINES[engine], OPTIONS, before, most=60, baseline=baseline)
        before = Published(fabric, found.routing, found.proof)
    assert np.array_equal(before.routing.lft, baseline.routing.lft)


@pytest.mark.parametrize("stability", list(Stability))
@pytest.mark.parametrize("engine", ["minhop", "updn", "nue", "dfsssp"])
def test_stabilities(stability, engine):
    fabric = FABRICS["torus"]()
    baseline = published(fabric, engine)
    less = fabric.without_links([int(fabric.channels.link[3])])
    found = reroute(ENGINES[engine], OPTIONS, baseline, less, stability=stability)
    check(found, baseline, less, engine)
    if stability is Stability.FRESH:
        assert found.how == "fresh"
        assert np.array_equal(found.routing.lft, ENGINES[engine].route(less, OPTIONS).lft)


def test_nothing_changed_nothing_done():
    fabric = FABRICS["torus"]()
    baseline = published(fabric, "nue")
    found = reroute(ENGINES["nue"], OPTIONS, baseline, fabric)
    assert (found.how, found.broken, found.changed) == ("unchanged", 0, 0)
    assert found.routing is baseline.routing


LOSSES = {
    "link": lambda fabric: fabric.without_links([int(fabric.channels.link[5])]),
    "switch": lambda fabric: apply_faults(fabric, every_switch(fabric)[4:5]),
    "CA and switch": lambda fabric: apply_faults(fabric, [*every_ca(fabric)[2:3], *every_switch(fabric)[4:5]]),
}


@pytest.mark.parametrize("engine", ["nue", "dfsssp", "lash"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_short_proof_says_what_the_long_one_says(engine, loss):
    """One random entry of the tables is changed.  The order of the right tables must not prove wrong tables."""
    fabric = random_fabric(3, 9, 4)
    before = published(fabric, engine)
    less = LOSSES[loss](fabric)
    found = reroute(ENGINES[engine], OPTIONS, before, less)
    translated, rng, refused = translate_tables(before.routing, fabric, less), np.random.default_rng(1), 0
    order = found.proof.certificate.order
    for _ in range(100):
        lft = found.routing.lft.copy()
        row, lid = rng.integers(less.switches), rng.integers(1, len(less.lids))
        if less.lids.switch[lid] < 0:
            continue
        lft[row, lid] = rng.integers(0, 8)
        turned = replace(found.routing, lft=lft)
        short, long = prove_changes(less, turned, before, translated, order), prove(less, turned, threads=1)
        if short is None:
            refused += 1
            continue
        assert long.complete
        assert long.certified
        assert np.array_equal(short.hops, long.hops)
        check_certificate(less, turned, short.certificate, threads=1)
    assert refused > 10


@pytest.mark.parametrize("loss", LOSSES)
def test_the_short_proof_sees_entries_that_were_left_out(loss):
    fabric = random_fabric(3, 9, 4)
    before = published(fabric, "nue")
    less = LOSSES[loss](fabric)
    found, translated = reroute(ENGINES["nue"], OPTIONS, before, less), translate_tables(before.routing, fabric, less)
    order = found.proof.certificate.order
    assert found.statistics.proven_by_changes
    for row, lid in np.argwhere((translated.routing.lft == 255) & (found.routing.lft != 255)).tolist():
        lft = found.routing.lft.copy()
        lft[row, lid] = 255
        assert prove_changes(less, replace(found.routing, lft=lft), before, translated, order) is None


def test_the_short_proof_is_not_for_replies_that_use_other_sls():
    """A changed SL also changes the replies, which the short proof does not follow."""
    fabric = FABRICS["torus"]()
    before = published(fabric, "lash")
    less = LOSSES["link"](fabric)
    found, translated = reroute(ENGINES["lash"], OPTIONS, before, less), translate_tables(before.routing, fabric, less)
    order = found.proof.certificate.order
    assert before.proof.strength == "reversible"
    assert prove_changes(less, found.routing, before, translated, order) is not None
    shape, rng = found.routing.lft.shape, np.random.default_rng(1)
    for _ in range(100):
        sl = np.broadcast_to(found.routing.sl, shape).copy()
        row, lid = rng.integers(shape[0]), rng.choice(less.endport_lid)
        sl[row, lid] = (sl[row, lid] + 1) % found.routing.vls
        assert prove_changes(less, replace(found.routing, sl=sl), before, translated, order) is None


@pytest.mark.parametrize("with_baseline", [False, True])
def test_incomplete_tables_are_completed_on_an_unchanged_fabric(with_baseline):
    fabric = FABRICS["torus"]()
    routing = ENGINES["nue"].route(fabric, OPTIONS)
    lft = routing.lft.copy()
    lft[1, fabric.endport_lid[0]] = 255
    lft[2, fabric.switch_lid[0]] = 255
    routing = replace(routing, lft=lft)
    before = Published(fabric, routing, prove(fabric, routing, threads=1))
    assert before.proof.certificate is not None and not before.proof.complete
    found = reroute(ENGINES["nue"], OPTIONS, before, fabric, baseline=before if with_baseline else None)
    assert found.how == "repaired" and found.proof.certified and found.changed >= 2
    assert prove(fabric, found.routing, threads=1).certified


def test_the_short_proof_is_not_for_sls_that_use_no_vl():
    fabric = FABRICS["torus"]()
    routing = ENGINES["nue"].route(fabric, OPTIONS)
    sl2vl = routing.sl2vl.copy()
    sl2vl[15] = 15  # no packet has this SL
    routing = replace(routing, sl2vl=sl2vl)
    before = Published(fabric, routing, prove(fabric, routing, threads=1))
    less = LOSSES["link"](fabric)
    found, translated = reroute(ENGINES["nue"], OPTIONS, before, less), translate_tables(before.routing, fabric, less)
    assert before.proof.certified
    assert np.array_equal(found.routing.sl2vl, sl2vl)
    sl = found.routing.sl.copy()
    sl[..., less.endport_lid[3]] = 15
    dropped = replace(found.routing, sl=sl)
    assert not prove(less, dropped, threads=1).complete
    assert prove_changes(less, dropped, before, translated, found.proof.certificate.order) is None


@pytest.mark.parametrize("engine", ["nue", "updn", "lash"])
def test_a_lost_switch_is_proven_by_what_changes_and_a_new_one_as_a_whole(engine):
    fabric = FABRICS["torus"]()
    baseline = published(fabric, engine)
    assert baseline.proof.strength == ("forward" if engine == "nue" else "reversible")
    for fault in every_switch(fabric)[::5]:
        less = apply_faults(fabric, [fault])
        found = reroute(ENGINES[engine], OPTIONS, baseline, less, baseline=baseline)
        assert found.statistics.proven_by_changes
        whole = prove(less, found.routing, threads=1)
        assert np.array_equal(found.proof.hops, whole.hops)
        assert found.proof.unreachable == whole.unreachable
        turns = less.channels.edges.numbers()
        assert not (whole.cdg.masks & ~found.proof.cdg.masks)[turns].any()
        translated = translate_tables(found.routing, less, fabric)
        assert not translated.nothing_new
        before, order = Published(less, found.routing, found.proof), baseline.proof.certificate.order
        assert prove_changes(fabric, baseline.routing, before, translated, order) is None


@pytest.mark.parametrize("engine", SINGLE)
def test_every_switch_there_and_back(engine):
    fabric = FABRICS["torus"]()
    baseline = published(fabric, engine)
    for fault in every_switch(fabric)[::3]:
        less = apply_faults(fabric, [fault])
        found = reroute(ENGINES[engine], OPTIONS, baseline, less, baseline=baseline)
        check(found, baseline, less, engine)
        assert found.how != "fresh" or engine in ("updn", "lash", "dfsssp", "nue")
        back = reroute(ENGINES[engine], OPTIONS, Published(less, found.routing, found.proof), fabric, baseline=baseline)
        assert np.array_equal(back.routing.lft, baseline.routing.lft)


@pytest.mark.parametrize("engine", sorted(ANY_FABRIC))
def test_a_switch_that_was_never_there(engine):
    """Re-route from the smaller fabric to the larger one, which has new rows, LIDs and channels."""
    fabric = random_fabric(4, 9, 4)
    less = apply_faults(fabric, [every_switch(fabric)[2]])
    before = published(less, engine)
    check(reroute(ENGINES[engine], OPTIONS, before, fabric), before, fabric, engine)


@pytest.mark.parametrize("engine", ["minhop", "nue", "dfsssp"])
def test_cables_that_were_swapped(engine):
    fabric = FABRICS["torus"]()
    baseline = published(fabric, engine)
    one, other = np.unique(fabric.channels.link)[[1, 9]].tolist()
    device, port = fabric.link_device.copy(), fabric.link_port.copy()
    device[[one, other], 1], port[[one, other], 1] = device[[other, one], 1], port[[other, one], 1]
    crossed = replace(fabric, link_device=device, link_port=port)
    check(reroute(ENGINES[engine], OPTIONS, baseline, crossed, baseline=baseline), baseline, crossed, engine)


@pytest.mark.parametrize("engine", ["nue", "dfsssp", "updn"])
def test_threads_change_nothing(engine):
    fabric = FABRICS["random"]()
    baseline = published(fabric, engine)
    less = fabric.without_links(np.unique(fabric.channels.link)[:2].tolist())
    one, two = (
        reroute(ENGINES[engine], replace(OPTIONS, threads=threads), baseline, less, baseline=baseline)
        for threads in (1, 2)
    )
    assert np.array_equal(one.routing.lft, two.routing.lft)
    assert np.array_equal(one.proof.certificate.order, two.proof.certificate.order)


def test_a_switch_that_helps_another_does_not_look_for_a_path_twice():
    """A campaign of faults found these six lost links, after which an earlier version of the repair did not end."""
    fabric = generate("kary-ntree", ["4", "3"])
    options = replace(OPTIONS, effort=0.0)
    baseline = published(fabric, "updn", options)
    lost = ("sw1.6/8", "sw1.0/7", "sw2.2/8", "sw2.2/5", "sw2.0/5", "sw2.1/7")
    broken = apply_faults(fabric, [parse_fault(f"link {name}", fabric) for name in lost])
    check(reroute(ENGINES["updn"], options, baseline, broken, baseline=baseline), baseline, broken, "updn")


def test_entries_towards_cut_off_devices_are_not_reported_as_valid():
    fabric = generate("torus", ["3x3"])
    baseline = published(fabric, "updn")
    apart = fabric.without_links(np.unique(fabric.channels.link).tolist())
    found = reroute(ENGINES["updn"], OPTIONS, baseline, apart, baseline=baseline)
    assert found.how == "unchanged" and found.broken == found.changed > 0
    assert found.reason == "entries towards cut-off devices were removed, all others are valid"


def test_a_slower_link_is_where_it_was():
    fabric = generate("torus", ["3x3"])
    baseline = published(fabric, "updn")
    slower = apply_faults(fabric, [parse_fault("degrade sw0.0/2 1x SDR", fabric)])
    assert reroute(ENGINES["updn"], OPTIONS, baseline, slower).reason == "no cable has changed"


def test_the_only_link_returns_without_a_baseline():
    """The fabric of the previous tables has no channel, so no channel number can be taken over."""
    baseline = published(generate("mesh", ["2"], cas=1), "updn")
    whole = baseline.fabric
    alone = whole.without_links(np.unique(whole.channels.link).tolist())
    assert not len(alone.channels)
    apart = reroute(ENGINES["updn"], OPTIONS, baseline, alone, baseline=baseline)
    back = reroute(ENGINES["updn"], OPTIONS, Published(alone, apart.routing, apart.proof), whole)
    assert prove(whole, back.routing, threads=1).complete
    assert back.proof.certified
    change = installed(apart.routing, alone, back.routing, whole)
    assert change.rewired is None and not (change.old.lft == back.routing.lft).all()
