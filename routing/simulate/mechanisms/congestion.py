"""Simulate the congestion control of InfiniBand: FECN, BECN and the congestion control table.

Source: InfiniBand Architecture Specification, annex A10.  Differences: a CA keeps one index for each flow, and a BECN
takes a fixed time and no bandwidth.  The threshold is a number of packets instead of a weight from 0 to 15, whose
meaning the specification leaves to the switch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from routing.errors import OptionError
from routing.simulate.bounds import LONGEST, is_float_in
from routing.simulate.mechanisms.base import CaseMechanism, in_ticks
from routing.simulate.network import Network
from routing.simulate.scenario_key import FLAG, INTEGER, NUMBER, TIME, Key
from routing.simulate.traffic import Traffic

if TYPE_CHECKING:
    from routing.simulate.run import Simulation

MOST_INDEX = (1 << 14) - 1
DELAY_BITS = 10


@dataclass(frozen=True)
class CongestionControl(CaseMechanism):
    """Settings of congestion control, which are the same for all switches and CAs.

    Attributes
    ----------
    threshold
        A switch marks a packet if at least this number of packets is queued for the packet's virtual channel, including
        the packet itself.
    marking_rate
        Number of packets of a virtual channel that a switch leaves unmarked after each marked packet, although they
        meet all conditions for a mark.
    victims
        Whether a port also marks a packet for which the port has no credits.  Such a port is a victim of congestion
        elsewhere.
    smallest
        Size in bytes of the smallest packet that is marked.
    notice
        Ticks from the arrival of a marked packet until its sender reacts.
    increase
        Number by which a notification raises the index (CCTI) of a flow.
    limit
        Largest index.
    timer
        Ticks after which the indices of all flows are lowered by one.
    step
        Delay for each unit of the index.  At index i, a flow pauses after the tail of each packet for i x ``step``
        times the time that this packet takes on the link.
    """

    name: ClassVar[str] = "congestion"
    output_queues: ClassVar[bool] = True
    table: ClassVar[str] = "congestion"
    keys: ClassVar[Mapping[str, Key]] = {
        "threshold": Key(INTEGER, least=1, most=2**30), "marking_rate": Key(INTEGER, least=0, most=2**16 - 1),
        "victims": Key(FLAG), "notice": TIME, "increase": Key(INTEGER, least=1, most=MOST_INDEX),
        "limit": Key(INTEGER, least=1, most=MOST_INDEX), "timer": TIME, "step": Key(NUMBER, least=0, most=1000),
    }  # fmt: skip

    threshold: int = 4
    marking_rate: int = 0
    victims: bool = False
    smallest: int = 0
    notice: int = 32
    increase: int = 1
    limit: int = 127
    timer: int = 640
    step: float = 0.25

    @classmethod
    def from_table(cls, table: Mapping[str, Any], packet: int) -> CongestionControl:
        """Return congestion control with the settings of a scenario's table, whose times are in packet times.

        ``packet`` is the packet time in ticks.
        """
        return cls(**in_ticks(table, packet, notice=1, timer=20))

    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int]:
        """Return the settings in the order that the kernel expects, then the delay at each index (CCTI).

        Raises
        ------
        OptionError
            A setting is out of range.
        """
        self.check_integers(
            ("threshold", 1, LONGEST), ("marking_rate", 0, LONGEST), ("smallest", 0, LONGEST), ("notice", 1, LONGEST),
            ("increase", 1, MOST_INDEX), ("limit", 1, MOST_INDEX), ("timer", 1, LONGEST),
        )  # fmt: skip
        if not is_float_in(self.step, 0, 1000):
            raise OptionError(f"step is {self.step!r}", remedy="use packet times from 0 to 1000")
        delays = [round(index * self.step * (1 << DELAY_BITS)) for index in range(self.limit + 1)]
        return [
            self.threshold, self.marking_rate, int(self.victims), self.smallest, self.notice, self.increase, self.limit,
            self.timer, *delays,
        ]  # fmt: skip

    def figures(self, simulation: Simulation) -> dict[str, Any]:
        """Return the numbers of marked packets and notifications, and the largest index (CCTI) that a flow has had."""
        marks, *flows = simulation.results_of(self).tolist()
        return {"marks": marks, "becns": sum(flows[::3]), "highest_index": max(flows[2::3], default=0)}
