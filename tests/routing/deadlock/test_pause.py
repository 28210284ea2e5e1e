"""Check both tables of the source entry by entry, rings with known results, and properties of random flows."""

from fractions import Fraction
from itertools import pairwise

import networkx as nx
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from routing.deadlock.pause import Flow, Flows, analyse_pauses, max_min, pauses
from routing.errors import OptionError, RoutingError

SCENARIO_4 = {"f": ["l5", "l1", "l2", "l3"], "g": ["l6", "l3", "l4", "l1"]}
SCENARIO_5 = {**SCENARIO_4, "b": ["l7", "l2"]}


def column(text):
    return [Fraction(word) for word in text.split()]


def table(found, iteration):
    """Return rows of the source's table: rates f1 f2 f3 f5, g1 g3 g4 g6, b2 b7 of both stages, then c and p of each
    link.
    """
    now, names = found.iterations[iteration - 1], found.flows.names
    by_link = [sorted((names[link], k) for k, link in enumerate(flow.links)) for flow in found.flows.flows]
    first = [now.fair[flow][k] for flow, order in enumerate(by_link) for _, k in order]
    second = [now.rates[flow] for flow, order in enumerate(by_link) for _ in order]
    links = sorted(range(len(names)), key=names.__getitem__)
    paused = pauses(found.flows, now)
    return first, second, [now.capacity[link] for link in links], [paused[link] for link in links]


def test_scenario_4_entry_by_entry():
    found = analyse_pauses(Flows.of(SCENARIO_4))
    first, second, capacity, pause = table(found, 1)
    assert first == column("1/2 1/2 1/2 1  1/2 1/2 1/2 1")
    assert second == column("1/2 1/2 1/2 1/2  1/2 1/2 1/2 1/2")
    assert pause == column("0 1/2 0 1/2 1/2 1/2")
    assert capacity == column("1 1/2 1 1/2 1/2 1/2")
    assert len(found.iterations) == 1
    assert found.iterations[0].fits
    assert (found.verdict, found.cycle) == ("free", ())


@pytest.mark.parametrize(
    ("iteration", "first", "second", "pause"),
    [
        (1, "1/2 1/2 1/2 1  1/2 1/2 1/2 1  1/2 1", "1/2", "1/2 1/2 0 1/2 1/2 1/2 1/2"),
        (2, "1/4 1/4 1/4 1/2  1/4 1/2 1/2 1/2  1/4 1/2", "1/4", "3/4 3/4 1/2 3/4 3/4 3/4 3/4"),
        (3, "1/8 1/8 1/8 1/4  1/8 1/4 1/4 1/4  1/8 1/4", "1/8", "7/8 7/8 3/4 7/8 7/8 7/8 7/8"),
        (4, "1/16 1/16 1/16 1/8  1/16 1/8 1/8 1/8  1/16 1/8", "1/16", "15/16 15/16 7/8 15/16 15/16 15/16 15/16"),
    ],
)
def test_scenario_5_entry_by_entry(iteration, first, second, pause):
    found = analyse_pauses(Flows.of(SCENARIO_5))
    assert table(found, iteration) == (
        column(first),
        column(second) * 10,
        [1 - p for p in column(pause)],
        column(pause),
    )
    assert found.verdict == "deadlock"
    assert [found.flows.names[link] for link in found.cycle] == ["l1", "l2", "l3", "l4"]
    assert not any(now.fits for now in found.iterations)


def ring_of_four(*extra):
    """Return flows from each switch over two links of a ring; ``extra`` lists the start switches of further flows."""
    starts = [*range(4), *extra]
    return {f"f{n}": [f"host{n}", f"ring{s}", f"ring{(s + 1) % 4}"] for n, s in enumerate(starts)}


def ring_pauses(found, iteration):
    paused = pauses(found.flows, found.iterations[iteration - 1])
    return [paused[found.flows.names.index(f"ring{k}")] for k in range(4)]


def test_ring_of_four_halves_every_time():
    found = analyse_pauses(Flows.of(ring_of_four()))
    assert found.verdict == "deadlock"
    for number in range(1, 6):
        assert ring_pauses(found, number) == [1 - Fraction(1, 2**number)] * 4
        assert set(found.iterations[number - 1].rates) == {Fraction(1, 2**number)}


def test_ring_of_four_with_a_second_host():
    found = analyse_pauses(Flows.of(ring_of_four(0)))
    assert found.verdict == "deadlock"
    assert ring_pauses(found, 1) == column("2/3 1/2 2/3 2/3")
    assert max(found.rates) < Fraction(1, 100)


def ring_of_six():
    """Yield three flows of three hops in a cycle, and two further flows to each of their receivers."""
    for start in (0, 2, 4):
        end = (start + 3) % 6
        yield f"loop{start}", [f"host{start}", *(f"ring{(start + k) % 6}" for k in range(3)), f"to{end}"]
        yield from ((f"press{end}{k}", [f"host{end}{k}", f"to{end}"]) for k in range(2))


