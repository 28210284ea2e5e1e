"""Arbitration among heads that arrive in one tick, as in the prototype.  In the kernel, the inputs take turns."""

from slow_simulate.machine import Slow


class LowestPortFirst(Slow):
    """Arbitration by arrival.  Among heads of one tick, the one at the lowest port is always first."""

    def first_come(self, c, vl, in_turn):
        return min(in_turn, key=lambda i: (self.queues[c, vl, i][0].ready, i))
