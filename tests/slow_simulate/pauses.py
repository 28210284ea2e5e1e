"""Pauses instead of credits."""

from slow_simulate.kinds import PAUSE


class Pauses:
    def start_pauses(self):
        lanes = self.count * self.vls
        self.paused, self.pausing, self.pauses = [False] * lanes, [False] * lanes, [0] * lanes
        self.words = 0

    def inside(self, lane):
        """Of a packet that leaves, all counts until its tail has left."""
        return self.held[lane] + self.returning[lane]

    def look_full(self):
        """When all heads of a tick have arrived, and its tails are still there."""
        for lane in range(len(self.pausing) if self.opt.xoff else 0):
            if not self.pausing[lane] and self.inside(lane) >= self.opt.xoff:
                self.tell(lane, True)

    def look_empty(self):
        """When the tails have gone."""
        for lane in range(len(self.pausing)):
            if self.pausing[lane] and self.inside(lane) <= self.opt.xon:
                self.tell(lane, False)

    def tell(self, lane, stop):
        self.pausing[lane] = stop
        self.pauses[lane] += stop
        self.words += 1
        self.at(self.now + int(self.net.wire[lane // self.vls]), PAUSE, self.words, (lane, stop))

    def may_send(self, lane, packet):
        if self.opt.xoff:
            return not self.paused[lane]
        return packet.blocks <= self.fccl[lane] - self.fctbs[lane]
