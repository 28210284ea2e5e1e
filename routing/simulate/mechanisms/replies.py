"""Simulate endpoints that answer each request with a reply, directly or through a third CA, from limited queues.

Source: T. M. Pinkston, "Deadlock characterization and resolution in interconnection networks", section 13.3.2.  If
message types share a VL, a message-dependent deadlock can occur, although the tables have no credit loop.  There are
four remedies:

- strict: each message type has its own VL.
- wide: a shared VL is used beside the VLs of the message types.
- back-off of the SGI Origin 2000: if a CA cannot forward a request for some time, it orders the requester to send the
  request to the third CA itself.
- mDisha: one token travels from CA to CA.  A CA with the token may rescue a message that has waited too long.  Rescued
  messages use a separate VL.

Differences from the source: a CA takes a reply at once, and every packet of a flow is a request.  The third CA is the
next CA in the order of the fabric.  With wide, a CA sends each message on the VL of its type or on the shared VL, but
switches do not change the VL.  In the source, messages rescued by mDisha use one spare buffer in each switch, not a
separate VL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from routing.errors import OptionError
from routing.simulate.bounds import LONGEST
from routing.simulate.mechanisms.base import CaseMechanism
from routing.simulate.network import Network
from routing.simulate.scenario_key import INTEGER, TIME, Key
from routing.simulate.traffic import FOREVER, Flow, Process, Traffic, senders

if TYPE_CHECKING:
    from routing.simulate.run import Simulation

MOST_MESSAGES = 1 << 20
USUAL_TIMES = {"detect": 100.0, "step": 1.0}
"""Default times of a case, in packet times."""
_SL = Key(INTEGER, least=0, most=15)


@dataclass(frozen=True)
class Replies(CaseMechanism):
    """Replies of all CAs to the requests that they receive.

    The traffic of the simulation must be ``extended_traffic(network, traffic)``.

    Attributes
    ----------
    sl
        SL of replies.
    forward_sl
        SL on which a CA forwards a request to a third CA, which then sends the reply.  None: the CA itself replies.
    shared_sl
        SL that forwarded requests and replies may use in addition to ``forward_sl`` and ``sl``.  None: no such SL.
    input, output
        Sizes of a CA's queues in messages.  A CA has two input queues of size ``input``: for requests and for forwarded
        requests.  It has two output queues of size ``output``: for forwarded requests and for replies.
    outstanding
        Largest number of unanswered requests of a flow.  None: no limit.
    bytes
        Size in bytes of each reply and of each forwarded request.
    backoff
        Ticks for which a request may wait until the CA can forward it.  After these ticks, the CA orders the requester
        to send the request to the third CA itself.  None: no such order.
    rescue_sl
        SL of messages that a CA with the token rescues.  None: no message is rescued.
    detect
        Ticks after which a message that waits for room in an output queue may be rescued.
    step
        Ticks that the token takes from one CA to the next.
    """

    name: ClassVar[str] = "replies"
    output_queues: ClassVar[bool] = True
    table: ClassVar[str] = "replies"
    keys: ClassVar[Mapping[str, Key]] = {
        "sl": _SL, "forward_sl": _SL, "shared_sl": _SL, "rescue_sl": _SL,
        "input": Key(INTEGER, least=1, most=MOST_MESSAGES), "output": Key(INTEGER, least=1, most=MOST_MESSAGES),
        "outstanding": Key(INTEGER, least=1, most=2**30), "bytes": Key(INTEGER, least=1, most=0xFFFF),
        "backoff": TIME, "detect": TIME, "step": TIME,
    }  # fmt: skip

    sl: int = 0
    input: int = 4
    output: int = 4
    outstanding: int | None = None
    bytes: int = 2048
    forward_sl: int | None = None
    shared_sl: int | None = None
    backoff: int | None = None
    rescue_sl: int | None = None
    detect: int = 3200
    step: int = 32

    @classmethod
    def from_table(cls, table: Mapping[str, Any], packet: int) -> Replies:
        """Return replies with the settings of a table, whose times are in packet times."""
        times = {**USUAL_TIMES, **{key: table[key] for key in ("backoff", "detect", "step") if key in table}}
        return cls(**{**table, **{key: max(1, round(float(time) * packet)) for key, time in times.items()}})

    def _outlets(self) -> list[tuple[int, int]]:
        """Return the output queue and the SL of each flow that a CA needs for messages other than its own requests.

        Output queue 0 has forwarded requests, queue 1 has replies, and queue 2 has rescued messages.  With a
        shared SL, queues 0 and 1 have two flows each, if they are in use: first a flow with the shared SL, then a flow
        with the SL of the message type.  A queue with two flows waits only if neither flow can send.  In the wait-for
        graph of the kernel, this queue then waits for one virtual channel: the channel of its last flow with a message.
        """
        shared = [] if self.shared_sl is None else [self.shared_sl]
        forwards = [] if self.forward_sl is None else [(0, sl) for sl in (*shared, self.forward_sl)]
        rescued = [] if self.rescue_sl is None else [(2, self.rescue_sl)]
        return [*forwards, *((1, sl) for sl in (*shared, self.sl)), *rescued]

    def extended_traffic(self, network: Network, traffic: Traffic) -> Traffic:
        """Return the traffic with further flows, by which CAs send replies and forward requests.

        These flows create no messages by themselves.  The mechanism gives them the messages to send.
        """
        fabric = network.fabric
        rows = senders(fabric)
        lids = tuple(int(fabric.endport_lid[row]) for row in rows)
        if self.forward_sl is None and self.rescue_sl is None:
            sources = {flow.source for flow in traffic.flows}
            to = tuple(int(fabric.endport_lid[row]) for row in sorted(sources))
            targets = {lid for flow in traffic.flows for lid in (*flow.destinations, *flow.hot)}
            rows = [row for row, lid in zip(rows, lids, strict=True) if lid in targets]
        else:
            to = lids
        answering = [row for row in rows if set(to) - {int(fabric.endport_lid[row])}]
        more = tuple(Flow(row, to, bytes=self.bytes, stop=0) for row in answering for _ in self._outlets())
        # The mechanism recognises the added flows by their stop at tick 0, so flows of requests must not stop at tick
        # 0.  If a flow of requests stops at tick 0, its start and stop are moved to tick 1.  The flow still sends
        # nothing.
        flows = tuple(flow if flow.stop else replace(flow, start=1, stop=1) for flow in traffic.flows)
        return replace(traffic, flows=flows + more)

    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int]:
        """Return one list: the settings in the order that the kernel expects, and then the numbers of all flows.

        For each flow of requests, the list has the LID of its sender.  For each further flow (of replies, forwarded
        requests or rescued messages), the list has its output queue, its SL, and the LID of its CA.

        Raises
        ------
        OptionError
            A setting is out of range, a message has several packets, or the further flows are missing.
        """
        self._check(network, traffic)
        fabric = network.fabric
        lids = [int(fabric.endport_lid[flow.source]) for flow in traffic.flows]
        requests = sum(1 for flow in traffic.flows if flow.stop)
        outlets = self._outlets()
        rest = [(*outlets[n % len(outlets)], lid) for n, lid in enumerate(lids[requests:])]
        detect = 0 if self.rescue_sl is None else self.detect
        return [
            requests, self.bytes, self.input, self.output, min(self.outstanding or 0, FOREVER),
            int(self.forward_sl is not None), self.backoff or 0, detect, self.step,
            *lids[:requests], *(number for one in rest for number in one),
        ]  # fmt: skip

    def _check(self, network: Network, traffic: Traffic) -> None:
        """Raise OptionError if a setting is out of range, or does not fit the traffic."""
        sls = [key for key in ("sl", "forward_sl", "shared_sl", "rescue_sl") if getattr(self, key) is not None]
        backoff = () if self.backoff is None else (("backoff", 1, LONGEST),)
        self.check_integers(
            ("input", 1, MOST_MESSAGES), ("output", 1, MOST_MESSAGES), ("bytes", 1, traffic.mtu),
            ("detect", 1, LONGEST), ("step", 1, LONGEST), *backoff, *((key, 0, 15) for key in sls),
        )  # fmt: skip
        for sl in (getattr(self, key) for key in sls):
            if int(network.routing.sl2vl[..., sl].max()) >= network.vls:
                raise OptionError(f"sl {sl} has no VL among the {network.vls} of the network", remedy="use more VLs")
        requests = [flow for flow in traffic.flows if flow.stop]
        if any(flow.bytes > traffic.mtu or flow.process is Process.TRACE for flow in requests):
            raise OptionError("a request has several packets", remedy=f"use messages of up to {traffic.mtu} bytes")
        if len(requests) == len(traffic.flows):
            raise OptionError("no flow carries replies", remedy="use the traffic of extended_traffic")
        if self.backoff and (self.forward_sl is None or not self.outstanding or self.rescue_sl is not None):
            raise OptionError(
                "a back-off needs forwarded requests, and a limit for them",
                remedy="set forward_sl and outstanding, but not rescue_sl",
            )
        if self.backoff and (self.outstanding or 0) * len(requests) > MOST_MESSAGES:
            raise OptionError(f"outstanding is {self.outstanding}", remedy="use a smaller number with a back-off")
        if self.forward_sl is not None and len({flow.source for flow in traffic.flows}) < 3:
            raise OptionError("there is no third CA to which requests are forwarded", remedy="use three CAs or more")

    def figures(self, simulation: Simulation) -> dict[str, Any]:
        """Return the numbers of replies received, and of back-offs and rescues if these are in use."""
        answered, backed_off, rescued = simulation.results_of(self).tolist()
        figures = {"replies": answered}
        if self.backoff:
            figures["backoffs"] = backed_off
        if self.rescue_sl is not None:
            figures["rescues"] = rescued
        return figures
