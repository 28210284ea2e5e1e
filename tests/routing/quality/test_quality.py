"""Check the quality figures against plain Python code that follows the path of every pair."""

import json
import math
import random
from collections import Counter, deque
from fractions import Fraction

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, random_fabric, ring_fabric

from routing._kernels import load as kernel
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError, TableError
from routing.fabric import NO_PORT, NodeKind
from routing.fabric_builder import FabricBuilder
from routing.quality import (
    Quality,
    all_to_all_bound,
    all_to_all_share,
    bisection_share,
    channel_loads,
    measure,
    reference_rate,
    tier_loads,
)
from routing.simulate.handmade import literal_fabric
from routing.tables import Provenance, Routing, identity_sl2vl
from routing.topologies import generate

MODEST = examples(60)
WORD = (1 << 64) - 1


def shortest_table(fabric, seed):
    """Return an LFT with a random nearer port for each LID and switch."""
    rng, channels, lids = random.Random(seed), fabric.channels, fabric.lids
    lft = np.full((fabric.switches, len(lids)), NO_PORT, np.uint8)
    for lid, (target, port) in enumerate(zip(lids.switch.tolist(), lids.port.tolist(), strict=True)):
        if target < 0:
            continue
        distance, queue = {target: 0}, deque([target])
        while queue:
            at = queue.popleft()
            for c in channels.into[channels.into_first[at] : channels.into_first[at + 1]].tolist():
                if int(channels.src[c]) not in distance:
                    distance[int(channels.src[c])] = distance[at] + 1
                    queue.append(int(channels.src[c]))
        lft[target, lid] = port
        for s, hops in distance.items():
            out = range(channels.first[s], channels.first[s + 1])
            nearer = [c for c in out if distance.get(int(channels.dst[c])) == hops - 1]
            if s != target:
                lft[s, lid] = channels.port[rng.choice(nearer)]
    return lft


def spoil(fabric, lft, seed, share):
    """Overwrite some entries with random values: no route, wrong ports, loops."""
    rng = np.random.default_rng(seed)
    hit = rng.random(lft.shape) < share
    ports = np.append(np.arange(int(fabric.switch_ports.max(initial=0)) + 1), NO_PORT)
    return np.where(hit, rng.choice(ports, lft.shape), lft).astype(np.uint8)


def walk(fabric, lft, at, lid):
    """Return the channels on the path, or None if the packet does not leave at the LID's port."""
    path = []
    while len(path) <= fabric.switches:
        port = int(lft[at, lid])
        if at == fabric.lids.switch[lid]:
            return path if port == fabric.lids.port[lid] else None
        channel = int(fabric.channels.at_port[at, port])
        if channel < 0:
            return None
        path.append(channel)
        at = int(fabric.channels.dst[channel])
    return None


def attached(fabric):
    """Return the end ports in the order of switch and port."""
    rows = [e for e in range(fabric.endports) if fabric.endport_switch[e] >= 0 and fabric.endport_lid[e]]
    return sorted(rows, key=lambda e: (fabric.endport_switch[e], fabric.endport_switch_port[e]))


def slow_all_to_all(fabric, lft):
    """Return the loads by channel, and the number of pairs by number of channels."""
    load, hops = [Fraction(0)] * len(fabric.channels), Counter()
    for target in attached(fabric):
        base, lids = int(fabric.endport_lid[target]), 1 << int(fabric.endport_lmc[target])
        for source in attached(fabric):
            for lid in range(base, base + lids) if source != target else ():
                path = walk(fabric, lft, int(fabric.endport_switch[source]), lid)
                if path is None:
                    continue
                hops[len(path)] += Fraction(1, lids)
                for channel in path:
                    load[channel] += Fraction(1, lids)
    return load, hops


def slow_shares(fabric, lft, pairs):
    """Return the rate of each flow (source row, destination row) in Gb/s, where flows share channels evenly."""
    paths, count = [], Counter()
    for source, target in pairs:
        lid = int(fabric.endport_lid[target]) + source % (1 << int(fabric.endport_lmc[target]))
        path = walk(fabric, lft, int(fabric.endport_switch[source]), lid)
        paths.append(path)
        count.update(path or [])
    rate = fabric.link_capacity[fabric.endport_link]
    return [
        0.0
        if path is None
        else min([rate[a], rate[b], *(fabric.channels.capacity[channel] / count[channel] for channel in path)])
        for (a, b), path in zip(pairs, paths, strict=True)
    ]


