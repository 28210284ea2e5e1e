import itertools
import json
import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from command_runs import run
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from loop_check import has_loop, walk_everything, walk_layers
from paper_lab import PaperLab
from strategies import fabrics, pull_links, random_fabric, ring_fabric

from routing.deadlock.offset_replies import replies_follow_requests
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions, Objective
from routing.engines.disjoint_orders import grid_orders
from routing.errors import NotEnoughVLs, OptionError
from routing.quality import all_to_all_share, channel_loads
from routing.quality.disjoint_paths import disjoint_paths
from routing.topologies import generate


def route(fabric, **options):
    return ENGINES["disjoint"].route(fabric, EngineOptions(effort=0.1, **options))


@examples(40)
@given(
    fabrics(connected=False, min_switches=0, max_switches=12, max_cas=2, max_lmc=3),
    st.booleans(),
    st.sampled_from(["auto", "min", 6, 15]),
    st.sampled_from(Objective),
)
def test_random_and_broken_fabrics_are_certified(fabric, reversible, vls, objective):
    routing = route(fabric, vls=vls, port_vls=15, reversible=reversible, objective=objective)
    proof = prove(fabric, routing)
    assert proof.complete
    assert proof.certified
    assert proof.strength == "reversible" or not reversible
    assert routing.vls == routing.vls_needed


def plain_cas(seed, lmc, switches=9, degree=4):
    """Return a fabric from which links are pulled, and that has only parts that :mod:`loop_check` knows."""
    fabric = random_fabric(seed, switches=switches, degree=degree, cas=1, parallel=2, lmc=lmc, parts=1 + seed % 2)
    return pull_links(fabric, seed, 0.2, keep_connected=False)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("reversible", [False, True])
def test_an_independent_walk_finds_no_loop_with_replies(seed, reversible):
    lmc = 1 + seed % 3
    fabric = plain_cas(seed, lmc)
    lab = PaperLab(fabric, route(fabric, reversible=reversible, vls=4))
    graph = walk_layers(lab, lab.requested_sls())
    assert graph.number_of_edges() > 10
    for shift in range(1 << lmc) if reversible else (0,):
        graph = nx.compose(graph, walk_layers(lab, lab.reply_sls(shift)))
    assert not has_loop(graph)


@pytest.mark.parametrize("seed", range(3))
def test_an_independent_walk_sees_every_packet_arrive(seed):
    fabric = random_fabric(seed, switches=9, degree=4, cas=1, parallel=2, lmc=2)
    _, lost = walk_everything(PaperLab(fabric, route(fabric)), lmc=2)
    assert lost == []


def test_the_independent_walk_finds_the_loop_of_replies_to_another_offset():
    fabric = generate("slimfly", ["5"], cas=1, lmc=2)
    lab = PaperLab(fabric, route(fabric, vls=4))
    one = walk_layers(lab, lab.requested_sls())
    assert not has_loop(nx.compose(one, walk_layers(lab, lab.reply_sls(0))))
    assert has_loop(nx.compose(one, walk_layers(lab, lab.reply_sls(1))))


@pytest.mark.parametrize("lmc", [1, 2, 3])
def test_two_switches_use_one_sl_both_ways_at_each_offset(lmc):
    fabric = plain_cas(3, lmc, switches=14)
    assert replies_follow_requests(fabric, route(fabric, vls=4))
    routing = route(fabric, vls=4, reversible=True)
    own = np.flatnonzero(fabric.lids.endport >= 0)
    for lid in own.tolist():
        base = int(fabric.endport_lid[fabric.lids.endport[lid]])
        assert np.array_equal(routing.sl[:, lid], routing.sl[:, base])


TARGETS = [
    ("slimfly", "5", 2, 0.97),
    ("slimfly", "5", 3, 0.995),
    ("hyperx", "4x4", 2, 0.97),
    ("hyperx", "4x4", 3, 0.995),
]


@pytest.mark.parametrize(("name", "arguments", "lmc", "share"), TARGETS)
def test_nearly_all_pairs_have_three_link_disjoint_paths_on_four_vls(name, arguments, lmc, share):
    fabric = generate(name, [arguments], lmc=lmc)
    routing = ENGINES["disjoint"].route(fabric, EngineOptions(vls=4))
    assert routing.vls == 4
    assert disjoint_paths(fabric, routing.lft).three >= share
    assert disjoint_paths(fabric, ENGINES["minhop"].route(fabric, EngineOptions()).lft).three < 0.2


@pytest.mark.parametrize(
    ("name", "arguments"), [("slimfly", "5"), ("hyperx", "4x4"), ("hyperx", "8x8"), ("hyperx", "4x4x4")]
)
def test_base_lids_take_balanced_shortest_paths(name, arguments):
    fabric = generate(name, [arguments], lmc=2)
    routing = ENGINES["disjoint"].route(fabric, EngineOptions(vls=4))
    base = replace(fabric, endport_lmc=np.zeros_like(fabric.endport_lmc))
    lft = np.ascontiguousarray(routing.lft[:, : len(base.lids)])
    best = ENGINES["minhop"].route(base, EngineOptions()).lft

    def share(tables):
        return all_to_all_share(base, channel_loads(base, tables))

    assert share(lft) >= 0.95 * share(best)


