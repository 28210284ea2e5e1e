"""Analyse links with pause flow control as fluid flows: which links pause, how often they pause, and whether flow rates
sink to zero.

In this module a link is one VL of one direction of a cable.  The analysis needs flows and their links, and models
neither buffers nor packets.  So its result is a tendency.  The actual outcome also depends on arbitration.

Source: "RDMA Deadlock" (a draft without date), section 1.2.  The draft leaves some points open.  The interpretation
here reproduces both of its tables, entry by entry, and does not depend on the order of links or flows:

- The analysis repeats three stages.  One repetition is an iteration.  Every iteration begins with the offered rates.
- Stage 1 reduces the rates at overloaded links to fair shares, in several rounds.  A round treats all overloaded links
  at once, from the rates before the round.
- After stage 1 a flow is never faster on a link than on the links before this link.  Stage 2 computes the pauses, and
  gives each flow the rate of its last link.
- The probability that link k has to pause because of its next link i is 1 - a / b, computed from the flows that go from
  link k to link i.  b is the sum of the rates of these flows on link k after stage 1, and a the sum of their rates on
  their last links.  If several links feed link i, each of these links k gets the largest of their
  probabilities.  (In this rule, the draft writes i instead of k.)
- Stage 3 multiplies the capacity of a link by (1 - probability).  So the reductions of all iterations are multiplied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from routing.cdg.graph import DependencyGraph
from routing.errors import OptionError, RoutingError

Verdict = Literal["free", "settles", "deadlock"]

ONE = Fraction(1)
_BITS = 512


@dataclass(frozen=True)
class Flow:
    """Traffic at an offered rate along a fixed path of links.

    Attributes
    ----------
    name
        Name for printing.
    links
        Numbers of the links on the path, in order, each at most once.
    rate
        Offered rate, in units of link capacity.
    """

    name: str
    links: tuple[int, ...]
    rate: Fraction = ONE


@dataclass(frozen=True)
class Flows:
    """Flows, and the links that they use.

    Attributes
    ----------
    names
        Names of the links.
    flows
        The flows over these links.
    capacity
        Capacity of each link.
    cable
        For each link, the number of its cable direction.  A link is one VL of a cable direction, so several links can
        have the same number.  These links share one capacity.
    """

    names: tuple[str, ...]
    flows: tuple[Flow, ...]
    capacity: tuple[Fraction, ...]
    cable: tuple[int, ...]

    @classmethod
    def of(cls, paths: Mapping[str, Sequence[str]]) -> Flows:
        """Build flows from their paths, with capacity 1 for every link and rate 1 for every flow.

        ``paths`` holds a list of link names for each flow name.  Links are numbered in the order in which they appear.

        Raises
        ------
        OptionError
            A flow has no links, or has a link twice.
        """
        number: dict[str, int] = {}
        flows = [
            Flow(flow, tuple(number.setdefault(link, len(number)) for link in links)) for flow, links in paths.items()
        ]
        return cls(tuple(number), tuple(flows), (ONE,) * len(number), tuple(range(len(number))))

    def __post_init__(self) -> None:
        for flow in self.flows:
            if not flow.links:
                raise OptionError(f"flow {flow.name} uses no link")
            if len(set(flow.links)) != len(flow.links):
                raise OptionError(f"flow {flow.name} uses a link twice", remedy="repair the route")
            if flow.rate <= 0:
                raise OptionError(f"flow {flow.name} has rate {flow.rate}", remedy="a rate is more than zero")

    @cached_property
    def limits(self) -> tuple[tuple[int | None, tuple[tuple[int, int], ...]], ...]:
        """Return the groups of flows that share a capacity.  Each group is a pair (link, users).

        A link is one VL of one direction of a cable.  There are two kinds of groups.  First, the flows over one link
        are a group.  Second, if flows use several VLs of one direction of a cable, all flows of this direction are a
        group, which has None in place of the link.  The capacity of such a group is the capacity of one of these VLs
        without pauses.

        For each flow of the group, ``users`` has a pair of numbers for each link of the group on the flow's path.  The
        first number is the number of the flow.  The second number is the index of the link in the path of the flow.
        """
        users: list[list[tuple[int, int]]] = [[] for _ in self.names]
        for number, flow in enumerate(self.flows):
            for position, link in enumerate(flow.links):
                users[link].append((number, position))
        found: list[tuple[int | None, tuple[tuple[int, int], ...]]] = []
        vls: dict[int, list[int]] = {}
        for link, here in enumerate(users):
            if here:
                found.append((link, tuple(here)))
                vls.setdefault(self.cable[link], []).append(link)
        shared = [tuple(user for link in links for user in users[link]) for links in vls.values() if len(links) > 1]
        return (*found, *((None, together) for together in shared))

    @cached_property
    def dependencies(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """Return the dependencies between links: for each (k, i), the flows that go from link k to link i."""
        found: dict[tuple[int, int], list[int]] = {}
        for number, flow in enumerate(self.flows):
            for here, following in zip(flow.links, flow.links[1:], strict=False):
                found.setdefault((here, following), []).append(number)
        return {pair: tuple(flows) for pair, flows in sorted(found.items())}


@dataclass(frozen=True)
class Iteration:
    """Result of one iteration.  Stage 1 of an iteration computes fair rates.  Stage 2 computes the probabilities of
    pauses.  Stage 3 computes the part of each link's capacity that is not lost by pauses.

    Attributes
    ----------
    fair
        Rates after stage 1: one rate for each flow and each link of its path.
    rates
        Rates after stage 2, by flow; the rate of a flow is equal on all its links.
    capacity
        Capacity of each link after stage 3, reduced by pauses.
    fits
        Whether the rates fit into these capacities, so that further iterations change nothing.
    """

    fair: tuple[tuple[Fraction, ...], ...]
    rates: tuple[Fraction, ...]
    capacity: tuple[Fraction, ...]
    fits: bool


@dataclass(frozen=True)
class PauseAnalysis:
    """Result of the analysis of flows on links with pause flow control.

    Attributes
    ----------
    verdict
        "free": pausing links form no cycle, so a deadlock is impossible.  "settles": pausing links form a cycle, but
        the rates converge to values above zero.  The rates of the last iteration are these values if its ``fits`` is
        true, and otherwise close to them.  "deadlock": pausing links form a cycle, and the rates sink towards
        zero.
    iterations
        All iterations, in order.
    cycle
        A shortest cycle of pausing links, each of which depends on the next link; empty if there is no cycle.
    flows
        The analysed flows.
    """

    verdict: Verdict
    iterations: tuple[Iteration, ...]
    cycle: tuple[int, ...]
    flows: Flows

    @property
    def rates(self) -> tuple[Fraction, ...]:
        """Return the rate of each flow after the last iteration.  Rates in a real network may be higher."""
        return self.iterations[-1].rates

    @cached_property
    def pause(self) -> tuple[Fraction, ...]:
        """Return the final probability that each link is paused."""
        return pauses(self.flows, self.iterations[-1])


def pauses(flows: Flows, iteration: Iteration) -> tuple[Fraction, ...]:
    """Return the probability that each link is paused after an iteration."""
    return tuple(1 - left / whole for left, whole in zip(iteration.capacity, flows.capacity, strict=True))


def analyse_pauses(
    flows: Flows, *, floor: Fraction = Fraction(1, 1000), still: Fraction = Fraction(1, 10**9), most: int = 1000
) -> PauseAnalysis:
    """Compute fair rates and pauses in iterations.

    The iterations end when the rates fit into the capacities of the links, when the rates have converged, or when a
    rate is too low.

    Parameters
    ----------
    flows
        The flows to analyse.
    floor
        A rate is too low if it is below this share of its value after the first iteration.
    still
        Rates have converged to a limit above zero if no rate has lost more than this share in an iteration.  Rates that
        sink towards zero lose a constant share in each iteration.
    most
        Maximum number of iterations.

    Raises
    ------
    RoutingError
        After ``most`` iterations, the rates neither fit nor converge, and no rate is too low.

    Notes
    -----
    In each iteration, the fair rates are computed in a few rounds, each of which costs O(hops of all flows) operations
    with fractions.  With 200 flows of a torus, an iteration takes 10 ms.  Fractions are exact up to denominators of 512
    bits; capacities with longer denominators are rounded up.
    """
    capacity, iterations = flows.capacity, list[Iteration]()
    for _ in range(most):
        before = iterations[-1].rates if iterations else ()
        iterations.append(_iterate(flows, capacity))
        capacity = iterations[-1].capacity
        first, rates = iterations[0].rates, iterations[-1].rates
        sunk = any(now < floor * then for now, then in zip(rates, first, strict=True))
        stands = bool(before) and all(then - now <= still * then for now, then in zip(rates, before, strict=True))
        if iterations[-1].fits or sunk or stands:
            cycle = _cycle(flows, capacity)
            verdict: Verdict = "free" if not cycle else "deadlock" if sunk and not iterations[-1].fits else "settles"
            return PauseAnalysis(verdict, tuple(iterations), cycle, flows)
    raise RoutingError(f"the rates neither settle nor sink in {most} iterations")


def _iterate(flows: Flows, capacity: tuple[Fraction, ...]) -> Iteration:
    fair = _fair_rates(flows, capacity)
    rates = tuple(along[-1] for along in fair)
    pause = _pause(flows, fair, rates)
    left = tuple(_short(c * (1 - pause.get(link, Fraction(0)))) for link, c in enumerate(capacity))
    fits = all(
        sum((rates[flow] for flow, _ in users), Fraction(0)) <= _capacity(flows, left, link, users)
        for link, users in flows.limits
    )
    return Iteration(tuple(map(tuple, fair)), rates, left, fits)


def _short(value: Fraction) -> Fraction:
    """Return a fraction, rounded up to a denominator of at most 512 bits if its denominator is longer."""
    if value.denominator.bit_length() <= _BITS:
        return value
    return Fraction(-(-(value.numerator << _BITS) // value.denominator), 1 << _BITS)


def _capacity(
    flows: Flows, capacity: Sequence[Fraction], link: int | None, users: Sequence[tuple[int, int]]
) -> Fraction:
    if link is not None:
        return capacity[link]
    flow, position = users[0]
    return flows.capacity[flows.flows[flow].links[position]]


def _fair_rates(flows: Flows, capacity: tuple[Fraction, ...]) -> list[list[Fraction]]:
    """Return max-min fair rates: the rate of each flow on each link of its path (stage 1 of an iteration).

    At each overloaded link, the rates of its flows are reduced to fair shares, on this link and downstream of it.  This
    reduction is repeated until no link is overloaded.  ``capacity`` is the capacity of each link.
    """
    rates = [[flow.rate] * len(flow.links) for flow in flows.flows]
    waiting = [(users, _capacity(flows, capacity, link, users)) for link, users in flows.limits]
    while True:
        waiting = [
            (users, room) for users, room in waiting if sum(rates[flow][position] for flow, position in users) > room
        ]
        if not waiting:
            return rates
        shares = [
            (users, max_min([rates[flow][position] for flow, position in users], room)) for users, room in waiting
        ]
        for users, share in shares:
            for (flow, position), most in zip(users, share, strict=True):
                along = rates[flow]
                for behind in range(position, len(along)):
                    along[behind] = min(along[behind], most)


def max_min(demands: Sequence[Fraction], room: Fraction) -> list[Fraction]:
    """Return max-min fair shares of ``room``: no share exceeds its demand, and unused capacity goes to the other
    demands.
    """
    shares, left = [Fraction(0)] * len(demands), room
    for taken, number in enumerate(sorted(range(len(demands)), key=demands.__getitem__)):
        shares[number] = min(demands[number], left / (len(demands) - taken))
        left -= shares[number]
    return shares


def _pause(flows: Flows, fair: Sequence[Sequence[Fraction]], rates: Sequence[Fraction]) -> dict[int, Fraction]:
    """Return the probability that each link pauses (stage 2 of an iteration); links that never pause are left out.

    ``fair`` has the max-min fair rates from stage 1, by flow and by index of the link in the flow's path.  ``rates``
    has the rate of each flow on its last link.  Link k feeds link i if flows go from link k to link i.  There are
    three steps.  First, each such pair (k, i) gets a probability, from the rates of these flows.  Second, link i gets
    the largest probability of its pairs.  Third, link k gets the largest probability of the links i that it feeds.
    """
    position = [{link: at for at, link in enumerate(flow.links)} for flow in flows.flows]
    worst: dict[int, Fraction] = {}
    for (here, following), users in flows.dependencies.items():
        before = sum((fair[flow][position[flow][here]] for flow in users), Fraction(0))
        after = sum((rates[flow] for flow in users), Fraction(0))
        if after < before:
            worst[following] = max(worst.get(following, Fraction(0)), 1 - after / before)
    found: dict[int, Fraction] = {}
    for here, following in flows.dependencies:
        if following in worst:
            found[here] = max(found.get(here, Fraction(0)), worst[following])
    return found


def _cycle(flows: Flows, capacity: Sequence[Fraction]) -> tuple[int, ...]:
    """Return a shortest cycle of dependencies among the links whose capacity was reduced by pauses.  A link depends on
    the next link of a flow.  The result is empty if there is no cycle.
    """
    regulated = [left < whole for left, whole in zip(capacity, flows.capacity, strict=True)]
    pairs = [(here, following) for here, following in flows.dependencies if regulated[here] and regulated[following]]
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    graph = DependencyGraph.of(len(flows.names), 1, ends[:, 0], ends[:, 1])
    return tuple(link for link, _ in graph.shortest_cycle())
