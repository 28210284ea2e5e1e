"""Simulation of adaptive routing: at every switch a packet may take one of several channels, whichever has room.

In most schemes, a packet may take every channel on a shortest path, on any VL.

The *scheme* is the method that handles deadlock:

- Escape VLs (Duato): some VLs have acyclic dependencies, and every packet may enter these VLs.
- Token (Disha): one packet at a time holds the token, and moves to its destination through spare buffers.
- Ping and Bubble: pings find a cycle of waiting packets, and one packet of the cycle moves to a spare buffer.
- Port groups: a packet keeps its VL, and takes any port of a group that is proven free of deadlock
  (:mod:`routing.deadlock.port_groups`).
- Relay (deflection by software, in-transit buffers): a CA takes a packet that waits for too long, and sends it again.
- Concurrent (Disha Concurrent): packets that wait for too long move through spare buffers that have an order
  (:mod:`routing.simulate.recovery_paths`).
- Deflect: a packet that waits for too long takes any free channel, even away from its destination.
- NONE: deadlock is not handled.

Source: Pinkston, Deadlock characterization and resolution in interconnection networks, 13.3.1 B and D.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from routing.deadlock.waitfor import WaitFor
from routing.errors import OptionError
from routing.port_groups import Rule
from routing.simulate.bounds import LONGEST, is_int_in
from routing.simulate.escape import FAR, check_escape, injection_points
from routing.simulate.mechanisms.base import Mechanism
from routing.simulate.network import Network, data_vls
from routing.simulate.next_channels import grouped_channels, shortest_channels
from routing.simulate.options import Arbitration, Breaker, Remedies, Switching
from routing.simulate.recovery_paths import recovery_channels, switch_ranks
from routing.simulate.run import Simulation, has_breaker
from routing.simulate.traffic import Process, Traffic

TOTALS = ("escapes", "seized", "pings", "loops", "bubbles", "sheltered", "relayed", "diverted", "deflected")
"""Names of the counters of adaptive switches, in the order of the kernel's results.  After the counters, the results
have one number for each channel: the packets that the channel has sent without credits.
"""


class Scheme(enum.IntEnum):
    """Method that handles deadlock in a network with adaptive routing."""

    NONE = 0
    """All VLs are adaptive, and the network can deadlock."""
    ESCAPE = 1
    """The last VLs follow tables without a credit loop, and every packet may use them."""
    TOKEN = 2
    """All VLs are adaptive; the one packet that holds the token moves to its destination through the switches' spare
    buffers.
    """
    BUBBLE = 3
    """All VLs are adaptive; pings find cycles of waiting packets.  One packet of a cycle moves to a spare buffer, and
    the room that it leaves lets the other packets of the cycle advance."""
    GROUPS = 4
    """Packets keep the VL of their SL, and take any port of the proven port groups of the network's tables."""
    RELAY = 5
    """All VLs are adaptive; a packet that has waited too long goes to a CA of its switch, which sends it again."""
    CONCURRENT = 6
    """All VLs are adaptive; packets that have waited too long move to their destinations through the switches' spare
    buffers, all at the same time."""
    DEFLECT = 7
    """All VLs are adaptive; a packet that has waited too long takes any free channel to another switch."""