@pytest.mark.parametrize(("name", "sizes"), [("mesh", (3, 4)), ("hyperx", (4, 3, 5)), ("mesh", (2, 2, 2))])
def test_one_order_of_a_grid_leads_each_pair_only_up_or_only_down(name, sizes):
    fabric = generate(name, ["x".join(map(str, sizes))])
    orders = grid_orders(fabric)
    assert len(orders) == 2 ** (len(sizes) - 1)
    at = {tuple(map(int, re.findall(r"\d+", label))): row for row, label in enumerate(fabric.switch_name)}
    for a, b in itertools.permutations(at, 2):
        corners = [(*b[:axis], *a[axis:]) for axis in range(len(sizes) + 1)]
        ranks = [[order[at[corner]] for corner in dict.fromkeys(corners)] for order in orders]
        assert any(rank in (sorted(rank), sorted(rank)[::-1]) for rank in ranks)


@pytest.mark.parametrize(("name", "arguments"), [("torus", "5x5"), ("slimfly", "5")])
def test_fabrics_with_rings_or_without_coordinates_have_no_grid_orders(name, arguments):
    assert grid_orders(generate(name, [arguments])) == []


@pytest.mark.parametrize("lmc", [1, 2, 3])
def test_paths_are_at_most_two_hops_longer_than_the_diameter(lmc):
    fabric = generate("slimfly", ["5"], cas=1, lmc=lmc)
    assert prove(fabric, route(fabric, vls=4)).hops[:, fabric.lids.endport >= 0].max() <= 4


def test_more_than_eight_lids_share_eight_trees():
    fabric = generate("hyperx", ["3x3"], cas=1, lmc=4)
    lft = route(fabric).lft
    base = fabric.endport_lid.astype(np.int64)
    at = np.ones((fabric.switches, len(base)), bool)
    at[fabric.endport_switch, np.arange(len(base))] = False
    for offset in range(8):
        assert np.array_equal(lft[:, base + offset], lft[:, base + offset + 8])
    assert len(np.unique([lft[:, base + offset][at].tolist() for offset in range(8)], axis=0)) == 8


def test_ports_with_fewer_lids_share_the_first_trees():
    fabric = random_fabric(3, switches=10, cas=1, lmc=2)
    lmc = fabric.endport_lmc.copy()
    lmc[::2] = 0
    mixed = replace(fabric, endport_lmc=lmc)
    routing = route(mixed, vls=4)
    assert prove(mixed, routing).certified
    whole = route(fabric, vls=4)
    base = fabric.endport_lid.astype(np.int64)
    assert np.array_equal(routing.lft[:, base], whole.lft[:, base])


@pytest.mark.parametrize("reversible", [False, True])
def test_too_few_vls_are_never_passed_over(reversible):
    fabric = ring_fabric(7, lmc=1)
    with pytest.raises(NotEnoughVLs) as caught:
        route(fabric, vls=1, reversible=reversible)
    assert caught.value.have == 1 and not caught.value.proven
    fewest = route(fabric, vls="min", reversible=reversible).vls
    assert 2 <= fewest <= caught.value.needed
    assert prove(fabric, route(fabric, vls=caught.value.needed, reversible=reversible)).certified


def test_a_tree_needs_one_vl():
    fabric = generate("kary-ntree", ["3", "2"], lmc=2)
    routing = route(fabric, vls="min")
    assert routing.vls == 1
    assert prove(fabric, routing).certified


def test_unsupported_options_are_refused():
    fabric = random_fabric(1)
    for options in ({"roots": ("sw1",)}, {"minimal": False}, {"partition": "metis"}):
        with pytest.raises(OptionError, match=r"^disjoint "):
            route(fabric, **options)


def test_lost_links_keep_most_pairs_disjoint():
    fabric = generate("slimfly", ["5"], cas=1, lmc=2)
    broken = fabric.without_links(np.unique(fabric.channels.link)[::17])
    routing = ENGINES["disjoint"].route(broken, EngineOptions(vls=4))
    assert prove(broken, routing).certified
    assert disjoint_paths(broken, routing.lft).three > 0.93


def test_parallel_links_are_shared_and_stay_disjoint():
    fabric = random_fabric(11, switches=8, degree=3, cas=4, parallel=3, lmc=2)
    routing = route(fabric, vls=8)
    assert prove(fabric, routing).certified
    found = set()
    for port in range(4):
        only = np.flatnonzero(np.arange(fabric.endports) % 4 == port)
        part = fabric.without_links(np.delete(fabric.endport_link, only))
        found.add(disjoint_paths(part, np.ascontiguousarray(routing.lft[:, : len(part.lids)])))
    assert len(found) == 1
    load = channel_loads(fabric, routing.lft)
    bundles = {}
    for c in range(len(fabric.channels)):
        bundles.setdefault((fabric.channels.src[c], fabric.channels.dst[c]), []).append(load[c])
    assert any(len(loads) == 2 for loads in bundles.values())
    assert all(len(set(loads)) == 1 for loads in bundles.values() if len(loads) == 2)


@pytest.mark.parametrize("stability", ["full", "balanced", "fresh"])
def test_tables_are_repaired_or_computed_again_after_a_fault(stability, tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    fabric = "hyperx:4x4,cas=1,lmc=2"
    assert run("route", fabric, "-e", "disjoint", "--vls", 4, "-o", tmp_path / "old").exit_code == 0
    made = run(
        "route", fabric, "--previous", tmp_path / "old", "--stability", stability, "--fail", "sw0.0/3",
        "-o", tmp_path / "new", "--json",
    )  # fmt: skip
    report = json.loads(made.stdout)
    assert made.exit_code == 0
    assert (report["engine"], report["certified"], report["complete"]) == ("disjoint", True, True)
    assert report["replies_at_offset"] or stability != "fresh"
    assert report["quality"]["disjoint_paths"]["three"] > (0.9 if stability == "fresh" else 0.5)
