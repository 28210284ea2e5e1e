"""Check knots and cycles: the examples of Pinkston's chapter by their figure numbers, and random graphs against
networkx.
"""

from itertools import pairwise, permutations, product

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from routing.cdg.trace import dependency_graph
from routing.deadlock.waitfor import Knot, WaitFor
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError
from routing.topologies import generate


class Named:
    """A wait-for graph whose vertices have any hashable names."""

    def __init__(self, waits, movable=(), vertices=()):
        waits = set(waits)
        self.names = sorted({name for wait in waits for name in wait} | set(vertices), key=str)
        number = {name: k for k, name in enumerate(self.names)}
        self.edges = len(waits)
        ends = [[number[wait[k]] for wait in waits] for k in (0, 1)]
        self.graph = WaitFor.of(*ends, len(self.names), can_move=[name in movable for name in self.names])
        self.number = number

    def reach(self, name):
        return {self.names[k] for k in self.graph.reach(self.number[name])}

    @property
    def knots(self):
        return [{self.names[k] for k in knot.members} for knot in self.graph.knots]

    @property
    def components(self):
        """Return the strongly connected sets with a cycle, as sets of names."""
        number = self.graph.component
        found = {int(number[k]) for k in np.flatnonzero(self.graph.on_cycle)}
        return [{self.names[k] for k in np.flatnonzero(number == c)} for c in sorted(found)]

    @property
    def size(self):
        return len(self.names), self.edges


def turns(paths):
    """Return the dependencies of packets that follow these paths."""
    return {pair for path in paths for pair in pairwise(path)}


RING = [("c4", "c5"), ("c5", "c6"), ("c6", "c7"), ("c7", "c4")]


def test_13_3_a_cycle_with_a_remedy():
    found = Named([*RING, ("c6", "c14"), ("c14", "c3"), ("c3", "c0")])
    assert found.components == [{"c4", "c5", "c6", "c7"}]
    assert found.reach("c14") == {"c3", "c0"}
    assert found.reach("c3") == {"c0"}
    assert found.reach("c0") == set()
    for name in ("c4", "c5", "c6", "c7"):
        assert found.reach(name) == {"c4", "c5", "c6", "c7", "c14", "c3", "c0"}
    assert found.knots == []
    assert found.graph.verdict == "cyclic"
    assert not found.graph.stuck.any()


def test_13_3_without_the_remedy():
    found = Named([*RING, ("c14", "c3"), ("c3", "c0")])
    assert found.knots == [{"c4", "c5", "c6", "c7"}]
    assert found.graph.verdict == "deadlocked"
    assert {found.names[k] for k in np.flatnonzero(found.graph.stuck)} == {"c4", "c5", "c6", "c7"}


@pytest.mark.parametrize(("signs", "channels", "edges"), [((1,), 16, 24), ((1, -1), 32, 80)])
def test_13_3_dependencies_of_the_2x4_torus(signs, channels, edges):
    """Minimal adaptive routing: packets continue along x (three hops in one direction, or two in both), change between
    x and y, and never take two hops along y.
    """
    found = set()
    for x, y, sign in product(range(4), range(2), signs):
        along_x, along_y = (x, y, "x", sign), (x, y, "y", sign)
        to_x, to_y = ((x + sign) % 4, y), (x, (y + sign) % 2)
        found.add((along_x, (*to_x, "x", sign)))
        found |= {(along_x, (*to_x, "y", other)) for other in signs}
        found |= {(along_y, (*to_y, "x", other)) for other in signs}
    graph = Named(found)
    assert graph.size == (channels, edges)
    assert [len(component) for component in graph.components] == [channels]


def test_13_5_message_queues():
    waits = list(pairwise(["IQA", "OQA", "IQB", "OQB", "IQA"]))
    found = Named(waits)
    assert found.size == (4, 4)
    assert found.knots == [{"IQA", "OQA", "IQB", "OQB"}]
    assert found.graph.verdict == "deadlocked"


def ring_of_four(vl):
    """Return the paths between all pairs of a directed ring of four.  The VL depends on the present and the last
    switch.
    """
    paths = {}
    for start, end in permutations(range(4), 2):
        path = [(start + k) % 4 for k in range((end - start) % 4)]
        paths[start, end] = [f"{vl(at, end)}{at}" for at in path]
    return paths


HIGH_LOW = ring_of_four(lambda at, end: "H" if at < end else "L")


