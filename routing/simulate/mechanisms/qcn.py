"""Simulate quantized congestion notification (QCN): switches sample queues, and senders limit their rates.

Source: QCN as it is generally described (IEEE 802.1Qau).  The text of the standard was not compared.  Differences from
that description: each flow has a separate rate, a notification takes a fixed time and no bandwidth,
intervals between samples have no random part, and queues and samples are counted in packets.  InfiniBand does not have
QCN.  The simulation compares QCN, which reacts to congestion, with requests and grants, which avoid congestion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from routing.errors import OptionError
from routing.simulate.bounds import LONGEST, is_float_in
from routing.simulate.mechanisms.base import CaseMechanism, in_ticks
from routing.simulate.network import BLOCK, Network
from routing.simulate.scenario_key import INTEGER, NUMBER, TIME, Key
from routing.simulate.traffic import Traffic

if TYPE_CHECKING:
    from routing.simulate.run import Simulation

FULL = 1 << 20
"""Number that stands for the rate of a link in the kernel."""
MOST_PACKETS = 1 << 20


@dataclass(frozen=True)
class Qcn(CaseMechanism):
    """Settings of QCN, which are the same for all switches and senders.

    A notification lowers a flow's rate.  The rate that the flow had before becomes its target rate.  Each flow has a
    byte counter and a timer, which run in cycles.  At the end of each cycle of either, the flow's rate rises halfway to
    the target rate.  The target rate stays the same until the byte counter or the timer ends its sixth cycle since the
    notification.  From this sixth cycle on, the end of each cycle of either first raises the target rate by
    ``increase`` or a multiple of it.

    Times are in ticks and sizes in bytes here.  In scenario files, both are in packets of the case.

    Attributes
    ----------
    equilibrium
        Queue length that QCN aims at: a number of packets that wait for one virtual channel.  The feedback, which slows
        a sender down, grows with (queue length - ``equilibrium``) + ``weight`` x (change of the queue length since the
        last sample).
    weight
        Factor in the feedback, see ``equilibrium``.
    sample
        Packets between two samples of a queue.  A congested queue is sampled up to ten times as often.
    notice
        Ticks from a sample until the sender reacts.
    cycle
        Bytes that a flow sends in one cycle of its byte counter.  The flow's rate rises at the end of each cycle of
        the byte counter or of the timer.
    timer
        Ticks of one cycle of a flow's timer.
    increase
        Unit by which a flow's target rate rises, as a fraction of the link's rate.
    least
        Lowest rate of a flow, as a fraction of the link's rate.
    """

    name: ClassVar[str] = "qcn"
    output_queues: ClassVar[bool] = True
    table: ClassVar[str] = "qcn"
    keys: ClassVar[Mapping[str, Key]] = {
        "equilibrium": Key(INTEGER, least=1, most=MOST_PACKETS), "weight": Key(INTEGER, least=0, most=100),
        "sample": Key(INTEGER, least=1, most=MOST_PACKETS), "notice": TIME,
        "cycle": Key(INTEGER, least=1, most=MOST_PACKETS), "timer": TIME,
        "increase": Key(NUMBER, least=0, most=1), "least": Key(NUMBER, least=1e-5, most=1),
    }  # fmt: skip

    equilibrium: int = 4
    weight: int = 2
    sample: int = 10
    notice: int = 32
    cycle: int = 100 * 2048
    timer: int = 3200
    increase: float = 0.005
    least: float = 0.001

    @classmethod
    def from_table(cls, table: Mapping[str, Any], packet: int) -> Qcn:
        """Return QCN with the settings of a table, whose times are in packet times and whose cycle is in packets."""
        times = in_ticks(table, packet, notice=1, timer=100)
        return cls(**{**times, "cycle": int(table.get("cycle", 100)) * packet * BLOCK})

    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int]:
        """Return the settings in the order that the kernel expects.

        Raises
        ------
        OptionError
            A setting is out of range.
        """
        self.check_integers(
            ("equilibrium", 1, MOST_PACKETS), ("weight", 0, 100), ("sample", 1, MOST_PACKETS), ("notice", 1, LONGEST),
            ("cycle", 1, LONGEST), ("timer", 1, LONGEST),
        )  # fmt: skip
        for name, low in (("increase", 0.0), ("least", 1e-5)):
            if not is_float_in(getattr(self, name), low, 1):
                raise OptionError(f"{name} is {getattr(self, name)!r}", remedy=f"use a number from {low:g} to 1")
        return [
            self.equilibrium, self.weight, self.sample, self.notice, self.cycle, self.timer,
            round(self.increase * FULL), max(1, round(self.least * FULL)),
        ]  # fmt: skip

    def figures(self, simulation: Simulation) -> dict[str, Any]:
        """Return the numbers of samples and notifications, and the lowest rate of any flow.

        The rate is a fraction of the link's rate.
        """
        samples, *flows = simulation.results_of(self).tolist()
        lowest = min(flows[2::3], default=FULL) / FULL
        return {"samples": samples, "notifications": sum(flows[::3]), "lowest_rate": round(lowest, 4)}
