import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from routing_cases import ANY_FABRIC
from strategies import Sketch, fabrics, pull_links, random_fabric, ring_fabric

from routing.deadlock.proof import prove
from routing.engines import ENGINES, nue
from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations
from routing.engines.layered import LayerSearch
from routing.errors import OptionError
from routing.fabric import NodeKind
from routing.faults import apply_faults, every_link
from routing.quality import measure
from routing.reroute import Published, reroute
from routing.topologies import generate


@examples(150)
@given(fabrics(max_switches=24, connected=False), st.integers(1, 15), st.sampled_from([None, "none"]))
def test_certified_on_any_fabric_with_any_number_of_vls(fabric, vls, partition):
    routing = ENGINES["nue"].route(fabric, EngineOptions(vls=vls, partition=partition, effort=0.02))
    proof = prove(fabric, routing)
    assert proof.complete
    assert proof.certified
    assert routing.vls == vls
    assert vls > 1 or proof.strength == "reversible"


@pytest.mark.parametrize("vls", [1, 2, 8])
@pytest.mark.parametrize(
    ("topology", "arguments"),
    [("torus", ["4x4x4"]), ("kautz", ["3", "3"]), ("kary-ntree", ["4", "3"]), ("dragonfly", ["4", "2", "2"])],
)
def test_no_worse_than_updn(topology, arguments, vls):
    fabric = generate(topology, arguments, **({} if topology in ("kary-ntree", "dragonfly") else {"cas": 3}))
    ours, theirs = (
        measure(fabric, ENGINES[name].route(fabric, EngineOptions(vls=vls, effort=0.2)), shifts=0).all_to_all
        for name in ("nue", "updn")
    )
    assert ours >= 0.97 * theirs


def test_near_the_limit_on_a_torus():
    """Shortest paths reach .498; OpenSM's nue reaches .406 with 8 VLs, and .045 with one VL."""
    fabric = generate("torus", ["4x4x4"], cas=4)
    shares = [
        measure(fabric, ENGINES["nue"].route(fabric, EngineOptions(vls=vls)), shifts=0).all_to_all for vls in (8, 1)
    ]
    assert shares[0] >= 0.48
    assert shares[1] >= 0.36


def test_nothing_on_the_escape_tree_where_there_is_room():
    routing = ENGINES["nue"].route(generate("torus", ["6x5x5"], cas=2), EngineOptions(vls=8))
    assert routing.provenance.options["escape_entries"] == 0
    assert routing.provenance.options["escape_destinations"] == 0


@pytest.mark.parametrize("vls", [1, 4])
def test_the_same_bytes_at_any_thread_count(same_tables, vls):
    fabric = pull_links(random_fabric(8, switches=40, degree=5, cas=3, lmc=1), 1, 0.1)
    one, many = (
        ENGINES["nue"].route(fabric, EngineOptions(vls=vls, threads=threads, effort=0.1)) for threads in (1, 5)
    )
    assert same_tables(one, many)


def test_lids_of_a_port_take_different_paths():
    fabric = random_fabric(8, switches=20, degree=5, cas=1, lmc=2)
    routing = ENGINES["nue"].route(fabric, EngineOptions(vls=4))
    base = int(fabric.endport_lid[0])
    own_switch = int(fabric.endport_switch[0])
    paths = routing.lft[:, base : base + 4]
    away = np.arange(fabric.switches) != own_switch
    assert np.mean([len(set(row)) for row in paths[away].tolist()]) > 1.5


def test_switches_share_the_path_and_vl_of_a_ca_behind_them():
    fabric = random_fabric(8, switches=20, degree=5, cas=1)
    routing = ENGINES["nue"].route(fabric, EngineOptions(vls=4))
    for switch, lid in enumerate(fabric.switch_lid.tolist()):
        ca = int(fabric.endport_lid[np.flatnonzero(fabric.endport_switch == switch)[0]])
        assert routing.sl[lid] == routing.sl[ca]
        others = np.arange(fabric.switches) != switch
        assert (routing.lft[others, lid] == routing.lft[others, ca]).all()


def test_routers_are_destinations(route):
    fabric = random_fabric(8, switches=12, cas=0, routers=6)
    assert set(fabric.terminal_kind.tolist()) == {int(NodeKind.ROUTER)}
    routing, _ = route("nue", fabric, vls=3)
    assert (routing.lft[:, fabric.endport_lid] != 255).all()


@pytest.mark.parametrize(("switches", "cas"), [(12, 10), (24, 5)])
def test_lines_with_all_lids_of_lmc_7(route, switches, cas):
    """OpenSM's nue crashes on these two fabrics."""
    sketch = Sketch("line")
    rows = [sketch.add(NodeKind.SWITCH) for _ in range(switches)]
    for row in rows:
        for _ in range(cas):
            sketch.cable(sketch.add(NodeKind.CA), row)
    for near, far in pairwise(rows):
        sketch.cable(near, far)
    _, proof = route("nue", sketch.build(lmc=7), effort=0.05)
    assert proof.certified