@dataclass(frozen=True)
class Adaptive(Mechanism):
    """Options of adaptive switches; all times are in ticks.

    Attributes
    ----------
    scheme
        Method that handles deadlock.
    arbitration
        Order in which a switch serves the packets at its inputs: round robin of inputs (ROUND_ROBIN), or the packet
        that has waited longest (ARRIVAL).
    ca_vls
        Number of VLs, from VL 0 on, on which CAs send.  On the link from a CA to its switch, each of these VLs has a
        buffer at the switch.  The first packet of this buffer competes with packets in transit.  With more VLs, CAs
        inject more load.
    stay
        Whether a packet on an escape VL stays on escape VLs.  If not, the packet returns to an adaptive VL as soon as
        one has room.  ``stay`` is required if some escape paths are not shortest paths.
    detect
        Time at the head of a queue after which the scheme acts on a packet.  The packet takes the token (scheme TOKEN),
        sends a ping (BUBBLE), goes to a CA of its switch (RELAY), moves through spare buffers (CONCURRENT), or takes
        any free channel (DEFLECT).
    repeat
        Time between two pings of the same queue.
    lasts
        Time after which a mark expires.  A ping sets a mark at each channel on its path.  A mark reserves the channel's
        next free room for a waiting packet.  The time must exceed the time that a ping takes around a cycle.
    hold
        Time after which a locked mark expires.  A ping that returns has found a cycle and locks the marks of the cycle.
        One packet of the cycle then moves to a spare buffer.  The room that it leaves, the bubble, moves around the
        cycle.  ``hold`` must exceed the time that the bubble takes for this.  ``hold`` should not be much longer than
        that, because a locked mark stops other pings even if no bubble follows.
    sample
        Time between two searches for packets that have waited too long (schemes BUBBLE, RELAY, CONCURRENT and DEFLECT).
    step
        Time of the token from one switch to the next.
    seed
        Random seed of traffic and pings.
    """

    name: ClassVar[str] = "adaptive"
    keeps_tables: ClassVar[bool] = True

    scheme: Scheme = Scheme.NONE
    arbitration: Arbitration = Arbitration.ROUND_ROBIN
    ca_vls: int = 1
    stay: bool = False
    detect: int = 64
    repeat: int = 64
    lasts: int = 256
    hold: int = 512
    sample: int = 8
    step: int = 1
    seed: int = 1

    def numbers(self, network: Network, traffic: Traffic) -> npt.NDArray[np.int64]:
        """Return the settings for the kernel: the arrays of :func:`adaptive_arrays`, joined to one array.

        Raises
        ------
        OptionError
            See :func:`adaptive_arrays`.
        """
        arrays = adaptive_arrays(network, self)
        parts = [np.ravel(getattr(arrays, field.name)) for field in fields(arrays)]
        return np.concatenate(parts).astype(np.int64)


@dataclass(frozen=True, eq=False)
class AdaptiveArrays:
    """Settings of adaptive switches, in the order in which the kernel reads them.

    Attributes
    ----------
    scheme
        Scheme against deadlock, a :class:`Scheme`.
    adaptive_vls
        Number A of adaptive VLs.  VLs 0 to A - 1 can be used on any shortest path; escape VL n is VL A + n.
    ca_vls, stay, detect, repeat, lasts, hold, sample, step
        See :class:`Adaptive`.
    columns
        Number of destinations in ``choice``.  With the scheme GROUPS, each LID is a destination.  Otherwise, each
        switch is a destination.
    enter_sl, enter_port
        uint8[S, L] and uint8[S]: SL (by switch and destination LID) and in-port (by switch) of a packet that enters the
        escape VLs at the switch.  SL2VL gives the VL for this SL and in-port.  With the scheme GROUPS, ``enter_sl`` has
        the SL of a packet that enters the fabric at the switch.
    lid_column
        int32[L]: number of the destination to which a LID belongs (below ``columns``), or -1.
    lid_channel
        int32[L]: channel from the last switch to the end port that owns each LID, or -1.
    choice_first, choice
        int32[S x columns + 1] and int32[...]: ``choice`` lists the channels by which packets may leave a switch, and
        ``choice_first`` holds where the channels of each switch and destination begin.  The pair (switch, destination)
        has the index switch x columns + destination.
    recovery_next, recovery_rank
        int32[2, S, S] and int32[S], empty unless the scheme is CONCURRENT.  ``recovery_next`` has the channel by which
        a packet leaves a spare buffer, or -1.  Its indexes are the spare buffer (0 or 1), the switch of this buffer,
        and the last switch of the packet's path.  ``recovery_rank`` is the position of each switch in an order.
        Channels to later switches lead to spare buffers 1, and channels to earlier switches lead to spare buffers 0.
    """

    scheme: int
    adaptive_vls: int
    ca_vls: int
    stay: int
    detect: int
    repeat: int
    lasts: int
    hold: int
    sample: int
    step: int
    columns: int
    enter_sl: npt.NDArray[np.uint8]
    enter_port: npt.NDArray[np.uint8]
    lid_column: npt.NDArray[np.int32]
    lid_channel: npt.NDArray[np.int32]
    choice_first: npt.NDArray[np.int32]
    choice: npt.NDArray[np.int32]
    recovery_next: npt.NDArray[np.int32]
    recovery_rank: npt.NDArray[np.int32]


def _lid_channels(network: Network) -> npt.NDArray[np.int32]:
    """Return int32[L]: for each LID, the channel from the last switch of its paths to the end port with the LID.

    The value is -1 if no end port has the LID, or if this end port is not cabled to a switch.
    """
    arrays, fabric = network.arrays, network.fabric
    position = {at: c for c, at in enumerate(zip(arrays.src.tolist(), arrays.src_port.tolist(), strict=True))}
    found = np.full(len(fabric.lids), -1, np.int32)
    for lid in np.flatnonzero((fabric.lids.endport >= 0) & (arrays.lid_switch >= 0)).tolist():
        endport = int(fabric.lids.endport[lid])
        near = fabric.switches + int(fabric.endport_terminal[endport]), int(fabric.endport_port[endport])
        found[lid] = arrays.reverse[position[near]]
    return found