def slow_order(seed, number, n):
    """Return a random order by SplitMix64 and the Fisher-Yates method."""

    def mixed(z):
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
        z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
        return z ^ z >> 31

    state, order = mixed(mixed(seed & WORD) + number & WORD), list(range(n))
    for i in range(n - 1, 0, -1):
        state = state + 0x9E3779B97F4A7C15 & WORD
        j = (mixed(state) >> 32) * (i + 1) >> 32
        order[i], order[j] = order[j], order[i]
    return order


@st.composite
def routed(draw):
    fabric = draw(fabrics(connected=False, max_switches=9))
    lft = shortest_table(fabric, draw(st.integers(0, 99), label="table"))
    return fabric, spoil(fabric, lft, draw(st.integers(0, 99), label="spoil"), draw(st.sampled_from([0, 0, 0.02, 0.3])))


@MODEST
@given(routed(), st.integers(1, 5))
def test_loads_and_hops_equal_a_walk_of_every_pair(case, threads):
    fabric, lft = case
    load, hops = slow_all_to_all(fabric, lft)
    figures = measure(fabric, lft, bisections=2, shifts=2, permutations=2, threads=threads)
    assert channel_loads(fabric, lft, threads=threads).tolist() == [float(x) for x in load]
    assert figures.hops_histogram == tuple(float(hops[h]) for h in range(max(hops, default=-1) + 1))
    assert figures.pairs == figures.endports * (figures.endports - 1) == figures.pairs_lost + sum(hops.values())
    assert figures.hops_max == max(hops, default=0)
    assert figures.load_max == max(load, default=0)
    if hops:
        assert figures.hops_mean == pytest.approx(float(sum(h * n for h, n in hops.items()) / sum(hops.values())))
    if load:
        assert figures.load_mean == pytest.approx(float(sum(load) / len(load)))
        assert figures.load_deviation == pytest.approx(float(np.std([float(x) for x in load])))


@MODEST
@given(routed(), st.integers(0, WORD), st.integers(1, 5))
def test_shares_equal_a_walk_of_every_flow(case, seed, threads):
    fabric, lft = case
    rows = attached(fabric)
    figures = measure(fabric, lft, seed=seed, bisections=5, shifts=None, permutations=0, threads=threads)
    share = bisection_share(fabric, lft, seed=seed, bisections=5, threads=threads)
    if len(rows) < 2:
        assert math.isnan(share)
        assert math.isnan(figures.bisection_mean)
        assert math.isnan(figures.shift_mean)
        return
    assert share == figures.bisection_mean
    half, unit = len(rows) // 2, reference_rate(fabric)
    orders = [slow_order(seed, number, len(rows)) for number in range(5)]
    halves = [[(rows[o[i]], rows[o[half + i]]) for i in range(half)] for o in orders]
    means = [np.mean(slow_shares(fabric, lft, pairs)) / unit for pairs in halves]
    assert figures.bisection_mean == pytest.approx(np.mean(means))
    assert figures.bisection_least == pytest.approx(min(means))
    shifted = [
        slow_shares(fabric, lft, [(a, rows[(i + k) % len(rows)]) for i, a in enumerate(rows)])
        for k in range(1, len(rows))
    ]
    assert figures.shift_mean == pytest.approx(np.mean(shifted) / unit)
    assert figures.shift_least == pytest.approx(np.min(shifted) / unit)


def test_permutations_leave_out_what_a_port_sends_to_itself():
    fabric = random_fabric(3, switches=5, cas=2)
    lft, rows = shortest_table(fabric, 1), attached(fabric)
    figures = measure(fabric, lft, seed=7, bisections=0, shifts=0, permutations=6)
    orders = [slow_order(7 ^ 0x70657266, number, len(rows)) for number in range(6)]
    assert any(o[i] == i for o in orders for i in range(len(rows)))
    shares = [slow_shares(fabric, lft, [(rows[i], rows[t]) for i, t in enumerate(o) if i != t]) for o in orders]
    assert figures.permutation_mean == pytest.approx(np.mean([np.mean(s) for s in shares]) / 8.0)
    assert figures.permutation_least == pytest.approx(min(min(s) for s in shares) / 8.0)
    left_out = {name for name, value in figures.as_dict().items() if value is None}
    optional = {"bisection_mean", "bisection_min", "shift_mean", "shift_min", "stretch", "disjoint_paths"}
    assert left_out - {"thin_leaf"} == optional


