"""Loop Breaker and Deadlock Breaker for the slow reference simulator."""

from types import SimpleNamespace

from slow_numbers import key_of, number

from slow_simulate.kinds import CLCM, CONTROL, RULE_END, SAMPLE

LOOP, DEADLOCK = 1, 2
NOBODY = 0xFFFFFFFF
MOST_PORTS = 64


class Breakers:
    def start_breakers(self):
        vcs = self.count * self.vls
        self.suspected, self.own, self.spuid, self.episode = [False] * vcs, [0] * vcs, [0] * vcs, [0] * vcs
        self.extra, self.round, self.sends = [0] * vcs, [0] * vcs, [0] * vcs
        self.messages = []

    def watched(self, vc):
        return int(self.suspected[vc]), self.spuid[vc]

    def handle_breaker(self, kind, subject, value):
        if kind == SAMPLE:
            self.sample()
        elif kind == CLCM:
            self.send_own(subject, value)
        elif kind == CONTROL:
            self.receive(self.messages[subject])
        elif kind == RULE_END:
            self.end_rule(subject, value)

    def stuck(self, vc):
        before = self.now - int(self.opt.detect[vc // self.vls])
        return self.vc_waiting(vc) > 0 and self.vc_since[vc] <= before and self.vc_sent[vc] <= before

    def sample(self):
        for vc in range(self.count * self.vls):
            c = vc // self.vls
            if not self.opt.breaker[c]:
                continue
            stuck = self.stuck(vc)
            if stuck and not self.suspected[vc]:
                self.suspected[vc] = True
                self.episode[vc] += 1
                self.draw(vc, 0)
                self.send_own(vc, self.episode[vc])
            elif not stuck:
                self.suspected[vc] = False
        self.at(self.now + self.opt.sample_period, SAMPLE, 0)

    def draw(self, vc, this_round):
        drawn = number(key_of(self.opt.seed, 5, vc), this_round) >> 32
        self.round[vc], self.sends[vc], self.own[vc] = this_round, 0, drawn % (NOBODY - 1)
        loop = self.opt.breaker[vc // self.vls] == LOOP
        if loop and not self.opt.no_alternative and not self.can_reroute(vc):
            self.own[vc] = NOBODY
        self.spuid[vc] = self.own[vc]

    def send_own(self, vc, episode):
        c = vc // self.vls
        if not self.suspected[vc] or self.episode[vc] != episode:
            return
        if self.opt.rounds:
            if self.sends[vc] == self.opt.rounds:
                self.draw(vc, self.round[vc] + 1)
            else:
                self.sends[vc] += 1
        if self.opt.breaker[c] == DEADLOCK or self.spuid[vc] != NOBODY:
            message = SimpleNamespace(
                kind=int(self.opt.breaker[c]), spuid=self.spuid[vc], entries=[], at=None, round=self.round[vc]
            )
            self.send_message(message, vc)
        self.at(self.now + int(self.opt.repeat[c]), CLCM, vc, episode)

    def send_message(self, message, vc):
        c = vc // self.vls
        message.vc = vc
        self.counters[c]["control"] += 64 + 8 * len(message.entries)
        self.messages.append(message)
        self.at(self.now + int(self.net.wire[c]) + self.opt.control_delay, CONTROL, len(self.messages) - 1)

    def receive(self, message):
        if self.net.dst[message.vc // self.vls] < self.net.switches:
            (self.receive_loop if message.kind == LOOP else self.receive_deadlock)(message)

    def vcs_out(self, device, kind):
        """Return the suspected VLs of all channels that leave a switch, ordered by port."""
        channels = sorted((port, c) for (source, port), c in self.at_port.items() if source == device)
        vcs = [c * self.vls + vl for _, c in channels if self.opt.breaker[c] == kind for vl in range(self.vls)]
        return [vc for vc in vcs if self.suspected[vc] and self.stuck(vc)]

    def between(self, vl_in, vl_out):
        """Return the packets in the buffer ``vl_in`` that wait for the VL ``vl_out``."""
        c, vl = divmod(vl_out, self.vls)
        return [p for p in self.queues[c, vl, self.in_index[vl_in // self.vls]] if p.vc == vl_in]

    # Methods of Loop Breaker.

    def others(self, device, lid, c):
        own_switch = int(self.net.lid_switch[lid])
        far = self.net.distance
        if own_switch < 0 or own_switch == device:
            return []
        ports = sorted((port, other) for (source, port), other in self.at_port.items() if source == device)
        return [
            (port, other)
            for port, other in ports
            if other != c and self.net.dst[other] < self.net.switches
            and int(far[self.net.dst[other], own_switch]) + 1 == far[device, own_switch]
        ]  # fmt: skip

    def can_reroute(self, vc):
        c, vl = divmod(vc, self.vls)
        device = int(self.net.src[c])
        for i in range(self.inputs[c]):
            queue = self.queues[c, vl, i]
            from_switch = queue and self.net.src[queue[0].channel] < self.net.switches
            if from_switch and all(self.others(device, packet.lid, c) for packet in queue):
                return True
        return False

    def move(self, vc, i):
        c, vl = divmod(vc, self.vls)
        device, stuck = int(self.net.src[c]), 0
        for packet in self.queues[c, vl, i]:
            if self.at_port.get((device, int(self.lft[device, packet.lid]))) != c:
                continue
            drawn = number(key_of(self.opt.seed, 7, device), self.picks)
            self.picks += 1
            others = self.others(device, packet.lid, c)
            if others:
                self.lft[device, packet.lid] = others[(drawn >> 32) * len(others) >> 32][0]
            stuck += not others
        return stuck

    def receive_loop(self, message):
        device, vl_in = int(self.net.dst[message.vc // self.vls]), message.vc
        vcs = self.vcs_out(device, LOOP)
        for vc in vcs:
            if self.round[vc] < message.round:
                self.draw(vc, message.round)
        vcs = [vc for vc in vcs if self.round[vc] == message.round]
        for vc in vcs:
            if self.own[vc] == message.spuid and self.between(vl_in, vc):
                i = self.in_index[vl_in // self.vls]
                if self.move(vc, i) and self.opt.no_alternative:
                    for other in range(self.inputs[vc // self.vls]):
                        if other != i:
                            self.move(vc, other)
                self.let_go[vc], self.let_go_input[vc] = self.opt.release_packets, i
                self.suspected[vc] = False
                self.episode[vc] += 1
                return
        for vc in vcs:
            self.spuid[vc] = min(self.spuid[vc], message.spuid)

    # Methods of Deadlock Breaker.

    def receive_deadlock(self, message):
        device, vl_in = int(self.net.dst[message.vc // self.vls]), message.vc
        if message.at is not None:
            self.release(message, vl_in)
            return
        own = self.vcs_out(device, DEADLOCK)
        closing = [n for n, vc in enumerate(message.entries) if vc in own and self.between(vl_in, vc)]
        if closing:
            message.at = closing[0]
            self.release(message, vl_in)
            return
        vc = self.next_egress(device, vl_in) if len(message.entries) < MOST_PORTS else None
        if vc is not None:
            message.entries.append(vc)
            self.send_message(message, vc)

    def next_egress(self, device, vl_in):
        chosen, found = None, 0
        for vc in self.vcs_out(device, DEADLOCK):
            if self.between(vl_in, vc):
                found += 1
                if found == 1:
                    chosen = vc
                else:
                    drawn = number(key_of(self.opt.seed, 8, device), self.picks)
                    self.picks += 1
                    chosen = vc if (drawn >> 32) * found >> 32 == 0 else chosen
        return chosen

    def release(self, message, vl_in):
        vc = message.entries[message.at]
        c, source = vc // self.vls, vl_in // self.vls
        if self.only[vc] is None and not self.extra[vl_in]:
            self.extra[vl_in] = int(self.opt.extra[source])
            self.only[vc] = self.in_index[source]
            self.buffer[vl_in] += self.extra[vl_in]
            self.give_back(vl_in, self.extra[vl_in], self.now)
            end = self.now + int(self.opt.release[c])
            self.at(end, RULE_END, vc, vl_in)
            self.at(end + 2 * int(self.net.wire[c]) + self.opt.control_delay + self.opt.fcp_period, RULE_END, vc, -1)
        message.at += 1
        if message.at < len(message.entries):
            self.send_message(message, vc)

    def end_rule(self, vc, vl_in):
        if vl_in < 0:
            self.only[vc] = None
            return
        self.buffer[vl_in] -= self.extra[vl_in]
        self.give_back(vl_in, -self.extra[vl_in], self.now)
        self.extra[vl_in] = 0
