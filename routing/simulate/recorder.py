"""Run a simulation of a scenario in steps, perform its planned actions, and record time series."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from routing.simulate.case_output import Series
from routing.simulate.network import BLOCK
from routing.simulate.plan import Plan
from routing.simulate.run import Simulation
from routing.simulate.state import StopReason


def by_name(plan: Plan, of_flows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the sum of a counter over all flows of each name in ``plan.names``: int64[names].

    ``of_flows`` is the counter of each flow, int64[F].
    """
    return np.bincount(plan.owner, of_flows, len(plan.names)).astype(np.int64)


@dataclass(eq=False)
class Recorder:
    """Run a simulation step by step, perform planned actions (such as writing tables), and record time series.

    Attributes
    ----------
    simulation, plan
        The simulation, and the plan that lists its actions.
    packet
        Length of a packet time in ticks.
    channels
        Channels whose buffers are recorded.
    time
        Time of each recorded point, in packet times.
    buffers, taken
        Blocks at each recorded point, by channel.  ``buffers`` has the blocks of data in the input buffer.  ``taken``
        has the size of the buffer minus the credits that the sender has.  So ``taken`` also counts blocks whose data or
        credit is still on its way over the link.
    got
        Bytes delivered so far at each point, by name of flows.
    """

    simulation: Simulation
    plan: Plan
    packet: int
    channels: list[int]
    time: list[float] = field(default_factory=list)
    buffers: list[npt.NDArray[np.int64]] = field(default_factory=list)
    taken: list[npt.NDArray[np.int64]] = field(default_factory=list)
    got: list[npt.NDArray[np.int64]] = field(default_factory=list)
    delivered: list[tuple[int, int]] = field(default_factory=list)
    """Packets delivered so far and the sum of their latencies, at each point."""
    knots: int = 0
    """Number of points at which a deadlocked knot exists.  It is counted only in runs with a change of tables."""
    left: list[int] = field(default_factory=list)
    """Number of packets in flight to the LIDs that should be drained, for each action that requires drained LIDs."""
    done: int = 0
    """Number of planned actions performed so far."""

    def sample(self) -> None:
        """Record the present state as one point of the time series."""
        now = self.simulation.now / self.packet
        if self.time and self.time[-1] == now:
            return  # Throughput is bytes divided by the time between two points, which must not be 0.
        self.time.append(now)
        vcs = self.simulation.virtual_channels()
        self.buffers.append(vcs.occupancy[self.channels].sum(axis=1))
        self.taken.append((vcs.buffer - vcs.credits)[self.channels].sum(axis=1))
        flows = self.simulation.flows()
        self.got.append(by_name(self.plan, flows.bytes))
        self.delivered.append((int(flows.packets.sum()), int(flows.latency.sum())))
        self.knots += self.plan.change is not None and bool(self.simulation.wait_graph().deadlocks)

    def run(self, until: int, step: int) -> None:
        """Run to a tick in steps.  Perform the actions that are due, and record a point after each step.

        ``until`` is the last tick of the run, and ``step`` the number of ticks of a step.
        """
        self.sample()
        for action in self.plan.actions[self.done :]:
            if action.tick > until:
                break
            self._steps(action.tick, step)
            if action.drained is not None:
                self.left.append(self._in_flight(action.drained))
            action.do(self.simulation)
            self.done += 1
        self._steps(until, step)

    def _steps(self, until: int, step: int) -> None:
        """Run to a tick in steps, and record a point after each step.  Stop early if all traffic is delivered."""
        while self.simulation.now < until:
            stop = self.simulation.run(min(self.simulation.now + step, until))
            self.sample()
            if stop.reason is StopReason.FINISHED:
                return

    def _in_flight(self, lids: npt.NDArray[np.bool_]) -> int:
        """Return the number of packets in flight to the LIDs that ``lids`` (bool[L]) marks.

        Of a flow that sends both to marked LIDs and to other LIDs, only packets that are queued in switches are
        counted.
        """
        if lids.all():
            return self.simulation.totals()["in_flight"]
        counts = self.simulation.flows()
        out, queued = counts.sent_packets - counts.packets - counts.dropped, self.simulation.packets()
        found = 0
        for number, flow in enumerate(self.plan.traffic.flows):
            meant = lids[list(flow.destinations)]
            # If ``lids`` marks only some destinations of a flow, each packet of the flow has to be checked for its LID.
            # The simulation states the LIDs of queued packets only, so packets on the wire are not counted.
            mixed = meant.any() and not meant.all()
            found += int(lids[queued[queued[:, 0] == number, 1]].sum() if mixed else out[number] * meant.any())
        return found

    def shares(self) -> npt.NDArray[np.float64]:
        """Return the throughput of each named flow between consecutive points, as a fraction of a link's rate.

        The result is float64[n, names] for n points.  Row i covers the time from point i - 1 to point i.
        """
        time, got = np.asarray(self.time), np.asarray(self.got, float)
        elapsed = np.maximum(np.diff(time, prepend=time[:1] - 1), 1e-9) * self.packet * BLOCK
        return np.asarray(np.diff(got, axis=0, prepend=got[:1]) / elapsed[:, None])

    def series(self) -> Series:
        """Return the recorded buffers and throughputs as series for a chart."""
        network, shares = self.simulation.network, self.shares()
        rooms = np.asarray(self.buffers, float) / self.packet
        inside = [n for n, c in enumerate(self.channels) if network.arrays.src[c] < network.arrays.switches]
        return Series(
            np.asarray(self.time),
            {network.channel_name(self.channels[n]): rooms[:, n] for n in inside or range(len(self.channels))},
            {name: shares[:, n] for n, name in enumerate(self.plan.names)},
        )
