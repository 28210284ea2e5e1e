"""A simulation under way: run it to a time, look at it, change its tables, go on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.simulate import Handle
from routing.deadlock.waitfor import WaitFor
from routing.errors import KernelError, OptionError, RoutingError, TableError
from routing.numerals import number_of
from routing.simulate.bounds import whole
from routing.simulate.clock import MOST_EVENTS, Clock
from routing.simulate.network import Network
from routing.simulate.options import Breaker, Remedies, Switching, option_arrays
from routing.simulate.reach import check_routes
from routing.simulate.state import Counters, FlowCounts, Lanes, Stop, Why
from routing.simulate.traffic import FOREVER, Traffic, traffic_arrays

MOST_SL = 15


class Simulation(Clock):
    """The state of a run.  Make one with :func:`simulate`.

    Attributes
    ----------
    network, traffic, switching, remedies
        What it was made of.
    """

    _handle: Handle

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
        super().__init__(Handle(arrays, option_arrays(network, switching, remedies, traffic.mtu), flows))

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
                f"not finished ({stop.why.name.lower()}) at tick {stop.time} after {number_of(stop.events, 'event')}:"
                f" {number_of(totals['injected'], 'packet')} sent, {totals['delivered']} delivered,"
                f" {totals['dropped']} dropped, {totals['in_flight']} on their way,"
                f" the last one moved at tick {totals['last_move']}"
            )
        return stop

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
        """int64[n, 6] from row ``start`` on: tick, :class:`routing.simulate.state.Event`, and its four numbers.

        Raises
        ------
        OptionError
            ``start`` is below 0.
        """
        if not whole(start, 0, math.inf):
            raise OptionError(f"the log has no row {start}", remedy="rows count from 0")
        return self._handle.log(start)

    def packets(self) -> npt.NDArray[np.int64]:
        """int64[n, 7], packets that wait in switches.

        Flow, LID, lane, lane wanted, blocks, tick of arrival, tick at which it came to the head of its queue (or -1).
        """
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
        """Change the SL-to-VL tables of switches (CAs keep theirs).

        Raises
        ------
        TableError
            The shape is not that of the tables.
        """
        self._set("sl2vl", sl2vl)

    def set_sl(self, sl: npt.NDArray[np.uint8]) -> None:
        """Change the service levels that CAs give to packets from now on.

        Raises
        ------
        TableError
            The shape is not that of the tables, or a service level is over 15.
        """
        if int(sl.max(initial=0)) > MOST_SL:
            raise TableError(f"SL {int(sl.max())} is over {MOST_SL}")
        self._set("sl", np.atleast_2d(sl))

    def _set(self, name: str, table: npt.NDArray[np.uint8]) -> None:
        shape = getattr(self.network.arrays, name).shape
        if table.shape != shape or table.dtype != np.uint8:
            raise TableError(f"{name} is {table.dtype}{list(table.shape)}, wanted uint8{list(shape)}")
        self._handle.set_table(name, table)

    def fail_link(self, channel: int) -> int:
        """Take a link down, both directions; tables stay as they are.

        What is on it and what waits for it is lost, and from now on what comes for it, too; CAs that it connects send
        nothing.  A packet is on a link until its head has come to a switch, or its tail to a CA.  What waits of a
        breaker's messages on it is lost without being counted.

        Parameters
        ----------
        channel
            Of either direction, such as ``network.channel_between("sw1", "sw2")``.

        Returns
        -------
        int
            How many packets were lost.

        Raises
        ------
        OptionError
            There is no such channel, or it is down already.
        """
        self._check_channel(channel)
        lost = self._handle.fail(channel)
        if lost < 0:
            raise OptionError(f"{self.network.channel_name(channel)} is down already")
        return lost

    def restore_link(self, channel: int) -> None:
        """Bring a link up, both directions, with empty wires and all their credits.

        Raises
        ------
        OptionError
            There is no such channel, or it is not down.
        """
        self._check_channel(channel)
        if not self._handle.restore(channel):
            raise OptionError(f"{self.network.channel_name(channel)} is not down")

    def _check_channel(self, channel: int) -> None:
        if not whole(channel, 0, self.network.channels - 1):
            raise OptionError(f"there is no channel {channel!r}")

    def stop_flow(self, flow: int, at: int) -> None:
        """No message of the flow begins at that tick or later.

        Raises
        ------
        OptionError
            There is no such flow, or tick.
        """
        if not whole(at, 0, FOREVER):
            raise OptionError(f"there is no tick {at!r}")
        if not whole(flow, 0, len(self.traffic.flows) - 1):
            raise OptionError(f"there is no flow {flow!r}")
        self._handle.stop_flow(flow, at)


def remedies_need_distances(remedies: Remedies) -> bool:
    """Has any port a Loop Breaker?"""
    every = [remedies.port, *remedies.ports.values(), *([] if remedies.leaf is None else [remedies.leaf])]
    return any(remedy.breaker is Breaker.LOOP for remedy in every)


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
