"""Check the engines of dragonflies and Slim Flies: VLs by hop class, certified with and without faults."""

import collections
import random
import re
from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
from slow_proof import prove_slowly

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.engines.dragonfly_groups import NotADragonfly, groups_of
from routing.errors import NotEnoughVLs, RoutingError
from routing.quality import all_to_all_share, channel_loads
from routing.topologies import generate

CASES = [
    ("dragonfly", "dragonfly", ["4", "2", "2"]),
    ("dragonfly", "dragonfly", ["4", "2", "2", "5"]),
    ("slimfly", "slimfly", ["3"]),
    ("slimfly", "hyperx", ["4x3"]),
    ("slimfly", "kautz", ["3", "2"]),
]
named = pytest.mark.parametrize(("engine", "name", "size"), CASES, ids=str)


def without(fabric, share, seed):
    links = np.unique(fabric.channels.link).tolist()
    return fabric.without_links(sorted(random.Random(seed).sample(links, round(share * len(links)))))


@named
@pytest.mark.parametrize("vls", ["min", "auto", 3])
def test_two_vls_are_enough_without_faults(engine, name, size, vls):
    fabric = generate(name, size, cas=1)
    routing = ENGINES[engine].route(fabric, EngineOptions(vls=vls, port_vls=6))
    proof = prove(fabric, routing)
    assert proof.complete
    assert (proof.strength, proof.scope) == ("reversible", "all")
    assert routing.vls_needed <= 2 and routing.vls == {"min": 2, "auto": 6, 3: 3}[vls]


@named
def test_a_packet_changes_its_vl_behind_an_advancing_link_only(engine, name, size):
    fabric = generate(name, size, cas=1)
    routing, channels, lids = ENGINES[engine].route(fabric, EngineOptions(vls="min")), fabric.channels, fabric.lids
    group = groups_of(fabric) if engine == "dragonfly" else np.arange(fabric.switches)
    seen = set()
    for source in range(fabric.switches):
        for lid in np.flatnonzero(lids.switch >= 0):
            at, entry, path = source, 0, ""
            while at != lids.switch[lid]:
                out = routing.lft[at, lid]
                channel = channels.at_port[at, out]
                vl, to = routing.sl2vl[at, entry, out, routing.sl[source, lid]], channels.dst[channel]
                path += ("a" if group[at] == group[to] else "A") + str(vl)
                at, entry = to, channels.dst_port[channel]
            seen.add(path)
    regular = {"", "a0", "A0", "A0a1", "A0A1", "a0A0", "a0A0a1", "a0A0A1"}
    assert seen <= regular and "1" in "".join(seen)


@pytest.mark.parametrize("share", [0.03, 0.08, 0.2])
@pytest.mark.parametrize(("engine", "name", "size"), CASES[1:3], ids=["dragonfly", "slimfly"])
def test_faults_are_certified_as_the_slow_checker_says(engine, name, size, share):
    irregular = 0
    for seed in range(4):
        fabric = without(generate(name, size, cas=1), share, seed)
        try:
            routing = ENGINES[engine].route(fabric, EngineOptions(effort=0.1))
        except NotADragonfly:
            assert share == 0.2
            irregular += 1
            continue
        proof = prove(fabric, routing)
        assert proof.complete
        assert proof.strength == "reversible"
        slow = prove_slowly(fabric, routing)
        assert slow.counts["undelivered"] == slow.dropped == 0
        assert nx.is_directed_acyclic_graph(slow.both["endports"])
        irregular += routing.provenance.options.get("irregular_pairs", 1)
    assert irregular > 0


def test_each_irregular_pair_counts_once():
    fabric = without(generate("slimfly", ["5"], cas=1), 0.02, 0)
    distance = dict(nx.all_pairs_shortest_path_length(nx.Graph(fabric.link_device.tolist())))
    far = [pair for pair in combinations(range(fabric.switches), 2) if distance[pair[0]][pair[1]] > 2]
    routing = ENGINES["slimfly"].route(fabric, EngineOptions())
    assert routing.provenance.options["irregular_pairs"] == len(far) > 0


