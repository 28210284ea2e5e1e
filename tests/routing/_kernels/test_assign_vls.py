"""Check the kernel that finds a VL for groups of paths, against networkx, group by group."""

import networkx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics

from routing._kernels.assign_vls import NO_VL, PathGroups, assign_vls
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.topologies import generate

VLS = 3


def channels_of(fabric, lft, source, lid):
    """Return the channels of a path that follows the tables; None if the path does not arrive."""
    found, s = [], source
    while s != fabric.lids.switch[lid]:
        c = int(fabric.channels.at_port[s, lft[s, lid]])
        if c < 0 or len(found) > fabric.switches:
            return None
        found.append(c)
        s = int(fabric.channels.dst[c])
    return found


def slow_assign_vls(fabric, lft, groups, graphs, allowed_vls):
    """Return the VL of each group, tried one after the other.  The function adds the dependencies to ``graphs``, one
    per VL.
    """
    given_vls = []
    for g, start in enumerate(groups.start.tolist()):
        members = range(groups.first[g], groups.first[g + 1])
        paths = [channels_of(fabric, lft, int(groups.source[i]), int(groups.lid[i])) for i in members]
        chosen = NO_VL
        for vl in [(start + i) % VLS for i in range(VLS)] if None not in paths else []:
            trial = graphs[vl].copy()
            for path in paths:
                networkx.add_path(trial, path)
            if allowed_vls[vl] and networkx.is_directed_acyclic_graph(trial):
                graphs[vl], chosen = trial, vl
                break
        given_vls.append(chosen)
    return given_vls


def masks_of(fabric, graphs):
    slot, count = fabric.channels.edges.first, fabric.channels.edges.count
    masks = np.zeros(count, np.uint16)
    for vl, graph in enumerate(graphs):
        for c, n in graph.edges:
            masks[slot[c] + n - fabric.channels.first[fabric.channels.dst[c]]] |= 1 << vl
    return masks


def random_groups(rng, fabric, count, most=3):
    size = rng.integers(1, most + 1, count)
    first = np.append(0, np.cumsum(size)).astype(np.int32)
    source = rng.integers(0, fabric.switches, first[-1]).astype(np.int32)
    lid = rng.choice(np.flatnonzero(fabric.lids.switch >= 0), first[-1]).astype(np.int32)
    return PathGroups(first, source, lid, rng.integers(0, VLS, count).astype(np.uint8))


def no_dependencies(fabric):
    order = np.tile(np.arange(len(fabric.channels), dtype=np.int32), (VLS, 1))
    return np.zeros(fabric.channels.edges.count, np.uint16), order


@examples(40)
@given(fabrics(min_switches=2, max_switches=8), st.integers(0, 10_000))
def test_the_kernel_chooses_what_networkx_chooses(fabric, seed):
    rng = np.random.default_rng(seed)
    lft = ENGINES["minhop"].route(fabric, EngineOptions(threads=1, effort=0.0)).lft.copy()
    lost = rng.random(lft.shape) < 0.02
    lft[lost & (fabric.lids.switch != np.arange(fabric.switches)[:, None])] = 255
    graphs, (masks, order) = [networkx.DiGraph() for _ in range(VLS)], no_dependencies(fabric)
    for allowed_vls in (np.ones(VLS, bool), rng.random(VLS) < 0.7):
        groups = random_groups(rng, fabric, 20)
        found, masks, order, _ = assign_vls(
            fabric.channels, fabric.lids.switch, lft, groups, masks=masks, order=order, allowed_vls=allowed_vls
        )
        assert found.tolist() == slow_assign_vls(fabric, lft, groups, graphs, allowed_vls)
        assert np.array_equal(masks, masks_of(fabric, graphs))
        for vl, graph in enumerate(graphs):
            assert all(order[vl, c] < order[vl, n] for c, n in graph.edges)


@pytest.mark.parametrize(("kind", "size"), [("ring", "9"), ("torus", "4x4"), ("torus", "3x3x3"), ("hypercube", "4")])
def test_paths_that_close_a_cycle_together_only(kind, size):
    """No single dependency of a group closes a cycle with earlier dependencies, but several dependencies in succession
    do.
    """
    fabric, rng = generate(kind, [size]), np.random.default_rng(3)
    lft = ENGINES["minhop"].route(fabric, EngineOptions(threads=1, effort=0.0)).lft
    for most in (2, 4, 8, 16, 40):
        groups, graphs = random_groups(rng, fabric, 24, most), [networkx.DiGraph() for _ in range(VLS)]
        masks, order = no_dependencies(fabric)
        found, masks, order, _ = assign_vls(
            fabric.channels, fabric.lids.switch, lft, groups, masks=masks, order=order, allowed_vls=np.ones(VLS, bool)
        )
        assert found.tolist() == slow_assign_vls(fabric, lft, groups, graphs, np.ones(VLS, bool))
        assert np.array_equal(masks, masks_of(fabric, graphs))


@pytest.mark.parametrize("most_failed", [0, 1, 4])
def test_after_too_many_groups_without_a_vl_no_group_gets_one(most_failed):
    fabric, rng = generate("ring", ["6"]), np.random.default_rng(1)
    lft = ENGINES["minhop"].route(fabric, EngineOptions(threads=1, effort=0.0)).lft
    masks, order = no_dependencies(fabric)
    arguments = (fabric.channels, fabric.lids.switch, lft, random_groups(rng, fabric, 120))
    options = {"masks": masks, "order": order, "allowed_vls": np.arange(VLS) == 1}
    whole, *_ = assign_vls(*arguments, **options)
    part, *_ = assign_vls(*arguments, **options, most_failed=most_failed)
    last = int(np.flatnonzero(whole == NO_VL)[most_failed])
    assert np.array_equal(part[: last + 1], whole[: last + 1])
    assert (part[last + 1 :] == NO_VL).all() and (whole[last + 1 :] != NO_VL).any()


def test_a_budget_that_is_used_up_places_nothing_more():
    fabric, rng = generate("ring", ["6"]), np.random.default_rng(1)
    lft = ENGINES["minhop"].route(fabric, EngineOptions(threads=1, effort=0.0)).lft
    masks = np.zeros(fabric.channels.edges.count, np.uint16)
    order = np.tile(np.arange(len(fabric.channels), dtype=np.int32)[::-1], (VLS, 1))
    arguments = (fabric.channels, fabric.lids.switch, lft, random_groups(rng, fabric, 60))
    whole, _, _, left = assign_vls(*arguments, masks=masks, order=order, allowed_vls=np.ones(VLS, bool), budget=10_000)
    assert 0 < left < 10_000
    part, _, _, left = assign_vls(*arguments, masks=masks, order=order, allowed_vls=np.ones(VLS, bool), budget=5)
    reached = 1 + int(np.flatnonzero(part != NO_VL).max())
    assert 0 < reached < len(part) / 2
    assert np.array_equal(part[:reached], whole[:reached])
    assert left <= 0
