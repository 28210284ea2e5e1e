"""Common base of the wrappers of both simulation kernels: network and traffic as arrays, and the handle to a
simulation.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, pointer
from routing.errors import KernelError

FLOW_NUMBERS = (
    "channel", "index", "process", "pattern", "list", "count", "self", "hot_list", "hot_count", "bytes", "mtu",
    "sl_row", "start", "stop", "messages", "slot", "window",
)  # fmt: skip
FLOW_REALS = ("mean", "factor", "burst", "gap", "hot", "spare")

LATENCY_BUCKETS = 2048
"""Number of buckets of a histogram of latencies (``IBN_LATENCY_BUCKETS`` of the kernel)."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NetworkArrays:
    """Channels, sorted by sending device and out-port, and routing tables, as arrays for the simulation kernels.

    There are N channels, V VLs and N x V virtual channels.

    Attributes
    ----------
    devices, switches, vls
        Number of devices; number S of switches, which are the first devices; number V of VLs.
    src, dst, reverse, wire
        int32[N] each: device that sends; device that receives; channel of the same link in the opposite direction;
        ticks from one end of the cable to the other.
    src_port, dst_port
        uint8[N] each: port number at the sender, port number at the receiver.
    cost
        int64[N]: ticks that a byte takes, times 2^20.
    buffer
        int32[N, V]: size of the receiver's buffer for each VL, in blocks of 64 bytes.
    switch_delay
        int32[devices]: ticks from the arrival of a packet's head until the device can forward the packet.
    lft
        uint8[S, L]: out-port by switch and destination LID.
    sl2vl
        uint8[16] or uint8[S, P, P, 16]: VL by SL, or by switch, in-port, out-port and SL.
    ca_sl2vl
        uint8[16]: VL that CAs assign to each SL.
    sl
        uint8[R, L]: SL of a packet, by row (of R rows) and destination LID.  Each flow has the number of its row.
    distance
        uint8[S, S]: hops between switches; uint8[0, 0] if no port has a Loop Breaker.
    lid_switch, lid_device
        int32[L] each: switch that delivers each LID, and device that owns each LID; -1: there is none.
    """

    devices: int
    switches: int
    vls: int
    src: npt.NDArray[np.int32]
    dst: npt.NDArray[np.int32]
    src_port: npt.NDArray[np.uint8]
    dst_port: npt.NDArray[np.uint8]
    reverse: npt.NDArray[np.int32]
    cost: npt.NDArray[np.int64]
    wire: npt.NDArray[np.int32]
    buffer: npt.NDArray[np.int32]
    switch_delay: npt.NDArray[np.int32]
    lft: npt.NDArray[np.uint8]
    sl2vl: npt.NDArray[np.uint8]
    ca_sl2vl: npt.NDArray[np.uint8]
    sl: npt.NDArray[np.uint8]
    distance: npt.NDArray[np.uint8]
    lid_switch: npt.NDArray[np.int32]
    lid_device: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TrafficArrays:
    """Flows of a simulation, as arrays for the simulation kernels.

    Attributes
    ----------
    numbers, reals
        int64[F, 17] and float64[F, 6]: one row for each flow, with the columns ``FLOW_NUMBERS`` and ``FLOW_REALS``.
    lists
        int32[...]: destination LIDs of all flows; a flow refers to a range of this array.
    trace
        int64[M, 3]: tick, LID and size in bytes of each of M messages, for flows whose messages are given.
    """

    numbers: Ints
    reals: npt.NDArray[np.float64]
    lists: npt.NDArray[np.int32]
    trace: Ints


def fill_struct(struct: Any, arrays: object) -> list[npt.NDArray[Any]]:
    """Copy the attributes of a dataclass to the fields of a C struct that have the attributes' names.

    The struct has pointers to arrays, which are returned.  The caller has to keep them as long as the struct is used.
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


@dataclass(frozen=True)
class Fields:
    """Column names of a simulation's results: totals, rows of channels, rows of virtual channels and rows of flows."""

    totals: tuple[str, ...]
    channel: tuple[str, ...]
    vc: tuple[str, ...]
    flow: tuple[str, ...]


