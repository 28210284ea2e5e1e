"""Pauses instead of credits."""

from slow_simulate.kinds import PAUSE


class Pauses:
    def start_pauses(self):
        vcs = self.count * self.vls
        self.paused, self.pausing, self.pauses = [False] * vcs, [False] * vcs, [0] * vcs
        self.words = 0

    def inside(self, vc):
        """Of a packet that leaves, all counts until its tail has left."""
        return self.held[vc] + self.returning[vc]

    def look_full(self):
        """When all heads of a tick have arrived, and its tails are still there."""
        for vc in range(len(self.pausing) if self.opt.xoff else 0):
            if not self.pausing[vc] and self.inside(vc) >= self.opt.xoff:
                self.send_pause(vc, True)

    def look_empty(self):
        """When the tails have gone."""
        for vc in range(len(self.pausing)):
            if self.pausing[vc] and self.inside(vc) <= self.opt.xon:
                self.send_pause(vc, False)

    def send_pause(self, vc, stop):
        self.pausing[vc] = stop
        self.pauses[vc] += stop
        self.words += 1
        self.at(self.now + int(self.net.wire[vc // self.vls]), PAUSE, self.words, (vc, stop))

    def may_send(self, vc, packet):
        if self.opt.xoff:
            return not self.paused[vc]
        return packet.blocks <= self.fccl[vc] - self.fctbs[vc]
