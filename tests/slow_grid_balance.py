"""A slow reference for the balance of grids: each step examines every move with NumPy, and counts no visits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.symmetric_paths import LinkBundles
from routing.engines.grid_flow import tree_flow
from routing.fabric import Fabric
from routing.grids.detours import count_hops, next_switches
from routing.grids.paths import NONE, GridPaths

WIDTHS = (4, 32, 1 << 30)
"""Number of trees over a channel that are tried: first those with the largest flows, then all."""

LONGER = 2
"""Number of hops by which a move may make a path longer."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def balance_slowly(fabric: Fabric, bundles: LinkBundles, paths: GridPaths, weight: Floats) -> GridPaths:
    """Return the paths after all moves (see :func:`routing.engines.grid_balance.balance_detours`)."""
    trees = _Trees.of(fabric, bundles, paths, weight)
    while trees.load.any():
        channel = int(trees.utilisation.argmax())
        over = trees.over(channel)
        if not any(trees.unload(channel, over[:width]) for width in WIDTHS):
            break
    return replace(paths, hop=trees.hop.reshape(paths.hop.shape), regular=trees.regular.reshape(paths.regular.shape))


@dataclass(frozen=True, eq=False)
class _Trees:
    """All trees with their flows.

    Attributes
    ----------
    bundles, src
        Bundles of parallel links, and int64[N], the switch where each begins.
    roots
        int64[T], destination of each tree.
    hop, regular
        uint8[T, S] and bool[T, S], as in :class:`GridPaths`.
    following, hops
        int64[T, S] each: next switch, and number of hops to the destination.
    flow, load
        float64[T, S] and float64[N]: traffic through each switch in a tree, and traffic on each bundle.
    """

    bundles: LinkBundles
    src: Ints
    roots: Ints
    hop: npt.NDArray[np.uint8]
    regular: npt.NDArray[np.bool_]
    following: Ints
    hops: Ints
    flow: Floats
    load: Floats

    @classmethod
    def of(cls, fabric: Fabric, bundles: LinkBundles, paths: GridPaths, weight: Floats) -> _Trees:
        """Compute the flows of the paths (see :func:`balance_detours`)."""
        switches = fabric.switches
        roots, hop = np.tile(np.arange(switches), 2), paths.hop.reshape(-1, switches).copy()
        following = next_switches(bundles, hop, roots)
        flow = tree_flow(fabric, bundles, hop, roots) * weight.reshape(-1, 1)
        load = np.zeros(len(bundles.dst))
        tree, switch = np.nonzero(hop != NONE)
        np.add.at(load, bundles.first[switch] + hop[tree, switch].astype(np.int64), flow[tree, switch])
        src = np.repeat(np.arange(switches), np.diff(bundles.first))
        regular = paths.regular.reshape(-1, switches).copy()
        return cls(bundles, src, roots, hop, regular, following, count_hops(following, roots), flow, load)

    @property
    def utilisation(self) -> Floats:
        """Load over capacity of each bundle, float64[N]."""
        return np.asarray(self.load * self.bundles.inverse_capacity)

    def over(self, channel: int) -> Ints:
        """Return the trees with traffic over the bundle number ``channel``, those with the most traffic first."""
        start = int(self.src[channel])
        trees = np.flatnonzero((self.hop[:, start] == channel - self.bundles.first[start]) & (self.flow[:, start] > 0))
        return trees[np.argsort(-np.round(self.flow[trees, start], 9), kind="stable")]

    def unload(self, channel: int, trees: Ints) -> bool:
        """Move the paths of one switch away from the bundle number ``channel``, in one of the given trees.

        Returns
        -------
        bool
            Whether a move was found that lowers the highest utilisation of the bundles that it concerns.
        """
        tree, switch, bundle = self._moves(channel, trees)
        if not len(tree):
            return False
        flow, at = self.flow[tree, switch], self.bundles.dst[bundle].astype(np.int64)
        worst = (self.load[bundle] + flow) * self.bundles.inverse_capacity[bundle]
        while (moving := np.flatnonzero(at != self.roots[tree])).size:
            onward = self._bundle(tree[moving], at[moving])
            utilisation = (self.load[onward] + flow[moving]) * self.bundles.inverse_capacity[onward]
            # A switch cannot move to a neighbour whose path leads over the bundle or through the switch.
            utilisation[(onward == channel) | (at[moving] == switch[moving])] = np.inf
            worst[moving] = np.maximum(worst[moving], utilisation)
            at[moving] = np.where(np.isfinite(utilisation), self.bundles.dst[onward], self.roots[tree[moving]])
        worst[worst >= self.utilisation[channel] * (1 - 1e-9)] = np.inf
        best = int(np.lexsort((np.round(flow, 9), np.round(worst, 9)))[0])
        if not np.isfinite(worst[best]):
            return False
        self._move(int(tree[best]), int(switch[best]), int(bundle[best]))
        return True

    def _bundle(self, tree: Ints | int, switch: Ints | int) -> Ints:
        return np.asarray(self.bundles.first[switch] + self.hop[tree, switch].astype(np.int64))

    def _through(self, trees: Ints, switch: int) -> npt.NDArray[np.bool_]:
        """Return bool[N, S], whether the path from each switch in each of N trees leads through ``switch``."""
        found, at = (
            np.zeros((len(trees), self.hop.shape[1]), bool),
            np.tile(np.arange(self.hop.shape[1]), (len(trees), 1)),
        )
        for _ in range(int(self.hops[trees].max(initial=0)) + 1):
            found |= at == switch
            at = np.take_along_axis(self.following[trees], np.minimum(at, self.hop.shape[1] - 1), axis=1)
        return found

    def _moves(self, channel: int, trees: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the moves away from a bundle: trees, switches, and the bundles by which these would send, int64[M]
        each.
        """
        first, dst = self.bundles.first.astype(np.int64), self.bundles.dst
        start = int(self.src[channel])
        row, switch = np.nonzero(self._through(trees, start) & (self.flow[trees] > 0))
        count = np.diff(first)[switch]
        tree, switch = np.repeat(trees[row], count), np.repeat(switch, count)
        bundle = first[switch] + np.arange(len(switch)) - np.repeat(np.cumsum(count) - count, count)
        hops = self.hops[tree, dst[bundle]]
        usable = (hops >= 0) & (hops + 1 <= self.hops[tree, switch] + LONGER) & (bundle != self._bundle(tree, switch))
        usable &= switch != self.roots[tree]
        return tree[usable], switch[usable], bundle[usable]

    def _move(self, tree: int, switch: int, bundle: int) -> None:
        """Let a switch send over another bundle in a tree."""
        flow, root = self.flow[tree, switch], int(self.roots[tree])
        for amount in (-flow, flow):
            at = switch
            while at != root:
                if at != switch:
                    self.flow[tree, at] += amount
                onward = int(self._bundle(tree, at))
                self.load[onward] += amount
                at = int(self.bundles.dst[onward])
            self.hop[tree, switch] = bundle - self.bundles.first[switch]
        rows = np.array([tree])
        self.following[rows] = next_switches(self.bundles, self.hop[rows], self.roots[rows])
        self.hops[rows] = count_hops(self.following[rows], self.roots[rows])
        moved = self._through(rows, switch)[0]
        moved[root] = False
        self.regular[tree, moved] = False
