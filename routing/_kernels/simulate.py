"""Kernel wrapper: simulate packets."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, pointer
from routing._kernels.simulation_arrays import (
    ADAPTIVE,
    LATENCY_BUCKETS,
    Ints,
    NetworkArrays,
    OptionArrays,
    TrafficArrays,
)
from routing.errors import KernelError

TOTALS = (
    "now", "injected", "delivered", "dropped", "in_flight", "hops", "events", "last_move", "injected_bytes",
    "delivered_bytes", "dropped_bytes", "broken_vcs", "misplaced_blocks", "logged", "log_lost", "moving",
)  # fmt: skip
CHANNEL_COUNTERS = (
    "xmit_bytes", "xmit_pkts", "xmit_wait", "xmit_discards", "hoq_discards", "lifetime_discards", "stalled_discards",
    "overrun_errors", "relay_errors", "control_bytes", "link_down_discards", "waiting",
)  # fmt: skip
VC_FIELDS = (
    "fctbs", "fccl", "credits", "occupancy", "flying", "returning", "buffer", "waiting", "sent", "suspected", "spuid",
    "stalled", "paused", "pauses",
)  # fmt: skip
FLOW_FIELDS = (
    "messages", "sent_packets", "sent_bytes", "packets", "bytes", "dropped", "latency", "network_latency", "worst",
    "messages_done",
)  # fmt: skip
LOG_FIELDS = ("time", "kind", "a", "b", "c", "d")
PACKET_FIELDS = ("flow", "lid", "vc", "out_vc", "blocks", "since", "headed")


def fill_struct(struct: Any, arrays: object) -> list[npt.NDArray[Any]]:
    """Copy each attribute of a dataclass to the field of a C struct that has the attribute's name.

    The struct gets pointers to arrays.  These arrays are returned, and the caller has to keep them as long as the
    struct is used.
    """
    kept = []
    for field in fields(arrays):  # type: ignore[arg-type]
        value = getattr(arrays, field.name)
        if isinstance(value, np.ndarray):
            value = np.ascontiguousarray(value)
            kept.append(value)
            value = pointer(value if value.size else None)
        setattr(struct, field.name, value)
    return kept


class Handle:
    """Handle to a simulation in the C kernel; the simulation is freed together with this object.

    Raises
    ------
    KernelError
        Out of memory, or unknown mechanism.
    """

    def __init__(self, network: NetworkArrays, options: OptionArrays, traffic: TrafficArrays) -> None:
        net, what = ffi.new("ibn_sim_network *"), ffi.new("ibn_sim_traffic *")
        how = ffi.new("ibn_simulate_options *")
        kept = fill_struct(net, network) + fill_struct(how, options) + fill_struct(what, traffic)
        net.channels, net.lids, net.sl_rows = len(network.src), network.lft.shape[1], len(network.sl)
        net.sl2vl_ports = network.sl2vl.shape[1] if network.sl2vl.ndim > 1 else 0
        how.arbiters, how.mechanisms = len(options.vlarb), len(options.mechanism_names)
        what.flows, what.listed, what.traced = len(traffic.numbers), len(traffic.lists), len(traffic.trace)
        made = ffi.new("ibn_sim **")
        check(lib.ibn_simulate_new(net, how, what, made))
        del kept
        self._sim = ffi.gc(made[0], lib.ibn_simulate_free)
        self._channels, self._vls, self._flows = len(network.src), network.vls, len(traffic.numbers)
        # The wait-for graph has a vertex for each virtual channel.  If switches are adaptive, each of the two spare
        # buffers of each switch is a vertex, too.
        adaptive = ADAPTIVE in (bytes(name).rstrip(b"\0") for name in options.mechanism_names)
        self._vertices = len(network.src) * network.vls + (2 * network.switches if adaptive else 0)
        self._tables = {"lft": network.lft.shape, "sl2vl": network.sl2vl.shape, "sl": network.sl.shape}

    def run(self, until: int, events: int, *, stop_at_standstill: bool) -> tuple[int, int, int]:
        """Run the simulation to tick ``until``, or for about ``events`` more events.

        At a standstill, packets are in flight, but no pending event can move data.  With ``stop_at_standstill``, the
        run ends there.

        Returns
        -------
        reason
            0: the tick was reached, 1: all traffic was delivered or lost, 2: standstill, 3: the number of events was
            reached.
        tick
            Present tick.
        handled
            Number of events handled since the start of the simulation.
        """
        report = np.zeros(3, np.int64)
        position = pointer(report)
        check(lib.ibn_simulate_run(self._sim, until, events, int(stop_at_standstill), position))
        return int(report[0]), int(report[1]), int(report[2])

    def _rows(self, name: str, count: int, names: tuple[str, ...]) -> Ints:
        rows = np.zeros((count, len(names)), np.int64)
        getattr(lib, f"ibn_simulate_{name}")(self._sim, pointer(rows))
        return rows

    def totals(self) -> dict[str, int]:
        """Return the counters of the whole simulation, such as packets delivered, by name (``TOTALS``)."""
        return dict(zip(TOTALS, self._rows("totals", 1, TOTALS)[0].tolist(), strict=True))

    def latencies(self) -> Ints:
        """Return int64[2, 2048]: number of packets, and of messages, with a latency in each bucket.

        Row 0 is for packets, row 1 for messages.  Each latency below 64 ticks has its own bucket.  From 64 ticks on,
        each power of two is divided into 32 buckets of equal width.
        """
        buckets = np.zeros((2, LATENCY_BUCKETS), np.int64)
        lib.ibn_simulate_latencies(self._sim, pointer(buckets))
        return buckets

    def channels(self) -> Ints:
        """Return the counters of all channels: int64[N, ...], with the columns ``CHANNEL_COUNTERS``."""
        return self._rows("channels", self._channels, CHANNEL_COUNTERS)

    def virtual_channels(self) -> Ints:
        """Return int64[N, V, ...], the state of each VL of each of N channels, with the columns ``VC_FIELDS``."""
        rows = self._rows("vcs", self._channels * self._vls, VC_FIELDS)
        return rows.reshape(self._channels, self._vls, -1)

    def flows(self) -> Ints:
        """Return the counters of all flows: int64[F, ...], with the columns ``FLOW_FIELDS``."""
        return self._rows("flows", self._flows, FLOW_FIELDS)

    def wait_graph(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """Return the present wait-for graph.  Each vertex stands for a buffer, such as the buffer of a virtual channel.

        Returns
        -------
        waiter, awaited
            int32[n] each, for n edges.  The packets in buffer ``waiter`` wait for room in buffer ``awaited``.
        can_move
            bool[vertices]: whether the packets in each buffer can make progress.
        """
        moves = np.zeros(self._vertices, np.uint8)
        can_move = pointer(moves)
        count = lib.ibn_simulate_wait_edges(self._sim, 0, ffi.NULL, ffi.NULL, can_move)
        waiter, awaited = np.zeros(count, np.int32), np.zeros(count, np.int32)
        positions = pointer(waiter), pointer(awaited)
        lib.ibn_simulate_wait_edges(self._sim, count, *positions, can_move)
        return waiter, awaited, moves.astype(bool)

    def log(self, start: int = 0) -> Ints:
        """Return the rows of the log from row ``start`` on: int64[n, 6], with the columns ``LOG_FIELDS``.

        The log records drops of packets, actions of deadlock breakers, and link faults.

        Raises
        ------
        KernelError
            ``start`` is below 0.
        """
        logged = self.totals()["logged"]
        start = min(start, logged)
        rows = np.zeros((logged - start, len(LOG_FIELDS)), np.int64)
        there = lib.ibn_simulate_log(self._sim, start, len(rows), pointer(rows))
        if there != len(rows):
            raise KernelError(f"kernel failed: no {len(rows)} rows of a log of {logged} from {start} on")
        return rows

    def packets(self) -> Ints:
        """Return one row for each packet that is queued in a switch: int64[n, 7], columns ``PACKET_FIELDS``."""
        rows = np.zeros((lib.ibn_simulate_packets(self._sim, 0, ffi.NULL), len(PACKET_FIELDS)), np.int64)
        lib.ibn_simulate_packets(self._sim, len(rows), pointer(rows))
        return rows

    def lft(self) -> npt.NDArray[np.uint8]:
        """Return the present forwarding tables, uint8[S, L], which Loop Breaker may have changed."""
        lft = np.zeros(self._tables["lft"], np.uint8)
        lib.ibn_simulate_get_lft(self._sim, pointer(lft))
        return lft

    def set_table(self, name: str, table: npt.NDArray[np.uint8]) -> None:
        """Replace a table of the simulation (``name``: ``lft``, ``sl2vl`` or ``sl``) by a table of equal shape."""
        if table.shape != self._tables[name]:
            raise TypeError(f"{name} has to be {self._tables[name]}, got {table.shape}")
        table = np.ascontiguousarray(table)
        getattr(lib, f"ibn_simulate_set_{name}")(self._sim, pointer(table))

    def fail(self, channel: int) -> int:
        """Fail a link in the simulation: take both of its directions down.

        Returns the number of packets lost, or -1 if the link is down already.
        """
        return int(lib.ibn_simulate_fail(self._sim, channel))

    def restore(self, channel: int) -> bool:
        """Restore a failed link in the simulation: bring both of its directions up.  Returns False if the link is not
        down.
        """
        return int(lib.ibn_simulate_restore(self._sim, channel)) == 0

    def stop_flow(self, flow: int, at: int) -> None:
        """Stop a flow: from tick ``at`` on, the flow begins no further message."""
        lib.ibn_simulate_stop_flow(self._sim, flow, at)

    def command(self, mechanism: int, numbers: Ints) -> None:
        """Give a command to an attached mechanism.  ``mechanism`` is the index of the mechanism, and ``numbers`` is the
        command.
        """
        lib.ibn_simulate_command(self._sim, mechanism, pointer(np.ascontiguousarray(numbers)), len(numbers))

    def mechanism_results(self, mechanism: int) -> Ints:
        """Return the results of the attached mechanism with index ``mechanism``."""
        numbers = np.zeros(lib.ibn_simulate_read(self._sim, mechanism, 0, ffi.NULL), np.int64)
        lib.ibn_simulate_read(self._sim, mechanism, len(numbers), pointer(numbers))
        return numbers