def test_13_9_one_vl_and_two():
    one = Named(turns(ring_of_four(lambda at, end: "c").values()))
    assert one.size == (4, 4)
    assert one.graph.verdict == "deadlocked"
    two = Named(turns(HIGH_LOW.values()))
    assert two.size == (6, 5)
    assert turns(HIGH_LOW.values()) == {("L1", "L2"), ("L2", "L3"), ("L3", "H0"), ("H0", "H1"), ("H1", "H2")}
    assert two.graph.verdict == "acyclic"


def interfaces(requests, replies, nodes=range(4)):
    """Return waits through network interfaces: the last channel of a request, the interface, the first channel of the
    reply.
    """
    into = {(path[-1], f"R{end}") for (_, end), path in requests.items() if end in nodes}
    return into | {(f"R{start}", path[0]) for (start, _), path in replies.items() if start in nodes}


def test_13_6_requests_and_replies_on_the_same_vls():
    exchange = {("H2", "R3"), ("R3", "L3")}
    assert interfaces(HIGH_LOW, HIGH_LOW, [3]) == exchange
    one = Named(turns(HIGH_LOW.values()) | exchange)
    assert one.components == [{"L3", "H0", "H1", "H2", "R3"}]
    every = Named(turns(HIGH_LOW.values()) | interfaces(HIGH_LOW, HIGH_LOW))
    assert [len(component) for component in every.components] == [10]


def test_13_14_networks_of_their_own():
    replies = {pair: [f"reply {channel}" for channel in path] for pair, path in HIGH_LOW.items()}
    network = turns(HIGH_LOW.values()) | turns(replies.values())
    two = Named(network | interfaces(HIGH_LOW, replies))
    assert len(two.names) == 16
    assert two.graph.verdict == "acyclic"
    three = Named(network | interfaces(HIGH_LOW, replies) | interfaces(HIGH_LOW, HIGH_LOW))
    assert [len(component) for component in three.components] == [10]


def mesh_paths(orders):
    """Yield all shortest paths of the 3x3 mesh whose moves come in an allowed order."""
    moves = {"E": (1, 0), "W": (-1, 0), "N": (0, 1), "S": (0, -1)}
    for (x, y), (to_x, to_y) in permutations(product(range(3), repeat=2), 2):
        bag = ("E" if to_x > x else "W") * abs(to_x - x) + ("N" if to_y > y else "S") * abs(to_y - y)
        for route in {route for route in permutations(bag) if orders(route)}:
            at, path = (x, y), []
            for move in route:
                then = (at[0] + moves[move][0], at[1] + moves[move][1])
                path.append((at, then))
                at = then
            yield path


def is_sorted(path, first):
    return list(path) == sorted(path, key=lambda move: move not in first)


@pytest.mark.parametrize(
    ("orders", "edges", "cyclic"),
    [
        (lambda way: is_sorted(way, "EW"), 28, []),
        (lambda way: is_sorted(way, "EW") or is_sorted(way, "NS"), 44, [24]),
        (lambda way: is_sorted(way, "W"), 36, []),
    ],
    ids=["XY", "XY and YX", "west first"],
)
def test_13_8_the_3x3_mesh(orders, edges, cyclic):
    found = Named(turns(mesh_paths(orders)))
    assert found.size == (24, edges)
    assert [len(component) for component in found.components] == cyclic


def up_down(links, level):
    """Return the dependencies of Up*/Down*: every turn except turns that lead down and then up."""
    both = [*links, *((b, a) for a, b in links)]

    def is_up(a, b):
        return (level[b], b) < (level[a], a)

    return {(x, y) for x, y in product(both, both)
            if x[1] == y[0] and x[0] != y[1] and not (is_up(*y) and not is_up(*x))}  # fmt: skip


def test_13_7_dependencies_of_old_and_new_routes():
    links = [(1, 2), (1, 3), (2, 4), (3, 4)]
    old = up_down(links, {1: 1, 2: 2, 3: 2, 4: 3})
    new = up_down(links, {2: 0, 1: 1, 4: 1, 3: 2})
    assert (len(old), len(new)) == (6, 6)
    assert Named(old).graph.verdict == Named(new).graph.verdict == "acyclic"
    both = Named(old | new)
    loops = [{(1, 2), (2, 4), (4, 3), (3, 1)}, {(2, 1), (1, 3), (3, 4), (4, 2)}]
    assert both.edges == 8
    assert sorted(both.components, key=sorted) == sorted(loops, key=sorted)


