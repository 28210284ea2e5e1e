"""Pauses in place of credits."""

from slow_simulate.kinds import PAUSE


class Pauses:
    def start_pauses(self):
        vcs = self.count * self.vls
        self.paused, self.pausing, self.pauses = [False] * vcs, [False] * vcs, [0] * vcs
        self.words = 0

    def inside(self, vc):
        """Return the occupancy of a buffer in blocks.  A packet that leaves counts as a whole until its tail has
        left.
        """
        return self.held[vc] + self.returning[vc]

    def look_full(self):
        """Pause senders, after all heads of a tick have arrived and before tails leave."""
        for vc in range(len(self.pausing) if self.opt.xoff else 0):
            if not self.pausing[vc] and self.inside(vc) >= self.opt.xoff:
                self.send_pause(vc, True)

    def look_empty(self):
        """Let paused senders go on, after tails have left."""
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
