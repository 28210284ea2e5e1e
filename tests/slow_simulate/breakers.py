"""Loop Breaker and Deadlock Breaker in plain Python, for :mod:`slow_simulate`."""

from types import SimpleNamespace

from slow_numbers import key_of, number

from slow_simulate.kinds import CLCM, CONTROL, RULE_END, SAMPLE

LOOP, DEADLOCK = 1, 2
NOBODY = 0xFFFFFFFF
MOST_PORTS = 64


class Breakers:
    def start_breakers(self):
        lanes = self.count * self.vls
        self.suspected, self.own, self.spuid, self.episode = [False] * lanes, [0] * lanes, [0] * lanes, [0] * lanes
        self.extra, self.round, self.sends = [0] * lanes, [0] * lanes, [0] * lanes
        self.messages = []

    def watched(self, lane):
        return int(self.suspected[lane]), self.spuid[lane]

    def handle_breaker(self, kind, subject, value):
        if kind == SAMPLE:
            self.sample()
        elif kind == CLCM:
            self.send_own(subject, value)
        elif kind == CONTROL:
            self.receive(self.messages[subject])
        elif kind == RULE_END:
            self.end_rule(subject, value)

    def stuck(self, lane):
        before = self.now - int(self.opt.detect[lane // self.vls])
        return self.lane_waiting(lane) > 0 and self.lane_since[lane] <= before and self.lane_sent[lane] <= before

    def sample(self):
        for lane in range(self.count * self.vls):
            c = lane // self.vls
            if not self.opt.breaker[c]:
                continue
            stuck = self.stuck(lane)
            if stuck and not self.suspected[lane]:
                self.suspected[lane] = True
                self.episode[lane] += 1
                self.draw(lane, 0)
                self.send_own(lane, self.episode[lane])
            elif not stuck:
                self.suspected[lane] = False
        self.at(self.now + self.opt.sample_period, SAMPLE, 0)

    def draw(self, lane, this_round):
        drawn = number(key_of(self.opt.seed, 5, lane), this_round) >> 32
        self.round[lane], self.sends[lane], self.own[lane] = this_round, 0, drawn % (NOBODY - 1)
        loop = self.opt.breaker[lane // self.vls] == LOOP
        if loop and not self.opt.no_alternative and not self.can_reroute(lane):
            self.own[lane] = NOBODY
        self.spuid[lane] = self.own[lane]

    def send_own(self, lane, episode):
        c = lane // self.vls
        if not self.suspected[lane] or self.episode[lane] != episode:
            return
        if self.opt.rounds:
            if self.sends[lane] == self.opt.rounds:
                self.draw(lane, self.round[lane] + 1)
            else:
                self.sends[lane] += 1
        if self.opt.breaker[c] == DEADLOCK or self.spuid[lane] != NOBODY:
            message = SimpleNamespace(
                kind=int(self.opt.breaker[c]), spuid=self.spuid[lane], entries=[], at=None, round=self.round[lane]
            )
            self.send_message(message, lane)
        self.at(self.now + int(self.opt.repeat[c]), CLCM, lane, episode)

    def send_message(self, message, lane):
        c = lane // self.vls
        message.lane = lane
        self.counters[c]["control"] += 64 + 8 * len(message.entries)
        self.messages.append(message)
        self.at(self.now + int(self.net.wire[c]) + self.opt.control_delay, CONTROL, len(self.messages) - 1)

    def receive(self, message):
        if self.net.dst[message.lane // self.vls] < self.net.switches:
            (self.receive_loop if message.kind == LOOP else self.receive_deadlock)(message)

    def lanes_out(self, device, kind):
        """Suspected lanes out of a switch, by port."""
        channels = sorted((port, c) for (source, port), c in self.at_port.items() if source == device)
        lanes = [c * self.vls + vl for _, c in channels if self.opt.breaker[c] == kind for vl in range(self.vls)]
        return [lane for lane in lanes if self.suspected[lane] and self.stuck(lane)]

    def between(self, lane_in, lane_out):
        """Packets of one buffer that wait for a lane."""
        c, vl = divmod(lane_out, self.vls)
        return [p for p in self.queues[c, vl, self.in_index[lane_in // self.vls]] if p.lane == lane_in]

    # Loop Breaker

    def others(self, device, lid, c):
        home = int(self.net.lid_switch[lid])
        far = self.net.distance
        if home < 0 or home == device:
            return []
        ports = sorted((port, other) for (source, port), other in self.at_port.items() if source == device)
        return [
            (port, other)
            for port, other in ports
            if other != c and self.net.dst[other] < self.net.switches
            and int(far[self.net.dst[other], home]) + 1 == far[device, home]
        ]  # fmt: skip

    def can_reroute(self, lane):
        c, vl = divmod(lane, self.vls)
        device = int(self.net.src[c])
        for i in range(self.inputs[c]):
            queue = self.queues[c, vl, i]
            from_switch = queue and self.net.src[queue[0].channel] < self.net.switches
            if from_switch and all(self.others(device, packet.lid, c) for packet in queue):
                return True
        return False

    def move(self, lane, i):
        c, vl = divmod(lane, self.vls)
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
        device, lane_in = int(self.net.dst[message.lane // self.vls]), message.lane
        lanes = self.lanes_out(device, LOOP)
        for lane in lanes:
            if self.round[lane] < message.round:
                self.draw(lane, message.round)
        lanes = [lane for lane in lanes if self.round[lane] == message.round]
        for lane in lanes:
            if self.own[lane] == message.spuid and self.between(lane_in, lane):
                i = self.in_index[lane_in // self.vls]
                if self.move(lane, i) and self.opt.no_alternative:
                    for other in range(self.inputs[lane // self.vls]):
                        if other != i:
                            self.move(lane, other)
                self.let_go[lane], self.let_go_input[lane] = self.opt.release_packets, i
                self.suspected[lane] = False
                self.episode[lane] += 1
                return
        for lane in lanes:
            self.spuid[lane] = min(self.spuid[lane], message.spuid)

    # Deadlock Breaker

    def receive_deadlock(self, message):
        device, lane_in = int(self.net.dst[message.lane // self.vls]), message.lane
        if message.at is not None:
            self.release(message, lane_in)
            return
        known = [n for n, (switch, _) in enumerate(message.entries) if switch == device]
        if known:
            lane = message.entries[known[0]][1]
            if self.suspected[lane] and self.stuck(lane) and self.between(lane_in, lane):
                message.at = known[0]
                self.release(message, lane_in)
            return
        lane = self.next_egress(device, lane_in) if len(message.entries) < MOST_PORTS else None
        if lane is not None:
            message.entries.append((device, lane))
            self.send_message(message, lane)

    def next_egress(self, device, lane_in):
        chosen, found = None, 0
        for lane in self.lanes_out(device, DEADLOCK):
            if self.between(lane_in, lane):
                found += 1
                if found == 1:
                    chosen = lane
                else:
                    drawn = number(key_of(self.opt.seed, 8, device), self.picks)
                    self.picks += 1
                    chosen = lane if (drawn >> 32) * found >> 32 == 0 else chosen
        return chosen

    def release(self, message, lane_in):
        lane = message.entries[message.at][1]
        c, source = lane // self.vls, lane_in // self.vls
        if self.only[lane] is None and not self.extra[lane_in]:
            self.extra[lane_in] = int(self.opt.extra[source])
            self.only[lane] = self.in_index[source]
            self.buffer[lane_in] += self.extra[lane_in]
            self.give_back(lane_in, self.extra[lane_in], self.now)
            self.at(self.now + int(self.opt.release[c]), RULE_END, lane, lane_in)
        message.at += 1
        if message.at < len(message.entries):
            self.send_message(message, lane)

    def end_rule(self, lane, lane_in):
        self.only[lane] = None
        self.buffer[lane_in] -= self.extra[lane_in]
        self.give_back(lane_in, -self.extra[lane_in], self.now)
        self.extra[lane_in] = 0
