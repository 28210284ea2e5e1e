"""Simulation with adaptive routing: at every switch a packet takes any shortest way and any VL that has room.

What is done about deadlock is the *scheme*: escape VLs that are free of loops (Duato), a token for one packet that goes
through spare buffers (Disha), pings that find circles and a bubble for each (Ping and Bubble), or nothing.

Source: Pinkston, Deadlock characterization and resolution in interconnection networks, 13.3.1 B and D.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.adaptive import CHANNEL_COUNTERS, AdaptiveArrays, AdaptiveHandle
from routing.deadlock.waitfor import WaitFor
from routing.errors import KernelError, OptionError
from routing.simulate.bounds import LONGEST, whole
from routing.simulate.clock import Clock
from routing.simulate.escape import FAR, check_escape, entering
from routing.simulate.network import Network, data_vls
from routing.simulate.options import MOST_SEED, Arbitration
from routing.simulate.traffic import Process, Traffic, traffic_arrays


class Scheme(enum.IntEnum):
    """What is done about deadlock."""

    NONE = 0
    """Nothing: all VLs are adaptive, and it can lock."""
    ESCAPE = 1
    """The last VLs follow tables without a loop, and every packet may take them."""
    TOKEN = 2
    """All VLs are adaptive; the one packet that holds the token goes through spare buffers to its destination."""
    BUBBLE = 3
    """All VLs are adaptive; pings find circles, and a packet of each waits in a spare buffer while its
    room goes round."""


@dataclass(frozen=True)
class Adaptive:
    """How packets choose, and what is done about deadlock; times in ticks.

    Attributes
    ----------
    scheme
        See :class:`Scheme`.
    arbitration
        Which packet of a switch goes first: inputs in turn, or the one that has waited longest (by arrival).
    ca_vls
        VLs that CAs send on, from VL 0.  Each has a buffer, whose first packet competes with those in transit: the more
        there are, the harder CAs press.
    stay
        A packet on an escape VL stays on them; else it comes back as soon as there is room.  Needed where the escape
        ways are not all shortest.
    detect
        A packet that has waited for so long, first in its queue, takes the token or sends a ping.
    repeat
        Between two pings of a queue.
    lasts
        That a channel stays marked for the packet that a ping found waiting there; longer than a ping takes round a
        circle.
    hold
        That it stays so where a circle was found: longer than a bubble takes round it, and not much longer, since what
        a ping has locked that comes to nothing stops other pings for so long.
    sample
        Between looks for packets that have waited too long (bubble).
    step
        That the token takes from a switch to the next.
    seed
        Of traffic and pings.
    """

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


def _shortest(network: Network) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Channels on shortest ways, by switch x S + last switch; where each begins, and the channels."""
    arrays, hops = network.arrays, network.arrays.distance.astype(np.int64)
    inside = np.flatnonzero((arrays.src < arrays.switches) & (arrays.dst < arrays.switches))
    near, far = hops[arrays.src[inside]], hops[arrays.dst[inside]]
    channel, goal = np.nonzero((far + 1 == near) & (near < FAR))
    key = arrays.src[inside[channel]].astype(np.int64) * arrays.switches + goal
    order = np.lexsort((inside[channel], key))
    first = np.searchsorted(key[order], np.arange(arrays.switches**2 + 1))
    return first.astype(np.int32), inside[channel][order].astype(np.int32)


def _lid_channels(network: Network) -> npt.NDArray[np.int32]:
    """int32[L]: the channel from the switch of a LID's owner to it, -1 where there is none."""
    arrays, fabric = network.arrays, network.fabric
    place = {at: c for c, at in enumerate(zip(arrays.src.tolist(), arrays.src_port.tolist(), strict=True))}
    found = np.full(len(fabric.lids), -1, np.int32)
    for lid in np.flatnonzero((fabric.lids.endport >= 0) & (arrays.lid_switch >= 0)).tolist():
        endport = int(fabric.lids.endport[lid])
        near = fabric.switches + int(fabric.endport_terminal[endport]), int(fabric.endport_port[endport])
        found[lid] = arrays.reverse[place[near]]
    return found