def test_ring_of_six_has_a_cycle_and_settles():
    found = analyse_pauses(Flows.of(dict(ring_of_six())))
    assert found.verdict == "settles"
    assert len(found.iterations) == 2
    assert len(found.cycle) == 6
    rates = dict(zip((flow.name for flow in found.flows.flows), found.rates, strict=True))
    assert {rates[f"loop{start}"] for start in (0, 2, 4)} == {Fraction(1, 6)}
    assert {rate for name, rate in rates.items() if name.startswith("press")} == {Fraction(1, 3)}


def test_vls_of_a_cable_share_it():
    """Two flows on two VLs of a cable get half of its rate each, although each VL alone has room for its flow."""
    flows = Flows(("a", "b", "vl0", "vl1"), (Flow("f", (0, 2)), Flow("g", (1, 3))), (Fraction(1),) * 4, (0, 1, 2, 2))
    found = analyse_pauses(flows)
    assert found.rates == (Fraction(1, 2), Fraction(1, 2))
    assert found.pause == (Fraction(1, 2), Fraction(1, 2), 0, 0)
    assert found.verdict == "free"


def test_slower_links_and_lower_rates():
    flows = Flows(("in", "out"), (Flow("f", (0, 1), Fraction(1, 3)),), (Fraction(1), Fraction(1, 4)), (0, 1))
    found = analyse_pauses(flows)
    assert found.rates == (Fraction(1, 4),)
    assert found.pause == (Fraction(1, 4), 0)


def test_rates_that_settle_in_the_limit_only():
    """Each iteration lowers the rates by less than the iteration before, so the sums never fit exactly."""
    found = analyse_pauses(Flows.of({"f": "120", "g": "4320", "h": "054", "i": "40"}))
    assert (found.verdict, found.iterations[-1].fits) == ("settles", False)
    last, before = (found.iterations[-k].rates for k in (1, 2))
    assert all(0 < a - b <= a * Fraction(1, 10**9) or a == b for a, b in zip(before, last, strict=True))
    assert 0.157 < min(last) <= max(last) < 0.158
    with pytest.raises(RoutingError, match="neither"):
        analyse_pauses(found.flows, most=30)


def test_invalid_flows_are_refused():
    for paths in ({"f": []}, {"f": ["a", "b", "a"]}):
        with pytest.raises(OptionError):
            Flows.of(paths)
    with pytest.raises(OptionError):
        Flows(("a",), (Flow("f", (0,), Fraction(0)),), (Fraction(1),), (0,))
    with pytest.raises(RoutingError, match="neither"):
        analyse_pauses(Flows.of(SCENARIO_5), most=3)


@st.composite
def networks(draw):
    links = [f"l{k}" for k in range(draw(st.integers(2, 7)))]
    paths = st.permutations(links).flatmap(lambda path: st.integers(1, len(path)).map(lambda n: path[:n]))
    return {f"f{n}": draw(paths) for n in range(draw(st.integers(1, 5)))}


@examples(150)
@given(networks(), st.randoms(use_true_random=False))
def test_random_flows(paths, rng):
    """Rates fit at the end, flows never gain rate on their paths, the order of flows has no effect, and networkx finds
    the cycle.
    """
    found = analyse_pauses(Flows.of(paths))
    flows = found.flows
    assert found.verdict == "free" or found.iterations[-1].fits <= (found.verdict == "settles")
    for now in found.iterations:
        assert all(a >= b for along in now.fair for a, b in pairwise(along))
        assert [along[-1] for along in now.fair] == list(now.rates)
    used = {link: sum(r for f, r in zip(flows.flows, found.rates, strict=True) if link in f.links)
            for link in range(len(flows.names))}  # fmt: skip
    assert found.iterations[-1].fits == all(used[link] <= found.iterations[-1].capacity[link] for link in used)
    regulated = {link for link, pause in enumerate(found.pause) if pause}
    waits = nx.DiGraph(pair for flow in flows.flows for pair in pairwise(flow.links)).subgraph(regulated)
    assert (found.verdict == "free") == nx.is_directed_acyclic_graph(waits) == (not found.cycle)
    assert all(waits.has_edge(a, b) for a, b in pairwise([*found.cycle, *found.cycle[:1]]))
    names = list(paths)
    rng.shuffle(names)
    again = analyse_pauses(Flows.of({name: paths[name] for name in names}))
    by_name = dict(zip(names, again.rates, strict=True))
    assert [by_name[name] for name in paths] == list(found.rates)
    assert again.verdict == found.verdict


@examples(200)
@given(st.lists(st.fractions(0, 2, max_denominator=12), min_size=1, max_size=6), st.fractions(0, 3, max_denominator=12))
def test_max_min_by_its_definition(demands, room):
    """The whole room is shared out, and a flow with less than another flow has its demand."""
    shares = max_min(demands, room)
    assert sum(shares) == min(room, sum(demands))
    assert all(0 <= share <= demand for share, demand in zip(shares, demands, strict=True))
    largest = max(shares)
    assert all(share in (demand, largest) for share, demand in zip(shares, demands, strict=True))
