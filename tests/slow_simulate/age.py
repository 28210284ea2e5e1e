"""Drop packets for their age: head-of-queue lifetime, VL stall, and switch lifetime."""

from slow_simulate.kinds import EXPOSE, HEAD, UNSTALL


class Age:
    def limits(self, vc):
        c = vc // self.vls
        if self.net.src[c] >= self.net.switches:
            return 0, 0
        return int(self.opt.hoq[c]), int(self.opt.lifetime[self.net.src[c]])

    def arm(self, vc):
        hoq, lifetime = self.limits(vc)
        c, vl = divmod(vc, self.vls)
        heads = [self.queues[c, vl, i][0] for i in range(self.inputs[c]) if self.queues[c, vl, i]]
        times = [head.headed + hoq for head in heads if hoq] + [head.ready + lifetime for head in heads if lifetime]
        if not times:
            return
        at = max(min(times), self.now + 1)
        if not self.check[vc] or at < self.check[vc]:
            self.check[vc] = at
            self.at(at, HEAD, vc)

    def drop(self, vc, i):
        c, vl = divmod(vc, self.vls)
        packet = self.take(c, vl, i)
        self.counters[c]["discards"] += 1
        if not self.waiting(c):
            self.counters[c]["wait"] += max(0, self.now - max(self.since[c], self.busy[c]))
        self.held[packet.vc] -= packet.blocks
        if self.opt.single_fifo:
            self.at(max(packet.tail, self.now + 1), EXPOSE, packet.vc)
        self.lose(packet)

    def head(self, vc):
        hoq, lifetime = self.limits(vc)
        c, vl = divmod(vc, self.vls)
        if self.check[vc] != self.now:
            return
        self.check[vc] = 0
        for i in range(self.inputs[c]):
            queue = self.queues[c, vl, i]
            while lifetime and queue and queue[0].ready + lifetime <= self.now:
                self.counters[c]["lifetime"] += 1
                self.drop(vc, i)
            if hoq and queue and queue[0].headed + hoq <= self.now:
                self.dropped_in_row[vc] += 1
                self.counters[c]["hoq"] += 1
                self.drop(vc, i)
                if self.opt.stall_count[c] and self.dropped_in_row[vc] >= self.opt.stall_count[c]:
                    self.stall(vc, hoq)
                    break
        self.arm(vc)

    def stall(self, vc, hoq):
        c, vl = divmod(vc, self.vls)
        self.stalled[vc], self.dropped_in_row[vc] = True, 0
        for i in range(self.inputs[c]):
            while self.queues[c, vl, i]:
                self.counters[c]["stalled"] += 1
                self.drop(vc, i)
        self.at(self.now + self.opt.stall_multiple * hoq, UNSTALL, vc)