def adaptive_vls_of(network: Network, adaptive: Adaptive) -> int:
    """How many VLs are adaptive: all, or those that the escape tables leave.

    Raises
    ------
    OptionError
        They leave none.
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
    """Check the options and lay them out for the kernel.

    Raises
    ------
    OptionError
        A time that cannot be, or escape ways that cannot (:func:`routing.simulate.escape.check_escape`).
    """
    for name in ("detect", "repeat", "lasts", "hold", "sample", "step"):
        if not whole(getattr(adaptive, name), 1, LONGEST):
            raise OptionError(f"{name} is {getattr(adaptive, name)!r} ticks", remedy="use 1 to 2^58")
    if not isinstance(adaptive.scheme, Scheme):
        raise OptionError(f"{adaptive.scheme!r} is no scheme", remedy="use a Scheme")
    in_order = adaptive.arbitration in (Arbitration.ROUND_ROBIN, Arbitration.ARRIVAL)
    if not in_order or not whole(adaptive.seed, 0, MOST_SEED):
        raise OptionError("adaptive routing serves inputs in turn or by arrival, with a seed from 0 on")
    if not whole(adaptive.ca_vls, 1, network.vls):
        raise OptionError(f"CAs cannot send on {adaptive.ca_vls} VLs of {network.vls}")
    count = adaptive_vls_of(network, adaptive)
    if adaptive.scheme is Scheme.ESCAPE:
        check_escape(network, count, stay=adaptive.stay)
    enter_sl, enter_port = entering(network)
    first, ways = _shortest(network)
    return AdaptiveArrays(
        scheme=int(adaptive.scheme),
        adaptive_vls=count,
        ca_vls=adaptive.ca_vls,
        stay=int(adaptive.stay),
        by_arrival=int(adaptive.arbitration is Arbitration.ARRIVAL),
        seed=adaptive.seed,
        detect=adaptive.detect,
        repeat=adaptive.repeat,
        lasts=adaptive.lasts,
        hold=adaptive.hold,
        sample=adaptive.sample,
        step=adaptive.step,
        enter_sl=enter_sl,
        enter_port=enter_port,
        way_first=first,
        way=ways,
        lid_channel=_lid_channels(network),
    )


def _check_reach(network: Network, traffic: Traffic) -> None:
    """Raise OptionError for a flow to a CA that no way leads to."""
    fabric, hops = network.fabric, network.arrays.distance
    for number, flow in enumerate(traffic.flows):
        switch = int(fabric.endport_switch[flow.source])
        aims = [lid for _, lid, _ in flow.trace] if flow.process is Process.TRACE else [*flow.destinations, *flow.hot]
        goals = network.arrays.lid_switch[aims]
        if switch < 0 or (goals < 0).any() or (hops[switch, goals] == FAR).any():
            raise OptionError(f"flow {number}: there is no way to one of its destinations")


@dataclass(frozen=True, eq=False)
class AdaptiveCounters:
    """Counters by channel, int64[N] each.

    Attributes
    ----------
    xmit_bytes, xmit_pkts
        Sent on it.
    saved
        Packets of these that went to a spare buffer, or to a CA from one, for the holder of the token.
    """

    xmit_bytes: npt.NDArray[np.int64]
    xmit_pkts: npt.NDArray[np.int64]
    saved: npt.NDArray[np.int64]


class AdaptiveSimulation(Clock):
    """The state of a run.  Make one with :func:`simulate_adaptive`.

    Attributes
    ----------
    network, traffic, adaptive
        What it was made of.
    """

    def __init__(self, network: Network, traffic: Traffic, adaptive: Adaptive) -> None:
        self.network = network
        self.traffic = traffic
        self.adaptive = adaptive
        arrays = adaptive_arrays(network, adaptive)
        super().__init__(AdaptiveHandle(network.arrays, arrays, traffic_arrays(network, traffic)))

    def check(self) -> None:
        """Raise KernelError unless every packet and every block of credit is accounted for.

        Sent = delivered + on the way; credits + occupancy + flying + returning = buffer on every lane, and the packets
        in its queue hold the blocks that are held.
        """
        totals = self.totals()
        lost = totals["injected"] - totals["delivered"] - totals["in_flight"]
        if lost or totals["broken_lanes"]:
            raise KernelError(
                f"the simulation lost count at tick {totals['now']}: {lost} packets, {totals['broken_lanes']} lanes"
            )

    def counters(self) -> AdaptiveCounters:
        """Counters of every channel so far."""
        rows = self._handle.channels()
        return AdaptiveCounters(*(rows[:, n] for n in range(len(CHANNEL_COUNTERS))))

    def lanes(self) -> npt.NDArray[np.int64]:
        """int64[N, V, 5], by ``routing._kernels.adaptive.LANE_FIELDS``: blocks of every VL of every channel."""
        return self._handle.lanes()

    def flows(self) -> npt.NDArray[np.int64]:
        """int64[F, 8], by ``routing._kernels.adaptive.FLOW_FIELDS``."""
        return self._handle.flows()

    def waits(self) -> WaitFor:
        """Who waits for whom now: vertex channel x V + VL is a queue, those behind are the spares of switches.

        A queue waits for all lanes that its first packet may take.  With a token or bubbles a knot is one until it is
        resolved; else it is a deadlock for ever.
        """
        waiter, awaited, moves = self._handle.waits()
        return WaitFor.of(waiter, awaited, len(moves), can_move=moves)


def simulate_adaptive(
    network: Network,
    traffic: Traffic,
    adaptive: Adaptive = Adaptive(),
) -> AdaptiveSimulation:
    """Set up a simulation with adaptive routing at tick 0.

    Parameters
    ----------
    network
        From :func:`routing.simulate.network.build_network`; ``vls`` there says how many VLs there are.  Its tables are
        the escape ways, and nothing else.
    traffic
        As for :func:`routing.simulate.run.simulate`.
    adaptive
        How packets choose, and what is done about deadlock.

    Raises
    ------
    OptionError
        Traffic to nowhere, a buffer that is smaller than a packet, values that cannot be, escape ways with a loop.
    KernelError
        Out of memory.

    Notes
    -----
    Virtual cut-through, a queue for each VL of each input, of which the first packet alone can go on.  Deterministic
    for a seed, and independent of the order in which events of one tick are handled.
    """
    _check_reach(network, traffic)
    return AdaptiveSimulation(network, traffic, adaptive)
