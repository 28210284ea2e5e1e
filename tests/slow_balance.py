"""A slow reference for the balancing kernel, for exact comparison.

It repeats the kernel's arithmetic operation by operation, so that results are equal to the last bit.  It has none of
the kernel's optimisations: no scratch space, no shared tables, no threads.  Names are those of the kernel.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

NO_CHANNEL = 255
LANES, BLOCK, ROUNDS, FULL_PASSES, WALKED = 2, 16, 64, 2, 3
SCHEDULE, FOR_BISECTION = (2, 2, 2, 5, 6), 1
WORD = 2**64


class Random:
    """Random number generator SplitMix64."""

    def __init__(self, state):
        self.state = state % WORD

    def draw(self):
        self.state = z = (self.state + 0x9E3779B97F4A7C15) % WORD
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
        return z ^ (z >> 31)

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = ((self.draw() >> 32) * (i + 1)) >> 32
            items[i], items[j] = items[j], items[i]


@dataclass
class LoadAccount:
    """Load of each channel as one thread of the kernel knows it, and the cost of each channel at this load."""

    load: list[float]
    weight: list[float]
    inverse_peak: float = 0.0
    potential: float = 0.0
    random: Random = field(default_factory=lambda: Random(0))
    carries: set[int] = field(default_factory=set)
    cost: dict[int, float] = field(default_factory=dict)


class SlowBalance:
    """Balanced trees, computed from the arguments of the kernel's wrapper."""

    def __init__(
        self,
        channels,
        inverse_capacity,
        sources,
        targets,
        *,
        position=None,
        passes,
        seed,
        hop_cost=0.0,
        bisection=False,
        rank=None,
    ):
        self.src, self.dst = channels.src.tolist(), channels.dst.tolist()
        self.switches, self.channels = len(sources), len(channels)
        first, into = channels.first.tolist(), channels.into.tolist()
        into_first = channels.into_first.tolist()
        self.first = first
        self.out = [list(range(first[u], first[u + 1])) for u in range(self.switches)]
        self.into = [into[into_first[u] : into_first[u + 1]] for u in range(self.switches)]
        self.inverse_capacity, self.sources = inverse_capacity.tolist(), sources.tolist()
        self.root, self.share, self.layer = targets.root.tolist(), targets.share.tolist(), targets.layer.tolist()
        starts = targets.lmc_group_first.tolist()
        self.families = [list(range(a, b)) for a, b in pairwise(starts)]
        self.positions = None if position is None else position.tolist()
        self.passes, self.seed, self.hop_cost, self.bisection = passes, seed, hop_cost, bisection
        self.rank = [0] * self.channels if rank is None else rank.tolist()
        self.next = [[NO_CHANNEL] * self.switches for _ in self.root]
        self.load = [0.0] * self.channels
        self.order = list(range(len(self.families)))
        self.accounts = [LoadAccount([0.0] * self.channels, [0.0] * self.channels) for _ in range(LANES)]

    def run(self):
        """Return the trees and the loads of the best pass, and the highest utilisation after each pass."""
        worst, best = [], None
        for number in range(self.passes + 1):
            self.number = number
            self.run_pass()
            worst.append(self.peak(self.load))
            if best is None or worst[-1] < best[0]:
                best = (worst[-1], [list(tree) for tree in self.next], list(self.load))
        return best[1], best[2], worst

    # Methods that compute the costs of channels, and the flows on them.

    def peak(self, load):
        return max((x * y for x, y in zip(load, self.inverse_capacity, strict=True)), default=0.0)

    def weigh(self, account, channel, load):
        x = load * self.inverse_capacity[channel] * account.inverse_peak
        for _ in range(self.squarings):
            x *= x
        return x + self.hop_cost

    def add(self, account, channel, flow):
        account.load[channel] += flow
        weight = self.weigh(account, channel, account.load[channel])
        account.potential += weight - account.weight[channel]
        account.weight[channel] = weight

    def chosen(self, target, u):
        return self.first[u] + self.next[target][u]

    def has_path(self, target, u):
        return u == self.root[target] or self.next[target][u] != NO_CHANNEL

    def path(self, target, u):
        """Return the channels of the path from a switch to the root of a tree."""
        found = []
        while u != self.root[target]:
            found.append(self.chosen(target, u))
            u = self.dst[found[-1]]
        return found

    def path_cost(self, account, target, u):
        """Return the cost of the path from a switch to the root of a tree.

        For bisection, the part of the path that the tree uses already costs nothing.  Otherwise the costs of the first
        hops are added up, and the cost of the rest is the stored one.
        """
        cost = 0.0
        for hops, channel in enumerate(self.path(target, u)):
            if self.bisection and self.src[channel] in account.carries:
                break
            if hops == WALKED and not self.bisection:
                return cost + account.cost[self.src[channel]]
            cost += account.weight[channel]
        return cost

    def add_along(self, account, target, u, flow):
        for channel in self.path(target, u):
            account.carries.add(self.src[channel])
            self.add(account, channel, flow)
        cost = 0.0
        for channel in reversed(self.path(target, u)):
            cost += account.weight[channel]
            account.cost[self.src[channel]] = cost

    def move_tree(self, account, target, sign):
        """Add the flow of a tree to all loads, or subtract it (``sign`` 1 or -1).

        Switches are processed from the leaves on, in the order in which all their children have been processed.
        """
        tree, through = self.next[target], [flow * self.share[target] * sign for flow in self.sources]
        children = [0] * self.switches
        for u in range(self.switches):
            if tree[u] != NO_CHANNEL:
                children[self.dst[self.chosen(target, u)]] += 1
        ready = deque(u for u in range(self.switches) if children[u] == 0 and tree[u] != NO_CHANNEL)
        while ready:
            u = ready.popleft()
            channel = self.chosen(target, u)
            v = self.dst[channel]
            if through[u] != 0.0:
                self.add(account, channel, through[u])
            through[v] += through[u]
            children[v] -= 1
            if children[v] == 0 and v != self.root[target]:
                ready.append(v)

    # Methods that choose a channel.

    def taken(self, target, u, channel):
        """Return the number of other LIDs of the port whose paths lead from switch ``u`` to the switch at the end of
        ``channel``.
        """
        lmc_group = next(lmc_group for lmc_group in self.families if target in lmc_group)
        routed = [other for other in lmc_group if other != target and self.next[other][u] != NO_CHANNEL]
        return sum(self.dst[self.chosen(other, u)] == self.dst[channel] for other in routed)

    def cheapest(self, target, u, costs):
        """Return the cost and the number of the best channel of switch ``u``.

        Of shortest paths, the best channel is the one that the fewest other LIDs of the port take; among several, the
        cheapest; among several, the first.  With up/down paths, each of these LIDs costs 0.1.
        """

        def rank(channel, cost):
            taken = self.taken(target, u, channel)
            return taken if self.positions is None else cost + 0.1 * taken

        ranked = [(rank(channel, cost), cost, channel) for channel, cost in costs.items()]
        return min(ranked)[1:] if ranked else (math.inf, None)

    def take(self, account, target, u, channel, cost):
        self.next[target][u] = channel - self.first[u]
        account.cost[u] = cost

    # Methods for the rule "all shortest paths".

    def distances(self, root):
        """Return the hops to ``root`` by switch, for all switches that reach it, the nearest switch first."""
        distance, waiting = {root: 0}, deque([root])
        while waiting:
            v = waiting.popleft()
            for channel in self.into[v]:
                if self.src[channel] not in distance:
                    distance[self.src[channel]] = distance[v] + 1
                    waiting.append(self.src[channel])
        return distance

    def tree_shortest(self, account, target):
        """Compute a tree of shortest paths, beginning with the switches nearest to the destination.

        For bisection, a switch without end ports chooses its next hop when the first flow passes it.
        """
        distance, share = self.distances(self.root[target]), self.share[target]
        self.next[target], account.carries = [NO_CHANNEL] * self.switches, set()
        estimate = self.estimate(account, distance)
        for far in range(1, max(distance.values()) + 1) if share > 0.0 else ():
            level = [u for u, own in distance.items() if own == far and (self.sources[u] > 0.0 or not self.bisection)]
            account.random.shuffle(level)
            for sender in level:
                u = sender
                while not self.has_path(target, u):
                    u = self.choose_shortest(account, target, u, distance, estimate)
                if self.sources[sender] > 0.0:
                    self.add_along(account, target, sender, self.sources[sender] * share)
                if self.bisection:
                    for channel in self.path(target, sender):
                        self.update_upstream(account, target, self.src[channel], distance, estimate)
        for u in distance:
            if not self.has_path(target, u):
                self.choose_shortest(account, target, u, distance, estimate)

    def estimate(self, account, distance):
        """Return the cost of the cheapest path of each switch while the tree is empty."""
        estimate = {}
        for u in distance:
            nearer = self.nearer(distance, u)
            estimate[u] = min((account.weight[c] + estimate[self.dst[c]] for c in nearer), default=0.0)
        return estimate

    def nearer(self, distance, u):
        """Return the channels of a switch that lead one hop nearer to the root, and among these the ones of the lowest
        rank.
        """
        nearer = [c for c in self.out[u] if distance[u] > 0 and distance[self.dst[c]] == distance[u] - 1]
        return [c for c in nearer if self.rank[c] == min(self.rank[d] for d in nearer)]

    def choose_shortest(self, account, target, u, distance, estimate):
        costs = {}
        for channel in self.nearer(distance, u):
            v = self.dst[channel]
            rest = self.path_cost(account, target, v) if self.has_path(target, v) else estimate[v]
            costs[channel] = 0.0 if self.share[target] == 0.0 else account.weight[channel] + rest
        cost, channel = self.cheapest(target, u, costs)
        self.take(account, target, u, channel, cost)
        return self.dst[channel]

    def update_upstream(self, account, target, start, distance, estimate):
        """Lower the estimated cost of switches upstream of switch ``start``, whose path to the root is now part of the
        tree.

        Only switches that reach ``start`` over switches without end ports are updated.
        """
        estimate[start] = 0.0
        reported = [start]
        for v in reported:
            for channel in self.into[v]:
                u, cost = self.src[channel], account.weight[channel] + estimate[v]
                if channel in self.nearer(distance, u) and not self.has_path(target, u) and cost < estimate[u]:
                    estimate[u] = cost
                    if self.sources[u] == 0.0 and len(reported) < self.switches:
                        reported.append(u)

    # Methods for the rule "up and then down".

    def tree_updown(self, account, target):
        position, root = self.positions[self.layer[target]], self.root[target]
        sequence = sorted(range(self.switches), key=position.__getitem__)
        self.next[target], account.carries = [NO_CHANNEL] * self.switches, set()
        down = self.paths_down(account, sequence, position, root)
        for u in sequence:
            if u == root:
                continue
            if not self.has_path(target, u):
                ups = {
                    channel: account.weight[channel] + self.path_cost(account, target, self.dst[channel])
                    for channel in self.out[u]
                    if position[self.dst[channel]] < position[u] and self.has_path(target, self.dst[channel])
                }
                cost, up = self.cheapest(target, u, ups)
                if down[u] < math.inf and down[u] <= cost:
                    self.go_down(account, target, u, down, position)
                elif up is not None:
                    self.take(account, target, u, up, cost)
                else:
                    continue
            if self.sources[u] * self.share[target] > 0.0:
                self.add_along(account, target, u, self.sources[u] * self.share[target])

    def paths_down(self, account, sequence, position, root):
        """Return the cost of the cheapest path from each switch that leads only down."""
        down = [math.inf] * self.switches
        down[root] = 0.0
        for u in reversed(sequence[: position[root]]):
            below = [channel for channel in self.out[u] if position[self.dst[channel]] > position[u]]
            down[u] = min((account.weight[channel] + down[self.dst[channel]] for channel in below), default=math.inf)
        return down

    def go_down(self, account, target, u, down, position):
        while not self.has_path(target, u):
            costs = {}
            for channel in self.out[u]:
                v = self.dst[channel]
                if position[v] > position[u] and down[v] < math.inf:
                    rest = self.path_cost(account, target, v) if self.has_path(target, v) else down[v]
                    costs[channel] = account.weight[channel] + rest
            cost, channel = self.cheapest(target, u, costs)
            self.take(account, target, u, channel, cost)
            u = self.dst[channel]

    # Methods that run the passes.

    def route(self, account, target):
        if self.positions is None:
            self.tree_shortest(account, target)
        else:
            self.tree_updown(account, target)

    def route_again(self, account, target):
        used = [self.chosen(target, u) for u in range(self.switches) if self.next[target][u] != NO_CHANNEL]
        near_peak = any(account.load[c] * self.inverse_capacity[c] * account.inverse_peak >= self.hot for c in used)
        if self.share[target] == 0.0 or not near_peak:
            return
        before, kept = account.potential, list(self.next[target])
        self.move_tree(account, target, -1.0)
        self.route(account, target)
        if account.potential > before:
            self.move_tree(account, target, -1.0)
            self.next[target] = kept
            self.move_tree(account, target, 1.0)

    def run_pass(self):
        self.squarings = SCHEDULE[min(self.number, len(SCHEDULE) - 1)]
        if self.bisection:
            self.squarings = FOR_BISECTION
        self.hot = 0.0 if self.number < FULL_PASSES else 0.999
        Random(self.seed ^ ((self.number + 1) * 0xD1342543DE82EF95 % WORD)).shuffle(self.order)
        for block in range(0, len(self.order), LANES * BLOCK):
            self.merge()
            for which, account in enumerate(self.accounts):
                for lmc_group in self.order[block : block + LANES * BLOCK][which::LANES]:
                    account.random = Random(self.seed + (self.number << 40) + (lmc_group << 8))
                    for target in self.families[lmc_group]:
                        if self.number == 0:
                            self.route(account, target)
                        else:
                            self.route_again(account, target)
        self.merge()
        if self.number > 0 and not self.bisection:
            self.polish(self.accounts[0])
            self.accounts[1].load = list(self.load)
            self.merge()

    def merge(self):
        one, two = self.accounts
        self.load = [x + ((a - x) + (b - x)) for x, a, b in zip(self.load, one.load, two.load, strict=True)]
        for account in self.accounts:
            account.load = list(self.load)
            account.inverse_peak = 1.0 / max(self.peak(self.load), 1.0)
            account.weight = [self.weigh(account, channel, self.load[channel]) for channel in range(self.channels)]
            account.potential = 0.0

    # Methods of the local search at the end of a pass.

    def polish(self, account):
        for _ in range(ROUNDS):
            peak = self.peak(account.load)
            for channel in range(self.channels):
                if account.load[channel] * self.inverse_capacity[channel] >= peak and not self.relieve(
                    account, channel
                ):
                    return

    def relieve(self, account, channel):
        u = self.src[channel]
        index = channel - self.first[u]
        return any(self.next[t][u] == index and self.improve(account, t, u) for t in range(len(self.root)))

    def improve(self, account, target, u):
        flow = self.flow_through(target, u)
        if flow == 0.0:
            return False
        kept, before = self.next[target][u], account.potential
        taken = self.taken(target, u, self.chosen(target, u))
        self.add_along(account, target, u, -flow)
        for channel in self.out[u]:
            if channel - self.first[u] == kept or not self.allowed(target, u, channel):
                continue
            if self.taken(target, u, channel) > taken:
                continue
            self.next[target][u] = channel - self.first[u]
            self.add_along(account, target, u, flow)
            if account.potential < before - 1e-9:
                return True
            self.add_along(account, target, u, -flow)
            self.next[target][u] = kept
        self.add_along(account, target, u, flow)
        return False

    def flow_through(self, target, u):
        senders = [w for w in range(self.switches) if self.has_path(target, w) and self.passes_by(target, w, u)]
        return sum(self.sources[w] for w in senders) * self.share[target]

    def passes_by(self, target, w, u):
        return w == u or any(self.dst[channel] == u for channel in self.path(target, w))

    def allowed(self, target, u, channel):
        """Return whether a switch can take another channel without a change at any other switch."""
        v = self.dst[channel]
        if self.positions is None:
            distance = self.distances(self.root[target])
            return channel in self.nearer(distance, u)
        position = self.positions[self.layer[target]]

        def goes_down(w):
            return position[self.dst[self.chosen(target, w)]] > position[w]

        if position[v] < position[u]:
            return not goes_down(u) and self.has_path(target, v)
        return v == self.root[target] or (self.has_path(target, v) and goes_down(v))
