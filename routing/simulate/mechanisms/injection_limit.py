"""Simulate a limit of injection: CAs send nothing new while their switch is full of packets from other switches.

Source: T. M. Pinkston, "Deadlock characterization and resolution in interconnection networks", section 13.3.1.  Such
a limit makes deadlocks rare, but does not exclude them.  Differences: the limit counts the packets in the buffers of
the switch, whereas Pinkston's text counts busy virtual channels of the switch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from routing.errors import OptionError
from routing.simulate.bounds import is_float_in
from routing.simulate.mechanisms.base import CaseMechanism
from routing.simulate.network import BLOCK, Network
from routing.simulate.scenario_key import NUMBER, Key
from routing.simulate.traffic import Traffic

if TYPE_CHECKING:
    from routing.simulate.run import Simulation

MOST_PACKETS = 10**6


@dataclass(frozen=True)
class InjectionLimit(CaseMechanism):
    """Limit of injection at every switch.

    Attributes
    ----------
    packets
        The limit.  The CAs at a switch send no new packets while the switch's buffers hold at least this number of
        full-size packets from other switches.
    """

    name: ClassVar[str] = "injection-limit"
    table: ClassVar[str] = "injection_limit"
    keys: ClassVar[Mapping[str, Key]] = {"packets": Key(NUMBER, True, 0.01, MOST_PACKETS)}

    packets: float = 4.0

    @classmethod
    def from_table(cls, table: Mapping[str, Any], packet: int) -> InjectionLimit:
        """Return the limit with the settings of a table."""
        return cls(**table)

    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int]:
        """Return the limit in blocks, and the number of ticks after which a stopped flow tries to send again.

        Raises
        ------
        OptionError
            The limit is out of range.
        """
        if not is_float_in(self.packets, 0.01, MOST_PACKETS):
            raise OptionError(f"packets is {self.packets!r}", remedy=f"use a number from 0.01 to {MOST_PACKETS}")
        blocks = -(-traffic.mtu // BLOCK)
        return [max(1, round(self.packets * blocks)), blocks]

    def figures(self, simulation: Simulation) -> dict[str, Any]:
        """Return how often the limit has stopped a flow."""
        return {"injections_stopped": int(simulation.results_of(self)[0])}
