"""Search for fat trees with swapped cables in which three flows on shortest paths close a credit loop.

Figure 6 of the paper "Unlocking Credit Loop Deadlocks" shows such a tree with 32 hosts and three flows: from host 9 to
host 15, from host 13 to host 32, and from host 30 to host 17.  The paper states neither which tree it is nor which
cables are swapped.  This program swaps cables in two searches:

- The first search swaps random cables, and counts the trees in which any three flows close a loop.
- The second search improves a set of swaps step by step, until the three flows of the figure close a loop.  A set of
  swaps is better if the flows need fewer additional hops to close a loop.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from benchmarks.usage import parser_of
from routing.topologies import generate

Ints = npt.NDArray[np.int64]
Flow = tuple[int, int]
Swap = tuple[int, int, int]
"""Swap of two cables' ends: first cable, second cable, and the end (0 or 1) of the second cable.

This end changes places with end 1 of the first cable.
"""

TREES = ("2x4x4,1x2x2", "2x4x4,1x2x4", "2x4x4,1x4x4", "2x8x2,1x4x4", "2x2x8,1x2x2", "1x4x8,1x2x4")
"""Fat trees (XGFTs) with 32 hosts, of which one or two are at each leaf switch.

Trees with four hosts at each leaf switch are left out, because hosts 13 and 15 would be at one leaf switch.  A shortest
path to this switch and a shortest path from this switch never share a channel.  So the flow to host 15 and the flow
from host 13 could not share a channel.
"""
MOST_SWAPS = (3, 6)
FAR, UNREACHED, COOLING = 1 << 20, 60, 400
PUBLISHED: tuple[Flow, ...] = ((9, 15), (13, 32), (30, 17))


@dataclass(frozen=True, eq=False)
class Tree:
    """Fat tree before any swap: its cables between switches, and the leaf switch of each host.

    Attributes
    ----------
    switches
        Number of switches.
    ends
        int64[K, 2]: switches at the two ends of each of the K cables.
    leaf_of
        int64[H]: leaf switch of each of the H hosts.
    """

    switches: int
    ends: Ints
    leaf_of: Ints

    @classmethod
    def of(cls, size: str) -> Tree:
        fabric = generate("xgft", size.split(","))
        inside = (fabric.link_device < fabric.switches).all(axis=1)
        return cls(fabric.switches, fabric.link_device[inside].astype(np.int64), fabric.endport_switch.astype(np.int64))

    def after(self, swaps: Sequence[Swap]) -> Ints:
        """Return the switches at the ends of the K cables after the given swaps: int64[K, 2]."""
        ends = self.ends.copy()
        for one, other, side in swaps:
            ends[one, 1], ends[other, side] = ends[other, side], ends[one, 1]
        return ends

    def swap(self, rng: random.Random) -> Swap:
        """Draw a random swap of two cables' ends."""
        one, other = rng.sample(range(len(self.ends)), 2)
        return one, other, rng.randrange(2)


def distances(switches: int, ends: Ints) -> Ints:
    """Return the hops between switches: int64[S, S].

    If there is no path, the number is at least ``FAR``, which exceeds all distances.  ``ends`` has the switches at the
    ends of the cables.
    """
    hops = np.full((switches, switches), FAR, np.int64)
    np.fill_diagonal(hops, 0)
    hops[ends[:, 0], ends[:, 1]] = hops[ends[:, 1], ends[:, 0]] = 1
    for middle in range(switches):
        np.minimum(hops, hops[:, middle, None] + hops[None, middle, :], out=hops)
    return hops


def channels(ends: Ints) -> tuple[Ints, Ints]:
    """Return the sending switches and the receiving switches of all channels (directions of cables): int64[C] each."""
    return np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]])


def excess(hops: Ints, near: Ints, far: Ints, start: int, end: int) -> Ints:
    """Return the additional hops of paths that use two given channels, compared with a shortest path.

    The result is int64[C, C].  Element (a, b) is for the shortest path that uses channel a and, later, channel b.

    Parameters
    ----------
    hops
        int64[S, S], hop counts between switches.
    near, far
        int64[C] each, sending switch and receiving switch of each channel.
    start, end
        First and last switch of the paths.
    """
    onward = hops[far][:, near] + 1 + hops[far, end][None, :]
    found = hops[start, near][:, None] + 1 + onward - hops[start, end]
    np.fill_diagonal(found, UNREACHED)
    return np.minimum(found, UNREACHED)


def sums(first: Ints, second: Ints) -> Ints:
    """Return the matrix product in which sums replace products, and the minimum replaces the sum: int64[C, C].

    Element (i, j) is the minimum over all k of ``first[i, k] + second[k, j]``.
    """
    found = np.full(first.shape, 2 * UNREACHED, np.int16)
    one, other = first.astype(np.int16), second.astype(np.int16)
    for middle in range(len(first)):
        np.minimum(found, one[:, middle, None] + other[None, middle, :], out=found)
    return found.astype(np.int64)


