"""Mechanisms for the slow reference simulator, and the hooks at which it calls them."""

from collections import defaultdict
from copy import copy
from dataclasses import replace
from types import SimpleNamespace

from slow_simulate.faults import NEVER
from slow_simulate.kinds import INJECT, TIMER
from slow_simulate.request_grant import RequestGrant


class Mechanism:
    """A mechanism whose hooks do nothing; ``sim`` is the slow simulator, and ``numbers`` are the settings."""

    def __init__(self, sim, index, numbers):
        self.sim, self.index, self.numbers = sim, index, numbers

    def gate(self, flow):
        return True

    def room(self, packet, vc):
        return 0

    def output(self, packet, usual):
        return usual

    def vl(self, packet, channel, usual):
        return usual

    def arrives(self, packet):
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
        self.pairs = list(zip(rest[::3], rest[1::3], rest[2::3], strict=True))
        self.left = [task[2] for task in self.tasks]
        self.ready, self.arrived = [-1] * count, [-1] * count
        self.of_row = {}
        sim.traffic = replace(sim.traffic, trace=sim.traffic.trace.copy())
        for flow in sim.flows:
            flow.messages = 0
        for n, (*_, at, delay) in enumerate(self.tasks):
            if all(after != n for _, after, _ in self.pairs):
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
        for before, after, _ in self.pairs:
            others = [(first, delay) for first, last, delay in self.pairs if last == after]
            if before == n and all(self.arrived[first] >= 0 for first, _ in others):
                *_, at, _ = self.tasks[after]
                due = max(self.arrived[first] + max(delay, 1) for first, delay in others)
                self.timer_at(max(at, due, self.sim.now + 1), after)


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


