"""Drops for age: head-of-queue lifetime, VL stall, switch lifetime."""

from slow_simulate.kinds import EXPOSE, HEAD, UNSTALL


class Age:
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
