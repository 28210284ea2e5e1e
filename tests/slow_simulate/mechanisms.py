"""Mechanisms in plain Python, and the hooks at which the slow simulator calls them."""

from dataclasses import replace

from slow_simulate.kinds import INJECT, TIMER
from slow_simulate.request_grant import RequestGrant


class Mechanism:
    """A mechanism without any hook; `sim` is the slow simulator, `numbers` the settings."""

    def __init__(self, sim, index, numbers):
        self.sim, self.index, self.numbers = sim, index, numbers

    def gate(self, flow):
        return True

    def made(self, packet):
        pass

    def sent(self, packet):
        pass

    def queued(self, packet, vc):
        pass

    def delivered(self, packet):
        pass

    def lost(self, packet):
        pass

    def timer_at(self, time, subject, value=0):
        self.sim.at(time, TIMER, self.index << 26 | subject, value)

    def retry(self, flow):
        self.sim.at(self.sim.now + 1, INJECT, flow.f)


class Hold(Mechanism):
    held = frozenset()

    def gate(self, flow):
        return flow.lid not in self.held

    def command(self, lids):
        self.held = frozenset(lids)
        for flow in self.sim.flows:
            if flow.gated and flow.lid not in self.held:
                self.retry(flow)


class Tasks(Mechanism):
    def __init__(self, sim, index, numbers):
        super().__init__(sim, index, numbers)
        count = numbers[0]
        self.tasks = [numbers[1 + 5 * n : 6 + 5 * n] for n in range(count)]
        rest = numbers[1 + 5 * count :]
        self.pairs = list(zip(rest[::2], rest[1::2], strict=True))
        self.left = [task[2] for task in self.tasks]
        self.ready, self.arrived = [-1] * count, [-1] * count
        self.of_row = {}
        sim.traffic = replace(sim.traffic, trace=sim.traffic.trace.copy())
        for flow in sim.flows:
            flow.messages = 0
        for n, (*_, at, delay) in enumerate(self.tasks):
            if all(after != n for _, after in self.pairs):
                self.timer_at(at + delay, n)

    def timer(self, n, value):
        f, lid, size, *_ = self.tasks[n]
        flow = self.sim.flows[f]
        row = flow.list + flow.messages
        self.sim.traffic.trace[row] = self.sim.now, lid, size
        self.of_row[row], self.ready[n] = n, self.sim.now
        flow.messages += 1
        if flow.made == flow.messages - 1:
            flow.due = self.sim.now
        self.sim.prepare(flow)

    def made(self, packet):
        packet.task = self.of_row[packet.flow.list + packet.flow.made - 1]

    def delivered(self, packet):
        n = packet.task
        self.left[n] -= packet.bytes
        if self.left[n]:
            return
        self.arrived[n] = self.sim.now
        for before, after in self.pairs:
            others = [first for first, last in self.pairs if last == after]
            if before == n and all(self.arrived[first] >= 0 for first in others):
                *_, at, delay = self.tasks[after]
                self.timer_at(max(at, self.sim.now + max(delay, 1)), after)


class Congestion(Mechanism):
    def __init__(self, sim, index, numbers):
        super().__init__(sim, index, numbers)
        self.threshold, self.rate, self.victims, self.smallest = numbers[:4]
        self.notice, self.increase, self.limit, self.every = numbers[4:8]
        self.delays = numbers[8:]
        self.marked, self.becns, self.unmarked = 0, {}, {}
        self.ccti, self.highest, self.free_at, self.waits = {}, {}, {}, set()
        self.armed = False

    def made(self, packet):
        packet.fecn = False

    def queued(self, packet, vc):
        c, vl = divmod(vc, self.sim.vls)
        waiting = sum(len(self.sim.queues[c, vl, i]) for i in range(self.sim.inputs[c]))
        blocked = self.sim.fccl[vc] - self.sim.fctbs[vc] < packet.blocks
        if waiting < self.threshold or packet.bytes < self.smallest or (blocked and not self.victims):
            return
        passed = self.unmarked.get(vc, self.rate)
        self.unmarked[vc] = passed + 1
        if passed >= self.rate:
            self.unmarked[vc] = 0
            self.marked += not packet.fecn
            packet.fecn = True

    def delivered(self, packet):
        if packet.fecn:
            self.timer_at(self.sim.now + self.notice, packet.flow.f, 0)

    def sent(self, packet):
        f = packet.flow.f
        length = packet.bytes * int(self.sim.net.cost[packet.flow.channel]) >> 20
        ccti = self.ccti.get(f, 0)
        self.free_at[f] = self.sim.now + (length + (length * self.delays[ccti] >> 10) if ccti else 0)

    def gate(self, flow):
        at = self.free_at.get(flow.f, 0)
        if at <= self.sim.now:
            return True
        if flow.f not in self.waits:
            self.waits.add(flow.f)
            self.timer_at(at, flow.f, 1)
        return False

    def timer(self, f, value):
        if value == 0:
            self.becns[f] = self.becns.get(f, 0) + 1
            self.ccti[f] = min(self.ccti.get(f, 0) + self.increase, self.limit)
            self.highest[f] = max(self.highest.get(f, 0), self.ccti[f])
            if not self.armed:
                self.armed = True
                self.timer_at((self.sim.now // self.every + 1) * self.every, 0, 2)
        elif value == 1:
            self.waits.remove(f)
            self.sim.prepare(self.sim.flows[f])
        else:
            self.ccti = {flow: index - 1 for flow, index in self.ccti.items() if index > 1}
            self.armed = bool(self.ccti)
            if self.armed:
                self.timer_at(self.sim.now + self.every, 0, 2)


KNOWN = {"hold": Hold, "tasks": Tasks, "congestion": Congestion, "request-grant": RequestGrant}


class Mechanisms:
    attached = ()

    def start_mechanisms(self):
        self.attached, at = [], 0
        for index, count in enumerate(self.opt.mechanism_counts.tolist()):
            name = self.opt.mechanism_names[index].tobytes().rstrip(b"\0").decode()
            numbers = self.opt.mechanism_numbers[at : at + count].tolist()
            self.attached.append(KNOWN[name](self, index, numbers))
            at += count

    def passes(self, flow):
        flow.gated = not all(mechanism.gate(flow) for mechanism in self.attached)
        return not flow.gated

    def call(self, hook, *arguments):
        for mechanism in self.attached:
            getattr(mechanism, hook)(*arguments)

    def command(self, mechanism, numbers):
        self.attached[mechanism].command(numbers)

    def timer(self, subject, value):
        self.attached[subject >> 26].timer(subject & ((1 << 26) - 1), value)