class Qcn(Mechanism):
    FULL = 1 << 20

    def __init__(self, sim, index, numbers):
        super().__init__(sim, index, numbers)
        self.equilibrium, self.weight, self.sample, self.notice, self.cycle, self.every, self.step, self.least = numbers
        self.samples, self.left, self.old = 0, {}, {}
        self.flows = defaultdict(
            lambda: SimpleNamespace(
                rate=self.FULL, target=self.FULL, free_at=0, due=None, bytes=0, by_bytes=0, by_time=0, notified=0,
                lowest=self.FULL, waits=False,
            )
        )  # fmt: skip

    def queued(self, packet, vc):
        c, vl = divmod(vc, self.sim.vls)
        self.left[vc] = self.left.get(vc, self.sample) - 1
        if self.left[vc] > 0:
            return
        waiting = sum(len(self.sim.queues[c, vl, i]) for i in range(self.sim.inputs[c]))
        most = self.equilibrium * (2 * self.weight + 1)
        feedback = waiting - self.equilibrium + self.weight * (waiting - self.old.get(vc, 0))
        feedback = min(max(feedback, 0), most) * 63 // most
        self.old[vc], self.left[vc] = waiting, self.sample * 63 // (63 + 9 * feedback)
        self.samples += 1
        if feedback:
            self.timer_at(self.sim.now + self.notice, packet.flow.f, 1 + feedback)

    def restart(self, f, flow):
        flow.due = self.sim.now + self.every if flow.rate < self.FULL else None
        if flow.due is not None:
            self.timer_at(flow.due, f, 1)

    def rise(self, flow):
        cycles = sorted((flow.by_bytes, flow.by_time))
        if cycles[0] > 5:
            flow.target += self.step * (cycles[0] - 5)
        elif cycles[1] > 5:
            flow.target += self.step
        flow.target = min(flow.target, self.FULL)
        flow.rate = (flow.rate + flow.target) // 2
        if flow.target == self.FULL and self.FULL - flow.rate < self.FULL // 1024:
            flow.rate = self.FULL

    def sent(self, packet):
        flow = self.flows[packet.flow.f]
        length = packet.bytes * int(self.sim.net.cost[packet.flow.channel]) >> 20
        if flow.rate < self.FULL:
            flow.free_at = self.sim.now - (-length * self.FULL // flow.rate)
            flow.bytes += packet.bytes
            if flow.bytes >= self.cycle:
                flow.bytes -= self.cycle
                flow.by_bytes += 1
                self.rise(flow)

    def gate(self, flow):
        limited = self.flows[flow.f]
        if limited.free_at <= self.sim.now:
            return True
        if not limited.waits:
            limited.waits = True
            self.timer_at(limited.free_at, flow.f, 0)
        return False

    def timer(self, f, value):
        flow = self.flows[f]
        if value == 0:
            flow.waits = False
            self.sim.prepare(self.sim.flows[f])
        elif value > 1:
            flow.target = flow.rate
            flow.rate = max(flow.rate - (flow.rate * (value - 1) // 128), self.least)
            flow.lowest = min(flow.lowest, flow.rate)
            flow.notified += 1
            flow.bytes = flow.by_bytes = flow.by_time = 0
            self.restart(f, flow)
        elif flow.due == self.sim.now:
            flow.by_time += 1
            self.rise(flow)
            self.restart(f, flow)


class Recn(Mechanism):
    def __init__(self, sim, index, numbers):
        super().__init__(sim, index, numbers)
        self.count, self.threshold, self.spread, self.notice, self.release = numbers
        self.base = sim.vls - self.count
        self.root = {}
        self.assigned = self.refused = self.most = self.packets = 0

    def path(self, channel, lid):
        """List the channels of the path to a LID, beginning at the end of a channel."""
        found, device = [], int(self.sim.net.dst[channel])
        while device < self.sim.net.switches and len(found) < self.sim.net.switches:
            out = self.sim.at_port.get((device, int(self.sim.lft[device, lid])))
            if out is None:
                break
            found.append(out)
            device = int(self.sim.net.dst[out])
        return found

    def vl(self, packet, channel, usual):
        for root in reversed(self.path(channel, packet.lid)):
            for vl in range(self.base, self.sim.vls):
                if self.root.get((channel, vl)) == root:
                    self.packets += 1
                    return vl
        return usual

    def queued(self, packet, vc):
        channel, vl = divmod(vc, self.sim.vls)
        waiting = self.sim.vc_waiting(vc)
        if vl >= self.base:
            root, congested = self.root.get((channel, vl)), waiting >= self.spread
        else:
            has_credits = self.sim.fccl[vc] - self.sim.fctbs[vc] >= packet.blocks
            root, congested = channel, has_credits and waiting >= self.threshold
        if congested and root is not None:
            self.timer_at(self.sim.now + self.notice, packet.channel, root)

    def timer(self, channel, value):
        if value < 0:
            self.check(channel, self.base - 1 - value)
            return
        vls = range(self.base, self.sim.vls)
        if any(self.root.get((channel, vl)) == value for vl in vls):
            return
        unused = [vl for vl in vls if (channel, vl) not in self.root]
        if not unused:
            self.refused += 1
            return
        self.root[channel, unused[0]] = value
        self.assigned += 1
        self.most = max(self.most, len(self.root))
        self.timer_at(self.sim.now + self.release, channel, self.base - 1 - unused[0])

    def check(self, channel, vl):
        vc = channel * self.sim.vls + vl
        if self.sim.vc_waiting(vc) or self.sim.held[vc] or self.sim.flying[vc]:
            self.timer_at(self.sim.now + self.release, channel, self.base - 1 - vl)
        else:
            del self.root[channel, vl]


class PortChoice(Mechanism):
    def __init__(self, sim, index, numbers):
        super().__init__(sim, index, numbers)
        self.columns, lids = numbers[0], sim.lft.shape[1]
        firsts = sim.net.switches * self.columns + 1
        self.lid_column, rest = numbers[1 : 1 + lids], numbers[1 + lids :]
        self.first, self.choice = rest[:firsts], rest[firsts:]
        self.seen, self.choices, self.others = {}, 0, 0

    def load(self, c):
        now, load = self.seen.get(c, (-1, 0))
        if now != self.sim.now:
            vcs = range(c * self.sim.vls, (c + 1) * self.sim.vls)
            load = sum(map(self.sim.vc_waiting, vcs)) + (self.sim.busy[c] > self.sim.now)
            self.seen[c] = self.sim.now, load
        return load

    def output(self, packet, usual):
        column = self.lid_column[packet.lid]
        i = int(self.sim.net.dst[packet.channel]) * self.columns + column
        group = self.choice[self.first[i] : self.first[i + 1]] if column >= 0 else []
        start = self.sim.now * 2654435761 % 2**32 // 2**16 + self.sim.in_index[packet.channel]
        start = start % len(group) if group else 0
        up = [c for c in group[start:] + group[:start] if self.sim.busy[c] < NEVER]
        loads = [self.load(c) for c in up]
        chosen = up[loads.index(min(loads))] if up else usual
        if usual in up and self.load(usual) <= 1:
            chosen = usual
        self.choices += len(up) > 1
        self.others += len(up) > 1 and chosen != usual
        if chosen is not None:
            self.load(chosen)
        return chosen


class Bubble(Mechanism):
    def room(self, packet, vc):
        blocks, rings = self.numbers[0], self.numbers[1:]
        within = packet.vc is not None and rings[packet.vc] == rings[vc]
        return blocks if rings[vc] >= 0 and not within else 0


class InjectionLimit(Mechanism):
    stops, asking = 0, None

    def gate(self, flow):
        if self.asking is not flow:
            self.timer_at(self.sim.now + 1, flow.f)
        return self.asking is flow

    def timer(self, f, value):
        net, sim, flow = self.sim.net, self.sim, self.sim.flows[f]
        switch = net.dst[flow.channel]
        held = sum(
            sim.held[c * sim.vls + vl]
            for c in range(sim.count) for vl in range(sim.vls)
            if net.dst[c] == switch and net.src[c] < net.switches
        )  # fmt: skip
        if switch < net.switches and held >= self.numbers[0]:
            self.stops += 1
            self.timer_at(sim.now + self.numbers[1], f)
            return
        self.asking = flow
        sim.prepare(flow)
        self.asking = None


class Retransmission(Mechanism):
    def __init__(self, sim, index, numbers):
        super().__init__(sim, index, numbers)
        self.waiting, self.count, self.resent = {}, {}, 0

    def made(self, packet):
        f = packet.flow.f
        packet.number = self.count.get(f, 0)
        self.count[f] = packet.number + 1

    def lost(self, packet):
        f, due = packet.flow.f, self.sim.now + self.numbers[0]
        self.waiting.setdefault(f, []).append((due, packet.number, copy(packet)))
        self.timer_at(due, f)

    def resend(self, f):
        flow, waiting = self.sim.flows[f], sorted(self.waiting.get(f, []), key=lambda lost: lost[:2])
        if waiting and waiting[0][0] <= self.sim.now and not flow.head:
            *_, packet = waiting.pop(0)
            self.waiting[f] = waiting
            packet.ready = packet.tail = self.sim.now
            packet.channel = packet.vc = None
            packet.again = flow.head = True
            self.resent += 1
            self.sim.enqueue(packet, flow.channel, self.sim.ca_vl(packet, flow), flow.index)

    def sent(self, packet):
        self.resend(packet.flow.f)

    def timer(self, f, value):
        self.resend(f)


class Replies(Mechanism):
    """Endpoints with queues.

    ``into`` has the incoming queue of each (CA, type), and ``out`` the outgoing queue of each (CA, queue number).  A
    message is (type, request, LID).
    """

    def __init__(self, sim, index, numbers):
        super().__init__(sim, index, numbers)
        self.requests, self.bytes, self.in_room, self.out_room, self.most = numbers[:5]
        self.chain, self.backoff, self.detect, self.step = numbers[5:9]
        rest = numbers[9:]
        self.lids, rest = rest[: self.requests], rest[self.requests :]
        self.outstanding = [0] * self.requests
        self.answered = self.backed_off = self.rescued = 0
        self.into, self.out, self.again = defaultdict(list), defaultdict(list), defaultdict(list)
        self.since, self.offered, self.checked, self.wanting = {}, defaultdict(int), set(), set()
        self.serving, self.outlets, self.lid_of = set(), defaultdict(list), {}
        for n, flow in enumerate(sim.flows[self.requests :]):
            ca = int(sim.net.src[flow.channel])
            flow.queue, flow.reply_sl, self.lid_of[ca] = rest[3 * n : 3 * n + 3]
            self.outlets[ca].append(flow)
        self.cas = list(self.lid_of)
        self.token = (0, self.cas[0])

    def gate(self, flow):
        return not self.most or flow.f >= self.requests or self.outstanding[flow.f] < self.most

    def made(self, packet):
        packet.message = (0, packet.flow.f)
        if packet.flow.f < self.requests:
            self.outstanding[packet.flow.f] += 1

    def full(self, ca, queue):
        return len(self.out[ca, queue]) + self.offered[ca, queue] >= (1 if queue == 2 else self.out_room)

    def follows(self, kind):
        return 0 if kind == 0 and self.chain else 1

    def stuck(self, ca, kind):
        return self.into[ca, kind] and self.full(ca, self.follows(kind))

    def third(self, home, request):
        at = self.cas.index(home)
        after = [self.lid_of[ca] for ca in self.cas[at + 1 :] + self.cas[:at]]
        return next(lid for lid in after if lid != self.lids[request])

    def answer(self, ca, kind, request):
        if self.follows(kind) == 0:
            return (1, request, self.third(ca, request))
        return (2, request, self.lids[request])

    def store(self, ca, kind, request):
        self.into[ca, kind].append(request)
        if len(self.into[ca, kind]) == 1:
            self.since[ca, kind] = self.sim.now

    def take(self, ca, kind):
        self.since[ca, kind] = self.sim.now
        return self.into[ca, kind].pop(0)

    def takes(self, ca, packet):
        kind = packet.message[0]
        return kind >= 2 or self.is_rescue(packet) or len(self.into[ca, kind]) < self.in_room

    def is_rescue(self, packet):
        return packet.flow.f >= self.requests and packet.flow.queue == 2

    def arrives(self, packet):
        ca = int(self.sim.net.dst[packet.channel])
        if not self.sim.hidden[packet.vc] and self.takes(ca, packet):
            return True
        self.sim.hidden[packet.vc].append(packet)
        return False

    def delivered(self, packet):
        ca, (kind, request) = int(self.sim.net.dst[packet.channel]), packet.message
        if kind == 2:
            self.answered += 1
            self.timer_at(self.sim.now + 1, request, 0)
            if self.is_rescue(packet):
                self.token = (self.sim.now, ca)
                for one in self.wanting:
                    self.await_token(one)
        elif kind == 3:
            home = int(self.sim.net.src[packet.flow.channel])
            self.again[ca].append((1, request, self.third(home, request)))
        elif self.is_rescue(packet):
            self.out[ca, 2].append(self.answer(ca, kind, request))
        else:
            self.store(ca, kind, request)
        self.serve(ca)

    def sent(self, packet):
        if packet.flow.f >= self.requests:
            ca = int(self.sim.net.src[packet.flow.channel])
            if not packet.again:
                self.offered[ca, packet.flow.queue] -= 1
            self.serve(ca)

    def await_token(self, ca):
        free, place = self.token
        due = free + (self.cas.index(ca) - self.cas.index(place)) % len(self.cas) * self.step
        while due <= self.sim.now:
            due += len(self.cas) * self.step
        self.timer_at(due, ca, 2)

    def overdue(self, ca, wait):
        return [kind for kind in (1, 0) if self.stuck(ca, kind) and self.since[ca, kind] + wait <= self.sim.now]

    def timer(self, subject, value):
        if value == 0:
            self.outstanding[subject] -= 1
            if self.sim.flows[subject].gated:
                self.sim.prepare(self.sim.flows[subject])
            return
        if value == 1:
            self.checked.discard(subject)
            if self.backoff:
                if 0 in self.overdue(subject, self.backoff) and not self.full(subject, 1):
                    request = self.take(subject, 0)
                    self.out[subject, 1].append((3, request, self.lids[request]))
                    self.backed_off += 1
            elif subject not in self.wanting and self.overdue(subject, self.detect):
                self.wanting.add(subject)
                if self.token:
                    self.await_token(subject)
        elif subject in self.wanting and self.token and self.is_here(subject):
            self.wanting.discard(subject)
            for kind in self.overdue(subject, self.detect)[:1]:
                self.token = None
                self.rescued += 1
                self.out[subject, 2].append(self.answer(subject, kind, self.take(subject, kind)))
        self.serve(subject)

    def is_here(self, ca):
        free, place = self.token
        elapsed, laps = self.sim.now - free, len(self.cas)
        stop = self.cas[(self.cas.index(place) + elapsed // self.step) % laps]
        first = free + (self.cas.index(ca) - self.cas.index(place)) % laps * self.step
        return elapsed % self.step == 0 and stop == ca and self.sim.now >= first

    def serve(self, ca):
        if ca in self.serving:
            return
        self.serving.add(ca)
        while True:
            while self.again[ca] and not self.full(ca, 0):
                self.out[ca, 0].append(self.again[ca].pop(0))
            for kind in (1, 0):
                while self.into[ca, kind] and not self.stuck(ca, kind):
                    self.out[ca, self.follows(kind)].append(self.answer(ca, kind, self.take(ca, kind)))
            for flow in self.outlets[ca]:
                self.offer(ca, flow)
            fits = [
                vc for vc, hidden in enumerate(self.sim.hidden)
                if hidden and self.sim.net.dst[vc // self.sim.vls] == ca and self.takes(ca, hidden[0])
            ]  # fmt: skip
            if not fits:
                break
            self.sim.take_packet(self.sim.hidden[fits[0]].popleft())
        self.serving.remove(ca)
        wait = self.backoff + self.detect
        dues = [self.since[ca, kind] + wait for kind in (0, 1) if wait and self.stuck(ca, kind)]
        if dues and ca not in self.checked:
            self.checked.add(ca)
            self.timer_at(max(min(dues), self.sim.now + 1), ca, 1)

    def offer(self, ca, flow):
        if self.out[ca, flow.queue] and not flow.head:
            kind, request, lid = self.out[ca, flow.queue].pop(0)
            self.offered[ca, flow.queue] += 1
            flow.head = True
            packet = SimpleNamespace(
                bytes=self.bytes, blocks=-(-self.bytes // 64), last=True, born=self.sim.now, ready=self.sim.now,
                tail=self.sim.now, entered=self.sim.now, flow=flow, channel=None, vc=None, lid=lid,
                sl=flow.reply_sl, again=False,
            )  # fmt: skip
            self.sim.call("made", packet)
            packet.message = (kind, request)
            self.sim.enqueue(packet, flow.channel, self.sim.ca_vl(packet, flow), flow.index)


KNOWN = {
    "replies": Replies,
    "retransmission": Retransmission,
    "bubble": Bubble,
    "injection-limit": InjectionLimit,
    "hold": Hold,
    "tasks": Tasks,
    "congestion": Congestion,
    "qcn": Qcn,
    "recn": Recn,
    "port-choice": PortChoice,
    "request-grant": RequestGrant,
}


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

    def room(self, packet, vc):
        return max((mechanism.room(packet, vc) for mechanism in self.attached), default=0)

    def chosen_output(self, packet, out):
        for mechanism in self.attached:
            out = mechanism.output(packet, out)
        return out

    def chosen_vl(self, packet, channel, vl):
        for mechanism in self.attached:
            vl = mechanism.vl(packet, channel, vl)
        return vl

    def ca_vl(self, packet, flow):
        return self.chosen_vl(packet, flow.channel, int(self.net.ca_sl2vl[packet.sl]))

    def call(self, hook, *arguments):
        for mechanism in self.attached:
            getattr(mechanism, hook)(*arguments)

    def command(self, mechanism, numbers):
        self.attached[mechanism].command(numbers)

    def timer(self, subject, value):
        self.attached[subject >> 26].timer(subject & ((1 << 26) - 1), value)
