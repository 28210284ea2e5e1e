"""Links that go down and come up."""

import heapq

from slow_simulate.kinds import ARRIVE, DELIVER, FREE

NEVER = (1 << 63) - 1


class Faults:
    def start_faults(self):
        self.down = {}

    def both(self, c):
        return c, int(self.net.reverse[c])

    def fail(self, c):
        """Take both directions of a link down, and return how many packets are lost."""
        before = self.totals["dropped"]
        for path in self.both(c):
            flying = [event for event in self.events if event[1] in (ARRIVE, DELIVER) and event[3].channel == path]
            self.events = [event for event in self.events if event not in flying]
            heapq.heapify(self.events)
            for *_, packet, _ in flying:
                self.flying[packet.vc] -= packet.blocks
                self.fccl[packet.vc] += packet.blocks
                self.counters[path]["down"] += 1
                self.gone(packet)
            for vl in range(self.vls if self.net.src[path] < self.net.switches else 0):
                for i in range(self.inputs[path]):
                    while self.queues[path, vl, i]:
                        self.counters[path]["down"] += 1
                        self.drop(path * self.vls + vl, i)
            self.busy[path] = NEVER
            port = int(self.net.src[path]), int(self.net.src_port[path])
            self.down[port] = self.at_port.pop(port)
        self.look_full()
        self.look_empty()
        return self.totals["dropped"] - before

    def restore(self, c):
        for path in self.both(c):
            port = int(self.net.src[path]), int(self.net.src_port[path])
            self.at_port[port] = self.down.pop(port)
            self.busy[path] = self.now
            self.at(self.now + 1, FREE, path)