def test_a_split_fabric_is_routed_part_by_part(route):
    fabric = random_fabric(3, switches=24, degree=4, cas=2, parts=3)
    routing, proof = route("nue", fabric, vls=4)
    lids = fabric.lids
    for lid in np.flatnonzero(lids.switch >= 0).tolist():
        reached = routing.lft[:, lid] != 255
        assert (reached == (fabric.component == fabric.component[lids.switch[lid]])).all()
    assert proof.certified


def test_a_ring_needs_two_vls_for_shortest_paths():
    fabric = ring_fabric(8, cas=2)
    hops = [measure(fabric, ENGINES["nue"].route(fabric, EngineOptions(vls=vls)), shifts=0).hops_mean for vls in (1, 2)]
    assert hops[1] == pytest.approx(hops[1])
    assert hops[1] < hops[0]


def test_roots_are_refused():
    with pytest.raises(OptionError, match=r"nue has no roots \(leave them out, or use updn\)"):
        ENGINES["nue"].route(ring_fabric(4), EngineOptions(roots=("sw0",)))


@examples(60)
@given(fabrics(max_switches=20, connected=False), st.integers(1, 8), st.sampled_from(["nue", "updn"]))
def test_reversible_tables_are_reversible(fabric, vls, engine):
    routing = ENGINES[engine].route(fabric, EngineOptions(vls=vls, reversible=True, effort=0.02))
    proof = prove(fabric, routing)
    assert (proof.strength, proof.scope) == ("reversible", "all")
    assert routing.vls == vls


def test_without_it_replies_may_close_a_loop():
    fabric = generate("torus", ["4x4x4"], cas=1)
    strengths = [
        prove(fabric, ENGINES["nue"].route(fabric, EngineOptions(vls=8, reversible=reversible, effort=0.1))).strength
        for reversible in (False, True)
    ]
    assert strengths == ["forward", "reversible"]


@pytest.mark.parametrize(
    ("generator", "vls", "share", "needed"),
    [
        (("torus", "4x4x4"), 1, 0.498, 1),
        (("hyperx", "4x4"), 1, 3.75, 1),
        (("slimfly", "5"), 2, 0.956, 2),
        (("random-regular", "50", "6"), 8, 0.645, 8),
    ],
)
def test_reversible_takes_the_layers_of_lash_where_they_fit(generator, vls, share, needed):
    cas = {} if generator[0] == "slimfly" else {"cas": 1 if generator[0] == "hyperx" else 4}
    fabric = generate(generator[0], generator[1:], **cas)
    found = ENGINES["nue"].route(fabric, EngineOptions(vls=vls, reversible=True))
    lash = ENGINES["lash"].route(fabric, EngineOptions(vls=vls))
    rates = [measure(fabric, routing, shifts=0).all_to_all for routing in (found, lash)]
    assert rates[0] >= max(share, rates[1] * (1 - 1e-9))
    assert (found.vls, found.vls_needed) == (vls, needed)
    assert found.provenance.options["seeds"].startswith("pairs of switches")
    proof = prove(fabric, found)
    assert (proof.strength, proof.scope) == ("reversible", "all")


def reversible_on_kautz(**options):
    """Return tables for two VLs, for which the layers of lash do not suffice."""
    fabric = generate("kautz", ["4", "3"], cas=1)
    return ENGINES["nue"].route(fabric, EngineOptions(vls=2, reversible=True, effort=0.1, **options))


def test_reversible_keeps_to_one_layer_where_those_of_lash_do_not_fit(monkeypatch):
    smart = reversible_on_kautz()
    monkeypatch.setattr(nue, "is_moderate", lambda _: False)
    own = reversible_on_kautz()
    for routing, seeds in ((smart, ("tables of smart",)), (own, ("region", "updn"))):
        assert (routing.vls_needed, routing.vls) == (1, 2)
        assert routing.provenance.options["seeds"] in seeds
    fabric = generate("kautz", ["4", "3"], cas=1)
    assert prove(fabric, smart).strength == "reversible"
    shares = [measure(fabric, each, shifts=0, bisections=0, permutations=0).all_to_all for each in (own, smart)]
    assert shares[1] > 1.01 * shares[0]