def queues(bubble):
    """Return queues 1 to 4 in a cycle, and queue 5, which waits for queue 4.

    A queue that waits for the queue with a bubble can move.
    """
    waits = [("Q1", "Q4"), ("Q4", "Q3"), ("Q3", "Q2"), ("Q2", "Q1"), ("Q5", "Q4")]
    return Named(waits, movable=[a for a, b in waits if b == bubble])


def test_13_10_a_bubble_in_the_knot():
    before, kept, lost = queues("Q4"), queues("Q1"), queues(None)
    for state in (before, kept, lost):
        assert state.knots == [{"Q1", "Q2", "Q3", "Q4"}]
    assert (before.graph.verdict, kept.graph.verdict, lost.graph.verdict) == ("cyclic", "cyclic", "deadlocked")
    assert not before.graph.stuck.any()
    assert not kept.graph.stuck.any()
    assert lost.graph.stuck.all()
    assert before.graph.knots[0].movable == (before.number["Q1"],)


def test_a_ring_of_five_two_hops_on():
    found = Named(turns([[f"c{k}", f"c{(k + 1) % 5}"] for k in range(5)]))
    assert found.size == (5, 5)
    assert found.graph.verdict == "deadlocked"


def test_dependencies_of_tables():
    """The ring of five is routed by minhop.  The channels of each direction are a knot."""
    fabric = generate("ring", ["5"])
    graph = dependency_graph(fabric, ENGINES["minhop"].route(fabric, EngineOptions(vls=1)), switch_pairs=False)
    found = WaitFor.of_dependencies(graph)
    assert (len(found), len(found.waiter)) == (10, 10)
    assert [len(knot.members) for knot in found.knots] == [5, 5]


def test_wrong_arrays_are_refused():
    for waiter, awaited, can_move in (([0], [2], None), ([-1], [0], None), ([0, 1], [0], None), ([0], [1], [True])):
        with pytest.raises(OptionError):
            WaitFor.of(waiter, awaited, 2, can_move=can_move)
    for waiter in ([1 << 40], np.array([1 << 32]), np.array([(1 << 32) + 1], np.uint64), [0.5], ["a"], [True], [None]):
        with pytest.raises(OptionError, match="among 0 to 1"):
            WaitFor.of(waiter, [0], 2)
    with pytest.raises(OptionError, match="-1 vertices"):
        WaitFor.of([], [], -1)
    for vertex in (-1, 2):
        with pytest.raises(OptionError, match="among 0 to 1"):
            WaitFor.of([0, 1], [1, 0], 2).reach(vertex)
    assert WaitFor.of([], [], 0).verdict == "acyclic"
    assert WaitFor.of([0], [0], 1).knots == (Knot((0,)),)


@st.composite
def snapshots(draw):
    n = draw(st.integers(0, 14))
    vertex = st.integers(0, max(0, n - 1))
    waits = draw(st.lists(st.tuples(vertex, vertex), max_size=3 * n)) if n else []
    return n, waits, draw(st.lists(st.sampled_from([False, False, False, True]), min_size=n, max_size=n))


@examples(400)
@given(snapshots())
def test_networkx_agrees(case):
    """Reachable sets are compared one by one, and knots with their definition."""
    n, waits, can_move = case
    found = WaitFor.of([a for a, _ in waits], [b for _, b in waits], n, can_move=can_move)
    slow = nx.DiGraph(waits)
    slow.add_nodes_from(range(n))
    reach = {v: set().union(*({w} | nx.descendants(slow, w) for w in slow.successors(v)), set()) for v in slow}
    assert [set(found.reach(v)) for v in range(n)] == [reach[v] for v in range(n)]
    assert found.on_cycle.tolist() == [v in reach[v] for v in range(n)]
    knots = {frozenset(reach[v]) for v in slow if reach[v] and all(reach[w] == reach[v] for w in reach[v])}
    assert {frozenset(knot.members) for knot in found.knots} == knots
    assert [knot.deadlocked for knot in found.knots] == [
        not any(can_move[v] for v in knot.members) for knot in found.knots
    ]
    stuck = [not any(can_move[w] or not slow.out_degree(w) for w in reach[v] | {v}) for v in range(n)]
    assert found.stuck.tolist() == stuck
    expected = "deadlocked" if any(stuck) else "acyclic" if nx.is_directed_acyclic_graph(slow) else "cyclic"
    assert found.verdict == expected