class SimulationHandle:
    """Handle to a simulation in a C kernel; the simulation is freed together with this object.

    Attributes
    ----------
    prefix
        Prefix of the kernel's functions, as in ``<prefix>_new``, and of its struct ``<prefix>_options``.  The structs
        for network and traffic are the same in all kernels.
    fields
        Column names of the kernel's results.

    Raises
    ------
    KernelError
        Out of memory.
    """

    prefix: ClassVar[str]
    fields: ClassVar[Fields]

    def __init__(self, network: NetworkArrays, options: object, traffic: TrafficArrays, **sizes: int) -> None:
        net, what = ffi.new("ibn_sim_network *"), ffi.new("ibn_sim_traffic *")
        how = ffi.new(f"{self.prefix}_options *")
        kept = fill_struct(net, network) + fill_struct(how, options) + fill_struct(what, traffic)
        net.channels, net.lids, net.sl_rows = len(network.src), network.lft.shape[1], len(network.sl)
        net.sl2vl_ports = network.sl2vl.shape[1] if network.sl2vl.ndim > 1 else 0
        what.flows, what.listed, what.traced = len(traffic.numbers), len(traffic.lists), len(traffic.trace)
        for name, size in sizes.items():
            setattr(how, name, size)
        raw = self._function("new")(net, how, what)
        del kept
        if raw == ffi.NULL:
            raise KernelError("kernel failed: out of memory")
        self._sim = ffi.gc(raw, self._function("free"))
        self._channels, self._vls, self._flows = len(network.src), network.vls, len(traffic.numbers)

    def _function(self, name: str) -> Any:
        return getattr(lib, f"{self.prefix}_{name}")

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
        check(self._function("run")(self._sim, until, events, int(stop_at_standstill), position))
        return int(report[0]), int(report[1]), int(report[2])

    def _rows(self, name: str, count: int, names: tuple[str, ...]) -> Ints:
        rows = np.zeros((count, len(names)), np.int64)
        self._function(name)(self._sim, pointer(rows))
        return rows

    def totals(self) -> dict[str, int]:
        """Return the totals of the simulation as a dictionary; ``fields.totals`` lists their names."""
        return dict(zip(self.fields.totals, self._rows("totals", 1, self.fields.totals)[0].tolist(), strict=True))

    def latencies(self) -> Ints:
        """Return int64[2, 2048]: number of packets, and of messages, with a latency in each bucket.

        Row 0 is for packets, row 1 for messages.  Each latency below 64 ticks has its own bucket.  From 64 ticks on,
        each power of two is divided into 32 buckets of equal width.
        """
        buckets = np.zeros((2, LATENCY_BUCKETS), np.int64)
        self._function("latencies")(self._sim, pointer(buckets))
        return buckets

    def channels(self) -> Ints:
        """Return the counters of all channels: int64[N, ...], with the columns ``fields.channel``."""
        return self._rows("channels", self._channels, self.fields.channel)

    def virtual_channels(self) -> Ints:
        """Return the state of all virtual channels: int64[N, V, ...], with the columns ``fields.vc``."""
        rows = self._rows("vcs", self._channels * self._vls, self.fields.vc)
        return rows.reshape(self._channels, self._vls, -1)

    def flows(self) -> Ints:
        """Return the counters of all flows: int64[F, ...], with the columns ``fields.flow``."""
        return self._rows("flows", self._flows, self.fields.flow)

    def _vertices(self) -> int:
        """Return the number of vertices of the wait-for graph: one for each virtual channel."""
        return self._channels * self._vls

    def wait_graph(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """Return the present wait-for graph, whose vertices stand for the buffers of virtual channels; it has n edges.

        Returns
        -------
        waiter, awaited
            int32[n] each: vertex where each edge begins (its packets wait), and vertex where the edge ends (it is
            waited for).
        can_move
            bool[vertices]: whether the packets of a vertex can make progress.
        """
        moves = np.zeros(self._vertices(), np.uint8)
        can_move = pointer(moves)
        count = self._function("wait_edges")(self._sim, 0, ffi.NULL, ffi.NULL, can_move)
        waiter, awaited = np.zeros(count, np.int32), np.zeros(count, np.int32)
        positions = pointer(waiter), pointer(awaited)
        self._function("wait_edges")(self._sim, count, *positions, can_move)
        return waiter, awaited, moves.astype(bool)