@pytest.mark.parametrize(("engine", "name", "size"), [CASES[0], CASES[2]], ids=["dragonfly", "slimfly"])
def test_lmc_and_first_vl(engine, name, size):
    fabric = without(generate(name, size, cas=2, lmc=1), 0.02, 1)
    routing = ENGINES[engine].route(fabric, EngineOptions(effort=0.1, first_vl=3, port_vls=15))
    proof = prove(fabric, routing)
    assert proof.complete and proof.strength == "reversible"
    used = routing.sl[:, fabric.lids.switch >= 0]
    assert used.min() >= 3
    assert routing.sl2vl[..., np.unique(used)].min() >= 3
    # The dragonfly needs seven SLs for each set of VLs, so the SLs from 3 on are enough for one set.
    assert routing.vls == {"dragonfly": 3 + 3 + 4, "slimfly": 15}[engine]


def test_too_many_faults_fall_back_to_layers():
    fabric = without(generate("slimfly", ["5"]), 0.1, 7)
    routing = ENGINES["slimfly"].route(fabric, EngineOptions(effort=0.1, vls=5))
    assert "LASH" in routing.provenance.options["fallback"]
    proof = prove(fabric, routing)
    assert proof.complete and proof.strength == "reversible"


def test_fabrics_of_other_kinds_are_refused():
    torus = generate("torus", ["6x6"], cas=1)
    with pytest.raises(NotADragonfly, match="groups of a dragonfly"):
        ENGINES["dragonfly"].route(torus, EngineOptions())
    with pytest.raises(RoutingError, match="34 % of the pairs"):
        ENGINES["slimfly"].route(torus, EngineOptions())
    with pytest.raises(NotEnoughVLs):
        ENGINES["slimfly"].route(generate("slimfly", ["5"], cas=1), EngineOptions(vls=1))


@pytest.mark.parametrize("size", [["4", "1", "2"], ["6", "1", "3", "8"], ["8", "1", "2", "17"]], ids="-".join)
@pytest.mark.parametrize("share", [0, 0.04])
def test_groups_are_found_from_the_cables(size, share):
    fabric = without(generate("dragonfly", size), share, 5)
    found = groups_of(fabric)
    expected = [name.split(".")[0] for name in fabric.switch_name]
    assert len(set(expected)) == len(set(zip(expected, found.tolist(), strict=True))) == found.max() + 1


@pytest.mark.parametrize(
    ("engine", "name", "size", "floor"),
    [
        ("dragonfly", "dragonfly", ["4", "2", "2"], 1.04),
        ("dragonfly", "dragonfly", ["6", "3", "3", "10"], 1.01),
        ("slimfly", "slimfly", ["5"], 0.956),
        ("slimfly", "hyperx", ["6x5"], 4.83),
    ],
    ids=["dragonfly", "dragonfly-10", "slimfly", "hyperx"],
)
def test_the_load_is_balanced(engine, name, size, floor):
    fabric = generate(name, size)
    routing = ENGINES[engine].route(fabric, EngineOptions())
    assert all_to_all_share(fabric, channel_loads(fabric, routing)) >= floor


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("vls", [3, 4])
def test_a_damaged_dragonfly_carries_as_much_as_with_lash(seed, vls):
    fabric = without(generate("dragonfly", ["6", "3", "3", "10"]), 0.04, seed)
    shares = []
    for engine in ("dragonfly", "lash"):
        routing = ENGINES[engine].route(fabric, EngineOptions(vls=vls))
        assert prove(fabric, routing).strength == "reversible"
        shares.append(all_to_all_share(fabric, channel_loads(fabric, routing)))
    assert shares[0] >= 0.999 * shares[1]


@pytest.mark.parametrize("vls", ["min", "auto", 1])
def test_a_fabric_without_links_needs_one_vl(vls):
    fabric = generate("full-mesh", ["1"], cas=3)
    routing = ENGINES["slimfly"].route(fabric, EngineOptions(vls=vls))
    assert prove(fabric, routing).complete and routing.vls_needed == 1


