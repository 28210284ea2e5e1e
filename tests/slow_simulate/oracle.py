"""Deadlock Breaker without messages: an oracle notices that nothing moves, and releases the whole loop at once."""

from slow_simulate.kinds import RULE_END, SAMPLE
from slow_simulate.machine import Slow


class Oracle(Slow):
    """A simulator with an oracle for one loop.

    ``loop`` lists the VLs of the loop in order.  ``releases`` has the tick of each release, with the packets that each
    flow had delivered.
    """

    def __init__(self, network, options, traffic, loop, *, detect, release, extra):
        super().__init__(network, options, traffic)
        self.loop, self.detect, self.release_time, self.added = loop, detect, release, extra
        self.releases = []

    def send(self, c, vl, i):
        super().send(c, vl, i)
        self.at(self.now + self.detect, SAMPLE, self.totals["hops"])

    def handle(self, kind, subject, value):
        if kind != SAMPLE:
            super().handle(kind, subject, value)
        elif self.totals["hops"] == subject:
            self.release_all()

    def release_all(self):
        self.releases.append((self.now, [flow.got_packets for flow in self.flows]))
        for vl_in, vc in zip([*self.loop[-1:], *self.loop[:-1]], self.loop, strict=True):
            self.only[vc] = self.in_index[vl_in // self.vls]
            self.extra[vl_in] = self.added
            self.buffer[vl_in] += self.added
            self.give_back(vl_in, self.added, self.now)
            for ended in (vl_in, -1):
                self.at(self.now + self.release_time, RULE_END, vc, ended)