@MODEST
@given(st.integers(-5, 1 << 65), st.integers(0, 9), st.integers(0, 40))
def test_orders_equal_the_published_generator(seed, first, n):
    orders = kernel.draw_orders(seed, first, first + 3, n).tolist()
    assert orders == [slow_order(seed, number, n) for number in range(first, first + 3)]


def test_shares_of_a_ring_by_hand():
    fabric = ring_fabric(4, cas=1)  # all traffic is clockwise: 1 + 2 + 3 pairs use each of the four channels
    lft = shortest_table(fabric, 1)
    for s in range(4):
        clockwise = [
            p
            for p in range(1, 4)
            if (c := fabric.channels.at_port[s, p]) >= 0 and fabric.channels.dst[c] == (s + 1) % 4
        ]
        lft[s, (fabric.lids.switch != s) & (fabric.lids.switch >= 0)] = clockwise[0]
    loads = channel_loads(fabric, lft)
    assert sorted(loads.tolist()) == [0, 0, 0, 0, 6, 6, 6, 6]
    assert all_to_all_share(fabric, loads) == pytest.approx(3 / 6)
    assert all_to_all_bound(fabric, loads) == pytest.approx(3 / 3)
    figures = measure(fabric, lft, shifts=None)
    assert figures.hops_histogram == (0.0, 4.0, 4.0, 4.0)
    assert figures.shift_least == pytest.approx(1 / 3)
    assert figures.shift_mean == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_packets_that_run_into_a_forwarding_loop_add_no_load():
    fabric = ring_fabric(7, cas=1)
    lft, channels = shortest_table(fabric, 1), fabric.channels
    lid = int(fabric.endport_lid[0])
    ring = [int(fabric.lids.switch[lid])]
    while len(ring) < 7:
        ring.append(next(s for s in channels.dst[channels.src == ring[-1]].tolist() if s not in ring))
    # switches 3 and 4 send to each other, switch 2 sends to both, and all other packets arrive
    for a, b in ((2, 3), (3, 4), (4, 3)):
        lft[ring[a], lid] = channels.port[(channels.src == ring[a]) & (channels.dst == ring[b])][0]
    load, hops = slow_all_to_all(fabric, lft)
    assert channel_loads(fabric, lft).tolist() == [float(x) for x in load]
    assert measure(fabric, lft).pairs_lost == 42 - sum(hops.values()) == 3


def test_bound_of_a_torus_by_formula():
    fabric = generate("torus", ["4x4x4"], cas=4)
    figures = measure(fabric, shortest_table(fabric, 3), bisections=0, shifts=0, permutations=0)
    flow_hops = 256 * 4 * 192  # each CA sends to 4 CAs on each switch; the distances from one switch add up to 3 * 64
    assert figures.load_mean == flow_hops / 384
    assert figures.bound == pytest.approx(255 / 512)
    assert figures.hops_mean == pytest.approx(flow_hops / (256 * 255))
    assert figures.all_to_all == 255 / figures.load_max < figures.bound


def test_every_shift_passes_a_fat_tree_whole():
    """With one root for each position on a leaf (D-mod-K), no two flows of a shift share a channel (Zahavi, 2010)."""
    fabric = generate("kary-ntree", ["4", "2"])
    lft, channels = shortest_table(fabric, 0), fabric.channels
    for position, endport in enumerate(attached(fabric)):
        lid, leaf = int(fabric.endport_lid[endport]), int(fabric.endport_switch[endport])
        for s in np.flatnonzero((fabric.terminals_at > 0) & (np.arange(fabric.switches) != leaf)).tolist():
            up = np.arange(channels.first[s], channels.first[s + 1])
            lft[s, lid] = channels.port[up[np.argsort(channels.dst[up])][position % 4]]
    figures = measure(fabric, lft, shifts=None)
    assert figures.shift_least == figures.shift_mean == 1.0
    assert figures.permutation_least < 1.0
    spoilt = measure(fabric, shortest_table(fabric, 0), shifts=None)
    assert spoilt.shift_least < 1.0


