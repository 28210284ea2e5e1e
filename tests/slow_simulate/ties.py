"""Which of two heads of one tick is first.  The kernel lets them take turns; runs of the prototype depend on it."""

from slow_simulate.machine import Slow


class LowestPortFirst(Slow):
    """By arrival; of heads that came in the same tick, the one at the lowest port is first, always."""

    def first_come(self, c, vl, in_turn):
        return min(in_turn, key=lambda i: (self.queues[c, vl, i][0].ready, i))
