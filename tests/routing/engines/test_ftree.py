"""Check fat-tree routing: D-mod-K on whole trees, paths up and then down on broken trees, and no loop."""

import itertools
import re
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from loop_check import has_loop
from strategies import Sketch

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError, RoutingError
from routing.fabric import NodeKind
from routing.quality import all_to_all_share, channel_loads
from routing.simulate.handmade import literal_fabric
from routing.topologies import generate
from routing.topologies.options import TopologyOptions
from routing.topologies.trees import kary_ntree, xgft
from routing.trees.closed_form import Leaves, route_tree

ENGINE = ENGINES["ftree"]


def route(fabric, **options):
    return ENGINE.route(fabric, EngineOptions(**{"threads": 1, **options}))


def tier(fabric, row):
    """Return the level of a switch by its name: sw1.x are the leaves."""
    return int(re.match(r"sw(\d+)", fabric.switch_name[row])[1]) - 1


def broken(fabric, share, seed):
    cables = np.unique(fabric.channels.link)
    gone = np.random.default_rng(seed).choice(cables, round(len(cables) * share), replace=False)
    return fabric.without_links(gone.tolist())


def walk(fabric, lft, switch, lid):
    """Return the channels of the path from a switch to a LID; None if the path does not arrive."""
    channels, path = fabric.channels, []
    while switch != fabric.lids.switch[lid]:
        channel = channels.at_port[switch, lft[switch, lid]]
        if channel < 0 or len(path) > fabric.switches:
            return None
        path.append(int(channel))
        switch = channels.dst[channel]
    return path if lft[switch, lid] == fabric.lids.port[lid] else None


def in_order(fabric):
    """Return the LIDs of the end ports in the order of switches and ports."""
    rows = sorted(range(fabric.endports), key=lambda e: (fabric.endport_switch[e], fabric.endport_switch_port[e]))
    return [int(fabric.endport_lid[row]) for row in rows]


