"""A slow reference for the simulator with adaptive routing, in plain Python.

It takes the arguments of the kernel, and must reach equal counters at each stop.  In each tick with an event it
examines every device.  It handles independent events of a tick in random order.
"""

import random
from collections import defaultdict, deque
from types import SimpleNamespace

from slow_numbers import key_of, number
from slow_simulate.faults import NEVER
from slow_simulate.kinds import INJECT, TIMER
from slow_simulate.sources import Sources

NONE, ESCAPE, TOKEN, BUBBLE, GROUPS, RELAY, CONCURRENT, DEFLECT = range(8)


class SlowAdaptive(Sources):
    def __init__(self, network, options, traffic, limits=None, mechanisms=()):
        """Set up the simulation; `limits` has arrays `hoq` and `lifetime`, `mechanisms` has classes and settings."""
        self.net, self.opt, self.traffic = network, options, traffic
        self.shuffle = random.Random(options.seed).shuffle
        self.now, self.soon, self.late = -1, defaultdict(list), defaultdict(list)
        self.channels, self.vls = range(len(network.src)), network.vls
        self.src, self.dst, self.reverse, self.wire = (
            [int(n) for n in part] for part in (network.src, network.dst, network.reverse, network.wire)
        )
        self.at_port = {(s, int(p)): c for c, (s, p) in enumerate(zip(self.src, network.src_port, strict=True))}
        self.into = [
            [vc for c in self.channels if self.src[c] == s for vc in self.vcs_of(self.reverse[c])]
            for s in range(network.switches)
        ]
        room = network.buffer.reshape(-1).tolist()
        self.vc = [
            SimpleNamespace(
                buffer=b, credits=b, held=0, flying=0, returning=0, queue=deque(), leaving=False, since=0, next_ping=0
            )
            for b in room
        ]
        self.busy, self.carry = [0] * len(self.channels), [0] * len(self.channels)
        self.bytes, self.packets, self.saved = ([0] * len(self.channels) for _ in range(3))
        self.mark = [None for _ in self.channels]
        self.turn, self.sends = [0] * network.devices, [0] * network.devices
        self.spare = {(k, s): None for k in (0, 1) for s in range(network.switches)}
        self.spare_state = dict.fromkeys(self.spare, "free")
        self.holder, self.ready_since = None, {}
        self.limits, self.links_down, self.freed_later = limits, set(), []
        self.every_tick = limits is not None
        self.lost = [dict.fromkeys(("discards", "hoq", "lifetime", "down"), 0) for _ in self.channels]
        self.totals = dict.fromkeys(
            (
                "injected",
                "delivered",
                "dropped",
                "hops",
                "escapes",
                "seized",
                "pings",
                "loops",
                "bubbles",
                "relayed",
                "diverted",
                "deflected",
            ),
            0,
        )
        self.flows = [self.make_flow(f) for f in range(len(traffic.numbers))]
        self.attached = [kind(self, 1 + n, numbers) for n, (kind, numbers) in enumerate(mechanisms)]
        for flow in self.flows:
            flow.packet = None
            self.next_due(flow, 0)
            self.prepare(flow)
        if options.scheme == TOKEN:
            self.later(0, (0, 0, 0), self.token, 0)
        if options.scheme == BUBBLE:
            self.later(0, (3, 0, 0), self.sample)
        self.relays, self.suspects = defaultdict(deque), {}
        if options.scheme in (RELAY, CONCURRENT, DEFLECT):
            self.later(0, (3, 0, 0), self.mark_suspects)

    # Methods for events. The events of one tick are handled in random order, and after these the late events in sorted
    # order.

    def at(self, time, kind, f, value=0):
        if kind == INJECT:
            self.soon[time].append((self.inject, f))
        else:
            assert kind == TIMER
            self.later(time, (4, f, value), lambda: self.attached[(f >> 26) - 1].timer(f & ((1 << 26) - 1), value))

    def inject(self, f):
        self.flows[f].called = False
        self.prepare(self.flows[f])

    def enqueue(self, packet, channel, vl, index):
        packet.flow.packet = packet
        switch = self.dst[channel]
        packet.sl = int(self.opt.enter_sl[switch, packet.lid]) if switch < self.net.switches else 0

    def later(self, time, order, function, *args):
        assert time > self.now
        self.late[time].append((order, function, args))

    def run(self, until):
        while self.now < until:
            self.now = self.now + 1 if self.every_tick else min((*self.soon, *self.late, until))
            events = self.soon.pop(self.now, [])
            self.shuffle(events)
            # Deliveries open the windows of flows before flows create packets.
            events.sort(key=lambda event: event[0] == self.inject)
            for function, *args in events:
                function(*args)
            self.lose_packets()
            for _, function, args in sorted(self.late.pop(self.now, []), key=lambda event: event[0]):
                function(*args)
            order = list(range(self.net.devices))
            if self.opt.scheme == CONCURRENT:
                order.sort(key=lambda d: number(key_of(self.opt.seed, 10, d), self.now))
            else:
                self.shuffle(order)
            for d in order:
                (self.serve_switch if d < self.net.switches else self.serve_ca)(d)
        self.now = until

    def credit(self, vc, blocks):
        self.vc[vc].credits += blocks
        self.vc[vc].returning -= blocks

    def show(self, vc):
        self.vc[vc].leaving = False
        self.vc[vc].since = self.now

    def free_spare(self, spare):
        self.spare_state[spare] = "free"

    def arrive(self, packet):
        packet.ready = self.now
        if packet.vc is None:
            self.spare_state[self.spare_with(packet)] = "ready"
            self.ready_since[self.spare_with(packet)] = self.now
            return
        vc = self.vc[packet.vc]
        vc.flying -= packet.blocks
        vc.held += packet.blocks
        if not vc.queue:
            vc.since = self.now
        vc.queue.append(packet)

    def deliver(self, packet):
        flow = packet.flow
        if packet.vc is not None:
            self.vc[packet.vc].flying -= packet.blocks
            self.vc[packet.vc].returning += packet.blocks
            self.soon[self.now + self.wire[packet.channel]].append((self.credit, packet.vc, packet.blocks))
        if self.opt.scheme == RELAY and packet.channel != self.opt.lid_channel[packet.lid]:
            self.relays[self.dst[packet.channel]].append(packet)
            self.totals["relayed"] += 1
            return
        flow.got_packets += 1
        flow.got_bytes += packet.bytes
        flow.latency += self.now - packet.born
        flow.in_network += self.now - packet.entered
        flow.worst = max(flow.worst, self.now - packet.born)
        self.not_in_flight(flow)
        self.totals["delivered"] += 1

    # Methods that lose packets.

    def gone(self, packet):
        packet.flow.lost += 1
        self.totals["dropped"] += 1
        self.not_in_flight(packet.flow)
        if packet is self.holder:
            self.holder = None
            self.later(self.now + self.opt.step, (0, packet.lost_at, 0), self.token, packet.lost_at)
        self.call("lost", packet)

    def outputs(self, packet, switch):
        at_end = self.destination_switch(packet) == switch
        return [int(self.opt.lid_channel[packet.lid])] if at_end else self.paths(switch, packet)

    def lose_packets(self):
        """Lose the packets that are too old or have no output, but none in the tick in which it becomes the head."""
        for vc, at in enumerate(self.vc):
            packet, switch = self.shown(vc), self.dst[vc // self.vls]
            if packet is None or at.since == self.now:
                continue
            reason = "down" if self.cut(packet, vc, switch) else self.old(packet, at, switch)
            if reason is not None:
                self.lose(packet, vc, switch, reason)
        for spare in self.spare:
            if self.spare_state[spare] != "ready" or self.ready_since[spare] == self.now:
                continue
            if self.cut(self.spare[spare], None, spare[1]):
                self.lose(self.spare[spare], None, spare[1], "down")

    def old(self, packet, at, switch):
        """Return which limit a packet has exceeded, or None."""
        if self.limits is None or packet is self.holder:
            return None
        allowed, lifetime = (
            [int(self.limits.hoq[c]) for c in self.outputs(packet, switch)],
            self.limits.lifetime[switch],
        )
        if lifetime and packet.ready + lifetime <= self.now:
            return "lifetime"
        return "hoq" if all(allowed) and at.since + max(allowed) <= self.now else None

    def cut(self, packet, vc, switch):
        """Return whether all links are down by which a packet may leave a switch."""
        at_end = self.destination_switch(packet) == switch
        if not at_end and self.opt.scheme == CONCURRENT and vc is None:
            return self.recovery_path(packet, vc, switch) in self.links_down
        outputs = self.outputs(packet, switch)
        if not at_end and self.opt.scheme == ESCAPE:
            escape = [self.at_port[switch, int(self.net.lft[switch, packet.lid])]]
            outputs = escape if self.opt.stay and self.on_escape(vc) else outputs + escape
        return self.links_down.issuperset(outputs)

    def lose(self, packet, vc, switch, reason):
        first, packet.lost_at = self.outputs(packet, switch)[0], switch
        self.lost[first]["discards"] += 1
        self.lost[first][reason] += 1
        self.leave(packet, vc, switch, max(packet.tail, self.now + 1))
        self.gone(packet)

    def fail(self, channel):
        for c in (channel, self.reverse[channel]):
            lost = [
                event for events in self.soon.values() for event in events
                if event[0] in (self.arrive, self.deliver) and event[1].channel == c
            ]  # fmt: skip
            for time, events in self.soon.items():
                self.soon[time] = [event for event in events if event not in lost]
            for _, packet in lost:
                self.lose_on_wire(packet, c)
            self.busy[c] = NEVER
            self.links_down.add(c)
        self.every_tick = True
        while self.freed_later:
            self.soon[self.now + 1].append((self.free_spare, self.freed_later.pop()))
        self.soon[self.now + 1].append((lambda: None,))

    def lose_on_wire(self, packet, channel):
        packet.lost_at = self.src[channel]
        if packet.vc is not None:
            self.vc[packet.vc].flying -= packet.blocks
            self.vc[packet.vc].credits += packet.blocks
        elif self.dst[channel] < self.net.switches:
            spare = self.spare_with(packet)
            self.spare[spare], self.spare_state[spare] = None, "leaving"
            self.freed_later.append(spare)
        self.lost[channel]["down"] += 1
        self.gone(packet)

    def restore(self, channel):
        for c in (channel, self.reverse[channel]):
            self.busy[c] = self.now
            self.links_down.remove(c)
        self.soon[self.now + 1].append((lambda: None,))

    # Methods that return the places of packets.

    def shown(self, vc):
        return None if self.vc[vc].leaving or not self.vc[vc].queue else self.vc[vc].queue[0]

    def vcs_of(self, channel, vls=None):
        return range(channel * self.vls, channel * self.vls + (self.vls if vls is None else vls))

    def vcs_for(self, channel, packet, vls=None):
        """Return the VLs of a channel that a packet may use: its own VL with port groups, else the first
        ``vls`` VLs.
        """
        vcs = self.vcs_of(channel, vls)
        return [vcs[int(self.net.sl2vl[packet.sl])]] if self.opt.scheme == GROUPS else vcs

    def vcs_into(self, switch):
        return self.into[switch]

    def destination_switch(self, packet):
        return int(self.net.lid_switch[packet.lid])

    def paths(self, switch, packet):
        row = switch * self.opt.columns + int(self.opt.lid_column[packet.lid])
        return [int(c) for c in self.opt.choice[self.opt.choice_first[row] : self.opt.choice_first[row + 1]]]

    def marked(self, channel):
        mark = self.mark[channel]
        if mark is None or mark.until <= self.now:
            return None
        waits = mark.packet is self.shown(mark.vc) or mark.packet is self.spare[0, self.src[channel]]
        return mark if waits else None

    def kept(self, channel, packet):
        mark = self.marked(channel)
        return mark is not None and mark.packet is not packet

    # Methods that choose the next virtual channel of a packet.

    def on_escape(self, vc):
        return (
            vc is not None and vc % self.vls >= self.opt.adaptive_vls
            and self.src[vc // self.vls] < self.net.switches
        )  # fmt: skip

    def escape(self, packet, vc, switch):
        port = int(self.net.lft[switch, packet.lid])
        if self.on_escape(vc):
            in_port, sl = int(self.net.dst_port[vc // self.vls]), packet.sl
        else:
            in_port, sl = int(self.opt.enter_port[switch]), int(self.opt.enter_sl[switch, packet.lid])
        table = self.net.sl2vl
        vl = int(table[sl] if table.ndim == 1 else table[switch, in_port, port, sl])
        return self.at_port[switch, port] * self.vls + self.opt.adaptive_vls + vl, sl

    def fits(self, vc, packet):
        return self.busy[vc // self.vls] <= self.now and self.vc[vc].credits >= packet.blocks

    def choose(self, packet, vc, switch):
        """Return the virtual channel that a packet at a switch takes next, and the SL on it; None if the packet has to
        wait.

        The SL is None if the virtual channel is not an escape channel.
        """
        if self.destination_switch(packet) == switch:
            vcs = list(self.vcs_for(int(self.opt.lid_channel[packet.lid]), packet))
        else:
            candidate = self.paths(switch, packet)
            start = self.sends[switch] % len(candidate)
            free = [c for c in candidate[start:] + candidate[:start] if not self.kept(c, packet)]
            stays = self.opt.stay and self.on_escape(vc)
            vcs = [] if stays else [at for c in free for at in self.vcs_for(c, packet, self.opt.adaptive_vls)]
        vcs = [at for at in vcs if self.fits(at, packet)]
        if vcs:
            return max(vcs, key=lambda at: (self.vc[at].credits, -vcs.index(at))), None
        if self.opt.scheme == ESCAPE and self.destination_switch(packet) != switch:
            at, sl = self.escape(packet, vc, switch)
            if self.fits(at, packet):
                return at, sl
        may_relay = self.opt.scheme == RELAY and self.destination_switch(packet) != switch
        if may_relay and vc is not None and self.suspects.get(vc) is packet:
            for c in self.channels:
                at = [at for at in self.vcs_of(c) if self.fits(at, packet)]
                if self.src[c] == switch and self.dst[c] >= self.net.switches and at:
                    return max(at, key=lambda one: (self.vc[one].credits, -one)), None
        return None

    def mark_suspects(self):
        for vc in range(len(self.vc)):
            c = vc // self.vls
            if max(self.src[c], self.dst[c]) < self.net.switches and self.stuck(vc):
                self.suspects[vc] = self.shown(vc)
        self.later(self.now + self.opt.sample, (3, 0, 0), self.mark_suspects)

    def choose_saved(self, packet, switch):
        if self.destination_switch(packet) == switch:
            candidate = [int(self.opt.lid_channel[packet.lid])]
        else:
            candidate = self.paths(switch, packet)
            start = self.sends[switch] % len(candidate)
            candidate = [c for c in candidate[start:] + candidate[:start] if self.spare_state[0, self.dst[c]] == "free"]
        return next((c for c in candidate if self.busy[c] <= self.now), None)

    # Methods that move packets.

    def take(self, vc, end):
        at = self.vc[vc]
        packet = at.queue.popleft()
        self.suspects.pop(vc, None)
        at.leaving = True
        at.held -= packet.blocks
        at.returning += packet.blocks
        self.soon[end].append((self.show, vc))
        self.soon[end + self.wire[vc // self.vls]].append((self.credit, vc, packet.blocks))

    def send(self, packet, vl_in, channel, vc):
        switch = self.src[channel]
        ticks, self.carry[channel] = divmod(packet.bytes * int(self.net.cost[channel]) + self.carry[channel], 1 << 20)
        end = max(self.now + max(ticks, 1), packet.tail)
        if vl_in is not None or switch < self.net.switches:
            self.leave(packet, vl_in, switch, end)
        elif packet.channel is None:
            packet.entered = self.now
            packet.flow.sent_packets += 1
            self.totals["injected"] += 1
        self.busy[channel] = end
        self.bytes[channel] += packet.bytes
        self.packets[channel] += 1
        self.sends[switch] += 1
        self.totals["hops"] += 1
        if vc is not None:
            self.vc[vc].credits -= packet.blocks
            self.vc[vc].flying += packet.blocks
            if self.mark[channel] is not None and self.mark[channel].packet is packet:
                self.mark[channel] = None
        else:
            self.saved[channel] += 1
            if self.dst[channel] < self.net.switches:
                spare = self.spare_after(channel)
                self.spare[spare], self.spare_state[spare] = packet, "taken"
        packet.vc, packet.channel, packet.tail = vc, channel, end + self.wire[channel]
        self.soon[end].append((lambda: None,))
        if self.dst[channel] < self.net.switches:
            hop = self.wire[channel] + int(self.net.switch_delay[self.dst[channel]])
            self.soon[self.now + hop].append((self.arrive, packet))
        else:
            self.soon[packet.tail].append((self.deliver, packet))

    def leave(self, packet, vc, switch, end):
        """Let a packet leave its queue or spare buffer at a switch until tick `end`."""
        if vc is not None:
            self.take(vc, end)
            return
        spare = self.spare_with(packet)
        self.spare[spare], self.spare_state[spare] = None, "leaving"
        self.soon[end + self.wire[packet.channel]].append((self.free_spare, spare))

    def serve_holder(self, packet, vc, switch):
        channel = self.choose_saved(packet, switch)
        if channel is None:
            return
        self.send(packet, vc, channel, None)
        if self.dst[channel] >= self.net.switches:
            self.holder = None
            self.later(self.now + self.wire[channel] + self.opt.step, (0, switch, 0), self.token, switch)

    def serve_packet(self, packet, vc, switch):
        if packet is self.holder:
            self.serve_holder(packet, vc, switch)
            return False
        recovering = self.opt.scheme == CONCURRENT and vc is None
        chosen = None if recovering else self.choose(packet, vc, switch)
        if chosen is None and self.opt.scheme == CONCURRENT:
            return self.recover(packet, vc, switch)
        if chosen is None and self.opt.scheme == DEFLECT:
            chosen = self.deflect(packet, vc, switch)
        if chosen is None:
            return False
        at, sl = chosen
        if sl is not None:
            packet.sl = sl
            self.totals["escapes"] += 1
        self.send(packet, vc, at // self.vls, at)
        return True

    def serve_switch(self, switch):
        vcs = self.vcs_into(switch)
        while True:
            served, first = 0, None
            for spare in ((1, switch), (0, switch)):
                if self.spare_state[spare] == "ready":
                    served += self.serve_packet(self.spare[spare], None, switch)
            turned = vcs[self.turn[switch] :] + vcs[: self.turn[switch]]
            order = [at for at in (vcs if self.opt.by_arrival else turned) if self.shown(at) is not None]
            if self.opt.by_arrival:
                order.sort(key=lambda at: self.vc[at].since)
            order.sort(key=lambda at: self.shown(at) is not self.holder)
            if self.opt.scheme == DEFLECT:
                order.sort(key=lambda at: self.suspects.get(at) is not self.shown(at))
            for at in order:
                if self.serve_packet(self.shown(at), at, switch):
                    served += 1
                    first = at if first is None else first
            if first is not None:
                self.turn[switch] = (vcs.index(first) + 1) % len(vcs)
            if not served or self.opt.scheme != BUBBLE:
                return

    def serve_ca(self, device):
        if self.relays[device]:
            packet = self.relays[device][0]
            back = self.reverse[packet.channel]
            vcs = [at for at in self.vcs_of(back, self.opt.ca_vls) if self.fits(at, packet)]
            if vcs:
                self.relays[device].popleft()
                self.send(packet, None, back, max(vcs, key=lambda at: (self.vc[at].credits, -at)))
            return
        flows = [flow for flow in self.flows if self.src[flow.channel] == device]
        start = self.turn[device]
        for flow in flows[start:] + flows[:start]:
            packet = flow.packet
            most = None if self.opt.scheme == GROUPS else self.opt.ca_vls
            vcs = [] if packet is None else self.vcs_for(flow.channel, packet, most)
            vcs = [at for at in vcs if self.fits(at, packet)]
            if not vcs:
                continue
            vc = max(vcs, key=lambda at: (self.vc[at].credits, -at))
            self.send(packet, None, flow.channel, vc)
            self.turn[device] = (flows.index(flow) + 1) % len(flows)
            flow.head, flow.packet = False, None
            self.call("sent", packet)
            self.prepare(flow)

    # Methods that release packets from a deadlock.

    def stuck(self, vc):
        return self.shown(vc) is not None and self.now - self.vc[vc].since >= self.opt.detect

    def token(self, switch):
        vcs = [at for at in self.vcs_into(switch) if self.stuck(at)]
        if vcs:
            self.holder = self.shown(min(vcs, key=lambda at: (self.vc[at].since, vcs.index(at))))
            self.totals["seized"] += 1
        else:
            onward = (switch + 1) % self.net.switches
            self.later(self.now + self.opt.step, (0, onward, 0), self.token, onward)

    def draw(self, ping, count):
        drawn = number(key_of(self.opt.seed, 8, ping.id), ping.step) >> 32
        ping.step += 1
        return drawn * count >> 32

    def sample(self):
        for vc, at in enumerate(self.vc):
            channel = vc // self.vls
            inside = max(self.src[channel], self.dst[channel]) < self.net.switches
            if inside and self.stuck(vc) and at.next_ping <= self.now:
                at.next_ping = self.now + self.opt.repeat
                rank = number(key_of(self.opt.seed, 7, vc), self.now) >> 33
                self.totals["pings"] += 1
                self.trace(SimpleNamespace(id=rank << 32 | vc, step=0, closer=None), vc)
        self.later(self.now + self.opt.sample, (3, 0, 0), self.sample)

    def comes(self, ping, channel):
        if channel in self.links_down:
            return
        if ping.closer is not None:
            self.lock(ping, channel)
            return
        vcs = [at for at in self.vcs_of(channel) if self.stuck(at)]
        if vcs:
            self.trace(ping, vcs[self.draw(ping, len(vcs))])

    def trace(self, ping, vc):
        packet, switch = self.shown(vc), self.dst[vc // self.vls]
        if self.destination_switch(packet) == switch:
            return
        candidate = self.paths(switch, packet)
        alive = [c for c in candidate if c not in self.links_down]
        if any(self.vc[at].credits >= packet.blocks for c in alive for at in self.vcs_of(c)):
            return
        ahead = candidate[self.draw(ping, len(candidate))]
        mark = self.marked(ahead)
        if mark is not None and (mark.locked or mark.ping > ping.id):
            return
        closes = mark is not None and mark.ping == ping.id
        if closes:
            self.totals["loops"] += 1
            ping.closer, ping.culprit = vc, packet
        self.mark_and_go(ping, ahead, vc, closes)

    def mark_and_go(self, ping, channel, vc, locked):
        until = self.now + (self.opt.hold if locked else self.opt.lasts)
        self.mark[channel] = SimpleNamespace(ping=ping.id, until=until, packet=self.shown(vc), vc=vc, locked=locked)
        self.later(until, (1, channel, 0), lambda: None)
        hop = self.wire[channel] + int(self.net.switch_delay[self.dst[channel]])
        self.later(self.now + hop, (2, channel, ping.id), self.comes, ping, channel)

    def lock(self, ping, channel):
        switch = self.dst[channel]
        for vc in self.vcs_of(channel):
            packet = self.shown(vc)
            candidate = (
                [] if packet is None or self.destination_switch(packet) == switch else self.paths(switch, packet)
            )
            marks = [(c, self.marked(c)) for c in candidate]
            own = [(c, mark) for c, mark in marks if mark is not None and mark.ping == ping.id and mark.vc == vc]
            if not own:
                continue
            ahead, mark = own[0]
            if vc != ping.closer:
                self.mark_and_go(ping, ahead, vc, True)
            elif mark.packet is ping.culprit and self.spare_state[0, switch] == "free":
                self.shelter(vc, switch)
            return

    def shelter(self, vc, switch):
        packet = self.shown(vc)
        end = self.now + max(packet.bytes * int(self.net.cost[vc // self.vls]) >> 20, 1)
        self.take(vc, max(end, packet.tail))
        packet.vc = None
        self.spare[0, switch], self.spare_state[0, switch] = packet, "ready"
        self.ready_since[0, switch] = self.now
        self.totals["bubbles"] += 1

    # Methods for paths through spare buffers, and for deflection.

    def spare_with(self, packet):
        return next(spare for spare, held in self.spare.items() if held is packet)

    def spare_after(self, channel):
        source, target = self.src[channel], self.dst[channel]
        later = self.opt.scheme == CONCURRENT and self.opt.recovery_rank[target] > self.opt.recovery_rank[source]
        return int(later), target

    def recovery_path(self, packet, vc, switch):
        buffer = 0 if vc is not None else self.spare_with(packet)[0]
        return int(self.opt.recovery_next[buffer, switch, self.destination_switch(packet)])

    def recover(self, packet, vc, switch):
        if self.destination_switch(packet) == switch:
            channel = int(self.opt.lid_channel[packet.lid])
            free = vc is None
        else:
            channel = self.recovery_path(packet, vc, switch)
            free = self.spare_state[self.spare_after(channel)] == "free"
            free = free and (vc is None or self.suspects.get(vc) is packet)
        if not free or self.busy[channel] > self.now:
            return False
        self.totals["diverted"] += vc is not None
        self.send(packet, vc, channel, None)
        return True

    def onward(self, switch):
        return [c for c in self.channels if self.src[c] == switch and self.dst[c] < self.net.switches]

    def deflect(self, packet, vc, switch):
        if self.suspects.get(vc) is not packet or self.destination_switch(packet) == switch:
            return None
        leaving = [c for c in self.channels if self.src[c] == switch]
        drawn = number(key_of(self.opt.seed, 9, switch), self.sends[switch]) >> 32
        start = drawn * len(leaving) >> 32
        for channel in leaving[start:] + leaving[:start]:
            vcs = [at for at in self.vcs_of(channel, self.opt.adaptive_vls) if self.fits(at, packet)]
            if vcs and channel in self.onward(switch):
                self.totals["deflected"] += 1
                return max(vcs, key=lambda at: (self.vc[at].credits, -at)), None
        return None

    # Methods that return the counters in the form of the kernel.

    def channel_rows(self):
        return [
            (*sent, *lost.values()) for *sent, lost in zip(self.bytes, self.packets, self.saved, self.lost, strict=True)
        ]

    def vc_rows(self):
        return [(at.credits, at.held, at.flying, at.returning, at.buffer) for at in self.vc]

    def flow_rows(self):
        return [
            (flow.made, flow.sent_packets, flow.got_packets, flow.got_bytes, flow.latency, flow.in_network, flow.worst)
            for flow in self.flows
        ]

    def wait_graph(self):
        """Return the wait-for graph: pairs of vertex and virtual channel, and for each vertex whether it can move.

        Vertices are the virtual channels, followed by spare buffers 0, and by spare buffers 1.
        """
        pairs, moves = set(), []
        positions = [(vc, self.shown(vc), vc, self.dst[vc // self.vls]) for vc in range(len(self.vc))]
        for index, spare in enumerate(self.spare):
            ready = self.spare[spare] if self.spare_state[spare] == "ready" else None
            positions.append((len(self.vc) + index, ready, None, spare[1]))
        for vertex, packet, vc, switch in positions:
            leaves = packet is None or packet is self.holder or self.destination_switch(packet) == switch
            if leaves or self.cut(packet, vc, switch):
                moves.append(True)
                continue
            recovering = self.opt.scheme == CONCURRENT and vc is None
            stays = recovering or (self.opt.stay and self.on_escape(vc))
            candidate = [] if stays else self.paths(switch, packet)
            vcs = [at for c in candidate for at in self.vcs_for(c, packet, self.opt.adaptive_vls)]
            if self.opt.scheme == ESCAPE:
                vcs.append(self.escape(packet, vc, switch)[0])
            from_switch = vc is None or self.src[vc // self.vls] < self.net.switches
            if self.opt.scheme == DEFLECT and from_switch:
                vcs += [at for c in self.onward(switch) for at in self.vcs_of(c, self.opt.adaptive_vls)]
            vcs = [at for at in vcs if at // self.vls not in self.links_down]
            full = [at for at in vcs if self.vc[at].credits + self.vc[at].returning < packet.blocks]
            can_move = len(full) < len(vcs)
            ahead = self.recovery_path(packet, vc, switch) if self.opt.scheme == CONCURRENT and from_switch else None
            if ahead is not None and ahead not in self.links_down:
                spare = self.spare_after(ahead)
                if self.spare_state[spare] in ("taken", "ready"):
                    full.append(len(self.vc) + list(self.spare).index(spare))
                else:
                    can_move = True
            pairs.update((vertex, at) for at in full)
            moves.append(can_move)
        return pairs, moves
