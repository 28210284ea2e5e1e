"""The choice of the packet that a channel sends next: first a VL, then an input."""

from slow_numbers import key_of, number

from slow_simulate.kinds import ARRIVE, DELIVER, EXPOSE, FREE, INPUT


class Outputs:
    def choose_input(self, vc, passed_over):
        c, vl = divmod(vc, self.vls)
        have = [i for i in range(self.inputs[c]) if self.queues[c, vl, i] and i not in passed_over]
        if self.only[vc] is not None:
            return self.only[vc] if self.only[vc] in have else None
        if not have:
            return None
        in_turn = sorted(have, key=lambda i: (i - self.turn[vc]) % self.inputs[c])
        if self.opt.arbitration == 0:
            return in_turn[0]
        if self.opt.arbitration == 1:
            return self.first_come(c, vl, in_turn)
        kind = 10 + len(passed_over) if passed_over else 3
        drawn = number(key_of(self.opt.seed, kind, c), self.counters[c]["packets"])
        return have[(drawn >> 32) * len(have) >> 32]

    def first_come(self, c, vl, in_turn):
        return min(in_turn, key=lambda i: self.queues[c, vl, i][0].ready)

    def free(self, c, i):
        """Return whether input i may send one packet more to channel c."""
        switch = int(self.net.src[c])
        return not self.opt.speedup or self.sending.get((switch, i), 0) < self.opt.speedup

    def input_that_fits(self, c, vl):
        vc = c * self.vls + vl
        i = self.let_go_input[vc]
        if self.let_go[vc] and self.queues[c, vl, i] and self.free(c, i):
            return i
        passed_over = []
        while (i := self.choose_input(vc, passed_over)) is not None:
            if not self.may_send(vc, self.queues[c, vl, i][0]):
                return None
            packet = self.queues[c, vl, i][0]
            room = self.room(packet, vc)
            if (not room or self.fccl[vc] - self.fctbs[vc] >= packet.blocks + room) and self.free(c, i):
                return i
            passed_over.append(i)
        return None

    def in_order(self):
        """Return the channels in the order in which they may choose.  Each device begins with a random channel, and the
        others follow.
        """
        order = []
        for device in range(self.net.devices):
            own = [c for c in range(self.count) if self.net.src[c] == device]
            first = (number(key_of(self.opt.seed, 8, device), self.now) >> 32) * len(own) >> 32
            order += own[first:] + own[:first]
        return order

    def from_table(self, c, which, table, can, inputs):
        state = self.tables[c]
        if state.left[which] <= 0 or table[state.at[which]][0] not in can:
            for _ in range(len(table)):
                state.at[which] = (state.at[which] + 1) % len(table)
                state.left[which] = table[state.at[which]][1]
                if state.left[which] and table[state.at[which]][0] in can:
                    break
        vl = table[state.at[which]][0]
        blocks = self.queues[c, vl, inputs[vl]][0].blocks
        state.left[which] -= blocks
        return vl, blocks

    def choose_by_tables(self, c, inputs):
        row, state = self.opt.vlarb[self.opt.arbiter[c]].tolist(), self.tables[c]
        high = [(row[4 + 2 * e], row[5 + 2 * e]) for e in range(row[1])]
        low = [(row[132 + 2 * e], row[133 + 2 * e]) for e in range(row[2])]
        high_can = {vl for vl, weight in high if weight and vl in inputs}
        low_can = {vl for vl, weight in low if weight and vl in inputs}
        fresh = row[0] * 64 or 1
        if high_can and (row[0] == 255 or state.limit > 0 or not low_can):
            vl, blocks = self.from_table(c, 0, high, high_can, inputs)
            state.limit = (state.limit if state.limit > 0 else fresh) - blocks
            return vl
        state.limit = fresh
        return self.from_table(c, 1, low, low_can, inputs)[0] if low_can else None

    def choose(self, c):
        if self.opt.arbitration == 3:
            return self.choose_by_crossbar_input(c)
        inputs = {vl: i for vl in self.waiting(c) if (i := self.input_that_fits(c, vl)) is not None}
        if not inputs:
            return None
        if len(self.opt.vlarb):
            vl = self.choose_by_tables(c, inputs)
        else:
            vl = min(inputs, key=lambda vl: (vl - self.next_vl[c]) % self.vls)
            self.next_vl[c] = (vl + 1) % self.vls
        return None if vl is None else (vl, inputs[vl])

    def crossbar_input(self, vl, i, packet):
        """Return the crossbar input of a packet, and the number of its queue."""
        queue = 0 if packet.vc is None else packet.vc % self.vls if self.opt.single_fifo else vl
        return (i, queue % min(self.opt.speedup or 99, self.vls)), queue

    def choose_by_crossbar_input(self, c):
        """Return (vl, i, packet): the first packet in the cyclic order of crossbar inputs that may leave.  Return None
        if there is none.
        """

        def turn(vl, i, packet):
            at, queue = self.crossbar_input(vl, i, packet)
            return at <= self.last_input[c], at, queue <= self.last_queue.get((c, at), -1), queue

        packets = [
            (turn(vl, i, packet), vl, i, packet)
            for vl in range(self.vls)
            for i in range(self.inputs[c])
            for packet in list(self.queues[c, vl, i])[: None if self.opt.single_fifo else 1]
        ]
        blocked = set()
        for _, vl, i, packet in sorted(packets, key=lambda entry: entry[0]):
            vc = c * self.vls + vl
            if vl in blocked or self.only[vc] not in (None, i):
                continue
            let_go = self.let_go[vc] and self.let_go_input[vc] == i
            if not let_go and not self.may_send(vc, packet):
                if not self.let_go[vc]:
                    blocked.add(vl)
                continue
            room = 0 if let_go else self.room(packet, vc)
            if (not room or self.fccl[vc] - self.fctbs[vc] >= packet.blocks + room) and self.free(c, i):
                self.last_input[c], queue = self.crossbar_input(vl, i, packet)
                self.last_queue[c, self.last_input[c]] = queue
                return vl, i, packet
        return None

    def send(self, c, vl, i, packet=None):
        vc, counters = c * self.vls + vl, self.counters[c]
        packet = self.take(c, vl, i, packet)
        self.turn[vc] = (i + 1) % self.inputs[c]
        work = packet.bytes * int(self.net.cost[c]) + self.carry[c]
        self.carry[c] = work % (1 << 20)
        end = max(self.now + max(1, work >> 20), packet.tail)
        counters["wait"] += self.now - max(self.since[c], self.busy[c])
        counters["bytes"] += packet.bytes
        counters["packets"] += 1
        self.busy[c] = self.vc_sent[vc] = end
        self.at(end, FREE, c)
        self.fctbs[vc] += packet.blocks
        self.flying[vc] += packet.blocks
        self.dropped_in_row[vc] = 0
        self.let_go[vc] = max(0, self.let_go[vc] - 1)
        self.totals["hops"] += 1
        source = packet.vc is None
        if source:
            packet.entered = self.now
            self.totals["injected"] += 1
            packet.flow.sent_packets += 1
            packet.flow.head = False
            self.call("sent", packet)
        else:
            self.held[packet.vc] -= packet.blocks
            at = (int(self.net.src[c]), i)
            self.sending[at] = self.sending.get(at, 0) + 1
            self.at(end, INPUT, at)
            self.give_back(packet.vc, packet.blocks, end)
            if self.opt.single_fifo:
                self.at(end, EXPOSE, packet.vc)
        packet.vc, packet.channel, packet.tail = vc, c, end + int(self.net.wire[c])
        device = int(self.net.dst[c])
        if device < self.net.switches:
            self.at(self.now + int(self.net.wire[c]) + int(self.net.switch_delay[device]), ARRIVE, id(packet), packet)
        else:
            self.at(packet.tail, DELIVER, id(packet), packet)
        if source:
            self.prepare(packet.flow)
