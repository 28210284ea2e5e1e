"""Smart routing: begin with balanced shortest paths, and forbid the turns whose loss costs least, until no cycle is
left.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import AllowedTurns, Balanced
from routing.engines.base import LONGER_PATHS, EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations, balanced_trees
from routing.engines.effort import refinement_passes
from routing.engines.orders import central_switch, top_switches
from routing.engines.tree_paths import routing_of_tree
from routing.engines.turn_rules import TurnGraph, TurnTrial
from routing.engines.uncounted import without_uncounted
from routing.fabric import Fabric
from routing.tables import Routing

ROUNDS = 24
"""Maximum number of rounds; each chooses a set of turns and routes with it."""

FADE = 0.5
"""Factor by which the weights of all flows so far are multiplied after each round.  The flows of the round that has
ended are added with the rest of the weight (1 - FADE).  The next round chooses its turns by these flows.
"""

NOISE = 0.25
"""Factor for random numbers that are added to the flows over turns, so that the rounds differ.  Each turn gets a random
number between 0 and this factor times the mean flow of all turns.
"""


class Smart:
    """Smart routing, by a method that is fast enough for large fabrics.

    Notes
    -----
    After L. Cherkasova, V. Kotov, T. Rokicki, "Fibre Channel fabrics: evaluation and design", HICSS 1996.  The method
    begins with balanced shortest paths, whose channel dependency graph has cycles.  In each cycle, it removes the
    dependency whose loss costs least.  It routes again until no cycle is left.  Differences:

    - The published algorithm removes one dependency at a time, and finds its cost by routing all pairs again for each
      candidate, in O(S^9).  Here the cost of a turn is the flow over it.  One round adds the turns in order of
      decreasing flow, and forbids each turn that closes a cycle with the turns added before.  So each cycle loses its
      turn with the least flow.
    - Each round chooses its allowed turns by the flows of earlier rounds, and routes with these turns.  Older flows
      count with lower weights.  The turns of the best round are used.
    - For T turns, a round costs O(T log T), searches for cycles, and a pass over the destinations in
      O(L S radix log C).  There are at most 24 rounds.
    - The turns of a breadth-first tree stay allowed, so that every pair keeps a path.
    - On a tree, paths lead up and then down, and close no cycle (:mod:`routing.engines.tree_paths`).
    """

    name = "smart"
    summary = "balanced paths, with the turns forbidden that cost least; free of credit loops on one VL"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(options=("reversible",), refusals={"minimal": LONGER_PATHS})

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: O(rounds (T log T + L S radix log C)) for T turns, and the searches for cycles.
        """
        refuse_unsupported(self, options)
        if (tree := routing_of_tree(self, fabric, options)) is not None:
            return tree
        start = time.perf_counter()
        destinations = Destinations.of(fabric)
        rounds = max(2, TurnGraph.of_fabric(fabric).trials(ROUNDS, options.effort))
        trial = TurnTrial(fabric, destinations, options, rounds)
        job = _Rounds(trial)
        turns, number = job.best(rounds)
        return trial.tables(self, turns, start, {"rounds": number})


ENGINE = Smart()


@dataclass(frozen=True, eq=False)
class _Rounds:
    """Rounds of routing.  Each round prefers the turns that carried the most flow in earlier rounds.

    Attributes
    ----------
    trial
        The fabric and the sample of destinations.
    """

    trial: TurnTrial

    def best(self, rounds: int) -> tuple[AllowedTurns, int]:
        """Return the turns of the best round, and the number of that round."""
        graph, trial = self.trial.graph, self.trial
        fabric, options = trial.fabric, trial.options
        rng = np.random.default_rng(options.seed)
        roots = [*top_switches(fabric)[:1], *([central_switch(fabric)] if fabric.switches else [])]
        flow = self.flow(self.shortest())
        ratings: list[tuple[tuple[int, float], int, AllowedTurns]] = []
        for number in range(rounds):
            root = roots if number % 4 == 0 else rng.permutation(fabric.switches)[:1].tolist()
            noise = NOISE * float(flow.mean()) * rng.random(len(flow)) if len(flow) else flow
            turns = graph.complete(graph.breadth_first(root), -(flow + noise))
            trees = trial.trees(turns, trial.sample, 0)
            ratings.append((trial.rating(trees), number, turns))
            flow = FADE * flow + (1 - FADE) * self.flow(trees)
        _, number, turns = min(ratings, key=lambda rated: rated[:2])
        return turns, number

    def shortest(self) -> Balanced:
        """Return balanced shortest paths to the sample of destinations."""
        trial = self.trial
        passes = min(refinement_passes(trial.fabric, trial.options), 2)
        return balanced_trees(trial.fabric, trial.options, trial.sample, passes=passes)

    def flow(self, trees: Balanced) -> npt.NDArray[np.float64]:
        """Return float64[N], the flow over each of the N turns between bundles.  Cost: O(D S hops)."""
        trial, graph = self.trial, self.trial.graph
        channels, targets = trial.fabric.channels, trial.sample
        total = np.zeros(len(graph.edges))
        start = np.cumsum(graph.edges.degree, dtype=np.int64) - graph.edges.degree
        share, row = targets.share[:, None], np.arange(len(targets.root))[:, None]
        flow = np.broadcast_to(share * trial.fabric.source_weight_at, (len(targets.root), trial.fabric.switches))
        at = np.broadcast_to(np.arange(trial.fabric.switches), flow.shape)
        last = np.full(flow.shape, -1)
        while True:
            index = trees.next_channel[row, at].astype(np.int64)
            moving = index != 255
            if not moving.any():
                return total
            channel = np.where(moving, channels.first[at] + index, 0)
            bundle = graph.of[channel].astype(np.int64) if len(graph.of) else channel
            turning = moving & (last >= 0)
            turn = start[last[turning]] + bundle[turning] - graph.edges.after[last[turning]]
            total += np.bincount(turn, flow[turning], minlength=len(total))
            last = np.where(moving, bundle, -1)
            at = np.where(moving, channels.dst[channel], at)
