"""Mechanisms in plain Python, and the hooks at which the slow simulator calls them."""

from slow_simulate.kinds import INJECT, TIMER


class Mechanism:
    """A mechanism without any hook; `sim` is the slow simulator, `numbers` the settings."""

    def __init__(self, sim, index, numbers):
        self.sim, self.index, self.numbers = sim, index, numbers

    def gate(self, flow):
        return True

    def made(self, packet):
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


KNOWN = {"hold": Hold}


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
