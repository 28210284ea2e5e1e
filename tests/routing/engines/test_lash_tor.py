"""Check LASH-TOR: it needs no more VLs than LASH, the slow proof certifies it, and VLs only increase along a path."""

from functools import cache

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_proof import Walker, prove_slowly
from strategies import fabrics, pull_links

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import NotEnoughVLs
from routing.quality import measure
from routing.topologies import generate

MEASURED = {
    "torus:5x5": (3, 2),
    "dragonfly:4,2,2": (3, 3),
    "kautz:4,3": (4, 3),
    "random-regular:50,6": (4, 3),
    "mesh:4x5": (1, 1),
}
"""VLs that `lash` and `lash-tor` need with `--vls min`."""


def route(fabric, engine="lash-tor", **options):
    return ENGINES[engine].route(fabric, EngineOptions(**options))


@cache
def small(name="pulled"):
    """Return a fabric on which transitions save a VL."""
    if name == "random":
        return generate("random-regular", ["30", "3"], cas=1, seed=2)
    whole = generate("torus", ["5x5"], cas=1, lmc=int(name == "two LIDs"))
    return pull_links(whole, 1, 0.1) if name == "pulled" else whole


@pytest.mark.parametrize("name", MEASURED)
def test_lash_tor_needs_no_more_vls_than_lash_and_balances_as_well(name):
    kind, arguments = name.split(":")
    fabric = generate(kind, arguments.split(","), cas=1)
    lash, found = route(fabric, "lash", vls="min"), route(fabric, vls="min")
    assert (lash.vls_needed, found.vls_needed) == MEASURED[name]
    proof = prove(fabric, found)
    assert (proof.certified, proof.strength, proof.vls) == (True, "reversible", found.vls_needed)
    shares = [measure(fabric, routing, bisections=1, shifts=0).all_to_all for routing in (lash, found)]
    assert shares[1] >= 0.96 * shares[0]


@pytest.mark.parametrize(("name", "first"), [("pulled", 3), ("two LIDs", 0), ("random", 0)])
def test_the_slow_proof_agrees_and_vls_only_grow(name, first):
    fabric = small(name)
    routing = route(fabric, vls="min", first_vl=first)
    assert routing.provenance.options["pairs_with_transitions"] > 0 and routing.sl2vl.ndim == 4
    assert routing.sl.min() >= first and routing.vls == first + routing.vls_needed
    slow = prove_slowly(fabric, routing)
    assert nx.is_directed_acyclic_graph(slow.both["all"]) and not slow.counts["undelivered"] and not slow.dropped
    assert (prove(fabric, routing).strength, prove(fabric, routing).scope) == ("reversible", "all")
    used = {vl for _, _, vl in slow.both["all"]}
    assert used == set(range(first, routing.vls))
    assert all(a[2] <= b[2] for a, b in slow.both["all"].edges)
    assert any(a[2] < b[2] for a, b in slow.both["all"].edges)


def test_both_directions_have_one_sl_and_paths_are_shortest():
    fabric = small()
    routing = route(fabric, vls="min")
    walker = Walker(fabric, routing)
    distance = np.array(fabric.graph.distances(mode="out"))
    at = fabric.lids.switch
    for lid, switch, _ in walker.receivers():
        assert [walker.reach(s, lid) for s in range(fabric.switches)] == distance[:, switch].tolist()
        for other, start, _ in walker.receivers():
            assert routing.sl[start, lid] == routing.sl[at[lid], other]


@examples(25)
@given(fabrics(connected=False, min_switches=0, max_switches=16, max_cas=2), st.sampled_from(["auto", "min", 2]))
def test_random_and_broken_fabrics_are_certified(fabric, vls):
    try:
        routing = route(fabric, vls=vls, effort=0.1)
    except NotEnoughVLs:
        assert vls == 2
        return
    proof = prove(fabric, routing)
    assert proof.complete and proof.certified and proof.strength == "reversible"
    if vls == "min":
        assert routing.vls_needed <= route(fabric, "lash", vls="min", effort=0.1).vls_needed


def test_balanced_paths_with_transitions_come_before_uneven_paths_of_lash():
    fabric = generate("torus", ["5x5"], cas=1)
    lash, found = route(fabric, "lash", vls=2), route(fabric, vls=2)
    assert (found.vls, prove(fabric, found).strength) == (2, "reversible")
    shares = [measure(fabric, routing, bisections=1, shifts=0).all_to_all for routing in (lash, found)]
    assert shares[1] > shares[0]
    with pytest.raises(NotEnoughVLs):
        route(generate("ring", ["7"], cas=1), vls=1)


def test_where_lash_fits_the_tables_are_those_of_lash():
    fabric = generate("torus", ["5x5"], cas=1)
    lash, found = route(fabric, "lash", vls=4), route(fabric, vls=4)
    assert np.array_equal(lash.lft, found.lft) and np.array_equal(lash.sl, found.sl) and found.sl2vl.ndim == 1


def test_aggregation_nodes_get_routes_on_changing_vls():
    fabric = generate("torus", ["5x5"], cas=1, aggregation=1)
    routing = route(fabric, vls="min")
    assert routing.sl2vl.ndim == 4
    assert prove(fabric, routing).certified and prove(fabric, routing).complete


def test_threads_and_runs_do_not_change_the_tables():
    one, two = (route(small(), vls="min", threads=threads) for threads in (1, 2))
    assert all(np.array_equal(getattr(one, part), getattr(two, part)) for part in ("lft", "sl", "sl2vl"))
