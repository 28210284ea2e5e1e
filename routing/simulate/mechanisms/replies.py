"""Simulate endpoints that answer each request with a reply, from queues of limited size.

Source: T. M. Pinkston, "Deadlock characterization and resolution in interconnection networks", section 13.3.2.  With
replies on a VL of their own (avoidance in the strict sense) requests cannot block them.  With replies on the VL of the
requests a message-dependent deadlock can occur, although the tables have no credit loop.  Differences: a CA takes a
reply at once, and every packet of a flow is a request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from routing.errors import OptionError
from routing.simulate.bounds import is_int_in
from routing.simulate.mechanisms.base import CaseMechanism
from routing.simulate.network import Network
from routing.simulate.scenario_key import INTEGER, Key
from routing.simulate.traffic import FOREVER, Flow, Process, Traffic, senders

if TYPE_CHECKING:
    from routing.simulate.run import Simulation

MOST_MESSAGES = 1 << 20


@dataclass(frozen=True)
class Replies(CaseMechanism):
    """Replies of all CAs to the requests that they receive.

    The traffic of the simulation must be ``extended_traffic(network, traffic)``.

    Attributes
    ----------
    sl
        SL of replies.
    input, output
        Size of a CA's input queue in requests, and of its output queue in replies.
    outstanding
        Largest number of requests of a flow without a reply.  None: no limit.
    bytes
        Bytes of a reply.
    """

    name: ClassVar[str] = "replies"
    table: ClassVar[str] = "replies"
    keys: ClassVar[Mapping[str, Key]] = {
        "sl": Key(INTEGER, least=0, most=15), "input": Key(INTEGER, least=1, most=MOST_MESSAGES),
        "output": Key(INTEGER, least=1, most=MOST_MESSAGES), "outstanding": Key(INTEGER, least=1, most=2**30),
        "bytes": Key(INTEGER, least=1, most=0xFFFF),
    }  # fmt: skip

    sl: int = 0
    input: int = 4
    output: int = 4
    outstanding: int | None = None
    bytes: int = 2048

    @classmethod
    def from_table(cls, table: Mapping[str, Any], packet: int) -> Replies:
        """Return replies with the settings of a table."""
        return cls(**table)

    def extended_traffic(self, network: Network, traffic: Traffic) -> Traffic:
        """Return the flows with a further flow for the replies of each CA, which begins no message of its own."""
        fabric = network.fabric
        rows = senders(fabric)
        lids = tuple(int(fabric.endport_lid[row]) for row in rows)
        sources = {flow.source for flow in traffic.flows}
        to = tuple(int(fabric.endport_lid[row]) for row in sorted(sources))
        targets = {lid for flow in traffic.flows for lid in (*flow.destinations, *flow.hot)}
        answering = [row for row, lid in zip(rows, lids, strict=True) if lid in targets]
        more = tuple(Flow(row, to, stop=0) for row in answering if set(to) - {int(fabric.endport_lid[row])})
        return replace(traffic, flows=traffic.flows + more)

    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int]:
        """Return the settings in the order of the kernel, and the LID of each flow of requests.

        Raises
        ------
        OptionError
            A setting is out of range, a message has several packets, or the flows of replies are missing.
        """
        for key, most in (("input", MOST_MESSAGES), ("output", MOST_MESSAGES), ("bytes", traffic.mtu)):
            if not is_int_in(getattr(self, key), 1, most):
                raise OptionError(f"{key} is {getattr(self, key)!r}", remedy=f"use a whole number from 1 to {most}")
        if not is_int_in(self.sl, 0, 15):
            raise OptionError(f"sl is {self.sl!r}", remedy="use 0 to 15")
        if int(network.routing.sl2vl[..., self.sl].max()) >= network.vls:
            raise OptionError(f"sl {self.sl} has no VL among the {network.vls} of the network", remedy="use more VLs")
        requests = [flow for flow in traffic.flows if flow.stop]
        if any(flow.bytes > traffic.mtu or flow.process is Process.TRACE for flow in requests):
            raise OptionError("a request has several packets", remedy=f"use messages of up to {traffic.mtu} bytes")
        if len(requests) == len(traffic.flows):
            raise OptionError("no flow carries replies", remedy="use the traffic of extended_traffic")
        lids = [int(network.fabric.endport_lid[flow.source]) for flow in requests]
        return [
            len(requests), self.bytes, self.sl, self.input, self.output, min(self.outstanding or 0, FOREVER), *lids
        ]  # fmt: skip

    def figures(self, simulation: Simulation) -> dict[str, Any]:
        """Return the number of replies received."""
        return {"replies": int(simulation.results_of(self)[0])}