@pytest.mark.parametrize("size", [["4", "2", "2"], ["6", "3", "3", "10"], ["4", "1", "1"]], ids="-".join)
def test_further_lids_of_a_dragonfly_lead_over_a_third_group(size):
    fabric = generate("dragonfly", size, cas=2, lmc=1)
    routing = ENGINES["dragonfly"].route(fabric, EngineOptions(vls=3))
    assert (routing.vls_needed, routing.vls) == (3, 3)
    proof = prove(fabric, routing)
    assert proof.complete and (proof.strength, proof.scope) == ("reversible", "all")
    group = [name.split(".")[0] for name in fabric.switch_name]
    longer = total = 0
    for source, lid, seen, vls in walks(fabric, routing):
        links = "".join("l" if group[a] == group[b] else "g" for a, b in pairwise(seen))
        over_middle = links.count("g") == 2
        assert re.fullmatch("l?gl?gl?" if over_middle else "l?g?l?", links)
        assert vls == sorted(vls)
        if over_middle:
            first, second = links.index("g"), links.rindex("g")
            assert vls == [0] * (first + 1) + [1] * (second - first) + [2] * (len(links) - second - 1)
            assert len({group[switch] for switch in seen}) == 3
        if is_further(fabric, lid) and group[source] != group[seen[-1]]:
            longer, total = longer + over_middle, total + 1
        else:
            assert not over_middle
    # Of each group's G - 1 other groups, at most two are middles of a LID and keep their short paths.
    groups = len(set(group))
    assert longer >= total * (groups - 3) / (groups - 1)


def walks(fabric, routing):
    """Yield (source, LID, switches, VLs) of every path."""
    channels, lids = fabric.channels, fabric.lids
    for source in range(fabric.switches):
        for lid in np.flatnonzero(lids.switch >= 0).tolist():
            at, entry, seen, vls = source, 0, [source], []
            while at != lids.switch[lid]:
                out = routing.lft[at, lid]
                channel = channels.at_port[at, out]
                vls.append(int(routing.sl2vl[at, entry, out, routing.sl[source, lid]]))
                at, entry = int(channels.dst[channel]), channels.dst_port[channel]
                seen.append(at)
            yield source, lid, seen, vls


def is_further(fabric, lid):
    owner = fabric.lids.endport
    return owner[lid] >= 0 and owner[lid - 1] == owner[lid]


@pytest.mark.parametrize("step", [1, 2, 4])
def test_groups_that_send_to_the_next_group_share_less_over_further_lids(step):
    fabric = generate("dragonfly", ["4", "2", "2"], lmc=2)
    routing = ENGINES["dragonfly"].route(fabric, EngineOptions())
    group = [int(name.split(".")[0].removeprefix("sw")) for name in fabric.switch_name]
    place = [name.split(".")[1] for name in fabric.switch_name]
    load = [collections.Counter(), collections.Counter()]
    for source, lid, seen, _ in walks(fabric, routing):
        to = seen[-1]
        if fabric.lids.endport[lid] >= 0 and group[to] == (group[source] + step) % 9 and place[to] == place[source]:
            further = int(is_further(fabric, lid))
            load[further].update(dict.fromkeys(pairwise(seen), 1 / 3 if further else 1))
    # All 8 CAs of a group share one link to the next group.  Over further LIDs they share the links to several groups.
    assert max(load[0].values()) == 8
    assert max(load[1].values()) <= 4.5


@pytest.mark.parametrize("share", [0.01, 0.03, 0.05])
def test_detours_around_faults_are_certified_as_the_slow_checker_says(share):
    longer = 0
    for seed in range(5):
        fabric = without(generate("dragonfly", ["4", "1", "1"], cas=1, lmc=1), share, seed)
        routing = ENGINES["dragonfly"].route(fabric, EngineOptions(effort=0.1))
        proof = prove(fabric, routing)
        assert proof.complete and proof.strength == "reversible"
        slow = prove_slowly(fabric, routing)
        assert slow.counts["undelivered"] == slow.dropped == 0
        assert nx.is_directed_acyclic_graph(slow.both["endports"])
        group = groups_of(fabric)
        longer += sum(
            sum(group[a] != group[b] for a, b in pairwise(seen)) == 2 for *_, seen, _ in walks(fabric, routing)
        )
    assert longer > 0


@pytest.mark.parametrize("vls", ["min", 2])
def test_two_vls_leave_short_paths_to_all_lids_of_a_dragonfly(vls):
    fabric = generate("dragonfly", ["4", "2", "2"], cas=1, lmc=1)
    routing = ENGINES["dragonfly"].route(fabric, EngineOptions(vls=vls))
    assert routing.vls_needed == routing.vls == 2
    assert max(len(seen) for *_, seen, _ in walks(fabric, routing)) == 4