@pytest.mark.parametrize(("k", "n"), [(2, 2), (4, 2), (3, 3), (2, 4)])
def test_a_whole_tree_is_routed_by_the_formula_of_d_mod_k(k, n):
    fabric = kary_ntree(k, n)
    routing, channels = route(fabric), fabric.channels
    for source in np.flatnonzero(fabric.terminals_at):
        for number, lid in enumerate(in_order(fabric)):
            path = walk(fabric, routing.lft, int(source), lid)
            assert len(path) % 2 == 0
            for c in path[: len(path) // 2]:
                row = int(channels.src[c])
                parents = sorted({int(channels.dst[up]) for up in channels_up(fabric, row)})
                assert channels.dst[c] == parents[number // k ** tier(fabric, row) % k]


def channels_up(fabric, row):
    channels = fabric.channels
    for c in range(channels.first[row], channels.first[row + 1]):
        if tier(fabric, channels.dst[c]) > tier(fabric, row):
            yield c


@pytest.mark.parametrize(
    "fabric",
    [kary_ntree(3, 3), kary_ntree(2, 4), xgft([4, 4, 6], [1, 4, 4]), xgft([6, 4], [1, 3])],
    ids=lambda f: f.name,
)
def test_every_shift_has_at_most_one_flow_on_a_channel_or_as_many_as_end_ports_share_it(fabric):
    routing, order = route(fabric), in_order(fabric)
    sharing = max(1, int(fabric.terminals_at.max()) // len(list(channels_up(fabric, 0))))
    at = [int(fabric.lids.switch[lid]) for lid in order]
    for shift in range(1, len(order)):
        load = Counter()
        for source, switch in enumerate(at):
            load.update(walk(fabric, routing.lft, switch, order[(source + shift) % len(order)]))
        assert max(load.values(), default=0) <= sharing


@pytest.mark.parametrize("pods", [2, 3, 8])
def test_every_shift_has_full_rate_if_all_spines_of_a_pod_share_their_tops(pods):
    fabric, _ = joined([], [f"t{n}" for n in range(4)], pods=pods)
    routing, order = route(fabric), in_order(fabric)
    for shift in range(1, len(order)):
        load = Counter()
        for source, lid in enumerate(order):
            switch = int(fabric.lids.switch[lid])
            load.update(walk(fabric, routing.lft, switch, order[(source + shift) % len(order)]))
        assert max(load.values()) == 1


def leaf_limit(fabric):
    """Return the all-to-all rate that the links of the worst leaf allow."""
    channels, all_ports = fabric.channels, fabric.endports
    limits = []
    for leaf in np.flatnonzero(fabric.terminals_at):
        links = int(np.count_nonzero(channels.src == leaf))
        own = int(fabric.terminals_at[leaf])
        limits.append((all_ports - 1) * links / (own * (all_ports - own)))
    return min(limits)


@pytest.mark.parametrize(("share", "seed"), [(0, 0), (0.01, 1), (0.03, 2), (0.05, 3)])
def test_a_broken_tree_carries_nearly_what_its_worst_leaf_allows(share, seed):
    fabric = broken(kary_ntree(10, 3), share, seed)
    routing = route(fabric)
    assert routing.provenance.options["longer_paths"] == 0
    assert all_to_all_share(fabric, channel_loads(fabric, routing)) > 0.97 * leaf_limit(fabric)


def test_a_broken_regular_tree_keeps_a_closed_form_that_its_worst_leaf_limits():
    # The descent carries .9655 of this limit, although its channels exceed their ceilings by less in total.
    fabric = broken(kary_ntree(8, 3), 0.03, 1)
    routing = route(fabric)
    assert routing.provenance.options["descent"] is False
    assert all_to_all_share(fabric, channel_loads(fabric, routing)) > 0.99 * leaf_limit(fabric)


TREES = [
    ("kary-ntree", ["2", "3"]),
    ("kary-ntree", ["3", "2"]),
    ("kary-ntree", ["2", "4"]),
    ("xgft", ["2x3x2", "1x2x3"]),
]


@given(st.sampled_from(TREES), st.sampled_from([0.0, 0.1, 0.3, 0.6]), st.integers(0, 99), st.integers(0, 2), st.data())
@examples(40)
def test_tables_of_any_broken_tree_arrive_without_a_loop(tree, share, seed, lmc, data):
    redundancy = data.draw(st.integers(1, 2), label="parallel links")
    fabric = broken(generate(*tree, lmc=lmc, redundancy=redundancy), share, seed)
    up = nx.DiGraph([(int(a), int(b)) for a, b in links_up(fabric)])
    up.add_nodes_from(range(fabric.switches))
    above = {row: {row, *nx.descendants(up, row)} for row in up}
    leaves = np.flatnonzero(fabric.terminals_at).tolist()
    try:
        routing = route(fabric)
    except RoutingError:
        apart = sum(not above[a] & above[b] for a, b in itertools.product(leaves, leaves))
        assert apart > 0
        return
    dependencies, component = nx.DiGraph(), fabric.component
    for lid in np.flatnonzero(fabric.lids.switch >= 0).tolist():
        end = int(fabric.lids.switch[lid])
        for row in range(fabric.switches):
            if component[row] != component[end]:
                assert routing.lft[row, lid] == 255
                continue
            path = walk(fabric, routing.lft, row, lid)
            assert path is not None
            nx.add_path(dependencies, path)
            # Faults can change the levels that the engine sees, so only on whole trees do the names state the levels.
            if share == 0.0 and row in leaves and end in leaves:
                steps = [tier(fabric, fabric.channels.dst[c]) > tier(fabric, fabric.channels.src[c]) for c in path]
                assert steps == sorted(steps, reverse=True)
                assert len(path) == 2 * sum(steps)
    assert not has_loop(dependencies)
    proof = prove(fabric, routing, threads=1)
    assert proof.complete and proof.strength == "reversible" and proof.scope == "all" and routing.vls == 1


def links_up(fabric):
    for a, b in zip(fabric.channels.src, fabric.channels.dst, strict=True):
        if tier(fabric, a) < tier(fabric, b):
            yield a, b


@pytest.mark.parametrize(("k", "lmc"), [(2, 2), (4, 2), (4, 3)])
def test_the_lids_of_a_port_take_different_tops(k, lmc):
    fabric = generate("kary-ntree", [str(k), "3"], lmc=lmc)
    routing, source = route(fabric), int(np.flatnonzero(fabric.terminals_at)[-1])
    for lid in fabric.endport_lid[fabric.endport_switch < k].tolist():
        paths = [walk(fabric, routing.lft, source, lid + offset) for offset in range(1 << lmc)]
        assert len({int(fabric.channels.dst[path[1]]) for path in paths}) == 1 << lmc
    assert all_to_all_share(fabric, channel_loads(fabric, routing)) == pytest.approx(leaf_limit(fabric))


def with_io(on_tops, on_middle=0):
    """Return a 3-ary 3-tree with further CAs on upper switches, and the rows of these CAs."""
    plain, sketch = kary_ntree(3, 3), Sketch("storage")
    for _ in range(plain.switches):
        sketch.add(NodeKind.SWITCH)
    for a, b in plain.link_device.tolist():
        if b >= plain.switches:
            sketch.cable(sketch.add(NodeKind.CA), a)
        elif a < plain.switches:
            sketch.cable(a, b)
    more = [18 + top for top in range(on_tops)] + [9 + middle for middle in range(on_middle)]
    for switch in more:
        sketch.cable(sketch.add(NodeKind.CA), switch)
    return sketch.build(), [int(guid) for guid in sketch.build().terminal_guid[plain.terminals :]]


@pytest.mark.parametrize(("on_tops", "on_middle"), [(1, 0), (9, 0), (0, 9), (9, 9), (3, 2)])
def test_io_nodes_can_be_on_upper_switches(on_tops, on_middle):
    fabric, _ = with_io(on_tops, on_middle)
    routing = route(fabric)
    proof = prove(fabric, routing, threads=1)
    assert proof.complete and proof.strength == "reversible" and proof.scope == "all"
    for source, lid in itertools.product(range(9), fabric.endport_lid[:27].tolist()):
        assert len(walk(fabric, routing.lft, source, lid)) <= 4


def test_files_name_compute_nodes_or_io_nodes(tmp_path):
    fabric, io = with_io(9)
    (tmp_path / "io").write_text("".join(f"{guid:#x}\n" for guid in io))
    (tmp_path / "cn").write_text("".join(f"{guid:#x}\n" for guid in fabric.terminal_guid.tolist() if guid not in io))
    by_io, by_cn = route(fabric, io_guid_file=tmp_path / "io"), route(fabric, cn_guid_file=tmp_path / "cn")
    assert np.array_equal(by_io.lft, by_cn.lft)
    plain, lids = kary_ntree(3, 3), in_order(fabric)[:27]
    assert np.array_equal(by_io.lft[:, lids], route(plain).lft[:, in_order(plain)])
    with pytest.raises(OptionError, match=r"updn treats all end ports alike \(leave the file out, or use ftree\)"):
        ENGINES["updn"].route(fabric, EngineOptions(io_guid_file=tmp_path / "io"))


def uneven():
    """Return a tree of three levels in which one leaf is cabled to the top switches."""
    sketch = Sketch("uneven")
    tops, middle, leaves = ([sketch.add(NodeKind.SWITCH) for _ in range(count)] for count in (2, 4, 5))
    for leaf in leaves:
        for _ in range(2):
            sketch.cable(sketch.add(NodeKind.CA), leaf)
    for above, below in itertools.product(tops, [*middle, leaves[4]]):
        sketch.cable(above, below)
    for number, leaf in enumerate(leaves[:4]):
        for one in (0, 1):
            sketch.cable(middle[number // 2 * 2 + one], leaf)
    return sketch.build()


def test_an_uneven_tree_has_the_levels_of_its_roots_named_or_not(tmp_path):
    fabric = uneven()
    found, named = route(fabric), route(fabric, roots=("sw0", "sw1"))
    proof = prove(fabric, found, threads=1)
    assert proof.complete and proof.strength == "reversible" and found.provenance.options["longer_paths"] == 0
    assert all(len(walk(fabric, found.lft, 10, lid)) <= 3 for lid in fabric.endport_lid.tolist())
    assert np.array_equal(found.lft, named.lft)
    (tmp_path / "roots").write_text("".join(f"{guid:#x}\n" for guid in fabric.switch_guid[:2].tolist()))
    assert np.array_equal(route(fabric, root_guid_file=tmp_path / "roots").lft, found.lft)
    with pytest.raises(RoutingError, match=r"the link sw0 port 2 - sw3 port 1 joins two switches of level 2"):
        route(fabric, roots=("sw2", "sw6"))


@pytest.mark.parametrize("words", [["2x3x4", "2x2"], ["4x8x20", "4x8"]])
def test_aggregation_nodes_and_a_management_leaf_do_not_hide_a_tree(words):
    fabric = generate("cluster", words)
    routing = route(fabric)
    proof = prove(fabric, routing, threads=1)
    assert proof.complete and proof.strength == "reversible" and proof.scope == "all"
    assert routing.provenance.options["levels"] == 3
    if fabric.endports < 100:
        return  # the traffic of the management leaf uses one top switch, which limits such a small tree
    minhop = ENGINES["minhop"].route(fabric, EngineOptions(threads=1))
    shares = [all_to_all_share(fabric, channel_loads(fabric, each)) for each in (routing, minhop)]
    assert shares[0] > 0.95 * shares[1]


def test_a_fabric_that_is_not_a_tree_is_an_error_with_a_reason():
    with pytest.raises(RoutingError) as raised:
        route(generate("ring", ["5"]))
    assert str(raised.value) == (
        "the fabric is not a tree: the link sw0 port 2 - sw4 port 3 joins two switches of level 0, as 5 links of 5 do "
        "(use updn or nue, or name the roots)"
    )
    sketch = Sketch("ring")
    rows = [sketch.add(NodeKind.SWITCH) for _ in range(12)]
    for one, other in zip(rows, rows[1:] + rows[:1], strict=True):
        sketch.cable(one, other)
    for row in rows[::2]:
        sketch.cable(sketch.add(NodeKind.CA), row)
    with pytest.raises(RoutingError, match=r"no switch is above both sw0 .level 0. and sw4 .level 0., and so for many"):
        route(sketch.build())


def joined(pairs, tops, cas=2, pods=2):
    """Return pods of four leaves and two spines, each linked to all tops, and the rows of further cables."""
    switches = [f"p{pod}-{name}" for pod in range(pods) for name in ("l0", "l1", "l2", "l3", "s0", "s1")] + tops
    cables = [(f"p{pod}-l{leaf}", f"p{pod}-s{spine}") for pod in range(pods) for leaf in range(4) for spine in range(2)]
    cables += [(f"p{pod}-s{spine}", top) for pod in range(pods) for spine in range(2) for top in tops]
    nodes = {f"{s}-ca{n}": s for s in switches if "-l" in s for n in range(cas)}
    fabric = literal_fabric("joined", switches, [*cables, *pairs], nodes)
    rows = [{fabric.labels[device] for device in ends} for ends in fabric.link_device.tolist()]
    return fabric, [row for row, ends in enumerate(rows) if ends in [set(pair) for pair in pairs]]


@pytest.mark.parametrize(
    "pairs",
    [
        [("p0-s0", "p0-s1"), ("p1-s0", "p1-s1")],
        [("t0", "t1")],
        [("p0-s0", "p1-s0"), ("t0", "t1")],
    ],
)
def test_links_between_upper_switches_of_a_level_change_no_path_between_leaves(pairs):
    fabric, within = joined(pairs, ["t0", "t1"])
    assert len(within) == len(pairs)
    routing, without = route(fabric), route(fabric.without_links(within))
    leaves, lids = np.flatnonzero(fabric.senders_at), fabric.endport_lid
    assert np.array_equal(routing.lft[np.ix_(leaves, lids)], without.lft[np.ix_(leaves, lids)])
    proof = prove(fabric, routing, threads=1)
    assert proof.complete and proof.strength == "reversible" and proof.scope == "all"


@pytest.mark.parametrize("pods", [2, 3])
def test_trees_are_joined_by_links_within_a_level(pods):
    pairs = [(f"p{pod}-s0", f"p{pod + 1}-s0") for pod in range(pods - 1)]
    fabric, _ = joined(pairs, [], pods=pods)
    routing = route(fabric)
    proof = prove(fabric, routing, threads=1)
    assert proof.complete and proof.strength == "reversible" and proof.scope == "all"
    updn = ENGINES["updn"].route(fabric, EngineOptions(threads=1))
    shares = [all_to_all_share(fabric, channel_loads(fabric, each)) for each in (routing, updn)]
    assert shares[0] >= 0.98 * shares[1]


def test_links_between_leaves_carry_the_traffic_between_these_leaves():
    fabric, _ = joined([("p0-l0", "p0-l1")], ["t0", "t1"])
    routing = route(fabric)
    load, pair = channel_loads(fabric, routing), {fabric.switch_name.index(name) for name in ("p0-l0", "p0-l1")}
    direct = [c for c, ends in enumerate(zip(fabric.channels.src, fabric.channels.dst, strict=True)) if {*ends} == pair]
    assert load[direct].tolist() == [4.0, 4.0]  # two CAs send to two CAs
    assert all_to_all_share(fabric, load) == 15 / 16


def test_same_tables_at_any_number_of_threads():
    fabric = broken(kary_ntree(4, 3, TopologyOptions(lmc=1)), 0.1, 5)
    one = route(fabric, threads=1, vls=3)
    for threads in (2, 3, 8):
        other = route(fabric, threads=threads, vls=3)
        assert np.array_equal(one.lft, other.lft) and np.array_equal(one.sl, other.sl)


def test_a_slow_link_up_carries_less():
    sketch = Sketch("slow")
    rows = [sketch.add(NodeKind.SWITCH) for _ in range(8)]
    for leaf, top in itertools.product(rows[:4], rows[4:]):
        sketch.cable(leaf, top, 1 if (leaf, top) == (0, 4) else 4)
    for leaf in rows[:4]:
        for _ in range(4):
            sketch.cable(sketch.add(NodeKind.CA), leaf)
    fabric = sketch.build()
    load = channel_loads(fabric, route(fabric))
    slow = fabric.channels.capacity < fabric.channels.capacity.max()
    assert np.count_nonzero(slow) == 2
    assert load[slow].max() < load[~slow].min()


UNEVEN = [
    # Each case: fabric, options, and share of the missing links.
    (["rails", "4x6x8", "6"], {"speed": "EDR", "aggregation": 1}, 0.0),
    (["rails", "2x4x12", "5"], {"speed": "NDR", "redundancy": 2}, 0.06),
    (["cluster", "2x3x4", "2x2"], {}, 0.0),
    (["cluster", "4x8x8", "8x4"], {"aggregation": 1, "lmc": 1}, 0.03),
]


@pytest.mark.parametrize(("words", "options", "missing"), UNEVEN, ids=[" ".join(row[0]) for row in UNEVEN])
def test_an_uneven_tree_is_as_well_balanced_as_by_updn(words, options, missing):
    fabric = broken(generate(words[0], words[1:], **options), missing, 1)
    routing, other = route(fabric), ENGINES["updn"].route(fabric, EngineOptions(threads=1))
    proof = prove(fabric, routing, threads=1)
    assert proof.certified and proof.complete and proof.strength == "reversible" and routing.vls_needed == 1
    shares = [all_to_all_share(fabric, channel_loads(fabric, each)) for each in (routing, other)]
    assert shares[0] > 0.97 * shares[1]


def test_regular_trees_and_named_compute_nodes_keep_the_closed_form(tmp_path):
    assert route(kary_ntree(4, 3)).provenance.options["descent"] is False
    fabric = generate("cluster", ["2x3x4", "2x2"])
    assert route(fabric).provenance.options["descent"] is True
    (tmp_path / "cn").write_text("".join(f"{guid:#x}\n" for guid in fabric.terminal_guid.tolist()))
    assert route(fabric, cn_guid_file=tmp_path / "cn").provenance.options["descent"] is False


def test_the_provenance_has_counts_of_the_closed_form_only_with_its_tables():
    closed, descended = (
        route(tree).provenance.options for tree in (kary_ntree(4, 3), generate("cluster", ["2x3x4", "2x2"]))
    )
    assert {"searched": 0, "longer_paths": 0, "descent": False}.items() <= closed.items()
    assert descended["descent"] is True and not {"searched", "longer_paths"} & set(descended)


@pytest.mark.parametrize(("roots", "share", "seed"), [(2, 0.25, 49), (3, 0.25, 0), (3, 0.35, 21)])
def test_every_longer_path_between_leaves_is_counted(roots, share, seed):
    """Filling the entry of one switch also fills the entries of other switches on the same path."""
    fabric = broken(kary_ntree(roots, 3), share, seed)
    leaves, weight = Leaves(np.ones(fabric.endports, bool)), np.ones(len(fabric.channels))
    tables, level = route_tree(fabric, leaves, weight, passes=1, threads=1)
    rises, longer = level[fabric.channels.dst] > level[fabric.channels.src], 0
    for source, lid in itertools.product(np.flatnonzero(fabric.terminals_at), fabric.endport_lid.tolist()):
        path = [bool(rises[channel]) for channel in walk(fabric, tables.lft, source, lid) or ()]
        longer += path != sorted(path, reverse=True)
    assert tables.filled_between_leaves == longer > 0
