"""Trees that are too large for a descent: the tables in closed form, against breadth-first distances and the proof."""

import numpy as np
import pytest
from strategies import Sketch, pull_links

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations
from routing.engines.tree_paths import CLOSED_FORM_PASSES, _all_shortest, _up_then_down, may_descend
from routing.fabric import NodeKind
from routing.quality import channel_loads, measure
from routing.topologies import generate
from routing.trees.closed_form import channel_indices
from routing.trees.levels import tree_order

SMALL_EFFORT = EngineOptions(effort=1e-6)
"""An effort with which the descent exceeds its limit even on a small tree."""


@pytest.fixture(scope="module")
def broken():
    return pull_links(generate("kary-ntree", ["4", "3"]), 4, 0.03)


@pytest.mark.parametrize("engine", ["updn", "nue"])
def test_tables_are_those_of_ftree_where_the_effort_forbids_a_descent(broken, engine):
    assert not may_descend(broken, Destinations.of(broken), SMALL_EFFORT)
    assert may_descend(broken, Destinations.of(broken), EngineOptions())
    routing = ENGINES[engine].route(broken, SMALL_EFFORT)
    closed = ENGINES["ftree"].route(broken, EngineOptions(effort=1e-6, passes=CLOSED_FORM_PASSES)).lft
    assert np.array_equal(routing.lft, closed)
    assert prove(broken, routing).certified
    leaves = broken.endport_switch
    distance = np.array(broken.graph.distances())[np.ix_(leaves, leaves)]
    mean = distance.sum() / (len(leaves) * (len(leaves) - 1))
    assert measure(broken, routing, bisections=0, shifts=0, permutations=0).hops_mean == pytest.approx(mean)


def test_a_longer_path_is_noticed(broken):
    destinations = Destinations.of(broken)
    load = channel_loads(broken, ENGINES["ftree"].route(broken, EngineOptions()).lft, threads=1)
    assert _all_shortest(broken, destinations, load)
    load[0] += 1.0
    assert not _all_shortest(broken, destinations, load)


def test_a_path_down_and_then_up_is_noticed(broken):
    destinations, position = Destinations.of(broken), tree_order(broken).position
    lft = ENGINES["updn"].route(broken, EngineOptions()).lft
    found = channel_indices(broken, lft, destinations.lid)
    assert _up_then_down(broken, found, position)
    assert not _up_then_down(broken, found, position.max() - position)


def test_switches_without_cas_are_routed():
    sketch = Sketch()
    sketch.cable(sketch.add(NodeKind.SWITCH), sketch.add(NodeKind.SWITCH))
    fabric = sketch.build()
    assert prove(fabric, ENGINES["updn"].route(fabric, EngineOptions(effort=1e-9))).certified
