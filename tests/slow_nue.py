"""A slow reference for the first pass of the engine Nue, with a networkx graph of dependencies.

It makes the choices of the kernel, so that both return equal trees.  These are the order of destinations and switches,
costs along the whole path, flow that is added at once, local backtracking, and partial use of the escape tree.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import networkx as nx

MASK = (1 << 64) - 1
BLOCK, LANES, SQUARINGS = 16, 2, 2


class Dice:
    """Random number generator of the kernels."""

    def __init__(self, state):
        self.state = state & MASK

    def draw(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = ((self.draw() >> 32) * (i + 1)) >> 32
            items[i], items[j] = items[j], items[i]


class Layer:
    """The dependencies of one layer: how often each is used, and which ones are blocked because they closed a cycle."""

    def __init__(self, nue, number):
        self.used, self.graph, self.blocked = Counter(), nx.DiGraph(), set()
        self.graph.add_nodes_from(range(len(nue.src)))
        self.parent = nue.parents[number]
        wanted = set()
        for target, root in enumerate(nue.roots):
            u = root if nue.layer_of[target] == number else -1
            while u >= 0:
                wanted.add(u)
                u = nue.dst[self.parent[u]] if self.parent[u] >= 0 else -1
        tree = {c for c in self.parent if c >= 0}
        tree |= {nue.reverse[c] for c in tree}
        for a in tree:
            for b in tree:
                down = self.parent[nue.dst[b]] == nue.reverse[b]
                if nue.dst[a] == nue.src[b] and nue.src[a] != nue.dst[b] and (not down or nue.dst[b] in wanted):
                    self.count(a, b)

    def allows(self, a, b):
        if (a, b) in self.blocked:
            return False
        if nx.has_path(self.graph, b, a):
            self.blocked.add((a, b))
            return False
        return True

    def count(self, a, b):
        self.used[a, b] += 1
        self.graph.add_edge(a, b)

    def uncount(self, a, b):
        self.used[a, b] -= 1
        if not self.used[a, b]:
            self.graph.remove_edge(a, b)


class SlowNue:
    """Trees of Nue, computed from the arguments of the kernel.  ``families`` has the destinations of each port."""

    def __init__(self, channels, inverse_capacity, sources, targets, parents, *, seed):
        self.src, self.dst = channels.src.tolist(), channels.dst.tolist()
        self.reverse = channels.reverse.tolist()
        self.out = [range(a, b) for a, b in pairwise(channels.first.tolist())]
        into, first = channels.into.tolist(), channels.into_first.tolist()
        self.into = [into[a:b] for a, b in pairwise(first)]
        self.inverse_capacity, self.sources = inverse_capacity.tolist(), sources.tolist()
        self.roots, self.shares = targets.root.tolist(), targets.share.tolist()
        self.layer_of, self.parents, self.seed = targets.layer.tolist(), parents.tolist(), seed
        starts = targets.lmc_group_first.tolist()
        self.families = [list(range(a, b)) for a, b in pairwise(starts)]
        self.layers = [Layer(self, number) for number in range(len(parents))]
        self.load = [0.0] * len(self.src)
        self.trees, self.escaped, self.backtracks = {}, {}, 0

    def part(self, switch):
        seen, todo = {switch}, [switch]
        while todo:
            for c in self.out[todo.pop()]:
                if self.dst[c] not in seen:
                    seen.add(self.dst[c])
                    todo.append(self.dst[c])
        return seen

    def run(self):
        order = list(range(len(self.families)))
        Dice(self.seed ^ 0xD1342543DE82EF95).shuffle(order)
        queues = [[], []]
        for lmc_group in order:
            if self.shares[self.families[lmc_group][0]] > 0:
                queues[self.layer_of[self.families[lmc_group][0]] % LANES].append(lmc_group)
        for start in range(0, max(map(len, queues), default=0), BLOCK):
            fullest = max([x * slow for x, slow in zip(self.load, self.inverse_capacity, strict=True)], default=0.0)
            vls = [VlLoad(self, 1.0 / max(fullest, 1.0)) for _ in range(LANES)]
            for vl_load, queue in zip(vls, queues, strict=True):
                for lmc_group in queue[start : start + BLOCK]:
                    dice = Dice(self.seed + (lmc_group << 8))
                    for elders, target in enumerate(self.families[lmc_group]):
                        Tree(vl_load, target, elders, dice).grow()
            old = self.load
            self.load = [x + sum(vl_load.load[c] - x for vl_load in vls) for c, x in enumerate(old)]


class VlLoad:
    def __init__(self, nue, inverse_peak):
        self.nue, self.load, self.inverse_peak = nue, list(nue.load), inverse_peak

    def weight(self, c):
        x = self.load[c] * self.nue.inverse_capacity[c] * self.inverse_peak
        for _ in range(SQUARINGS):
            x *= x
        return x


class Tree:
    """A tree while switches are added to it.  ``next`` is the channel of each switch in the tree."""

    def __init__(self, vl_load, target, elders, dice):
        self.nue, self.vl_load, self.target, self.elders, self.dice = vl_load.nue, vl_load, target, elders, dice
        self.root, self.share = self.nue.roots[target], self.nue.shares[target]
        self.layer = self.nue.layers[self.nue.layer_of[target]]
        self.next, self.wave_of, self.wave, self.joined = {}, {self.root: 0}, 0, [self.root]
        self.part = self.nue.part(self.root)

    def path(self, u):
        while u != self.root:
            yield self.next[u]
            u = self.nue.dst[self.next[u]]

    def add(self, u, flow):
        for c in self.path(u):
            self.vl_load.load[c] += flow

    def children(self, v):
        return [c for c in self.nue.into[v] if self.next.get(self.nue.src[c]) == c]

    def cost(self, c):
        rest = 0.0
        for d in self.path(self.nue.dst[c]):
            rest += self.vl_load.weight(d)
        u = self.nue.src[c]
        elder_trees = [self.nue.trees[self.target - i] for i in range(1, self.elders + 1)]
        taken = sum(u in tree and self.nue.dst[tree[u]] == self.nue.dst[c] for tree in elder_trees)
        cost = self.vl_load.weight(c) + rest
        return cost + 1e12 * taken if self.elders else cost

    def choose(self, u):
        reached = [c for c in self.nue.out[u] if self.wave_of.get(self.nue.dst[c], self.wave + 1) <= self.wave]
        for _, c in sorted((self.cost(c), c) for c in reached):
            v = self.nue.dst[c]
            if v == self.root or self.layer.allows(c, self.next[v]):
                return c
        return None

    def join(self, u, c):
        self.next[u], self.wave_of[u] = c, self.wave + 1
        self.joined.append(u)
        if self.nue.dst[c] != self.root:
            self.layer.count(c, self.next[self.nue.dst[c]])
        self.add(u, self.nue.sources[u] * self.share)

    def spread_out(self, frontier):
        while frontier:
            beside = dict.fromkeys(
                self.nue.src[c] for v in frontier for c in self.nue.into[v] if self.nue.src[c] not in self.wave_of
            )
            level, before = list(beside), len(self.joined)
            self.dice.shuffle(level)
            for u in level:
                c = self.choose(u)
                if c is not None:
                    self.join(u, c)
            frontier = self.joined[before:]
            self.wave += 1

    def flow_through(self, v):
        below, flow = [v], 0.0
        while below:
            u = below.pop()
            flow += self.nue.sources[u]
            below += [self.nue.src[c] for c in self.children(u)]
        return flow * self.share

    def rehang(self, v, c):
        """Give a switch of the tree another next hop, if no dependency closes a cycle.  Return whether that was
        possible.

        The flow is not moved.
        """
        w, old = self.nue.dst[c], self.next[v]
        if c == old or v in [w, *(self.nue.dst[d] for d in self.path(w))]:
            return False
        wanted = [] if w == self.root else [(c, self.next[w])]
        wanted += [(y, c) for y in self.children(v)]
        counted = []
        for a, b in wanted:
            if not self.layer.allows(a, b):
                for pair in counted:
                    self.layer.uncount(*pair)
                return False
            self.layer.count(a, b)
            counted.append((a, b))
        for y in self.children(v):
            self.layer.uncount(y, old)
        if self.nue.dst[old] != self.root:
            self.layer.uncount(old, self.next[self.nue.dst[old]])
        self.next[v] = c
        return True

    def make_room(self, u, c):
        v = self.nue.dst[c]
        old = self.next[v]
        for other in self.nue.out[v]:
            w = self.nue.dst[other]
            if w == u or w not in self.wave_of or other == old or not self.layer.allows(c, other):
                continue
            remembered = set(self.layer.blocked)
            self.layer.count(c, other)
            moved = self.rehang(v, other)
            self.layer.uncount(c, other)
            if not moved:
                self.layer.blocked = remembered
                continue
            flow = self.flow_through(v)
            self.next[v] = old
            self.add(v, -flow)
            self.next[v] = other
            self.add(v, flow)
            self.join(u, c)
            self.wave += 1
            self.nue.backtracks += 1
            return True
        return False

    def backtrack(self):
        for u in range(len(self.nue.sources)):
            if u in self.wave_of or u not in self.part:
                continue
            for c in self.nue.out[u]:
                v = self.nue.dst[c]
                if v != self.root and v in self.wave_of and self.make_room(u, c):
                    return u
        return None

    def grow(self):
        self.spread_out([self.root])
        while len(self.joined) < len(self.part):
            u = self.backtrack()
            if u is None:
                break
            self.spread_out([u])
        self.nue.escaped[self.target] = self.escape() if len(self.joined) < len(self.part) else 0
        self.nue.trees[self.target] = self.next

    def pairs(self):
        for u in sorted(self.next):
            v = self.nue.dst[self.next[u]]
            if v != self.root:
                yield u, v

    def escape(self):
        tree = {c for c in self.layer.parent if c >= 0}
        tree |= {self.nue.reverse[c] for c in tree}
        towards, todo = {}, [self.root]
        for v in todo:
            for c in self.nue.into[v]:
                u = self.nue.src[c]
                if c in tree and u != self.root and u not in towards:
                    towards[u] = c
                    todo.append(u)
        for u in self.next:
            self.add(u, -self.nue.sources[u] * self.share)
        for u, v in self.pairs():
            self.layer.uncount(self.next[u], self.next[v])
        on_tree = self.part - set(self.next) - {self.root}
        while True:
            self.next.update({u: towards[u] for u in on_tree})
            loops = {u for loop in nx.simple_cycles(self.as_graph()) for u in loop} - on_tree
            misfits = set() if loops else self.fit(on_tree)
            if not loops and not misfits:
                break
            on_tree |= loops | misfits
        for u in self.next:
            self.add(u, self.nue.sources[u] * self.share)
        return len(on_tree)

    def as_graph(self):
        return nx.DiGraph((u, self.nue.dst[c]) for u, c in self.next.items())

    def fit(self, on_tree):
        self.layer.blocked.clear()
        misfits, counted = set(), []
        for u, v in self.pairs():
            a, b = self.next[u], self.next[v]
            if self.layer.allows(a, b):
                self.layer.count(a, b)
                counted.append((a, b))
            else:
                misfits.add(u if v in on_tree | misfits else v)
        if misfits:
            for pair in counted:
                self.layer.uncount(*pair)
            self.layer.blocked.clear()
        return misfits
