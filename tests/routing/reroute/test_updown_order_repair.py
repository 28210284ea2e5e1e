"""Check that an order of the switches is repaired after lost links, so that every switch reaches a single top going up
only.
"""

import networkx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics

from ibsim_fixtures.catalogue import FIXTURES
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.faults import apply_faults, every_switch
from routing.formats.fabric_files import read_fabric
from routing.reroute import Published, precompute, reroute
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.updown_order_repair import cut_off, orphan_roots, reconnect_order
from routing.topologies import generate

OPTIONS = EngineOptions(threads=1, effort=0.1)


def published(fabric):
    routing = ENGINES["updn"].route(fabric, OPTIONS)
    return Published(fabric, routing, prove(fabric, routing, threads=1))


def downhill(frame, position):
    """Return a graph of the links that are alive, each from the switch later in the order to the earlier one."""
    graph, channels = networkx.DiGraph(), frame.base.channels
    graph.add_nodes_from(np.flatnonzero(frame.repair_fabric.part >= 0).tolist())
    for c in np.flatnonzero(frame.repair_fabric.alive).tolist():
        if position[channels.dst[c]] < position[channels.src[c]]:
            graph.add_edge(int(channels.src[c]), int(channels.dst[c]))
    return graph


def ends(graph):
    """Return the number of switches without an edge to an earlier switch, not counting the first switch of each
    connected part.
    """
    parts = networkx.number_weakly_connected_components(graph)
    return sum(degree == 0 for _, degree in graph.out_degree()) - parts


def valleys(frame, masks, position, *, alive):
    """Return the number of used dependencies that lead down and then up: of live channels only if ``alive``, else of
    all channels.
    """
    channels, found = frame.base.channels, 0
    for c, s in enumerate(channels.dst.tolist()):
        for k, n in enumerate(range(channels.first[s], channels.first[s + 1])):
            if alive and not (frame.repair_fabric.alive[c] and frame.repair_fabric.alive[n]):
                continue
            down, up = position[channels.src[c]] < position[s], position[channels.dst[n]] < position[s]
            found += bool(masks[channels.edges.first[c] + k] and down and up)
    return found


@examples(150)
@given(fabrics(min_switches=2, max_switches=9), st.integers(0, 10_000))
def test_all_reach_one_top_by_turns_that_lead_up_then_down(fabric, seed):
    baseline = published(fabric)
    dependencies, rng = precompute(baseline, baseline).dependencies, np.random.default_rng(seed)
    links = rng.permutation(np.unique(fabric.channels.link))
    less = fabric.without_links(links[: rng.integers(0, 7)].tolist())
    frame = BaseNumbering.of(less, [fabric])
    uphill = downhill(frame, dependencies.position)
    assert len(orphan_roots(frame.repair_fabric, dependencies.position)) == ends(uphill)
    firsts = [min(part, key=dependencies.position.item) for part in networkx.weakly_connected_components(uphill)]
    reached = set(firsts).union(*(networkx.ancestors(uphill, first) for first in firsts))
    assert np.flatnonzero(
        ~cut_off(frame.repair_fabric, dependencies.position) & (frame.repair_fabric.part >= 0)
    ).tolist() == sorted(reached)
    found = reconnect_order(frame, dependencies)
    if found is None:
        assert ends(downhill(frame, dependencies.position)) > 0
        return
    assert ends(downhill(frame, found.position)) == 0
    assert sorted(found.position.tolist()) == list(range(fabric.switches))
    assert valleys(frame, found.masks, found.position, alive=False) == 0
    same = found.masks == dependencies.masks
    assert (found.masks[~same] == 0).all()
    assert valleys(frame, dependencies.masks, found.position, alive=True) == 0


def test_a_repair_with_many_changes_also_tries_the_old_order():
    fabric = read_fabric(FIXTURES["random-24-3-faults"].path)
    baseline = published(fabric)
    less = fabric.without_links([25])
    assert (
        reconnect_order(BaseNumbering.of(less, [fabric]), precompute(baseline, baseline).dependencies)
        is not precompute(baseline, baseline).dependencies
    )
    found = reroute(ENGINES["updn"], OPTIONS, baseline, less, baseline=baseline)
    assert found.changed <= 3 * found.broken
    assert found.proof.scope == "all"


@pytest.mark.parametrize(("kind", "size"), [("kary-ntree", ["4", "3"]), ("xgft", ["4x4x4", "1x3x4"])])
def test_trees_need_no_search_where_a_switch_loses_its_only_link_up(kind, size):
    fabric = generate(kind, size)
    baseline, rejoined = published(fabric), 0
    dependencies = precompute(baseline, baseline).dependencies
    for link in np.unique(fabric.channels.link).tolist():
        less = fabric.without_links([link])
        if not len(orphan_roots(BaseNumbering.of(less, [fabric]).repair_fabric, dependencies.position)):
            continue
        found = reroute(ENGINES["updn"], OPTIONS, baseline, less, baseline=baseline)
        assert (found.how, found.proof.scope, found.statistics.traces) == ("repaired", "all", None)
        assert found.statistics.visits == 0
        assert found.changed <= 3 * found.broken
        proof = prove(less, found.routing, threads=1)
        assert (proof.strength, proof.scope) == (baseline.proof.strength, baseline.proof.scope)
        back = reroute(ENGINES["updn"], OPTIONS, Published(less, found.routing, found.proof), fabric, baseline=baseline)
        assert np.array_equal(back.routing.lft, baseline.routing.lft)
        rejoined += 1
    assert rejoined


@pytest.mark.parametrize(("kind", "size"), [("kary-ntree", ["4", "3"]), ("xgft", ["4x4x4", "1x3x4"])])
def test_trees_need_no_search_where_a_switch_beside_the_first_is_lost(kind, size):
    """The switches above a lost switch depend only on the switches below it, and are reached from these."""
    fabric = generate(kind, size)
    baseline, together = published(fabric), 0
    dependencies = precompute(baseline, baseline).dependencies
    for fault in every_switch(fabric):
        less = apply_faults(fabric, [fault])
        repair_fabric = BaseNumbering.of(less, [fabric]).repair_fabric
        tops = orphan_roots(repair_fabric, dependencies.position)
        if not len(tops):
            continue
        found = reroute(ENGINES["updn"], OPTIONS, baseline, less, baseline=baseline)
        assert (found.how, found.proof.scope, found.statistics.traces) == ("repaired", "all", None)
        assert found.statistics.visits == 0
        assert found.changed <= 3 * found.broken
        together += len(tops) > 1 and np.count_nonzero(cut_off(repair_fabric, dependencies.position)) > len(tops)
    assert together
