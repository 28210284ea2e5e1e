"""A slow and obvious twin of the balancing kernel, for exact comparison.

It follows the kernel's arithmetic operation by operation, so that results are equal to the last bit, and takes none of
its shortcuts: no scratch space, no shared surveys, no threads.  Names follow the kernel's.
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
    """SplitMix64."""

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
class Lane:
    """Loads of its own, and what they make each channel worth avoiding."""

    load: list[float]
    weight: list[float]
    inverse_peak: float = 0.0
    potential: float = 0.0
    random: Random = field(default_factory=lambda: Random(0))
    carries: set[int] = field(default_factory=set)
    cost: dict[int, float] = field(default_factory=dict)


class SlowBalance:
    """The same arguments as the kernel's wrapper, as plain lists."""

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
        starts = targets.family_first.tolist()
        self.families = [list(range(a, b)) for a, b in pairwise(starts)]
        self.positions = None if position is None else position.tolist()
        self.passes, self.seed, self.hop_cost, self.bisection = passes, seed, hop_cost, bisection
        self.rank = [0] * self.channels if rank is None else rank.tolist()
        self.next = [[NO_CHANNEL] * self.switches for _ in self.root]
        self.load = [0.0] * self.channels
        self.order = list(range(len(self.families)))
        self.lanes = [Lane([0.0] * self.channels, [0.0] * self.channels) for _ in range(LANES)]

    def run(self):
        """Trees and loads of the best pass, and the fullest channel after each."""
        worst, best = [], None
        for number in range(self.passes + 1):
            self.number = number
            self.run_pass()
            worst.append(self.peak(self.load))
            if best is None or worst[-1] < best[0]:
                best = (worst[-1], [list(tree) for tree in self.next], list(self.load))
        return best[1], best[2], worst

    # What a channel weighs, and flows on it

    def peak(self, load):
        return max((x * y for x, y in zip(load, self.inverse_capacity, strict=True)), default=0.0)

    def weigh(self, lane, channel, load):
        x = load * self.inverse_capacity[channel] * lane.inverse_peak
        for _ in range(self.squarings):
            x *= x
        return x + self.hop_cost

    def add(self, lane, channel, flow):
        lane.load[channel] += flow
        weight = self.weigh(lane, channel, lane.load[channel])
        lane.potential += weight - lane.weight[channel]
        lane.weight[channel] = weight

    def chosen(self, target, u):
        return self.first[u] + self.next[target][u]

    def has_way(self, target, u):
        return u == self.root[target] or self.next[target][u] != NO_CHANNEL

    def way(self, target, u):
        """Channels from a switch to the root."""
        found = []
        while u != self.root[target]:
            found.append(self.chosen(target, u))
            u = self.dst[found[-1]]
        return found

    def cost_of_way(self, lane, target, u):
        """For bisection, what the tree carries already is free; else only the first hops are added up anew."""
        cost = 0.0
        for hops, channel in enumerate(self.way(target, u)):
            if self.bisection and self.src[channel] in lane.carries:
                break
            if hops == WALKED and not self.bisection:
                return cost + lane.cost[self.src[channel]]
            cost += lane.weight[channel]
        return cost

    def add_along(self, lane, target, u, flow):
        for channel in self.way(target, u):
            lane.carries.add(self.src[channel])
            self.add(lane, channel, flow)
        cost = 0.0
        for channel in reversed(self.way(target, u)):
            cost += lane.weight[channel]
            lane.cost[self.src[channel]] = cost

    def move_tree(self, lane, target, sign):
        """Take a tree's flow away, or bring it back: leaves first, in the order in which they become leaves."""
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
                self.add(lane, channel, through[u])
            through[v] += through[u]
            children[v] -= 1
            if children[v] == 0 and v != self.root[target]:
                ready.append(v)

    # The choice of a channel

    def taken(self, target, u, channel):
        """How many other LIDs of the same port leave this switch for the same next switch."""
        family = next(family for family in self.families if target in family)
        laid = [other for other in family if other != target and self.next[other][u] != NO_CHANNEL]
        return sum(self.dst[self.chosen(other, u)] == self.dst[channel] for other in laid)

    def cheapest(self, target, u, costs):
        """(cost, channel): taken by the fewest siblings, then the cheapest, then the first."""
        ranked = [(self.taken(target, u, channel), cost, channel) for channel, cost in costs.items()]
        return min(ranked)[1:] if ranked else (math.inf, None)

    def take(self, lane, target, u, channel, cost):
        self.next[target][u] = channel - self.first[u]
        lane.cost[u] = cost

    # Rule "all shortest paths"

    def distances(self, root):
        """Switches that reach the root, nearest first, and their distances."""
        distance, waiting = {root: 0}, deque([root])
        while waiting:
            v = waiting.popleft()
            for channel in self.into[v]:
                if self.src[channel] not in distance:
                    distance[self.src[channel]] = distance[v] + 1
                    waiting.append(self.src[channel])
        return distance

    def lay_shortest(self, lane, target):
        """Nearest first; for bisection a switch without end ports chooses when the first flow comes to it."""
        distance, share = self.distances(self.root[target]), self.share[target]
        self.next[target], lane.carries = [NO_CHANNEL] * self.switches, set()
        estimate = self.estimate(lane, distance)
        for far in range(1, max(distance.values()) + 1) if share > 0.0 else ():
            level = [u for u, own in distance.items() if own == far and (self.sources[u] > 0.0 or not self.bisection)]
            lane.random.shuffle(level)
            for sender in level:
                u = sender
                while not self.has_way(target, u):
                    u = self.choose_shortest(lane, target, u, distance, estimate)
                if self.sources[sender] > 0.0:
                    self.add_along(lane, target, sender, self.sources[sender] * share)
                if self.bisection:
                    for channel in self.way(target, sender):
                        self.tell_behind(lane, target, self.src[channel], distance, estimate)
        for u in distance:
            if not self.has_way(target, u):
                self.choose_shortest(lane, target, u, distance, estimate)

    def estimate(self, lane, distance):
        """Cost of the cheapest way of each switch, as long as the tree has none."""
        estimate = {}
        for u in distance:
            nearer = self.nearer(distance, u)
            estimate[u] = min((lane.weight[c] + estimate[self.dst[c]] for c in nearer), default=0.0)
        return estimate

    def nearer(self, distance, u):
        """Channels to switches one hop nearer, of the lowest rank among them."""
        nearer = [c for c in self.out[u] if distance[u] > 0 and distance[self.dst[c]] == distance[u] - 1]
        return [c for c in nearer if self.rank[c] == min(self.rank[d] for d in nearer)]

    def choose_shortest(self, lane, target, u, distance, estimate):
        costs = {}
        for channel in self.nearer(distance, u):
            v = self.dst[channel]
            rest = self.cost_of_way(lane, target, v) if self.has_way(target, v) else estimate[v]
            costs[channel] = 0.0 if self.share[target] == 0.0 else lane.weight[channel] + rest
        cost, channel = self.cheapest(target, u, costs)
        self.take(lane, target, u, channel, cost)
        return self.dst[channel]

    def tell_behind(self, lane, target, start, distance, estimate):
        """The rest of the way is free now for all who can come to this switch over switches without end ports."""
        estimate[start] = 0.0
        told = [start]
        for v in told:
            for channel in self.into[v]:
                u, cost = self.src[channel], lane.weight[channel] + estimate[v]
                if channel in self.nearer(distance, u) and not self.has_way(target, u) and cost < estimate[u]:
                    estimate[u] = cost
                    if self.sources[u] == 0.0 and len(told) < self.switches:
                        told.append(u)

    # Rule "up, then down"

    def lay_updown(self, lane, target):
        position, root = self.positions[self.layer[target]], self.root[target]
        sequence = sorted(range(self.switches), key=position.__getitem__)
        self.next[target], lane.carries = [NO_CHANNEL] * self.switches, set()
        down = self.ways_down(lane, sequence, position, root)
        for u in sequence:
            if u == root:
                continue
            if not self.has_way(target, u):
                ups = {
                    channel: lane.weight[channel] + self.cost_of_way(lane, target, self.dst[channel])
                    for channel in self.out[u]
                    if position[self.dst[channel]] < position[u] and self.has_way(target, self.dst[channel])
                }
                cost, up = self.cheapest(target, u, ups)
                if down[u] < math.inf and down[u] <= cost:
                    self.go_down(lane, target, u, down, position)
                elif up is not None:
                    self.take(lane, target, u, up, cost)
                else:
                    continue
            if self.sources[u] * self.share[target] > 0.0:
                self.add_along(lane, target, u, self.sources[u] * self.share[target])

    def ways_down(self, lane, sequence, position, root):
        """Cost of the cheapest way that only goes down, from each switch."""
        down = [math.inf] * self.switches
        down[root] = 0.0
        for u in reversed(sequence[: position[root]]):
            below = [channel for channel in self.out[u] if position[self.dst[channel]] > position[u]]
            down[u] = min((lane.weight[channel] + down[self.dst[channel]] for channel in below), default=math.inf)
        return down

    def go_down(self, lane, target, u, down, position):
        while not self.has_way(target, u):
            costs = {}
            for channel in self.out[u]:
                v = self.dst[channel]
                if position[v] > position[u] and down[v] < math.inf:
                    rest = self.cost_of_way(lane, target, v) if self.has_way(target, v) else down[v]
                    costs[channel] = lane.weight[channel] + rest
            cost, channel = self.cheapest(target, u, costs)
            self.take(lane, target, u, channel, cost)
            u = self.dst[channel]

    # Passes

    def lay(self, lane, target):
        if self.positions is None:
            self.lay_shortest(lane, target)
        else:
            self.lay_updown(lane, target)

    def lay_again(self, lane, target):
        used = [self.chosen(target, u) for u in range(self.switches) if self.next[target][u] != NO_CHANNEL]
        hot = any(lane.load[c] * self.inverse_capacity[c] * lane.inverse_peak >= self.hot for c in used)
        if self.share[target] == 0.0 or not hot:
            return
        before, kept = lane.potential, list(self.next[target])
        self.move_tree(lane, target, -1.0)
        self.lay(lane, target)
        if lane.potential > before:
            self.move_tree(lane, target, -1.0)
            self.next[target] = kept
            self.move_tree(lane, target, 1.0)

    def run_pass(self):
        self.squarings = SCHEDULE[min(self.number, len(SCHEDULE) - 1)]
        if self.bisection:
            self.squarings = FOR_BISECTION
        self.hot = 0.0 if self.number < FULL_PASSES else 0.999
        Random(self.seed ^ ((self.number + 1) * 0xD1342543DE82EF95 % WORD)).shuffle(self.order)
        for block in range(0, len(self.order), LANES * BLOCK):
            self.merge()
            for which, lane in enumerate(self.lanes):
                for family in self.order[block : block + LANES * BLOCK][which::LANES]:
                    lane.random = Random(self.seed + (self.number << 40) + (family << 8))
                    for target in self.families[family]:
                        if self.number == 0:
                            self.lay(lane, target)
                        else:
                            self.lay_again(lane, target)
        self.merge()
        if self.number > 0 and not self.bisection:
            self.polish(self.lanes[0])
            self.lanes[1].load = list(self.load)
            self.merge()

    def merge(self):
        one, two = self.lanes
        self.load = [x + ((a - x) + (b - x)) for x, a, b in zip(self.load, one.load, two.load, strict=True)]
        for lane in self.lanes:
            lane.load = list(self.load)
            lane.inverse_peak = 1.0 / max(self.peak(self.load), 1.0)
            lane.weight = [self.weigh(lane, channel, self.load[channel]) for channel in range(self.channels)]
            lane.potential = 0.0

    # The last touch

    def polish(self, lane):
        for _ in range(ROUNDS):
            peak = self.peak(lane.load)
            for channel in range(self.channels):
                if lane.load[channel] * self.inverse_capacity[channel] >= peak and not self.relieve(lane, channel):
                    return

    def relieve(self, lane, channel):
        u = self.src[channel]
        index = channel - self.first[u]
        return any(self.next[t][u] == index and self.improve(lane, t, u) for t in range(len(self.root)))

    def improve(self, lane, target, u):
        flow = self.flow_through(target, u)
        if flow == 0.0:
            return False
        kept, before = self.next[target][u], lane.potential
        taken = self.taken(target, u, self.chosen(target, u))
        self.add_along(lane, target, u, -flow)
        for channel in self.out[u]:
            if channel - self.first[u] == kept or not self.allowed(target, u, channel):
                continue
            if self.taken(target, u, channel) > taken:
                continue
            self.next[target][u] = channel - self.first[u]
            self.add_along(lane, target, u, flow)
            if lane.potential < before - 1e-9:
                return True
            self.add_along(lane, target, u, -flow)
            self.next[target][u] = kept
        self.add_along(lane, target, u, flow)
        return False

    def flow_through(self, target, u):
        senders = [w for w in range(self.switches) if self.has_way(target, w) and self.passes_by(target, w, u)]
        return sum(self.sources[w] for w in senders) * self.share[target]

    def passes_by(self, target, w, u):
        return w == u or any(self.dst[channel] == u for channel in self.way(target, w))

    def allowed(self, target, u, channel):
        """May this switch change over without anyone else having to?"""
        v = self.dst[channel]
        if self.positions is None:
            distance = self.distances(self.root[target])
            return channel in self.nearer(distance, u)
        position = self.positions[self.layer[target]]

        def goes_down(w):
            return position[self.dst[self.chosen(target, w)]] > position[w]

        if position[v] < position[u]:
            return not goes_down(u) and self.has_way(target, v)
        return v == self.root[target] or (self.has_way(target, v) and goes_down(v))
