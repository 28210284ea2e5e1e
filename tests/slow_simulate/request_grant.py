"""Requests and grants between adapters.  Packets are objects, and queues are lists of packets."""

import itertools
import math
from types import SimpleNamespace

from slow_numbers import fraction, key_of, number

from slow_simulate.kinds import TIMER

KINDS = ARRIVAL, REQUEST, GRANT, IDLE_END, DEPARTURE, BLOCK, UNBLOCK = range(7)
SETTINGS = (
    "n", "paths", "reserve", "in_band", "control_delay", "segment", "control", "most", "reassembly", "fabric",
    "grant_cost", "small", "large", "large_share", "burst", "block_from", "block_until", "blocked",
)  # fmt: skip


class RequestGrant:
    def __init__(self, sim, index, numbers):
        self.sim, self.index, self.set = sim, index, SimpleNamespace(**dict(zip(SETTINGS, numbers, strict=False)))
        n, at = self.set.n, len(SETTINGS)
        self.lids, blocks = numbers[at : at + n], numbers[at + n : at + n + self.set.blocked]
        loads = numbers[at + n + self.set.blocked :]
        self.adapters = [self.make_adapter(loads[i * n : (i + 1) * n]) for i in range(n)]
        self.flows = {
            (i, o): SimpleNamespace(
                voq=[], asked=[], inside=[], waiting=None, pending=0, granted=0, unacknowledged=0, requests=0,
                grants=0, ack=0, path=self.order_of(i * n + o), turn=0,
            )
            for i in range(n) for o in range(n)
        }  # fmt: skip
        self.departing = []
        for i, adapter in enumerate(self.adapters):
            if sum(adapter.loads):
                self.next_arrival(i)
        for channel in blocks:
            self.timer_at(self.set.block_from, channel, BLOCK)
            self.timer_at(self.set.block_until, channel, UNBLOCK)

    def make_adapter(self, loads):
        share, burst = sum(loads) / 2**30, self.set.burst / 2**20
        mean = self.set.small + (self.set.large - self.set.small) * self.set.large_share / 2**30
        return SimpleNamespace(
            loads=loads, gap=burst * mean * (1 - share) / share if 0 < share < 1 else 0.0, draws=0, clock=0.0, left=0,
            line_free=0, idle_until=0, turn=0, offered=0, offered_bytes=0, departed=0, departed_bytes=0, delay=0,
            worst=0, room=self.set.reassembly, fabric_room=self.set.fabric,
        )  # fmt: skip

    def order_of(self, f):
        """Yield the path of each segment of flow number f, for ever.  The number of paths is a power of two."""
        order = key_of(self.sim.opt.seed, 21, f)
        paths = [(order + n * (order >> 32 | 1)) % self.set.paths for n in range(self.set.paths)]
        assert sorted(paths) == list(range(self.set.paths))
        return itertools.cycle(paths)

    def counts(self):
        n = self.set.n
        return [
            [a.offered, a.offered_bytes, a.departed, a.departed_bytes, a.delay, a.worst,
             sum(self.flows[i, o].granted for o in range(n)), a.room, a.fabric_room]
            for i, a in enumerate(self.adapters)
        ]  # fmt: skip

    def timer_at(self, time, subject, kind, value=0):
        self.sim.at(max(time, self.sim.now + 1), TIMER, self.index << 26 | subject, kind << 28 | value)

    def call_nothing(self, *_):
        pass

    made = queued = lost = call_nothing

    def gate(self, flow):
        return True

    def output(self, packet, usual):
        return usual

    def vl(self, packet, channel, usual):
        return usual

    def room(self, packet, vc):
        return 0

    def arrives(self, packet):
        return True

    def draw(self, i):
        self.adapters[i].draws += 1
        return fraction(number(key_of(self.sim.opt.seed, 20, i), self.adapters[i].draws - 1))

    def next_arrival(self, i):
        adapter, mean = self.adapters[i], self.set.burst / 2**20
        if adapter.left == 0:
            u = self.draw(i)
            adapter.left = 1 + int(math.log(1 - u) / math.log(1 - 1 / mean)) if mean > 1 else 1
            wanted = self.draw(i) * sum(adapter.loads)
            adapter.target = next(
                o for o in range(self.set.n) if sum(adapter.loads[: o + 1]) > wanted or o == self.set.n - 1
            )
            adapter.clock += -math.log(1 - self.draw(i)) * adapter.gap
        adapter.left -= 1
        large = self.set.large_share and self.draw(i) * 2**30 < self.set.large_share
        adapter.size = self.set.large if large else self.set.small
        adapter.clock += adapter.size
        self.timer_at(math.ceil(adapter.clock), i, ARRIVAL)

    def batch(self, flow):
        """Return the packets whose bytes the next segment may carry."""
        return flow.asked[0] if flow.asked else flow.voq

    def data_next(self, flow):
        free = self.set.in_band and not flow.pending and not flow.unacknowledged and flow.voq
        return bool(flow.granted or free)

    def update(self, i, o):
        flow = self.flows[i, o]
        if self.data_next(flow):
            size = min(self.set.segment, sum(packet.unsent for packet in self.batch(flow)))
        elif flow.grants or flow.ack:
            size = self.set.control
        else:
            return
        if flow.waiting is None:
            sender = self.sim.flows[i * self.set.n + o]
            flow.waiting = SimpleNamespace(
                last=True, born=self.sim.now, ready=self.sim.now, tail=self.sim.now, entered=self.sim.now, flow=sender,
                channel=None, vc=None, lid=self.lids[o], sl=0, bytes=size, blocks=-(-size // 64),
            )  # fmt: skip
            self.sim.enqueue(flow.waiting, sender.channel, 0, sender.index)
        flow.waiting.bytes, flow.waiting.blocks = size, -(-size // 64)

    def ask(self, flow):
        """Move packets from the VOQ to a new request, as many as the limit allows."""
        wanted = 0
        for count in range(1, len(flow.voq) + 1):
            segments = -(-sum(packet.unsent for packet in flow.voq[:count]) // self.set.segment)
            if flow.pending + segments > self.set.most:
                break
            wanted, chosen = segments, count
        if wanted:
            flow.asked.append(flow.voq[:chosen])
            flow.voq = flow.voq[chosen:]
        flow.pending += wanted
        return wanted

    def sent(self, packet):
        i, o = divmod(packet.flow.f, self.set.n)
        flow = self.flows[i, o]
        packet.parts, packet.granted, packet.request, left = [], flow.granted > 0, 0, packet.bytes
        if self.data_next(flow):
            queue = self.batch(flow)
            while left:
                size = min(left, queue[0].unsent)
                queue[0].unsent, left = queue[0].unsent - size, left - size
                queue[0].underway += 1
                packet.parts.append(queue[0])
                if not queue[0].unsent:
                    queue.pop(0)
            if flow.granted:
                flow.granted -= 1
                packet.parts[-1].granted += 1
            else:
                flow.unacknowledged += 1
                packet.parts[-1].unsolicited = True
            flow.asked = [request for request in flow.asked if request]
            packet.request = self.ask(flow) if self.set.in_band else 0
        packet.grant, packet.ack, flow.grants, flow.ack = flow.grants, flow.ack, 0, 0
        packet.lid = self.lids[o] + next(flow.path)
        flow.waiting = None
        self.update(i, o)

    def delivered(self, packet):
        i, o = divmod(packet.flow.f, self.set.n)
        flow, adapter = self.flows[i, o], self.adapters[o]
        for part in packet.parts:
            part.underway -= 1
        if packet.granted and packet.parts and self.set.reserve:
            adapter.fabric_room += 1
        if packet.request:
            self.requested(i, o, packet.request)
        self.flows[o, i].unacknowledged -= packet.ack
        self.receive_grant(o, i, packet.grant)
        while flow.inside and not flow.inside[0].unsent and not flow.inside[0].underway:
            done = flow.inside.pop(0)
            at = max(self.sim.now, adapter.line_free)
            adapter.line_free = at + done.bytes
            if at == self.sim.now:
                self.depart(i, o, done)
            else:
                self.departing.append(done)
                self.timer_at(at, packet.flow.f, DEPARTURE, len(self.departing) - 1)
        self.arbitrate(o)

    def receive_grant(self, i, o, segments):
        self.flows[i, o].granted += segments
        self.flows[i, o].pending -= segments
        self.update(i, o)

    def depart(self, i, o, packet):
        adapter = self.adapters[o]
        adapter.departed += 1
        adapter.departed_bytes += packet.bytes
        adapter.delay += self.sim.now - packet.born
        adapter.worst = max(adapter.worst, self.sim.now - packet.born)
        adapter.room += packet.granted
        if packet.unsolicited:
            self.flows[o, i].ack = 1
            self.update(o, i)
        self.arbitrate(o)

    def requested(self, i, o, segments):
        flow = self.flows[i, o]
        if not flow.requests:
            flow.turn = max(flow.turn, self.adapters[o].turn)
        flow.requests += segments
        self.arbitrate(o)

    def arbitrate(self, o):
        adapter = self.adapters[o]
        asking = [i for i in range(self.set.n) if self.flows[i, o].requests]
        full = adapter.room < self.set.most or (self.set.reserve and adapter.fabric_room < self.set.most)
        if self.sim.now < adapter.idle_until or full or not asking:
            return
        i = min(asking, key=lambda i: (self.flows[i, o].turn, i))
        flow, segments = self.flows[i, o], self.flows[i, o].requests
        flow.requests = 0
        adapter.room -= segments
        adapter.fabric_room -= segments if self.set.reserve else 0
        adapter.turn = flow.turn
        flow.turn += segments
        adapter.idle_until = self.sim.now + max(1, math.ceil(segments * self.set.grant_cost / 2**20))
        self.timer_at(adapter.idle_until, o, IDLE_END)
        if self.set.in_band:
            self.flows[o, i].grants += segments
            self.update(o, i)
        else:
            self.timer_at(self.sim.now + self.set.control_delay, i * self.set.n + o, GRANT, segments)

    def ask_out_of_band(self, i, o):
        segments = self.ask(self.flows[i, o])
        if segments:
            self.timer_at(self.sim.now + self.set.control_delay, i * self.set.n + o, REQUEST, segments)

    def arrive(self, i):
        source = self.adapters[i]
        o, size = source.target, source.size
        packet = SimpleNamespace(
            born=self.sim.now, bytes=size, unsent=size, underway=0, granted=0, unsolicited=False
        )  # fmt: skip
        self.flows[i, o].voq.append(packet)
        self.flows[i, o].inside.append(packet)
        self.adapters[o].offered += 1
        self.adapters[o].offered_bytes += size
        if not self.set.in_band:
            self.ask_out_of_band(i, o)
        self.update(i, o)
        self.next_arrival(i)

    def timer(self, subject, value):
        kind, data = value >> 28, value & ((1 << 28) - 1)
        i, o = divmod(subject, self.set.n)
        if kind == ARRIVAL:
            self.arrive(subject)
        elif kind == REQUEST:
            self.requested(i, o, data)
        elif kind == GRANT:
            self.receive_grant(i, o, data)
            self.ask_out_of_band(i, o)
        elif kind == IDLE_END:
            self.arbitrate(subject)
        elif kind == DEPARTURE:
            self.depart(i, o, self.departing[data])
        elif kind == BLOCK:
            self.sim.busy[subject] = max(self.sim.busy[subject], self.set.block_until)