def two_switches(*speeds, ca_speeds=(2.5, 2.5)):
    """Return two switches with one CA each, and a cable of each given speed between the switches."""
    builder = FabricBuilder("pair")
    a, b = (builder.add_device(NodeKind.SWITCH, 0x20 + i, f"s{i}", 8) for i in range(2))
    for i, (switch, speed) in enumerate(zip((a, b), ca_speeds, strict=True)):
        builder.connect(builder.add_device(NodeKind.CA, 0x10 + 2 * i, f"h{i}", 1), 1, switch, 1, speed=speed)
    for i, speed in enumerate(speeds):
        builder.connect(a, 2 + i, b, 2 + i, speed=speed)
    return builder.build()


@pytest.mark.parametrize(
    ("speeds", "ca_speeds", "a2a", "ebb"),
    [
        ((2.5,), (2.5, 2.5), 1.0, 1.0),
        ((5.0,), (2.5, 2.5), 2.0, 1.0),
        ((2.5,), (5.0, 5.0), 0.5, 0.5),
        ((10.0,), (2.5, 5.0), 4.0, 1.0),
        ((10.0,), (5.0, 5.0), 2.0, 1.0),
    ],
)
def test_speeds_count_against_the_reference_rate(speeds, ca_speeds, a2a, ebb):
    fabric = two_switches(*speeds, ca_speeds=ca_speeds)
    lft = shortest_table(fabric, 0)
    assert all_to_all_share(fabric, channel_loads(fabric, lft)) == pytest.approx(a2a)
    assert bisection_share(fabric, lft) == pytest.approx(ebb)
    assert reference_rate(fabric) == min(ca_speeds) * 3.2


def test_lmc_spreads_a_pair_over_parallel_links():
    fabric = random_fabric(1, switches=2, degree=1, cas=1, parallel=1, lmc=2)
    assert channel_loads(fabric, shortest_table(fabric, 0)).tolist() == [1.0, 1.0]
    builder = FabricBuilder("wide")
    a, b = (builder.add_device(NodeKind.SWITCH, 0x20 + i, f"s{i}", 8) for i in range(2))
    for i, switch in enumerate((a, b)):
        builder.connect(builder.add_device(NodeKind.CA, 0x10 + 2 * i, f"h{i}", 1), 1, switch, 1)
    for port in range(2, 6):
        builder.connect(a, port, b, port)
    wide = builder.build(lmc=2)
    lft = shortest_table(wide, 0)
    for switch in range(2):
        for endport in range(2):
            if wide.endport_switch[endport] != switch:
                base = int(wide.endport_lid[endport])
                lft[switch, base : base + 4] = range(2, 6)
    assert channel_loads(wide, lft).tolist() == [0.25] * 8
    assert all_to_all_share(wide, channel_loads(wide, lft)) == pytest.approx(4.0)


@pytest.mark.parametrize("cas", [0, 1])
def test_too_few_end_ports_have_no_traffic(cas):
    builder = FabricBuilder("small")
    switch = builder.add_device(NodeKind.SWITCH, 0x20, "s", 4)
    for i in range(cas):
        builder.connect(builder.add_device(NodeKind.CA, 0x10 + 2 * i, f"h{i}", 1), 1, switch, 1 + i)
    fabric = builder.build()
    figures = measure(fabric, shortest_table(fabric, 0))
    assert (figures.endports, figures.pairs, figures.pairs_lost, figures.hops_histogram) == (cas, 0, 0.0, ())
    assert figures.all_to_all == figures.bound == math.inf
    assert figures.as_dict()["all_to_all"] is None
    assert all(math.isnan(share) for share in (figures.bisection_mean, figures.shift_least, figures.permutation_mean))


def test_a_fabric_without_switches_is_measured():
    figures = measure(FabricBuilder("empty").build(), np.zeros((0, 1), np.uint8))
    assert figures.endports == figures.pairs == figures.hops_max == 0
    assert figures.levels == ()


