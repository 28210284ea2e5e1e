"""Packets at a switch: they get an output, wait in its queue and leave it.  CAs receive packets."""

from collections import deque

from slow_simulate.faults import NEVER
from slow_simulate.kinds import CREDIT, FREE, FREED


class Switches:
    def enqueue(self, packet, c, vl, i):
        vc = c * self.vls + vl
        if not self.waiting(c):
            self.since[c] = self.now
        if not self.vc_waiting(vc):
            self.vc_since[vc] = self.now
        packet.headed = self.now
        self.queues[c, vl, i].append(packet)
        self.arm(vc)
        if self.now < self.busy[c] < NEVER:
            self.at(self.busy[c], FREE, c)

    def take(self, c, vl, i, packet=None):
        queue = self.queues[c, vl, i]
        if packet is not None and packet is not queue[0]:
            self.queues[c, vl, i] = deque(other for other in queue if other is not packet)
            return packet
        packet = queue.popleft()
        if queue:
            queue[0].headed = self.now
        return packet

    def give_back(self, vc, blocks, when):
        self.returning[vc] += blocks
        if self.opt.fcp_period or self.opt.xoff:
            self.at(max(when, self.now + 1), FREED, vc, blocks)
        else:
            self.at(when + int(self.net.wire[vc // self.vls]), CREDIT, vc, blocks)

    def lose(self, packet):
        self.give_back(packet.vc, packet.blocks, max(packet.tail, self.now))
        self.gone(packet)

    def gone(self, packet):
        self.totals["dropped"] += 1
        packet.flow.lost += 1
        self.not_in_flight(packet.flow)
        self.call("lost", packet)

    def forward(self, packet):
        c = packet.channel
        device = int(self.net.dst[c])
        port = int(self.lft[device, packet.lid])
        out = self.chosen_output(packet, self.at_port.get((device, port)))
        if out is None and (device, port) in self.down:
            self.counters[self.down[device, port]]["discards"] += 1
            self.counters[self.down[device, port]]["down"] += 1
        elif out is None or out == self.net.reverse[c]:
            self.counters[c]["relay"] += 1
        else:
            table = self.sl2vl if self.sl2vl.ndim == 1 else self.sl2vl[device, self.net.dst_port[c], port]
            vl = int(table[packet.sl])
            vl = self.chosen_vl(packet, out, vl) if vl < self.vls else vl
            if vl < self.vls and not self.stalled[out * self.vls + vl]:
                self.enqueue(packet, out, vl, self.in_index[c])
                self.queued_now.append((out * self.vls + vl, self.in_index[c], packet))
                return True
            self.counters[out]["discards"] += 1
            self.counters[out]["stalled"] += vl < self.vls
        self.held[packet.vc] -= packet.blocks
        self.lose(packet)
        return False

    def arrive(self, packet):
        vc = packet.vc
        self.flying[vc] -= packet.blocks
        if self.held[vc] + packet.blocks > self.buffer[vc] + self.opt.extra[packet.channel]:
            self.counters[packet.channel]["overrun"] += 1
            self.lose(packet)
            return
        self.held[vc] += packet.blocks
        packet.ready = self.now
        if self.opt.single_fifo:
            self.hidden[vc].append(packet)
            if not self.shown[vc]:
                self.expose(vc)
        else:
            self.forward(packet)

    def expose(self, vc):
        self.shown[vc] = False
        while self.hidden[vc] and not self.shown[vc]:
            self.shown[vc] = self.forward(self.hidden[vc].popleft())

    def deliver(self, packet):
        self.flying[packet.vc] -= packet.blocks
        self.held[packet.vc] += packet.blocks
        if all(mechanism.arrives(packet) for mechanism in self.attached):
            self.take_packet(packet)

    def take_packet(self, packet):
        flow = packet.flow
        self.held[packet.vc] -= packet.blocks
        if self.opt.xoff:
            self.fccl[packet.vc] += packet.blocks
        else:
            self.give_back(packet.vc, packet.blocks, self.now)
        if self.net.lid_device[packet.lid] != self.net.dst[packet.channel]:
            self.counters[packet.channel]["relay"] += 1
            self.gone(packet)
            return
        flow.got_packets += 1
        flow.got_bytes += packet.bytes
        flow.done += packet.last
        flow.latency += self.now - packet.born
        flow.in_network += self.now - packet.entered
        flow.worst = max(flow.worst, self.now - packet.born)
        self.not_in_flight(flow)
        self.totals["delivered"] += 1
        self.call("delivered", packet)
