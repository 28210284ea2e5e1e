"""Simulate switches that choose a port for each arriving packet out of the packet's port group.

A switch keeps the port of the table while the load of this port is at most one packet.  Otherwise, the switch takes the
least loaded port of the group.

A packet that has arrived waits for its port, and does not change the port.  So the mechanism uses the port groups of
the rule ``commit`` (:mod:`routing.deadlock.port_groups`), which are proven free of deadlock.  The schemes of
:mod:`routing.simulate.adaptive` choose again while a packet waits.  Vendors do not publish how their switches compare
ports; this mechanism compares the numbers of queued packets.

This mechanism is a part of simulations with output queues.  So it can be combined with HOQLife, Deadlock Breaker,
congestion control and link faults.  It cannot be combined with anything that writes tables, such as Loop Breaker.  The
proof of the port groups covers the SLs of the tables only, not the SLs of replies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.port_groups import Rule
from routing.simulate.mechanisms.base import CaseMechanism
from routing.simulate.network import Network
from routing.simulate.next_channels import NextChannels, grouped_channels, shortest_channels
from routing.simulate.scenario_key import FLAG, Key
from routing.simulate.traffic import Traffic

if TYPE_CHECKING:
    from routing.simulate.run import Simulation


@dataclass(frozen=True)
class PortChoice(CaseMechanism):
    """Choice of an out-port for each packet that arrives at a switch, by the load of the out-ports.

    Attributes
    ----------
    shortest
        Whether switches choose among all ports on shortest paths, so that the network can deadlock.  If not, they
        choose among the ports of the proven port groups.
    allowed
        Channels among which switches choose, if they are known already; None: they are computed for each simulation.
    """

    name: ClassVar[str] = "port-choice"
    output_queues: ClassVar[bool] = True
    keeps_tables: ClassVar[bool] = True
    table: ClassVar[str] = "port_choice"
    keys: ClassVar[Mapping[str, Key]] = {"shortest": Key(FLAG)}

    shortest: bool = False
    allowed: NextChannels | None = None

    @classmethod
    def from_table(cls, table: Mapping[str, Any], packet: int) -> PortChoice:
        """Return the choice of ports with the settings of a table."""
        return cls(**table)

    def channels(self, network: Network) -> NextChannels:
        """Return the channels among which switches choose.

        Raises
        ------
        OptionError
            The SL depends on the sender's LID, or the SL2VL tables differ between ports.
        RoutingError
            The tables have a credit loop, so no port groups can be proven.
        """
        if self.allowed is not None:
            return self.allowed
        if not self.shortest:
            return grouped_channels(network, Rule.COMMIT)
        if network.arrays.sl2vl.ndim > 1:
            raise OptionError("SL2VL tables differ between ports", remedy="use tables of nue or updn")
        return shortest_channels(network)

    def numbers(self, network: Network, traffic: Traffic) -> npt.NDArray[np.int64]:
        """Return the arrays of :class:`NextChannels` as one array, in the order that the kernel expects.

        Raises
        ------
        OptionError, RoutingError
            See :meth:`channels`.
        """
        allowed = self.channels(network)
        parts = [np.array([allowed.columns]), allowed.lid_column, allowed.first, allowed.channel]
        return np.concatenate(parts).astype(np.int64)

    def figures(self, simulation: Simulation) -> dict[str, Any]:
        """Return two counts: ``choices`` and ``other_ports``.

        ``choices``: how many packets could choose among several out-ports of a switch.  ``other_ports``: how many of
        these packets took another out-port than that of the LFT entry.  A packet counts once at each switch.
        """
        return dict(zip(("choices", "other_ports"), simulation.results_of(self).tolist(), strict=True))
