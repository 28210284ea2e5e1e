"""Pauses instead of credits."""

from slow_simulate.kinds import PAUSE


class Pauses:
    def start_pauses(self):
        lanes = self.count * self.vls
        self.paused, self.pausing, self.pauses = [False] * lanes, [False] * lanes, [0] * lanes
        self.words = 0

    def look_full(self):
        """When all heads of a tick have arrived."""
        for lane in range(len(self.pausing) if self.opt.xoff else 0):
            if not self.pausing[lane] and self.held[lane] >= self.opt.xoff:
                self.tell(lane, True)

    def look_empty(self):
        """When everything has begun to leave that leaves in a tick."""
        for lane in range(len(self.pausing)):
            if self.pausing[lane] and self.held[lane] <= self.opt.xon:
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