def adaptive_vls_of(network: Network, adaptive: Adaptive) -> int:
    """Return the number of adaptive VLs.  These are the VLs that the escape tables do not use.  If there are no escape
    tables, all VLs are adaptive.

    Raises
    ------
    OptionError
        The escape tables use all VLs.
    """
    if adaptive.scheme is not Scheme.ESCAPE:
        return network.vls
    left = network.vls - data_vls(network.routing)
    if left < 1:
        raise OptionError(
            f"the escape tables use {network.vls - left} VLs of {network.vls}", remedy="model at least one VL more"
        )
    return left


def adaptive_arrays(network: Network, adaptive: Adaptive) -> AdaptiveArrays:
    """Check the options of adaptive routing and convert them to the arrays of the C kernel.

    Raises
    ------
    OptionError
        A value is out of range, or the escape paths are invalid (:func:`routing.simulate.escape.check_escape`).
    """
    for name in ("detect", "repeat", "lasts", "hold", "sample", "step"):
        if not is_int_in(getattr(adaptive, name), 1, LONGEST):
            raise OptionError(f"{name} is {getattr(adaptive, name)!r} ticks", remedy="use 1 to 2^58")
    if not isinstance(adaptive.scheme, Scheme):
        raise OptionError(f"{adaptive.scheme!r} is not a scheme", remedy="use a Scheme")
    if adaptive.arbitration not in (Arbitration.ROUND_ROBIN, Arbitration.ARRIVAL):
        raise OptionError("adaptive routing serves inputs in turn or by arrival", remedy="leave the arbitration out")
    if not is_int_in(adaptive.ca_vls, 1, network.vls):
        raise OptionError(f"CAs cannot send on {adaptive.ca_vls} VLs of {network.vls}")
    count = adaptive_vls_of(network, adaptive)
    if adaptive.scheme is Scheme.ESCAPE:
        check_escape(network, count, stay=adaptive.stay)
    enter_sl, enter_port = injection_points(network)
    recovers = adaptive.scheme is Scheme.CONCURRENT
    # The proof of the port groups depends on what a waiting packet may do (routing.port_groups.Rule).  In an adaptive
    # switch, a waiting packet may leave by any port of its group, so the groups need the rule ESCAPE.
    grouped = adaptive.scheme is Scheme.GROUPS
    allowed = grouped_channels(network, Rule.ESCAPE) if grouped else shortest_channels(network)
    return AdaptiveArrays(
        scheme=int(adaptive.scheme),
        adaptive_vls=count,
        ca_vls=adaptive.ca_vls,
        stay=int(adaptive.stay),
        detect=adaptive.detect,
        repeat=adaptive.repeat,
        lasts=adaptive.lasts,
        hold=adaptive.hold,
        sample=adaptive.sample,
        step=adaptive.step,
        columns=allowed.columns,
        enter_sl=enter_sl,
        enter_port=enter_port,
        lid_column=allowed.lid_column,
        lid_channel=_lid_channels(network),
        choice_first=allowed.first,
        choice=allowed.channel,
        recovery_next=recovery_channels(network) if recovers else np.zeros(0, np.int32),
        recovery_rank=switch_ranks(network) if recovers else np.zeros(0, np.int32),
    )


def _check_combination(remedies: Remedies, mechanisms: Sequence[Mechanism]) -> None:
    """Raise OptionError if a remedy or a mechanism needs output queues, which adaptive switches do not have."""
    needs = [mechanism.name for mechanism in mechanisms if mechanism.output_queues]
    if has_breaker(remedies, Breaker.LOOP, Breaker.DEADLOCK):
        needs.append("a deadlock breaker")
    if needs:
        raise OptionError(f"{needs[0]} needs output queues, which adaptive switches do not have", remedy="leave it out")


def _check_reach(network: Network, traffic: Traffic) -> None:
    """Raise OptionError if a destination of some flow is unreachable from the flow's source."""
    fabric, hops = network.fabric, network.arrays.distance
    for number, flow in enumerate(traffic.flows):
        switch = int(fabric.endport_switch[flow.source])
        aims = [lid for _, lid, _ in flow.trace] if flow.process is Process.TRACE else [*flow.destinations, *flow.hot]
        goals = network.arrays.lid_switch[aims]
        if switch < 0 or (goals < 0).any() or (hops[switch, goals] == FAR).any():
            raise OptionError(f"flow {number}: no path leads to one of its destinations")


