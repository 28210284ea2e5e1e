"""Simulate retransmission by CAs: a flow sends a lost packet again, as a reliable connection does.

Retransmission and a head-of-queue lifetime together are called regressive recovery from deadlock.  Source: T. M.
Pinkston, "Deadlock characterization and resolution in interconnection networks", section 13.3.1.  Differences: there
are no packets for acknowledgements, and the CA learns of a loss when a given time (the timeout) has passed since the
loss.  The CA sends only the lost packet again, any number of times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from routing.simulate.bounds import LONGEST
from routing.simulate.mechanisms.base import CaseMechanism
from routing.simulate.network import Network
from routing.simulate.scenario_key import TIME, Key
from routing.simulate.traffic import Traffic

if TYPE_CHECKING:
    from routing.simulate.run import Simulation

USUAL_TIMEOUT = 100.0
"""Default timeout of a case, in packet times."""


@dataclass(frozen=True)
class Retransmission(CaseMechanism):
    """Retransmission of lost packets by all flows.

    Attributes
    ----------
    timeout
        Ticks from the loss of a packet until its flow may send it again.
    """

    name: ClassVar[str] = "retransmission"
    table: ClassVar[str] = "retransmission"
    keys: ClassVar[Mapping[str, Key]] = {"timeout": TIME}

    timeout: int = 3200

    @classmethod
    def from_table(cls, table: Mapping[str, Any], packet: int) -> Retransmission:
        """Return retransmission with the settings of a scenario's table, whose times are in packet times.

        ``packet`` is the packet time in ticks.
        """
        return cls(max(1, round(float(table.get("timeout", USUAL_TIMEOUT)) * packet)))

    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int]:
        """Return the timeout.

        Raises
        ------
        OptionError
            The timeout is out of range.
        """
        self.check_integers(("timeout", 1, LONGEST))
        return [self.timeout]

    def figures(self, simulation: Simulation) -> dict[str, Any]:
        """Return the number of packets sent again, and the number of lost packets that were not sent again yet."""
        resent, waiting = simulation.results_of(self).tolist()
        return {"resent": resent, "not_resent": waiting}
