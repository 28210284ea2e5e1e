"""Check the rounds of an update schedule: follow every packet, with the old and with the new entry at each switch."""

from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
from slow_mixed import MixedWalker, starts_slowly

from routing.deadlock.proof import prove


def dependencies_slowly(fabric, old, new, states, *, replies, first_draining_round=0):
    """Return a dependency graph for each group of rounds.

    Between the rounds of a group, the update does not wait until packets have left the fabric.  So a packet may meet
    the old or the new entry at each switch, and may still be on a channel in later rounds.  The graph of a group has
    the dependencies of all these packets.
    """
    tables = [replace(old, lft=lft) for lft in [old.lft, *states]]
    graphs, last = [nx.DiGraph() for _ in states], MixedWalker(fabric, old, new)
    for switch, port, sl, lid in set(starts_slowly(fabric, old, new, replies=replies, scope="endports")):
        got = set()
        for number, (before, after) in enumerate(pairwise(tables)):
            walker = MixedWalker(fabric, replace(before, sl2vl=old.sl2vl), replace(after, sl2vl=new.sl2vl))
            waited = max(0, number + 2 - first_draining_round) if first_draining_round else 0
            graph = graphs[waited]
            got = set() if waited else got
            left = [(switch, *step) for step in walker.steps(switch, port, sl, lid)] + list(got)
            got |= set(left)
            while left:
                here = left.pop()
                at, entry = last.plugs[here[:2]]
                for step in walker.steps(at, entry, sl, lid):
                    graph.add_edge(here, (at, *step))
                    if (at, *step) not in got:
                        got.add((at, *step))
                        left.append((at, *step))
    return graphs


def delivered(fabric, routing, lft):
    """Return (first switch, LID) of all paths that reach the LID."""
    hops = prove(fabric, replace(routing, lft=lft)).hops
    return set(zip(*np.nonzero(hops < 254), strict=True))


def check_rounds(fabric, old, new, schedule, *, replies=False):
    """Check that no round has a credit loop, and that only LIDs with removed entries are unreachable for a while."""
    states = list(schedule.states(old.lft, new.lft))
    assert np.array_equal(states[-1], new.lft)
    for graph in dependencies_slowly(
        fabric, old, new, states, replies=replies, first_draining_round=schedule.first_draining_round
    ):
        assert nx.is_directed_acyclic_graph(graph)
    if (prove(fabric, new)).complete:
        out = set(schedule.lid[schedule.removed_in_round > 0].tolist())
        reached = [delivered(fabric, new, lft) for lft in [old.lft, *states]]
        for number in range(1, len(reached)) if len(schedule) > 1 else ():
            assert {lid for _, lid in reached[number - 1] - reached[number]} <= out
