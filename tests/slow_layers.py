"""A slow reference for the layering kernel.  It uses networkx graphs, and repeats every search from the beginning."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np

NO_CHANNEL = 255


def find_path(channels, tree, start, root):
    """Return the channels of the path from a switch to the root of a tree; None if there is no path."""
    found, at = [], start
    while at != root:
        if tree[at] == NO_CHANNEL or len(found) > len(tree):
            return None
        found.append(int(channels.first[at]) + int(tree[at]))
        at = int(channels.dst[found[-1]])
    return found


def loads(channels, trees, roots, share, sources):
    """Return the flow on each channel."""
    load = np.zeros(len(channels))
    for target, root in enumerate(roots):
        for start in range(len(sources)):
            for channel in find_path(channels, trees[target], start, root) or ():
                load[channel] += sources[start] * share[target]
    return load


class SlowLayers:
    """Layers of given paths, computed from the arguments of the kernel's wrapper."""

    def __init__(
        self, channels, sources, root, share, trees, *, counted, avoid=None, most=32, have=1, mutual=False, region=None
    ):
        self.channels, self.sources, self.root, self.share = channels, sources, root.tolist(), share
        self.trees, self.counted, self.most, self.have, self.mutual = trees, counted, most, have, mutual
        self.switches = len(sources)
        self.region = [0] * self.switches if region is None else region.tolist()
        self.avoid = avoid
        self.numbers = np.concatenate([[0], np.cumsum(np.diff(channels.first)[channels.dst])])
        self.graphs = [nx.DiGraph() for _ in range(32)]
        self.tried, self.layer = 0, {}

    def run(self):
        """Assign all paths to layers.

        Returns
        -------
        layer, needed, used
            The layer of each path (None if a path fits into no layer), and the numbers of layers that are needed and
            used.
        left, uncounted
            Number of paths without a layer, among those that count and among all others.
        """
        units = self.units()
        if self.avoid is not None:
            self.place([unit for unit in units if unit["counted"]], self.most, avoid=True)
        left = self.place([unit for unit in units if unit["counted"]], self.most)
        needed = max(self.tried, 1)
        used = max(needed, self.have)
        uncounted = 0 if left else self.place(units, used)
        vls = max(self.tried, 1)
        return (None if left else self.even_out(vls, used)), needed, used, left, uncounted

    # Methods that list the paths or pairs of paths to assign, the longest first.

    def turns(self, target, start):
        found = find_path(self.channels, self.trees[target], start, self.root[target])
        return None if found is None else list(pairwise(found))

    def units(self):
        found = self.pairs() if self.mutual else self.single()
        return sorted(found, key=lambda unit: (-unit["hops"], unit["name"]))

    def single(self):
        for target, root in enumerate(self.root):
            for start in range(self.switches):
                turns = self.turns(target, start)
                if start != root and turns is not None:
                    yield {
                        "name": (target, start),
                        "hops": len(find_path(self.channels, self.trees[target], start, root)),
                        "turns": turns,
                        "counted": self.counted[start] or self.counted[root],
                        "start": self.region[root],
                        "flow": self.sources[start] * self.share[target],
                    }

    def pairs(self):
        for a in range(self.switches):
            for b in range(a + 1, self.switches):
                paths = [(t, a) for t, r in enumerate(self.root) if r == b]
                paths += [(t, b) for t, r in enumerate(self.root) if r == a]
                walked = [find_path(self.channels, self.trees[t], s, self.root[t]) for t, s in paths]
                if walked and None not in walked:
                    yield {
                        "name": (a, b),
                        "hops": max(map(len, walked)),
                        "turns": [turn for found in walked for turn in pairwise(found)],
                        "counted": self.counted[a] or self.counted[b],
                        "start": self.region[a] + self.region[b],
                        "flow": sum(self.sources[s] * self.share[t] for t, s in paths),
                    }

    # Methods that assign each path to the first layer without a cycle.

    def place(self, units, most, *, avoid=False):
        left = 0
        for unit in units:
            if unit["name"] in self.layer:
                continue
            vls = [(unit["start"] + i) % most for i in range(most)]
            vl = self.first_layer(unit["turns"], vls, avoid)
            if vl is None:
                left += 1
                continue
            self.layer[unit["name"]] = vl
            self.graphs[vl].add_edges_from(unit["turns"])
            if not self.mutual:
                target, start = unit["name"]
                for channel in find_path(self.channels, self.trees[target], start, self.root[target]):
                    self.layer.setdefault((target, int(self.channels.src[channel])), vl)
        return left

    def first_layer(self, turns, vls, avoid):
        if avoid:
            vls = [vl for vl in vls if not any(self.avoided(turn, vl) for turn in turns)]
        for vl in vls:
            if all(self.graphs[vl].has_edge(*turn) for turn in turns):
                return vl
        for vl in vls:
            if any(
                self.graphs[vl].has_node(c) and nx.has_path(self.graphs[vl], d, c)
                for c, d in turns
                if self.graphs[vl].has_node(d) and not self.graphs[vl].has_edge(c, d)
            ):
                # The path closes a cycle with the dependencies of the layer. The kernel remembers this cycle instead of
                # searching again.
                continue
            self.tried = max(self.tried, vl + 1)
            together = self.graphs[vl].copy()
            together.add_edges_from(turns)
            if nx.is_directed_acyclic_graph(together):
                return vl
        return None

    def avoided(self, turn, vl):
        first, second = turn
        number = self.numbers[first] + second - self.channels.first[self.channels.dst[first]]
        return bool(self.avoid[number] >> np.uint32(vl) & 1)

    # Methods that move each path to the least loaded layer.

    def even_out(self, vls, used):
        """Distribute the paths over all layers so that their loads are even, and return the layer of each path.

        Each additional layer allows the dependencies of the layer with the highest load, as a first distribution shows
        it.
        """
        base = list(range(vls))
        _, carried = self.spread(base)
        for _ in range(vls, used):
            base.append(max(range(vls), key=lambda vl: (carried[vl] / base.count(vl), -vl)))
        return self.spread(base)[0]

    def spread(self, base):
        carried = [0.0] * len(base)
        shape = (self.switches, self.switches) if self.mutual else (len(self.root), self.switches)
        layer = np.zeros(shape, np.uint8)

        def place_in_row(unit):
            return unit["name"] if self.mutual else (unit["name"][0], unit["hops"], unit["name"])

        for unit in sorted(self.units(), key=place_in_row):
            fits = [i for i, own in enumerate(base) if all(self.graphs[own].has_edge(*turn) for turn in unit["turns"])]
            best = min(fits, key=lambda vl: (carried[vl], vl)) if unit["name"] in self.layer else 0
            carried[best] += unit["flow"]
            layer[unit["name"]] = best
            if self.mutual:
                layer[unit["name"][::-1]] = best
        return layer, carried