def published_excess(tree: Tree, ends: Ints) -> int:
    """Return the fewest additional hops with which the three published flows close a credit loop.

    The module's docstring names the flows.  The result is the sum of the additional hops of all three flows, compared
    with shortest paths.  0 means that the flows close a loop on shortest paths.  ``ends`` has the switches at the ends
    of all cables after the swaps.
    """
    near, far = channels(ends)
    hops = distances(tree.switches, ends)
    if hops.max() >= FAR:
        return UNREACHED
    one, *rest = (excess(hops, near, far, int(tree.leaf_of[a - 1]), int(tree.leaf_of[b - 1])) for a, b in PUBLISHED)
    return min(int((sums(one, second) + third.T).min()) for second, third in permutations(rest))


def any_three(tree: Tree, ends: Ints) -> bool | None:
    """Return whether any three flows on shortest paths close a credit loop; None if the tree is disconnected.

    ``ends`` has the switches at the ends of all cables after the swaps.
    """
    near, far = channels(ends)
    hops = distances(tree.switches, ends)
    if hops.max() >= FAR:
        return None
    before = np.zeros((len(near), len(near)), bool)
    for start, end in permutations(sorted(set(tree.leaf_of.tolist())), 2):
        before |= excess(hops, near, far, start, end) == 0
    steps = before.astype(np.float32)
    return bool(((steps @ steps > 0) & before.T).any())


def at_random(tree: Tree, rng: random.Random, seconds: float) -> tuple[int, int]:
    """Swap random cables of a tree, one to four times for each trial, until a given CPU time has passed.

    ``rng`` generates the random numbers, and ``seconds`` is the CPU time.

    Returns
    -------
    tried
        Number of trials in which the tree stays connected.
    found
        Number of these trials in which some three flows close a loop.
    """
    end, tried, found = time.process_time() + seconds, 0, 0
    while time.process_time() < end:
        loop = any_three(tree, tree.after([tree.swap(rng) for _ in range(rng.randint(1, 4))]))
        tried, found = tried + (loop is not None), found + bool(loop)
    return tried, found


def change(tree: Tree, rng: random.Random, swaps: Sequence[Swap], most: int) -> list[Swap]:
    """Return a copy of a set of swaps in which one random swap is replaced, added or removed.

    The copy has at most ``most`` swaps.
    """
    found, kind = list(swaps), rng.random()
    if kind < 0.8:
        found[rng.randrange(len(found))] = tree.swap(rng)
    elif kind < 0.9 and len(found) > 1:
        found.pop(rng.randrange(len(found)))
    elif len(found) < most:
        found.append(tree.swap(rng))
    return found


def anneal(tree: Tree, rng: random.Random, most: int, seconds: float) -> tuple[int, int, list[Swap]]:
    """Search for the set of swaps with the fewest additional hops (:func:`published_excess`), by simulated annealing.

    Parameters
    ----------
    tree, rng
        Tree, and generator of random numbers.
    most
        Maximum number of swaps.
    seconds
        CPU time of the search.

    Returns
    -------
    tried
        Number of sets of swaps that were tried.
    least
        Fewest additional hops that were found.
    best
        Set of swaps with these additional hops.
    """
    end, tried, step = time.process_time() + seconds, 0, 0
    now = [tree.swap(rng) for _ in range(most)]
    score = least = published_excess(tree, tree.after(now))
    best = now
    while least and time.process_time() < end:
        tried, step = tried + 1, (step + 1) % COOLING
        other = change(tree, rng, now, most)
        value = published_excess(tree, tree.after(other))
        if value <= score or rng.random() < math.exp((score - value) / max(0.15, 1 - step / COOLING)):
            now, score = other, value
        if score < least:
            least, best = score, now
    return tried, least, best


def main(words: Sequence[str] | None = None) -> None:
    """Run both searches on each tree, and print the results as a table."""
    parser = parser_of("swapped_cables", __doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds of each search")
    parser.add_argument("--seed", type=int, default=3)
    given = parser.parse_args(words)
    print(f"{'tree':12} {'tried':>6} {'with loops':>10} {'swaps':>6} {'tried':>6} {'excess':>6}")
    for size in TREES:
        tree, name = Tree.of(size), f"{size} {given.seed}"
        tried, loops = at_random(tree, random.Random(name), given.seconds)
        for most in MOST_SWAPS:
            looked, least, swaps = anneal(tree, random.Random(name), most, given.seconds)
            print(
                f"{size:12} {tried:6} {loops:10} {most:6} {looked:6} {least:6}  {swaps if not least else ''}",
                flush=True,
            )


if __name__ == "__main__":
    main()