class AdaptiveSimulation(Simulation):
    """Simulation with adaptive switches, as :func:`simulate_adaptive` returns it.

    Attributes
    ----------
    adaptive
        Options of adaptive routing.
    """

    def __init__(
        self,
        network: Network,
        traffic: Traffic,
        adaptive: Adaptive,
        remedies: Remedies = Remedies(),  # noqa: B008
        mechanisms: Sequence[Mechanism] = (),
    ) -> None:
        self.adaptive = adaptive
        _check_combination(remedies, mechanisms)
        switching = Switching(adaptive.arbitration, speedup=0, seed=adaptive.seed)
        super().__init__(network, traffic, switching, remedies, (adaptive, *mechanisms))

    def totals(self) -> dict[str, int]:
        """Return the counters of the simulation by name, including the counters of the adaptive switches
        (:data:`TOTALS`).
        """
        results = self.results_of(self.adaptive)[: len(TOTALS)]
        return super().totals() | dict(zip(TOTALS, results.tolist(), strict=True))

    def saved(self) -> npt.NDArray[np.int64]:
        """Return int64[N]: number of packets that each of the N channels has sent without credits.

        Such a packet goes to a spare buffer of the next switch, or to the CA of its destination.  Only the schemes
        TOKEN and CONCURRENT send without credits.
        """
        return self.results_of(self.adaptive)[len(TOTALS) :]

    def wait_graph(self) -> WaitFor:
        """Return the wait-for graph of the queues at the present tick.

        The vertices are the input queues of all virtual channels, then spare buffer 0 of each switch, and then spare
        buffer 1 of each switch.  The queue of a virtual channel has the number channel x V + VL.  A queue waits for all
        virtual channels and spare buffers that its first packet may take.
        """
        waiter, awaited, moves = self._handle.wait_graph()
        return WaitFor.of(waiter, awaited, len(moves), can_move=moves)

    def permanent_waits(self) -> WaitFor:
        """Return the present wait-for graph, in which only permanent knots count as deadlocked.

        If the scheme or a remedy ends every knot sooner or later, no knot is permanent.  So that no knot counts as
        deadlocked then, all queues of the graph are marked as able to move.

        The schemes TOKEN, BUBBLE and RELAY end every knot, and so does a lifetime limit of the switches.  HOQLife ends
        every knot only if it is finite at all ports.  The reason is that a head packet is dropped after the longest
        HOQLife of the ports that the packet may take.  So one port with an infinite HOQLife can keep a knot.
        """
        graph = self.wait_graph()
        ends = self.adaptive.scheme in (Scheme.TOKEN, Scheme.BUBBLE, Scheme.RELAY) or self.remedies.end_every_knot
        return replace(graph, can_move=graph.can_move | ends)


def simulate_adaptive(
    network: Network,
    traffic: Traffic,
    adaptive: Adaptive = Adaptive(),
    *,
    remedies: Remedies = Remedies(),  # noqa: B008
    mechanisms: Sequence[Mechanism] = (),
) -> AdaptiveSimulation:
    """Set up a simulation with adaptive routing at tick 0.

    Parameters
    ----------
    network
        Network from :func:`routing.simulate.network.build_network`.  ``network.vls`` is the number of VLs that are
        simulated.  Only two schemes use the tables of the network: ESCAPE for the escape paths, and GROUPS for the port
        groups.
    traffic
        Flows, all of which must have reachable destinations.
    adaptive
        Options of adaptive routing, including the scheme that handles deadlock.
    remedies
        Lifetime limits of packets.  The head-of-queue lifetime of a packet is the longest lifetime of all ports that
        the packet may take.  Adaptive switches have no VL stalls, so ``stall_count`` has no effect.
    mechanisms
        Optional parts of the simulation that do not need output queues (``Mechanism.output_queues``).

    Raises
    ------
    OptionError
        A destination is unreachable, a remedy or mechanism needs output queues, a buffer is smaller than a packet, a
        value is out of range, or the escape paths have a credit loop.
    KernelError
        Out of memory.

    Notes
    -----
    Switching is virtual cut-through.  Each VL of each input has one queue, and only the first packet of a queue can be
    forwarded.  The result depends only on the seed and the arguments, not on the order in which the events of one tick
    are handled.
    """
    _check_reach(network, traffic)
    return AdaptiveSimulation(network, traffic, adaptive, remedies, mechanisms)
