"""Check the engine hyperx: minimal paths to base LIDs, other paths to further LIDs, and two VLs for both."""

import random
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from slow_proof import prove_slowly

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import NotEnoughVLs
from routing.faults import apply_faults, parse_fault
from routing.grids.coordinates import NotAGrid
from routing.publish import verify
from routing.quality import all_to_all_share, channel_loads
from routing.topologies import generate


def without(fabric, share, seed):
    links = np.unique(fabric.channels.link).tolist()
    return fabric.without_links(sorted(random.Random(seed).sample(links, round(share * len(links)))))


def coordinates(fabric):
    return [tuple(map(int, name.removeprefix("sw").split("."))) for name in fabric.switch_name]


def paths(fabric, routing):
    """Yield (source, LID, positions, VLs) of every path, in the coordinates of the generator."""
    channels, lids, place = fabric.channels, fabric.lids, coordinates(fabric)
    for source in range(fabric.switches):
        for lid in np.flatnonzero(lids.switch >= 0).tolist():
            at, entry, seen, vls = source, 0, [place[source]], []
            while at != lids.switch[lid]:
                out = routing.lft[at, lid]
                channel = channels.at_port[at, out]
                sl = routing.sl[lid] if routing.sl.ndim == 1 else routing.sl[source, lid]
                vls.append(int(routing.sl2vl[sl] if routing.sl2vl.ndim == 1 else routing.sl2vl[at, entry, out, sl]))
                at, entry = channels.dst[channel], channels.dst_port[channel]
                seen.append(place[at])
            yield source, lid, seen, vls


def axes(positions):
    """Return the dimension of each hop."""
    return [
        next(axis for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        for one, other in pairwise(positions)
    ]


@pytest.mark.parametrize("size", ["4x3", "3x2x3", "5x4"])
def test_base_lids_are_minimal_and_other_lids_take_two_hops_in_a_dimension(size):
    fabric = generate("hyperx", [size], cas=2, lmc=1)
    routing = ENGINES["hyperx"].route(fabric, EngineOptions(vls="min"))
    assert routing.vls_needed == routing.vls == 2
    first_lid = fabric.lids.endport.tolist()
    for _, lid, seen, vls in paths(fabric, routing):
        used = axes(seen)
        distance = sum(a != b for a, b in zip(seen[0], seen[-1], strict=True))
        is_base = first_lid[lid] < 0 or first_lid[lid - 1] != first_lid[lid]
        assert len(used) == distance if is_base else distance <= len(used) <= 2 * distance
        # The dimensions come one after the other, and the second hop in a dimension is on the second VL.
        changes = [(a, b) for a, b in pairwise(used) if a != b]
        assert len({a for a, _ in changes}) == len(changes)
        assert vls == [int(i > 0 and used[i] == used[i - 1]) for i in range(len(used))]
    proof = prove(fabric, routing)
    assert proof.complete and (proof.strength, proof.scope) == ("reversible", "all")


@pytest.mark.parametrize("share", [0.04, 0.1, 0.25])
def test_faults_are_certified_as_the_slow_checker_says(share):
    irregular = 0
    for seed in range(4):
        fabric = without(generate("hyperx", ["3x4"], cas=1, lmc=1), share, seed)
        routing = ENGINES["hyperx"].route(fabric, EngineOptions(effort=0.1))
        proof = prove(fabric, routing)
        assert proof.complete and proof.strength == "reversible"
        slow = prove_slowly(fabric, routing)
        assert slow.counts["undelivered"] == slow.dropped == 0
        assert nx.is_directed_acyclic_graph(slow.both["endports"])
        irregular += routing.provenance.options.get("irregular_pairs", 1)
    assert irregular > 0


def test_a_missing_switch_and_parallel_links():
    whole = generate("hyperx", ["4x4", "2x1"], cas=1, lmc=2)
    ends = whole.link_device
    cut = np.flatnonzero((ends == 5).any(axis=1) & (ends < whole.switches).all(axis=1))
    routing = ENGINES["hyperx"].route(
        fabric := whole.without_links(cut.tolist()), EngineOptions(first_vl=3, port_vls=15)
    )
    proof = prove(fabric, routing)
    assert proof.complete and proof.strength == "reversible"
    used = np.unique(routing.sl[..., fabric.lids.switch >= 0])
    assert used.min() >= 3 and routing.sl2vl[..., used].min() >= 3


def test_one_vl_without_an_lmc():
    fabric = generate("hyperx", ["4x3"], cas=2)
    routing = ENGINES["hyperx"].route(fabric, EngineOptions())
    assert routing.vls_needed == 1 and routing.sl2vl.ndim == 1
    assert {len(axes(seen)) for *_, seen, _ in paths(fabric, routing)} == {0, 1, 2}


def test_neighbours_that_send_to_one_another_share_less_over_further_lids():
    fabric = generate("hyperx", ["6x4"], cas=3, lmc=1)
    routing = ENGINES["hyperx"].route(fabric, EngineOptions())
    place, first = coordinates(fabric), fabric.lids.endport
    most = {}
    for offset in (0, 1):
        load = {}
        for source, lid, seen, _ in paths(fabric, routing):
            here, there = place[source], seen[-1]
            own = first[lid] >= 0 and (first[lid - 1] == first[lid]) == bool(offset)
            if own and there == ((here[0] + 1) % 6, here[1]):
                for hop in pairwise(seen):
                    load[hop] = load.get(hop, 0) + 1
        most[offset] = max(load.values())
    # All three CAs share the cable, or each cable is the first hop of one CA and the second hop of another one.
    assert most == {0: 3, 1: 2}


def test_fabrics_of_other_kinds_are_refused():
    with pytest.raises(NotAGrid, match="the 5 switches of a row form a ring"):
        ENGINES["hyperx"].route(generate("torus", ["5x5"], cas=1), EngineOptions())
    with pytest.raises(NotEnoughVLs):
        ENGINES["hyperx"].route(generate("hyperx", ["4x4"], cas=1, lmc=1), EngineOptions(vls=1))


@pytest.mark.parametrize(("name", "size", "rows"), [("hyperx", "3x3x3", [5, 11, 24]), ("hypercube", "5", [3, 9, 22])])
def test_uneven_paths_around_missing_switches_are_replaced(name, size, rows):
    whole = generate(name, [size], cas=1)
    fabric = apply_faults(whole, [parse_fault(f"switch {whole.switch_name[row]}", whole) for row in rows])
    share = {}
    for engine in ("hyperx", "lash"):
        routing = ENGINES[engine].route(fabric, EngineOptions(threads=1))
        assert verify(fabric, routing, ENGINES[engine]).proof.strength == "reversible"
        share[engine] = all_to_all_share(fabric, channel_loads(fabric, routing, threads=1))
    assert share["hyperx"] >= share["lash"] - 1e-9
    few = ENGINES["hyperx"].route(fabric, EngineOptions(threads=1, vls="min"))
    assert "fallback" not in few.provenance.options
