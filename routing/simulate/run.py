"""A simulation under way: run it to a time, look at it, change its tables, go on."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from routing._kernels import simulate as kernel
from routing.deadlock.waitfor import WaitFor
from routing.errors import KernelError, OptionError, RoutingError, TableError
from routing.simulate.network import Network
from routing.simulate.options import Remedies, Switching, option_arrays
from routing.simulate.reach import check_routes
from routing.simulate.traffic import FOREVER, Traffic, traffic_arrays

MOST_EVENTS = 10_000_000_000
"""A run that has not been told a number of events ends after this many."""


class Why(enum.IntEnum):
    """Why a run stopped."""

    TIME = 0
    """It came to the time it was told."""
    FINISHED = 1
    """Everything was delivered or dropped, and nothing more is due."""
    STANDSTILL = 2
    """Packets are in the network, and no data moves: nothing ever will, or (where a run is told to stop then) only a
    limit on lifetimes or a breaker will move it."""
    EVENTS = 3
    """It came to the number of events it was told."""


class Event(enum.IntEnum):
    """What the log tells; ``a``, ``b``, ``c``, ``d`` of each."""

    HOQ_DROP = 0
    """lane, LID, input, drops in a row."""
    STALLED = 1
    """lane, until."""
    UNSTALLED = 2
    """lane."""
    SUSPECTED = 3
    """lane, its SPUID."""
    CLEARED = 4
    """lane."""
    CLCM = 5
    """lane that it is sent by, SPUID, phase, index."""
    REPLACED = 6
    """lane, the smaller SPUID that it sends from now on, lane that it came by."""
    MASTER = 7
    """lane out, lane in, SPUID, switch."""
    REROUTED = 8
    """switch, LID, new port, lane that it leaves."""
    RELEASED = 9
    """lane, lane in, packets."""
    OVERRUN = 10
    """lane, LID, blocks: a packet sent without credit found no room."""
    FOUND = 11
    """lane out, lane in, lanes of the loop, switch."""
    RULE = 12
    """lane out, lane in, blocks more."""
    RULE_END = 13
    """lane out, lane in."""
    ROUND = 14
    """lane, its new SPUID, number of the round."""


class Stop(NamedTuple):
    """Why a run stopped, at which tick, after how many events in all."""

    why: Why
    time: int
    events: int


@dataclass(frozen=True, eq=False)
class Counters:
    """Counters by channel, of the port that sends on it, under InfiniBand's names: int64[N] each.

    Attributes
    ----------
    port_xmit_data
        Octets over 4, rounded down.
    port_xmit_pkts
        Packets.
    port_xmit_wait
        Ticks with something to send and nothing sent.
    port_xmit_discards
        Packets that the port dropped, for any of the reasons below, or because the VL of the packet does not exist.
    port_sw_hoq_lifetime_limit_discards, port_sw_lifetime_limit_discards, vl_stalled_discards
        Of these: head of queue for too long, in the switch for too long, while the VL was stalled.
    buffer_overrun_errors
        Packets that came without credit and found no room at the other end.
    port_rcv_switch_relay_errors
        Packets that the other end had no way for.
    control_bytes
        Of breakers' messages.
    waiting
        Packets that wait for the channel now.
    """

    port_xmit_data: npt.NDArray[np.int64]
    port_xmit_pkts: npt.NDArray[np.int64]
    port_xmit_wait: npt.NDArray[np.int64]
    port_xmit_discards: npt.NDArray[np.int64]
    port_sw_hoq_lifetime_limit_discards: npt.NDArray[np.int64]
    port_sw_lifetime_limit_discards: npt.NDArray[np.int64]
    vl_stalled_discards: npt.NDArray[np.int64]
    buffer_overrun_errors: npt.NDArray[np.int64]
    port_rcv_switch_relay_errors: npt.NDArray[np.int64]
    control_bytes: npt.NDArray[np.int64]
    waiting: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lanes:
    """Every VL of every channel, int64[N, V] each, in blocks of 64 bytes.

    Attributes
    ----------
    fctbs, fccl
        Blocks sent since the beginning, and the limit of what may be sent (on the wire: modulo 4096).
    credits
        Their difference; below 0 where a packet was sent without.
    occupancy
        Blocks in the input buffer at the other end that have not begun to leave.
    flying, returning
        Blocks on the way to it; blocks given back that the sender does not know of yet.
    buffer
        The sum of the four, always.
    waiting
        Packets that wait for the lane at its sender.
    sent
        Tick at which the last packet's tail left.
    suspected, spuid, stalled
        Of the sending port.
    """

    fctbs: npt.NDArray[np.int64]
    fccl: npt.NDArray[np.int64]
    credits: npt.NDArray[np.int64]
    occupancy: npt.NDArray[np.int64]
    flying: npt.NDArray[np.int64]
    returning: npt.NDArray[np.int64]
    buffer: npt.NDArray[np.int64]
    waiting: npt.NDArray[np.int64]
    sent: npt.NDArray[np.int64]
    suspected: npt.NDArray[np.int64]
    spuid: npt.NDArray[np.int64]
    stalled: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FlowCounts:
    """What became of each flow, int64[F] each; latencies are sums over delivered packets, in ticks.

    Attributes
    ----------
    messages, messages_done
        Begun, delivered to their last packet.
    sent_packets, sent_bytes, packets, bytes, dropped
        Sent by the CA, delivered, dropped on the way.
    latency, network_latency, worst
        From the message's being due, and from the packet's first byte on a wire, to the last byte's arrival; the
        longest of the former.
    """

    messages: npt.NDArray[np.int64]
    sent_packets: npt.NDArray[np.int64]
    sent_bytes: npt.NDArray[np.int64]
    packets: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    dropped: npt.NDArray[np.int64]
    latency: npt.NDArray[np.int64]
    network_latency: npt.NDArray[np.int64]
    worst: npt.NDArray[np.int64]
    messages_done: npt.NDArray[np.int64]


class Simulation:
    """The state of a run.  Make one with :func:`simulate`.

    Attributes
    ----------
    network, traffic, switching, remedies
        What it was made of.
    """

    def __init__(self, network: Network, traffic: Traffic, switching: Switching, remedies: Remedies) -> None:
        self.network = network
        self.traffic = traffic
        self.switching = switching
        self.remedies = remedies
        flows = traffic_arrays(network, traffic)
        arrays = (
            network.arrays
            if remedies_need_distances(remedies)
            else replace(network.arrays, distance=np.zeros((0, 0), np.uint8))
        )
        self._handle = kernel.Handle(arrays, option_arrays(network, switching, remedies, traffic.mtu), flows)
        self._now = 0

    @property
    def now(self) -> int:
        """The tick that the run has come to."""
        return self._now

    def run(self, until: int, *, events: int = MOST_EVENTS, stop_at_standstill: bool = False) -> Stop:
        """Go on to a tick (everything of that tick has then happened).

        Parameters
        ----------
        until
            The tick, not before the present one.
        events
            Stop after about this many more events.
        stop_at_standstill
            Stop as soon as no data will move again by itself, even if limits on lifetimes or a breaker would help.

        Raises
        ------
        OptionError
            The tick is in the past.
        KernelError
            Out of memory, or the sums of packets or credits do not come out (a bug).
        """
        if not self._now <= until < FOREVER:
            raise OptionError(f"cannot run to tick {until}, it is {self._now}")
        why, time, handled = self._handle.run(until, events, stop_at_standstill=stop_at_standstill)
        self._now = max(time, 0)
        self.check()
        return Stop(Why(why), self._now, handled)

    def run_to_end(self, *, limit: int, events: int = MOST_EVENTS) -> Stop:
        """Run until all traffic is delivered.

        Raises
        ------
        RoutingError
            It is not after ``limit`` ticks or so many events, or the network stands still; the message tells the state.
        """
        stop = self.run(limit, events=events)
        if stop.why is not Why.FINISHED:
            totals = self.totals()
            raise RoutingError(
                f"not finished ({stop.why.name.lower()}) at tick {stop.time} after {stop.events} events:"
                f" {totals['injected']} packets sent, {totals['delivered']} delivered, {totals['dropped']} dropped,"
                f" {totals['in_flight']} on their way, the last one moved at tick {totals['last_move']}"
            )
        return stop

    def totals(self) -> dict[str, int]:
        """Sums over everything, by the names in ``routing._kernels.simulate.TOTALS``."""
        return self._handle.totals()

    def check(self) -> None:
        """Raise KernelError unless every packet and every block of credit is accounted for.

        Sent = delivered + dropped + on the way; credits + occupancy + flying + returning = buffer on every lane; and
        the packets that stand in queues hold the blocks that buffers say are held.
        """
        totals = self.totals()
        lost = totals["injected"] - totals["delivered"] - totals["dropped"] - totals["in_flight"]
        if lost or totals["broken_lanes"] or totals["misplaced_blocks"]:
            raise KernelError(
                f"the simulation lost count at tick {totals['now']}: {lost} packets, {totals['broken_lanes']} lanes,"
                f" {totals['misplaced_blocks']} blocks"
            )

    def counters(self) -> Counters:
        """Counters of every channel so far."""
        rows = self._handle.channels()
        rows[:, 0] //= 4
        return Counters(*rows.T)

    def lanes(self) -> Lanes:
        """Credits and buffers of every VL of every channel now."""
        return Lanes(*np.moveaxis(self._handle.lanes(), 2, 0))

    def flows(self) -> FlowCounts:
        """What became of every flow so far."""
        return FlowCounts(*self._handle.flows().T)

    def log(self, start: int = 0) -> npt.NDArray[np.int64]:
        """int64[n, 6] from row ``start`` on: tick, :class:`Event`, and four numbers that mean what that says."""
        return self._handle.log(start)

    def packets(self) -> npt.NDArray[np.int64]:
        """int64[n, 6], packets that wait in switches: flow, LID, lane, lane wanted, blocks, tick of arrival."""
        return self._handle.packets()

    def waits(self) -> WaitFor:
        """Who waits for whom now, by lane (channel x V + VL); ``.deadlocks`` of it are exact.

        A lane waits for another if its buffer has a packet in front of a queue that will not fit the other's credits
        even when all that are on their way have come.  A lane can move if its buffer is empty, if something is on the
        way to it, or if a packet in front of one of its queues can go.
        """
        waiter, awaited, can_move = self._handle.waits()
        return WaitFor.of(waiter, awaited, len(can_move), can_move=can_move)

    def lft(self) -> npt.NDArray[np.uint8]:
        """uint8[S, L], the forwarding tables now (Loop Breaker may have changed them)."""
        return self._handle.lft()

    def set_lft(self, lft: npt.NDArray[np.uint8]) -> None:
        """From now on, heads that arrive are forwarded by these tables; packets in queues stay where they are.

        Raises
        ------
        TableError
            The shape is not that of the tables.
        """
        self._set("lft", lft)

    def set_sl2vl(self, sl2vl: npt.NDArray[np.uint8]) -> None:
        """Change the SL-to-VL tables of switches (CAs keep theirs)."""
        self._set("sl2vl", sl2vl)

    def set_sl(self, sl: npt.NDArray[np.uint8]) -> None:
        """Change the service levels that CAs give to packets from now on."""
        self._set("sl", np.atleast_2d(sl))

    def _set(self, name: str, table: npt.NDArray[np.uint8]) -> None:
        shape = getattr(self.network.arrays, name).shape
        if table.shape != shape or table.dtype != np.uint8:
            raise TableError(f"{name} is {table.dtype}{list(table.shape)}, wanted uint8{list(shape)}")
        self._handle.set_table(name, table)

    def stop_flow(self, flow: int, at: int) -> None:
        """No message of the flow begins at that tick or later."""
        if not 0 <= flow < len(self.traffic.flows):
            raise OptionError(f"there is no flow {flow}")
        self._handle.stop_flow(flow, at)


def remedies_need_distances(remedies: Remedies) -> bool:
    """Has any port a Loop Breaker?"""
    every = [remedies.port, *remedies.ports.values(), *([] if remedies.leaf is None else [remedies.leaf])]
    return any(remedy.breaker == 1 for remedy in every)


def simulate(
    network: Network,
    traffic: Traffic,
    *,
    switching: Switching = Switching(),  # noqa: B008
    remedies: Remedies = Remedies(),  # noqa: B008
) -> Simulation:
    """Set up a simulation at tick 0.

    Parameters
    ----------
    network
        From :func:`routing.simulate.network.build_network`.
    traffic
        Its flows have to be deliverable by the tables.
    switching, remedies
        How switches behave.

    Raises
    ------
    OptionError
        Traffic to nowhere, a buffer that is smaller than a packet, values that cannot be.
    TableError
        The tables loop, or have no way, for a pair that sends.
    KernelError
        Out of memory.

    Notes
    -----
    Event-driven, a packet at a time, virtual cut-through; deterministic for a seed, and independent of the order in
    which events of one tick are handled.  About 3 events a packet and channel.
    """
    simulation = Simulation(network, traffic, switching, remedies)
    check_routes(network, traffic)
    return simulation
