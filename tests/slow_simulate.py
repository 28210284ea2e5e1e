"""The packet simulator once more: plain Python, every channel looked at in every tick in which anything happens.

It takes what the kernel takes, and has to come to the same counters at every stop.
"""

import heapq
import math
from collections import deque
from types import SimpleNamespace

from slow_breakers import Breakers
from slow_numbers import fraction, key_of, number

from routing._kernels.simulate import FLOW_NUMBERS, FLOW_REALS

FREE, CREDIT, FREED, ARRIVE, DELIVER, INJECT, EXPOSE, HEAD, UNSTALL, RULE_END, CONTROL, CLCM, SAMPLE, FCP = range(14)
PERSISTENT, POISSON, BERNOULLI, BURSTY, TRACE = range(5)
CYCLE, UNIFORM, HOTSPOT = range(3)


class Slow(Breakers):
    def __init__(self, network, options, traffic):
        self.net, self.opt, self.traffic = network, options, traffic
        self.count, self.vls = len(network.src), network.vls
        lanes = self.count * self.vls
        self.now, self.events = -1, []
        self.buffer = [int(blocks) for blocks in network.buffer.reshape(-1)]
        self.fctbs, self.fccl = [0] * lanes, list(self.buffer)
        self.held, self.flying, self.returning, self.unsent = [0] * lanes, [0] * lanes, [0] * lanes, [0] * lanes
        self.stalled, self.dropped_in_row, self.timed = [False] * lanes, [0] * lanes, [False] * lanes
        self.turn, self.lane_since, self.lane_sent = [0] * lanes, [0] * lanes, [-1] * lanes
        self.only, self.let_go, self.let_go_input = [None] * lanes, [0] * lanes, [0] * lanes
        self.hidden, self.shown = [deque() for _ in range(lanes)], [False] * lanes
        self.busy, self.carry, self.since = [0] * self.count, [0] * self.count, [0] * self.count
        self.next_vl = [0] * self.count
        self.tables = [SimpleNamespace(at=[0, 0], left=[0, 0], limit=0) for _ in range(self.count)]
        names = ("bytes", "packets", "wait", "discards", "hoq", "lifetime", "stalled", "overrun", "relay", "control")
        self.counters = [dict.fromkeys(names, 0) for _ in range(self.count)]
        self.log, self.picks = [], 0
        self.at_port = {(int(s), int(p)): c for c, (s, p) in enumerate(zip(network.src, network.src_port, strict=True))}
        self.in_index = {}
        for c in range(self.count):
            ports = [p for s, p in self.at_port if s == network.dst[c]]
            self.in_index[c] = sorted(ports).index(int(network.dst_port[c]))
        self.lft, self.sl2vl = network.lft.copy(), network.sl2vl.copy()
        self.totals = dict.fromkeys(("injected", "delivered", "dropped", "hops"), 0)
        self.start_breakers()
        self.flows = [self.make_flow(f) for f in range(len(traffic.numbers))]
        self.inputs = [
            sum(1 for s, _ in self.at_port if s == network.src[c])
            if network.src[c] < network.switches
            else sum(1 for flow in self.flows if flow.channel == c)
            for c in range(self.count)
        ]
        self.queues = {
            (c, vl, i): deque() for c in range(self.count) for vl in range(self.vls) for i in range(self.inputs[c])
        }
        for flow in self.flows:
            self.next_due(flow, 0)
            self.prepare(flow)
        if options.sample_period:
            self.at(options.sample_period, SAMPLE, 0)
        if options.fcp_period:
            self.at(options.fcp_period, FCP, 0)

    def at(self, time, kind, subject, value=0):
        assert time > self.now
        heapq.heappush(self.events, (time, kind, subject, value, len(self.events)))

    def waiting(self, c):
        return [vl for vl in range(self.vls) if self.lane_waiting(c * self.vls + vl)]

    def lane_waiting(self, lane):
        c, vl = divmod(lane, self.vls)
        return sum(len(self.queues[c, vl, i]) for i in range(self.inputs[c]))

    # Sources

    def make_flow(self, f):
        flow = SimpleNamespace(**dict(zip(FLOW_NUMBERS, self.traffic.numbers[f].tolist(), strict=True)))
        for name, value in zip(FLOW_REALS, self.traffic.reals[f].tolist(), strict=True):
            setattr(flow, name, value)
        flow.f, flow.key = f, key_of(self.opt.seed, 1, flow.channel << 20 | flow.index)
        flow.made = flow.slots = flow.left = flow.due = flow.born = flow.lid = 0
        flow.clock, flow.head, flow.called = 0.0, False, False
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

    def prepare(self, flow):
        if flow.head:
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
        size = min(flow.left, flow.mtu)
        flow.left -= size
        flow.head = True
        packet = SimpleNamespace(
            bytes=size, blocks=-(-size // 64), last=flow.left == 0, born=flow.born, ready=self.now, tail=self.now,
            entered=self.now, flow=flow, channel=None, lane=None, lid=flow.lid,
            sl=int(self.net.sl[flow.sl_row, flow.lid]),
        )  # fmt: skip
        self.enqueue(packet, flow.channel, int(self.net.ca_sl2vl[packet.sl]), flow.index)

    # Switches

    def enqueue(self, packet, c, vl, i):
        lane = c * self.vls + vl
        if not self.waiting(c):
            self.since[c] = self.now
        if not self.lane_waiting(lane):
            self.lane_since[lane] = self.now
        packet.headed = self.now
        self.queues[c, vl, i].append(packet)
        self.arm(lane)
        if self.busy[c] > self.now:
            self.at(self.busy[c], FREE, c)

    def take(self, c, vl, i):
        queue = self.queues[c, vl, i]
        packet = queue.popleft()
        if queue:
            queue[0].headed = self.now
        return packet

    def give_back(self, lane, blocks, when):
        self.returning[lane] += blocks
        if self.opt.fcp_period:
            self.at(max(when, self.now + 1), FREED, lane, blocks)
        else:
            self.at(when + int(self.net.wire[lane // self.vls]), CREDIT, lane, blocks)

    def lose(self, packet):
        self.give_back(packet.lane, packet.blocks, max(packet.tail, self.now))
        self.totals["dropped"] += 1
        packet.flow.lost += 1

    def forward(self, packet):
        c = packet.channel
        device = int(self.net.dst[c])
        port = int(self.lft[device, packet.lid])
        out = self.at_port.get((device, port))
        if out is None or out == self.net.reverse[c]:
            self.counters[c]["relay"] += 1
        else:
            table = self.sl2vl if self.sl2vl.ndim == 1 else self.sl2vl[device, self.net.dst_port[c], port]
            vl = int(table[packet.sl])
            if vl < self.vls and not self.stalled[out * self.vls + vl]:
                self.enqueue(packet, out, vl, self.in_index[c])
                return True
            self.counters[out]["discards"] += 1
            self.counters[out]["stalled"] += vl < self.vls
        self.held[packet.lane] -= packet.blocks
        self.lose(packet)
        return False

    def arrive(self, packet):
        lane = packet.lane
        self.flying[lane] -= packet.blocks
        if self.held[lane] + packet.blocks > self.buffer[lane] + self.opt.extra[packet.channel]:
            self.counters[packet.channel]["overrun"] += 1
            self.lose(packet)
            return
        self.held[lane] += packet.blocks
        packet.ready = self.now
        if self.opt.single_fifo:
            self.hidden[lane].append(packet)
            if not self.shown[lane]:
                self.expose(lane)
        else:
            self.forward(packet)

    def expose(self, lane):
        self.shown[lane] = False
        while self.hidden[lane] and not self.shown[lane]:
            self.shown[lane] = self.forward(self.hidden[lane].popleft())

    def deliver(self, packet):
        flow = packet.flow
        self.flying[packet.lane] -= packet.blocks
        self.fccl[packet.lane] += packet.blocks
        if self.net.lid_device[packet.lid] != self.net.dst[packet.channel]:
            self.counters[packet.channel]["relay"] += 1
            self.totals["dropped"] += 1
            flow.lost += 1
            return
        flow.got_packets += 1
        flow.got_bytes += packet.bytes
        flow.done += packet.last
        flow.latency += self.now - packet.born
        flow.in_network += self.now - packet.entered
        flow.worst = max(flow.worst, self.now - packet.born)
        self.totals["delivered"] += 1

    # Outputs

    def choose_input(self, lane):
        c, vl = divmod(lane, self.vls)
        if self.only[lane] is not None:
            return self.only[lane] if self.queues[c, vl, self.only[lane]] else None
        have = [i for i in range(self.inputs[c]) if self.queues[c, vl, i]]
        in_turn = sorted(have, key=lambda i: (i - self.turn[lane]) % self.inputs[c])
        if self.opt.arbitration == 0:
            return in_turn[0]
        if self.opt.arbitration == 1:
            return min(in_turn, key=lambda i: self.queues[c, vl, i][0].ready)
        drawn = number(key_of(self.opt.seed, 3, c), self.counters[c]["packets"])
        return have[(drawn >> 32) * len(have) >> 32]

    def input_that_fits(self, c, vl):
        lane = c * self.vls + vl
        if self.let_go[lane] and self.queues[c, vl, self.let_go_input[lane]]:
            return self.let_go_input[lane]
        i = self.choose_input(lane)
        if i is None or self.queues[c, vl, i][0].blocks > self.fccl[lane] - self.fctbs[lane]:
            return None
        return i

    def from_table(self, c, which, table, can, inputs):
        state = self.tables[c]
        if state.left[which] <= 0 or table[state.at[which]][0] not in can:
            for _ in range(len(table)):
                state.at[which] = (state.at[which] + 1) % len(table)
                state.left[which] = table[state.at[which]][1]
                if state.left[which] and table[state.at[which]][0] in can:
                    break
        vl = table[state.at[which]][0]
        blocks = self.queues[c, vl, inputs[vl]][0].blocks
        state.left[which] -= blocks
        return vl, blocks

    def choose_by_tables(self, c, inputs):
        row, state = self.opt.vlarb[self.opt.arbiter[c]].tolist(), self.tables[c]
        high = [(row[4 + 2 * e], row[5 + 2 * e]) for e in range(row[1])]
        low = [(row[132 + 2 * e], row[133 + 2 * e]) for e in range(row[2])]
        high_can = {vl for vl, weight in high if weight and vl in inputs}
        low_can = {vl for vl, weight in low if weight and vl in inputs}
        fresh = row[0] * 64 or 1
        if high_can and (row[0] == 255 or state.limit > 0 or not low_can):
            vl, blocks = self.from_table(c, 0, high, high_can, inputs)
            state.limit = (state.limit if state.limit > 0 else fresh) - blocks
            return vl
        state.limit = fresh
        return self.from_table(c, 1, low, low_can, inputs)[0] if low_can else None

    def choose(self, c):
        inputs = {vl: i for vl in self.waiting(c) if (i := self.input_that_fits(c, vl)) is not None}
        if not inputs:
            return None
        if len(self.opt.vlarb):
            vl = self.choose_by_tables(c, inputs)
        else:
            vl = min(inputs, key=lambda vl: (vl - self.next_vl[c]) % self.vls)
            self.next_vl[c] = (vl + 1) % self.vls
        return None if vl is None else (vl, inputs[vl])

    def send(self, c, vl, i):
        lane, counters = c * self.vls + vl, self.counters[c]
        packet = self.take(c, vl, i)
        self.turn[lane] = (i + 1) % self.inputs[c]
        work = packet.bytes * int(self.net.cost[c]) + self.carry[c]
        self.carry[c] = work % (1 << 20)
        end = max(self.now + max(1, work >> 20), packet.tail)
        counters["wait"] += self.now - max(self.since[c], self.busy[c])
        counters["bytes"] += packet.bytes
        counters["packets"] += 1
        self.busy[c] = self.lane_sent[lane] = end
        self.at(end, FREE, c)
        self.fctbs[lane] += packet.blocks
        self.flying[lane] += packet.blocks
        self.dropped_in_row[lane] = 0
        self.let_go[lane] = max(0, self.let_go[lane] - 1)
        self.totals["hops"] += 1
        source = packet.lane is None
        if source:
            packet.entered = self.now
            self.totals["injected"] += 1
            packet.flow.sent_packets += 1
        else:
            self.held[packet.lane] -= packet.blocks
            self.give_back(packet.lane, packet.blocks, end)
            if self.opt.single_fifo:
                self.at(end, EXPOSE, packet.lane)
        packet.lane, packet.channel, packet.tail = lane, c, end + int(self.net.wire[c])
        device = int(self.net.dst[c])
        if device < self.net.switches:
            self.at(self.now + int(self.net.wire[c]) + int(self.net.switch_delay[device]), ARRIVE, id(packet), packet)
        else:
            self.at(packet.tail, DELIVER, id(packet), packet)
        if source:
            packet.flow.head = False
            self.prepare(packet.flow)

    # Age

    def limits(self, lane):
        c = lane // self.vls
        if self.net.src[c] >= self.net.switches:
            return 0, 0
        return int(self.opt.hoq[c]), int(self.opt.lifetime[self.net.src[c]])

    def arm(self, lane):
        hoq, lifetime = self.limits(lane)
        c, vl = divmod(lane, self.vls)
        heads = [self.queues[c, vl, i][0] for i in range(self.inputs[c]) if self.queues[c, vl, i]]
        times = [head.headed + hoq for head in heads if hoq] + [head.ready + lifetime for head in heads if lifetime]
        if times and not self.timed[lane]:
            self.timed[lane] = True
            self.at(max(min(times), self.now + 1), HEAD, lane)

    def drop(self, lane, i):
        c, vl = divmod(lane, self.vls)
        packet = self.take(c, vl, i)
        self.counters[c]["discards"] += 1
        if not self.waiting(c):
            self.counters[c]["wait"] += max(0, self.now - max(self.since[c], self.busy[c]))
        self.held[packet.lane] -= packet.blocks
        if self.opt.single_fifo:
            self.at(max(packet.tail, self.now + 1), EXPOSE, packet.lane)
        self.lose(packet)

    def head(self, lane):
        hoq, lifetime = self.limits(lane)
        c, vl = divmod(lane, self.vls)
        self.timed[lane] = False
        for i in range(self.inputs[c]):
            queue = self.queues[c, vl, i]
            while lifetime and queue and queue[0].ready + lifetime <= self.now:
                self.counters[c]["lifetime"] += 1
                self.drop(lane, i)
            if hoq and queue and queue[0].headed + hoq <= self.now:
                self.dropped_in_row[lane] += 1
                self.counters[c]["hoq"] += 1
                self.drop(lane, i)
                if self.opt.stall_count[c] and self.dropped_in_row[lane] >= self.opt.stall_count[c]:
                    self.stall(lane, hoq)
                    break
        self.arm(lane)

    def stall(self, lane, hoq):
        c, vl = divmod(lane, self.vls)
        self.stalled[lane], self.dropped_in_row[lane] = True, 0
        for i in range(self.inputs[c]):
            while self.queues[c, vl, i]:
                self.counters[c]["stalled"] += 1
                self.drop(lane, i)
        self.at(self.now + self.opt.stall_multiple * hoq, UNSTALL, lane)

    # The clock

    def handle(self, kind, subject, value):
        if kind == CREDIT:
            self.fccl[subject] += value
            self.returning[subject] -= value
        elif kind == FREED:
            self.unsent[subject] += value
        elif kind in (ARRIVE, DELIVER):
            (self.arrive if kind == ARRIVE else self.deliver)(value)
        elif kind == INJECT:
            self.flows[subject].called = False
            self.prepare(self.flows[subject])
        elif kind == EXPOSE:
            self.expose(subject)
        elif kind == HEAD:
            self.head(subject)
        elif kind == UNSTALL:
            self.stalled[subject] = False
        elif kind == FCP:
            for lane, blocks in enumerate(self.unsent):
                if blocks:
                    self.at(self.now + int(self.net.wire[lane // self.vls]), CREDIT, lane, blocks)
                self.unsent[lane] = 0
            self.at(self.now + self.opt.fcp_period, FCP, 0)
        elif kind != FREE:
            self.handle_breaker(kind, subject, value)

    def run(self, until):
        while self.events and self.events[0][0] <= until:
            self.now, batch = self.events[0][0], []
            while self.events and self.events[0][0] == self.now:
                batch.append(heapq.heappop(self.events)[1:4])
            packets = [event for event in batch if event[0] in (ARRIVE, DELIVER)]
            rest = [event for event in batch if event[0] not in (ARRIVE, DELIVER)]
            first = [event for event in rest if event[0] < HEAD]
            for event in [*sorted(first), *packets, *sorted(event for event in rest if event[0] >= HEAD)]:
                self.handle(*event)
            for c in range(self.count):
                if self.busy[c] <= self.now and (chosen := self.choose(c)):
                    self.send(c, *chosen)
        self.now = until

    # What is told, in the kernel's words

    def channel_rows(self):
        rows = []
        for c, counters in enumerate(self.counters):
            waiting = sum(self.lane_waiting(c * self.vls + vl) for vl in range(self.vls))
            more = max(0, self.now - max(self.since[c], self.busy[c])) if waiting else 0
            values = list(counters.values())
            rows.append([*values[:2], values[2] + more, *values[3:], waiting])
        return rows

    def lane_rows(self):
        return [
            [self.fctbs[x], self.fccl[x], self.fccl[x] - self.fctbs[x], self.held[x], self.flying[x], self.returning[x],
             self.buffer[x], self.lane_waiting(x), self.lane_sent[x], *self.watched(x), int(self.stalled[x])]
            for x in range(len(self.held))
        ]  # fmt: skip

    def flow_rows(self):
        return [
            [flow.made, flow.sent_packets, flow.got_packets, flow.got_bytes, flow.lost, flow.latency, flow.in_network,
             flow.worst, flow.done]
            for flow in self.flows
        ]  # fmt: skip
