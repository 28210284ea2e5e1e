"""The clock and the state of the slow reference simulator, which is assembled from the other modules."""

import heapq
from collections import deque
from types import SimpleNamespace

from slow_simulate.age import Age
from slow_simulate.breakers import Breakers
from slow_simulate.counters import Rows
from slow_simulate.faults import Faults
from slow_simulate.kinds import (
    ARRIVE,
    CREDIT,
    DELIVER,
    EXPOSE,
    FCP,
    FREE,
    FREED,
    HEAD,
    INJECT,
    INPUT,
    PAUSE,
    SAMPLE,
    TIMER,
    UNSTALL,
)
from slow_simulate.outputs import Outputs
from slow_simulate.pauses import Pauses
from slow_simulate.sources import Sources
from slow_simulate.switches import Switches

COUNTERS = (
    "bytes", "packets", "wait", "discards", "hoq", "lifetime", "stalled", "overrun", "relay", "control", "down",
)  # fmt: skip


class Slow(Sources, Switches, Outputs, Age, Breakers, Pauses, Faults, Rows):
    def __init__(self, network, options, traffic):
        self.net, self.opt, self.traffic = network, options, traffic
        self.count, self.vls = len(network.src), network.vls
        self.now, self.events = -1, []
        self.lft, self.sl2vl = network.lft.copy(), network.sl2vl.copy()
        self.log, self.picks = [], 0
        self.totals = dict.fromkeys(("injected", "delivered", "dropped", "hops"), 0)
        self.start_vcs()
        self.start_channels()
        self.start_breakers()
        self.start_pauses()
        self.start_faults()
        self.flows = [self.make_flow(f) for f in range(len(traffic.numbers))]
        self.start_queues()
        self.start_mechanisms()
        for flow in self.flows:
            self.next_due(flow, 0)
            self.prepare(flow)
        if options.sample_period:
            self.at(options.sample_period, SAMPLE, 0)
        if options.fcp_period:
            self.at(options.fcp_period, FCP, 0)

    def start_vcs(self):
        vcs = self.count * self.vls
        self.buffer = [int(blocks) for blocks in self.net.buffer.reshape(-1)]
        self.fctbs, self.fccl = [0] * vcs, list(self.buffer)
        self.held, self.flying, self.returning, self.unsent = [0] * vcs, [0] * vcs, [0] * vcs, [0] * vcs
        self.stalled, self.dropped_in_row, self.check = [False] * vcs, [0] * vcs, [0] * vcs
        self.turn, self.vc_since, self.vc_sent = [0] * vcs, [0] * vcs, [-1] * vcs
        self.only, self.let_go, self.let_go_input = [None] * vcs, [0] * vcs, [0] * vcs
        self.hidden, self.shown = [deque() for _ in range(vcs)], [False] * vcs

    def start_channels(self):
        self.busy, self.carry, self.since = [0] * self.count, [0] * self.count, [0] * self.count
        self.next_vl, self.sending = [0] * self.count, {}
        self.last_input, self.last_queue = [(-1, -1)] * self.count, {}
        self.tables = [SimpleNamespace(at=[0, 0], left=[0, 0], limit=0) for _ in range(self.count)]
        self.counters = [dict.fromkeys(COUNTERS, 0) for _ in range(self.count)]
        ports = zip(self.net.src, self.net.src_port, strict=True)
        self.at_port = {(int(s), int(p)): c for c, (s, p) in enumerate(ports)}
        self.in_index = {}
        for c in range(self.count):
            ports = [p for s, p in self.at_port if s == self.net.dst[c]]
            self.in_index[c] = sorted(ports).index(int(self.net.dst_port[c]))

    def start_queues(self):
        self.inputs = [
            sum(1 for s, _ in self.at_port if s == self.net.src[c])
            if self.net.src[c] < self.net.switches
            else sum(1 for flow in self.flows if flow.channel == c)
            for c in range(self.count)
        ]
        self.queues = {
            (c, vl, i): deque() for c in range(self.count) for vl in range(self.vls) for i in range(self.inputs[c])
        }

    def at(self, time, kind, subject, value=0):
        assert time > self.now
        heapq.heappush(self.events, (time, kind, subject, value, len(self.events)))

    def waiting(self, c):
        return [vl for vl in range(self.vls) if self.vc_waiting(c * self.vls + vl)]

    def vc_waiting(self, vc):
        c, vl = divmod(vc, self.vls)
        return sum(len(self.queues[c, vl, i]) for i in range(self.inputs[c]))

    def handle(self, kind, subject, value):
        if kind == CREDIT:
            self.fccl[subject] += value
            self.returning[subject] -= value
        elif kind == FREED and self.opt.xoff:
            self.returning[subject] -= value
            self.fccl[subject] += value
        elif kind == FREED:
            self.unsent[subject] += value
        elif kind == PAUSE:
            self.paused[value[0]] = value[1]
        elif kind in (ARRIVE, DELIVER):
            (self.arrive if kind == ARRIVE else self.deliver)(value)
        elif kind == INJECT:
            self.flows[subject].called = False
            self.prepare(self.flows[subject])
        elif kind == INPUT:
            self.sending[subject] -= 1
        elif kind == EXPOSE:
            self.expose(subject)
        elif kind == HEAD:
            self.head(subject)
        elif kind == UNSTALL:
            self.stalled[subject] = False
        elif kind == FCP:
            for vc, blocks in enumerate(self.unsent):
                if blocks:
                    self.at(self.now + int(self.net.wire[vc // self.vls]), CREDIT, vc, blocks)
                self.unsent[vc] = 0
            self.at(self.now + self.opt.fcp_period, FCP, 0)
        elif kind == TIMER:
            self.timer(subject, value)
        elif kind != FREE:
            self.handle_breaker(kind, subject, value)

    def run(self, until):
        while self.events and self.events[0][0] <= until:
            self.now, batch = self.events[0][0], []
            while self.events and self.events[0][0] == self.now:
                batch.append(heapq.heappop(self.events)[1:4])
            packets = [event for event in batch if event[0] in (ARRIVE, DELIVER)]
            tails = [event for event in batch if event[0] == FREED and self.opt.xoff]
            rest = [event for event in batch if event[0] not in (ARRIVE, DELIVER) and event not in tails]
            first = [event for event in rest if event[0] < HEAD]
            self.queued_now = []
            for event in [*sorted(first), *packets]:
                self.handle(*event)
            for vc, _, packet in sorted(self.queued_now, key=lambda queued: queued[:2]):
                self.call("queued", packet, vc)
            for event in sorted(event for event in rest if event[0] >= HEAD):
                self.handle(*event)
            self.look_full()
            for _, vc, blocks in tails:
                self.handle(FREED, vc, blocks)
            for c in self.in_order():
                if self.busy[c] <= self.now and (chosen := self.choose(c)):
                    self.send(c, *chosen)
            self.look_empty()
        self.now = until