@pytest.mark.parametrize(("factor", "taken"), [(0.999, True), (1.0, False), (1.001, False)])
def test_the_better_of_both_balances_counts(monkeypatch, factor, taken):
    """The layers have a highest utilisation that is a given multiple of the highest utilisation of Nue's trees."""
    monkeypatch.setattr(nue, "is_moderate", lambda _: False)
    own = reversible_on_kautz()
    fabric = generate("kautz", ["4", "3"], cas=1)
    highest = nue._max_utilisation(nue._Job(
        fabric, Destinations.of(fabric), np.zeros(len(Destinations.of(fabric).root), np.int32), 1,
        EngineOptions(vls=2, reversible=True, effort=0.1),
    ).best()[0])  # fmt: skip
    search = LayerSearch(fabric, Destinations.of(fabric), EngineOptions(vls=8), mutual=True)
    others = replace(search.run(), max_utilisation=highest * factor)
    monkeypatch.setattr(LayerSearch, "run", lambda self: others)
    routing = reversible_on_kautz()
    assert routing.provenance.options["seeds"].startswith("pairs") == taken
    assert np.array_equal(routing.lft, own.lft) != taken


@pytest.mark.parametrize("engine", ANY_FABRIC)
def test_vls_below_the_first_are_kept_free(engine):
    fabric = random_fabric(8, switches=20, degree=5, cas=2)
    plain = ENGINES[engine].route(fabric, EngineOptions(vls=3, effort=0.1))
    moved = ENGINES[engine].route(fabric, EngineOptions(vls=3, first_vl=4, effort=0.1))
    assert moved.lft.tobytes() == plain.lft.tobytes()
    assert (moved.sl == plain.sl + 4).all()
    assert moved.vls == 7
    assert moved.sl2vl[4:7].tolist() == [4, 5, 6]
    assert prove(fabric, moved).strength == prove(fabric, plain).strength


def test_a_first_vl_that_leaves_too_few():
    with pytest.raises(OptionError, match=r"no 8 data VLs from VL 8 on \(use at most 7\)"):
        ENGINES["nue"].route(ring_fabric(4), EngineOptions(vls=8, first_vl=8))
    with pytest.raises(OptionError, match=r"15 is not a valid first VL \(use 0 to 14\)"):
        EngineOptions(first_vl=15)
    assert ENGINES["nue"].route(ring_fabric(4), EngineOptions(first_vl=6)).sl.max() <= 7


def test_minhop_promises_nothing_of_replies():
    with pytest.raises(OptionError, match="minhop cannot make replies safe"):
        ENGINES["minhop"].route(ring_fabric(4), EngineOptions(reversible=True))


def test_tables_have_the_statistics_of_the_run():
    fabric = random_fabric(27, switches=20, degree=3, cas=2, parallel=2)
    options = ENGINES["nue"].route(fabric, EngineOptions(vls=1, passes=0)).provenance.options
    assert options["seeds"] in ("region", "updn")
    assert 0 <= options["escape_entries"] < 0.05 * len(fabric.lids) * fabric.switches
    assert options["escape_destinations"] == 0


def any_fabric(seed):
    """Return a random fabric with random faults, and the number of VLs to route it with."""
    rng = random.Random(f"nue {seed}")
    fabric = random_fabric(
        seed,
        switches=rng.randint(2, 40),
        degree=rng.randint(2, 6),
        cas=rng.randint(0, 3),
        parts=rng.choice([1, 1, 1, 2]),
        parallel=rng.choice([1, 1, 2, 3]),
        uneven_cas=rng.random() < 0.3,
        lmc=rng.choice([0, 0, 0, 1, 2]),
        mixed_speeds=rng.random() < 0.3,
        routers=rng.choice([0, 0, 2]),
        dual_port_cas=rng.choice([0, 0, 2]),
        loop_cables=rng.choice([0, 0, 1]),
        shuffled_guids=rng.random() < 0.5,
    )
    share = rng.choice([0.0, 0.05, 0.1, 0.3])
    return pull_links(fabric, seed, share, keep_connected=rng.random() < 0.8), (1, 2, 4, 8)[seed % 4]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2000, 100))
def test_two_thousand_random_fabrics(first):
    for seed in range(first, first + 100):
        fabric, vls = any_fabric(seed)
        routing = ENGINES["nue"].route(fabric, EngineOptions(vls=vls, effort=0.05))
        proof = prove(fabric, routing)
        assert proof.complete, seed
        assert proof.certified, seed
        if vls == 8:
            assert routing.provenance.options["escape_destinations"] == 0, seed


def test_a_tree_is_re_routed_as_by_updn():
    """Both engines have equal tables on trees, so re-routes may use the order of the tables in the same manner."""
    whole = generate("kary-ntree", ["4", "3"])
    found = {}
    for name in ("nue", "updn"):
        engine, options = ENGINES[name], EngineOptions()
        routing = engine.route(whole, options)
        before = Published(whole, routing, prove(whole, routing))
        for fault in every_link(whole)[:40:4]:
            less = apply_faults(whole, [fault])
            found.setdefault(name, []).append(reroute(engine, options, before, less).tables.routing.lft)
    assert all(map(np.array_equal, found["nue"], found["updn"]))
