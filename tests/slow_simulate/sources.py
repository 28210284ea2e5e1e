"""Flows: the tick of each message of a CA, its destination, and its packets."""

import math
from types import SimpleNamespace

from slow_numbers import fraction, key_of, number

from routing._kernels.simulation_arrays import FLOW_NUMBERS, FLOW_REALS
from slow_simulate.kinds import BERNOULLI, BURSTY, CYCLE, HOTSPOT, INJECT, PERSISTENT, POISSON, TRACE
from slow_simulate.mechanisms import Mechanisms


class Sources(Mechanisms):
    def make_flow(self, f):
        flow = SimpleNamespace(**dict(zip(FLOW_NUMBERS, self.traffic.numbers[f].tolist(), strict=True)))
        for name, value in zip(FLOW_REALS, self.traffic.reals[f].tolist(), strict=True):
            setattr(flow, name, value)
        flow.f, flow.key = f, key_of(self.opt.seed, 1, flow.channel << 20 | flow.index)
        flow.made = flow.slots = flow.left = flow.due = flow.born = flow.lid = 0
        flow.clock, flow.head, flow.called, flow.shut, flow.gated = 0.0, False, False, False, False
        flow.sent_packets = flow.got_packets = flow.got_bytes = flow.lost = flow.latency = flow.in_network = 0
        flow.worst = flow.done = 0
        return flow

    def next_due(self, flow, n):
        u = fraction(number(flow.key, 4 * n))
        if flow.process == POISSON:
            flow.clock += -math.log(1.0 - u) * flow.mean
            flow.due = flow.start + math.ceil(flow.clock)
        elif flow.process == BERNOULLI:
            flow.slots += 1 + math.floor(math.log(1.0 - u) * flow.factor)
            flow.due = flow.start + (flow.slots - 1) * flow.slot
        elif flow.process == BURSTY:
            flow.clock += flow.mean
            if n == 0 or fraction(number(flow.key, 4 * n + 3)) * flow.burst < 1.0:
                flow.clock += -math.log(1.0 - u) * flow.gap
            flow.due = flow.start + math.ceil(flow.clock)
        elif flow.process == TRACE:
            if n < flow.messages:
                flow.due = int(self.traffic.trace[flow.list + n][0])
        else:
            flow.due = flow.start

    def destination(self, flow, n):
        drawn = number(flow.key, 4 * n + 1)
        if flow.pattern == HOTSPOT and fraction(number(flow.key, 4 * n + 2)) < flow.hot:
            return int(self.traffic.lists[flow.hot_list + ((drawn >> 32) * flow.hot_count >> 32)])
        others = flow.count - (flow.self >= 0)
        step = n % others if flow.pattern == CYCLE else (drawn >> 32) * others >> 32
        if flow.self >= 0:
            step = (flow.self + 1 + step) % flow.count
        return int(self.traffic.lists[flow.list + step])

    def not_in_flight(self, flow):
        if flow.shut:
            self.at(self.now + 1, INJECT, flow.f)
        flow.shut = False

    def prepare(self, flow):
        if flow.head:
            return
        if flow.sent_packets - flow.got_packets - flow.lost >= flow.window:
            flow.shut = True
            return
        if not flow.left:
            if flow.made >= flow.messages or flow.due >= flow.stop:
                return
            if flow.due > self.now:
                if not flow.called:
                    self.at(flow.due, INJECT, flow.f)
                flow.called = True
                return
            if flow.process == PERSISTENT and self.now >= flow.stop:
                return
            n, flow.made = flow.made, flow.made + 1
            if flow.process == TRACE:
                _, flow.lid, flow.left = map(int, self.traffic.trace[flow.list + n])
            else:
                flow.lid, flow.left = self.destination(flow, n), flow.bytes
            flow.born = self.now if flow.process == PERSISTENT else flow.due
            self.next_due(flow, n + 1)
        if not self.passes(flow):
            return
        size = min(flow.left, flow.mtu)
        flow.left -= size
        flow.head = True
        packet = SimpleNamespace(
            bytes=size, blocks=-(-size // 64), last=flow.left == 0, born=flow.born, ready=self.now, tail=self.now,
            entered=self.now, flow=flow, channel=None, vc=None, lid=flow.lid,
            sl=int(self.net.sl[flow.sl_row, flow.lid]),
        )  # fmt: skip
        self.call("made", packet)
        self.enqueue(packet, flow.channel, self.ca_vl(packet, flow), flow.index)
