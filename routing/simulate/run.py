"""Simulate packets: run a simulation, read its state, and check the accounts of packets and credits.

A caller runs the simulation to a tick, reads its state, changes its tables, and continues.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.simulate import FLOW_FIELDS, Handle
from routing.deadlock.waitfor import Knot, WaitFor
from routing.errors import KernelError, OptionError, RoutingError, TableError
from routing.numerals import count_noun
from routing.simulate.bounds import is_int_in
from routing.simulate.latency import Latencies
from routing.simulate.mechanisms.base import Mechanism, with_mechanisms
from routing.simulate.network import Network
from routing.simulate.options import Breaker, Remedies, Switching, frees_knots, option_arrays
from routing.simulate.reach import check_routes
from routing.simulate.state import Counters, FlowCounts, RunResult, StopReason, VirtualChannels
from routing.simulate.traffic import FOREVER, Traffic, traffic_arrays

MOST_EVENTS = 10_000_000_000
"""Largest number of events of one run if the caller gives no limit."""
MOST_SL = 15
MOST_LOOP = 64
"""Largest number of virtual channels of a loop that Deadlock Breaker can find.  A control message cannot list more."""


class Simulation:
    """Simulation of packets.  :func:`simulate` makes a simulation in which switches forward packets by LFTs.

    Attributes
    ----------
    network, traffic, switching, remedies, mechanisms
        Arguments of :func:`simulate`.
    """

    def __init__(
        self,
        network: Network,
        traffic: Traffic,
        switching: Switching,
        remedies: Remedies,
        mechanisms: Sequence[Mechanism] = (),
    ) -> None:
        self.network = network
        self.traffic = traffic
        self.switching = switching
        self.remedies = remedies
        self.mechanisms = tuple(mechanisms)
        if has_breaker(remedies, Breaker.LOOP):
            self._check_tables_may_change()
        flows = traffic_arrays(network, traffic)
        arrays = (
            network.arrays
            if has_breaker(remedies, Breaker.LOOP)
            else replace(network.arrays, distance=np.zeros((0, 0), np.uint8))
        )
        options = option_arrays(network, switching, remedies, traffic.mtu)
        self._drops, self._breaks = options.hoq > 0, frees_knots(network.arrays, options)
        self._most_room = network.arrays.buffer + options.extra[:, np.newaxis]
        self._handle = Handle(arrays, with_mechanisms(options, self.mechanisms, network, traffic), flows)
        self._now = 0

    @property
    def now(self) -> int:
        """Return the present tick of the simulation."""
        return self._now

    def run(self, until: int, *, events: int = MOST_EVENTS, stop_at_standstill: bool = False) -> RunResult:
        """Run the simulation to a given tick, including all events of that tick.

        Parameters
        ----------
        until
            Last tick of the run, not before the present tick.
        events
            Approximate number of events after which the run stops.
        stop_at_standstill
            Whether to stop as soon as no data can move any more by itself.  The run then stops even if a lifetime
            limit, a deadlock breaker or a recovery scheme might make data move again later.

        Raises
        ------
        OptionError
            The tick is in the past, or the number of events is negative.
        KernelError
            Out of memory, or the accounts of packets or credits are inconsistent (a bug).
        """
        if not is_int_in(until, self._now, FOREVER - 1):
            raise OptionError(f"cannot run to tick {until!r}, it is {self._now}")
        if not is_int_in(events, 0, FOREVER - 1):
            raise OptionError(f"cannot stop after {events} more events", remedy="use 0 or more")
        why, time, handled = self._handle.run(until, events, stop_at_standstill=stop_at_standstill)
        self._now = max(time, 0)
        self.check()
        return RunResult(StopReason(why), self._now, handled)

    def totals(self) -> dict[str, int]:
        """Return the counters of the whole simulation, such as packets delivered, by name.

        The constant ``TOTALS`` of ``routing._kernels.simulate`` lists the names.
        """
        return self._handle.totals()

    def latencies(self) -> Latencies:
        """Return the latencies of all packets and messages that were delivered so far."""
        packets, messages = self._handle.latencies()
        return Latencies(packets, messages)

    def latency_sum(self) -> int:
        """Return the sum of the latencies of all packets that were delivered so far, in ticks."""
        return int(self._handle.flows()[:, FLOW_FIELDS.index("latency")].sum())

    def run_to_end(self, *, limit: int, events: int = MOST_EVENTS) -> RunResult:
        """Run until all traffic is delivered.  Otherwise raise an error.

        Raises
        ------
        RoutingError
            The traffic is not delivered by tick ``limit`` or within ``events`` events, or no packet can move any more.
            The message contains the numbers of packets that were sent, delivered and dropped so far, and of packets in
            the fabric.
        """
        stop = self.run(limit, events=events)
        if stop.reason is not StopReason.FINISHED:
            totals = self.totals()
            raise RoutingError(
                f"not finished ({stop.reason.name.lower()}) at tick {stop.time}"
                f" after {count_noun(stop.events, 'event')}:"
                f" {count_noun(totals['injected'], 'packet')} sent, {totals['delivered']} delivered,"
                f" {totals['dropped']} dropped, {totals['in_flight']} on their way,"
                f" the last one moved at tick {totals['last_move']}"
            )
        return stop

    def check(self) -> None:
        """Raise KernelError unless every packet and every block of credit is accounted for.

        Three sums are checked.  Packets: sent = delivered + dropped + in flight.  Blocks of every virtual channel:
        credits + blocks in the buffer + blocks on the wire + credits on the wire = buffer size.  The sum of the blocks
        in all buffers is the size of all packets in queues.
        """
        totals = self.totals()
        lost = totals["injected"] - totals["delivered"] - totals["dropped"] - totals["in_flight"]
        if lost or totals["broken_vcs"] or totals["misplaced_blocks"]:
            raise KernelError(
                f"the simulation lost count at tick {totals['now']}: {lost} packets,"
                f" {totals['broken_vcs']} virtual channels,"
                f" {totals['misplaced_blocks']} blocks"
            )

    def counters(self) -> Counters:
        """Return the counters of all channels of the simulation."""
        rows = self._handle.channels()
        rows[:, 0] //= 4
        return Counters(*rows.T)

    def virtual_channels(self) -> VirtualChannels:
        """Return the present credits and input buffer of every VL of every channel."""
        return VirtualChannels(*np.moveaxis(self._handle.virtual_channels(), 2, 0))

    def flows(self) -> FlowCounts:
        """Return the counters of all flows of the simulation."""
        return FlowCounts(*self._handle.flows().T)

    def log(self, start: int = 0) -> npt.NDArray[np.int64]:
        """Return the event log from row ``start`` on: int64[n, 6].

        Columns: tick, kind of event (:class:`routing.simulate.state.Event`), and the four numbers of the event.

        Raises
        ------
        OptionError
            ``start`` is below 0.
        """
        if not is_int_in(start, 0, math.inf):
            raise OptionError(f"the log has no row {start}", remedy="rows count from 0")
        return self._handle.log(start)

    def packets(self) -> npt.NDArray[np.int64]:
        """Return the packets that are queued in switches, without packets in spare buffers: int64[n, 7].

        Columns: flow, LID, virtual channel whose buffer holds the packet, virtual channel for which it is queued,
        blocks, tick of arrival, tick at which the packet became the head of its queue (-1: it is not the head).
        """
        return self._handle.packets()

    def wait_graph(self) -> WaitFor:
        """Return the present wait-for graph of the virtual channels (channel x V + VL).

        A virtual channel A waits for a virtual channel B if the head packet of a queue in A's buffer lacks credits of
        B.  Credits on the wire to B's sender count as present.  A can move if its buffer is empty, if packets are on
        the wire to this buffer, or if the head packet of one of its queues can be sent.
        """
        waiter, awaited, can_move = self._handle.wait_graph()
        return WaitFor.of(waiter, awaited, len(can_move), can_move=can_move)

    def permanent_waits(self) -> WaitFor:
        """Return the present wait-for graph.  The members of a knot that a remedy will end count as able to move.

        A lifetime limit of the switches ends each knot.  A HOQLife limit ends a knot if the sending port of any channel
        of the knot has this limit.  The method assumes that Deadlock Breaker ends a knot under three conditions.
        Deadlock Breaker works at the sending ports of all channels of the knot.  The knot has at most ``MOST_LOOP``
        virtual channels.  The added room lets at least one head packet advance.
        """
        graph = self.wait_graph()
        can_move = graph.can_move.copy()
        for knot in graph.deadlocks:
            channels = np.asarray(knot.members) // self.network.vls
            breaks = len(channels) <= MOST_LOOP and self._breaks[channels].all() and self._has_room(knot)
            can_move[list(knot.members)] = self.remedies.lifetime > 0 or breaks or self._drops[channels].any()
        return replace(graph, can_move=can_move)

    def _has_room(self, knot: Knot) -> bool:
        """Return whether a head packet of a knot fits into a buffer of the knot once Deadlock Breaker adds room."""
        packets = self.packets()
        heads = packets[(packets[:, 6] >= 0) & np.isin(packets[:, 2], knot.members)]
        room = (self._most_room - self.virtual_channels().occupancy).ravel()
        return bool((heads[:, 4] <= room[heads[:, 3]]).any())

    def deadlocks(self) -> tuple[Knot, ...]:
        """Return the knots of the present wait-for graph that no remedy ends, see :meth:`permanent_waits`."""
        return self.permanent_waits().deadlocks

    def lft(self) -> npt.NDArray[np.uint8]:
        """Return the present forwarding tables, uint8[S, L].  Loop Breaker may have changed them."""
        return self._handle.lft()

    def set_lft(self, lft: npt.NDArray[np.uint8]) -> None:
        """Replace the forwarding tables during the simulation.

        Packets whose heads arrive at a switch later use the new tables.  Queued packets keep their output.

        Raises
        ------
        OptionError
            A mechanism of the simulation requires that tables do not change (``Mechanism.keeps_tables``).
        TableError
            The new tables have another shape than the present tables.
        """
        self._set("lft", lft)

    def set_sl2vl(self, sl2vl: npt.NDArray[np.uint8]) -> None:
        """Replace the SL2VL tables of the switches during the simulation.  CAs keep their tables.

        Raises
        ------
        OptionError
            A mechanism of the simulation requires that tables do not change (``Mechanism.keeps_tables``).
        TableError
            The new tables have another shape than the present tables.
        """
        self._set("sl2vl", sl2vl)

    def set_sl(self, sl: npt.NDArray[np.uint8]) -> None:
        """Replace the SLs that CAs put into packets from now on.

        Raises
        ------
        OptionError
            A mechanism of the simulation requires that tables do not change (``Mechanism.keeps_tables``).
        TableError
            The new table has another shape than the present table, or an SL is over 15.
        """
        if int(sl.max(initial=0)) > MOST_SL:
            raise TableError(f"SL {int(sl.max())} is over {MOST_SL}")
        self._set("sl", np.atleast_2d(sl))

    def _check_tables_may_change(self) -> None:
        kept = [mechanism.name for mechanism in self.mechanisms if mechanism.keeps_tables]
        if kept:
            raise OptionError(f"tables cannot change beside {kept[0]}", remedy=f"simulate without {kept[0]}")

    def _set(self, name: str, table: npt.NDArray[np.uint8]) -> None:
        self._check_tables_may_change()
        shape = getattr(self.network.arrays, name).shape
        if table.shape != shape or table.dtype != np.uint8:
            raise TableError(f"{name} is {table.dtype}{list(table.shape)}, wanted uint8{list(shape)}")
        self._handle.set_table(name, table)

    def fail_link(self, channel: int) -> int:
        """Take both directions of a link down.  The tables are not changed.

        Packets on the link and packets queued for the link are lost, and so are packets that arrive for the link later.
        CAs at the link cannot send.  A packet is on a link to a switch until its head arrives, and on a link to a CA
        until its tail arrives.
        Control messages of deadlock breakers on the link are lost without being counted.

        Parameters
        ----------
        channel
            Channel of either direction, such as ``network.channel_between("sw1", "sw2")``.

        Returns
        -------
        int
            Number of packets lost.

        Raises
        ------
        OptionError
            There is no such channel, or its link is down already.
        """
        self._check_channel(channel)
        lost = self._handle.fail(channel)
        if lost < 0:
            raise OptionError(f"{self.network.channel_name(channel)} is down already")
        return lost

    def restore_link(self, channel: int) -> None:
        """Bring both directions of a failed link up again.  Then the link is empty, and its senders have all credits.

        Raises
        ------
        OptionError
            There is no such channel, or its link is not down.
        """
        self._check_channel(channel)
        if not self._handle.restore(channel):
            raise OptionError(f"{self.network.channel_name(channel)} is not down")

    def _check_channel(self, channel: int) -> None:
        if not is_int_in(channel, 0, self.network.channels - 1):
            raise OptionError(f"there is no channel {channel!r}")

    def command(self, mechanism: Mechanism, numbers: npt.NDArray[np.int64]) -> None:
        """Give a command to an attached mechanism.  The class of the mechanism defines the numbers of its commands."""
        self._handle.command(self._index(mechanism), numbers)

    def results_of(self, mechanism: Mechanism) -> npt.NDArray[np.int64]:
        """Return the results of an attached mechanism.  The class of the mechanism defines their meaning."""
        return self._handle.mechanism_results(self._index(mechanism))

    def _index(self, mechanism: Mechanism) -> int:
        names = [one.name for one in self.mechanisms]
        if mechanism.name not in names:
            raise OptionError(f"the simulation has no mechanism {mechanism.name!r}", remedy="attach it at the start")
        return names.index(mechanism.name)

    def stop_flow(self, flow: int, at: int) -> None:
        """Stop a flow: from tick ``at`` on, it begins no further message.

        Raises
        ------
        OptionError
            There is no such flow, or the tick is out of range.
        """
        if not is_int_in(at, 0, FOREVER):
            raise OptionError(f"there is no tick {at!r}")
        if not is_int_in(flow, 0, len(self.traffic.flows) - 1):
            raise OptionError(f"there is no flow {flow!r}")
        self._handle.stop_flow(flow, at)


def has_breaker(remedies: Remedies, *kinds: Breaker) -> bool:
    """Return whether any port has a deadlock breaker of one of the kinds ``kinds``.

    A caller can ask for Loop Breaker alone, because only Loop Breaker changes LFT entries, and needs hop counts to find
    other shortest paths.
    """
    every = [remedies.port, *remedies.ports.values(), *([] if remedies.leaf is None else [remedies.leaf])]
    return any(remedy.breaker in kinds for remedy in every)


def simulate(
    network: Network,
    traffic: Traffic,
    *,
    switching: Switching = Switching(),  # noqa: B008
    remedies: Remedies = Remedies(),  # noqa: B008
    mechanisms: Sequence[Mechanism] = (),
) -> Simulation:
    """Set up a simulation at tick 0 in which switches forward packets by LFTs.

    Parameters
    ----------
    network
        Network from :func:`routing.simulate.network.build_network`.
    traffic
        Flows, all of which the tables must deliver.
    switching, remedies
        Options of the switches, and settings for packets that cannot move.
    mechanisms
        Optional parts of the simulation (:mod:`routing.simulate.mechanisms`).

    Raises
    ------
    OptionError
        A destination does not exist, a buffer is smaller than a packet, or a value is out of range.
    TableError
        The tables have no path or a forwarding loop for a pair that sends.
    KernelError
        Out of memory.

    Notes
    -----
    The simulation is event-driven, packet by packet, with virtual cut-through switching.  The result depends only on
    the arguments and the seed, not on the order in which the events of one tick are handled.  Cost: about 3 events for
    each packet and channel.
    """
    simulation = Simulation(network, traffic, switching, remedies, mechanisms)
    check_routes(network, traffic)
    return simulation