def test_split_fabric_counts_the_pairs_it_cannot_serve():
    fabric = random_fabric(5, switches=4, cas=2, parts=2)
    figures = measure(fabric, shortest_table(fabric, 0))
    assert (figures.pairs, figures.pairs_lost) == (56, 32.0)
    assert 0.0 < figures.bisection_mean < 1.0
    assert figures.shift_least == 0.0


def test_levels_of_a_tree():
    builder = FabricBuilder("tree")
    roots = [builder.add_device(NodeKind.SWITCH, 0x40 + i, f"r{i}", 8) for i in range(2)]
    leaves = [builder.add_device(NodeKind.SWITCH, 0x20 + i, f"l{i}", 8) for i in range(3)]
    for i, leaf in enumerate(leaves):
        for j, root in enumerate(roots):
            builder.connect(leaf, 1 + j, root, 1 + i)
        for k in range(2):
            number = 2 * i + k
            builder.connect(builder.add_device(NodeKind.CA, 0x100 + 2 * number, f"h{number}", 1), 1, leaf, 3 + k)
    builder.connect(roots[0], 8, roots[1], 8)
    fabric = builder.build()
    loads = channel_loads(fabric, shortest_table(fabric, 4))
    found = {(use.level, use.direction): use for use in tier_loads(fabric, loads)}
    assert {key: use.channels for key, use in found.items()} == {(0, "up"): 6, (0, "down"): 6, (1, "across"): 2}
    assert found[0, "up"].load_mean == found[0, "down"].load_mean == pytest.approx(6 * 4 / 6)
    assert found[1, "across"].load_max == 0.0
    assert found[0, "up"].load_max >= 4.0


def test_result_is_plain_json_and_the_same_for_routing_and_table():
    fabric = random_fabric(2, switches=6, mixed_speeds=True)
    lft = shortest_table(fabric, 0)
    routing = Routing(
        lft, np.zeros(len(fabric.lids), np.uint8), identity_sl2vl(1), vls=1, vls_needed=1, provenance=Provenance("test")
    )
    figures = measure(fabric, routing, threads=1)
    assert figures == measure(fabric, np.asfortranarray(lft), threads=4)
    assert figures != measure(fabric, routing, seed=2)
    again = json.loads(json.dumps(figures.as_dict(), allow_nan=False))
    assert again["load_max"] == figures.load_max
    assert again["levels"][0]["direction"] == figures.levels[0].direction
    assert len(again) == len(Quality.__dataclass_fields__)


def test_every_figure_names_its_unit():
    assert all(field.metadata["unit"] for field in Quality.__dataclass_fields__.values())


def test_refuses_tables_of_another_fabric_and_negative_counts():
    fabric = ring_fabric(3)
    lft = shortest_table(fabric, 0)
    with pytest.raises(TableError, match="the fabric needs uint8"):
        channel_loads(fabric, lft[:, :-1])
    with pytest.raises(TableError, match="int64"):
        measure(fabric, lft.astype(np.int64))
    with pytest.raises(OptionError, match="negative"):
        measure(fabric, lft, bisections=-1)


def test_all_to_all_traffic_stays_within_a_part_of_the_fabric():
    """Two planes without a link between them carry what each plane carries alone."""
    cables, cas = [], {}
    for name, size, ports in (("a", 5, 2), ("b", 4, 3)):
        cables += [(f"{name}{n}", f"{name}{(n + 1) % size}") for n in range(size)]
        cas |= {f"{name}{n}-ca{k}": f"{name}{n}" for n in range(size) for k in range(ports)}
    both = literal_fabric("planes", [*{switch: None for cable in cables for switch in cable}], cables, cas)
    routing = ENGINES["updn"].route(both, EngineOptions())
    loads = channel_loads(both, routing)
    shares, even = [], []
    for name, others in (("a", 9), ("b", 11)):
        own = loads[[both.switch_name[switch].startswith(name) for switch in both.channels.src]]
        shares.append(others / own.max())
        even.append(others * len(own) / own.sum())
    assert all_to_all_share(both, loads) == pytest.approx(min(shares))
    assert measure(both, routing).bound == pytest.approx(min(even))
