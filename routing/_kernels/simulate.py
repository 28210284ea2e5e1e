"""Wrapper of the packet simulator: one handle, arrays in, arrays out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, pointer
from routing.errors import KernelError

FLOW_NUMBERS = (
    "channel", "index", "process", "pattern", "list", "count", "self", "hot_list", "hot_count", "bytes", "mtu",
    "sl_row", "start", "stop", "messages", "slot", "spare",
)  # fmt: skip
FLOW_REALS = ("mean", "factor", "burst", "gap", "hot", "spare")
TOTALS = (
    "now", "injected", "delivered", "dropped", "in_flight", "hops", "events", "last_move", "injected_bytes",
    "delivered_bytes", "dropped_bytes", "broken_lanes", "misplaced_blocks", "logged", "log_lost", "moving",
)  # fmt: skip
CHANNEL_COUNTERS = (
    "xmit_bytes", "xmit_pkts", "xmit_wait", "xmit_discards", "hoq_discards", "lifetime_discards", "stalled_discards",
    "overrun_errors", "relay_errors", "control_bytes", "link_down_discards", "waiting",
)  # fmt: skip
LANE_FIELDS = (
    "fctbs", "fccl", "credits", "occupancy", "flying", "returning", "buffer", "waiting", "sent", "suspected", "spuid",
    "stalled", "paused", "pauses",
)  # fmt: skip
FLOW_FIELDS = (
    "messages", "sent_packets", "sent_bytes", "packets", "bytes", "dropped", "latency", "network_latency", "worst",
    "messages_done",
)  # fmt: skip
LOG_FIELDS = ("time", "kind", "a", "b", "c", "d")
PACKET_FIELDS = ("flow", "lid", "lane", "out_lane", "blocks", "since", "headed")
VLARB_WIDTH = 260

Ints = npt.NDArray[np.int64]
_TYPES = {"i4": "int32_t *", "i8": "int64_t *", "u1": "uint8_t *", "f8": "double *"}


@dataclass(frozen=True, eq=False)
class NetworkArrays:
    """The channels, sorted by source device and out-port (N), their lanes (N x V), and the tables.

    Attributes
    ----------
    devices, switches, vls
        Devices are numbered switches first; V.
    src, dst, reverse, wire
        int32[N]: devices, the channel of the other direction, ticks from end to end.
    src_port, dst_port
        uint8[N].
    cost
        int64[N]: ticks for a byte, times 2^20.
    buffer
        int32[N, V]: blocks of 64 bytes that the receiver has for the VL.
    switch_delay
        int32[devices]: ticks between the head's arrival and its being ready to go on.
    lft
        uint8[S, L].
    sl2vl
        uint8[16] or uint8[S, P, P, 16].
    ca_sl2vl
        uint8[16].
    sl
        uint8[R, L], service level by row (of the flow) and destination LID.
    distance
        uint8[S, S] hops, or uint8[0, 0] where no Loop Breaker needs them.
    lid_switch, lid_device
        int32[L]: the switch that delivers a LID, the device that owns it, -1 for nobody.
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
class OptionArrays:
    """How switches behave; arrays by channel, except ``lifetime`` by device.

    Attributes
    ----------
    arbitration
        0 round robin, 1 arrival, 2 random.
    single_fifo, fcp_period, wheel_bits, seed
        One queue an input; ticks between flow control packets (0: at once); log2 of the wheel's slots; the seed.
    stall_multiple, sample_period, control_delay, release_packets, no_alternative, rounds
        Head lifetimes that a stall lasts; ticks between samples (0: no breaker); ticks to handle a control message;
        packets let go by a master; 1: a master that cannot move its flows moves the others; messages of a port before
        it draws a new number (0: never).
    xoff, xon
        Blocks in a buffer that stop its sender, and down to which it may go on; 0: credits instead.
    hoq, detect, repeat, release
        int64[N] ticks; 0 in ``hoq``: never.
    stall_count, breaker, extra, arbiter
        int32[N]: drops in a row (0: never), 0 none 1 Loop 2 Deadlock Breaker, blocks, row of ``vlarb``.
    lifetime
        int64[devices] ticks, 0: never.
    vlarb
        uint8[A, 260]: limit, entries of the high and of the low table, 0, then 64 pairs (VL, weight) each.
    """

    arbitration: int
    single_fifo: int
    fcp_period: int
    wheel_bits: int
    stall_multiple: int
    seed: int
    sample_period: int
    control_delay: int
    release_packets: int
    no_alternative: int
    rounds: int
    xoff: int
    xon: int
    hoq: Ints
    stall_count: npt.NDArray[np.int32]
    lifetime: Ints
    breaker: npt.NDArray[np.int32]
    detect: Ints
    repeat: Ints
    release: Ints
    extra: npt.NDArray[np.int32]
    arbiter: npt.NDArray[np.int32]
    vlarb: npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class TrafficArrays:
    """Flows: ``numbers`` int64[F, 17] (``FLOW_NUMBERS``), ``reals`` float64[F, 6] (``FLOW_REALS``), ``lists`` int32 of
    destination LIDs, ``trace`` int64[M, 3] (tick, LID, bytes).
    """

    numbers: Ints
    reals: npt.NDArray[np.float64]
    lists: npt.NDArray[np.int32]
    trace: Ints


def fill(struct: Any, arrays: object) -> list[npt.NDArray[Any]]:
    """Copy the fields of a dataclass into a C struct of the same names; the arrays to keep alive."""
    kept = []
    for field in fields(arrays):  # type: ignore[arg-type]
        value = getattr(arrays, field.name)
        if isinstance(value, np.ndarray):
            value = np.ascontiguousarray(value)
            kept.append(value)
            value = pointer(_TYPES[value.dtype.str[1:]], value, value.dtype) if value.size else ffi.NULL
        setattr(struct, field.name, value)
    return kept


class Handle:
    """A simulation under way; freed with the object.

    Raises
    ------
    KernelError
        Out of memory.
    """

    def __init__(self, network: NetworkArrays, options: OptionArrays, traffic: TrafficArrays) -> None:
        net, how, what = ffi.new("ibn_sim_network *"), ffi.new("ibn_sim_options *"), ffi.new("ibn_sim_traffic *")
        kept = fill(net, network) + fill(how, options)
        net.channels, net.lids, net.sl_rows = len(network.src), network.lft.shape[1], len(network.sl)
        net.sl2vl_ports = network.sl2vl.shape[1] if network.sl2vl.ndim > 1 else 0
        how.arbiters = len(options.vlarb)
        kept += fill(what, traffic)
        what.flows, what.listed, what.traced = len(traffic.numbers), len(traffic.lists), len(traffic.trace)
        raw = lib.ibn_sim_new(net, how, what)
        del kept
        if raw == ffi.NULL:
            raise KernelError("kernel failed: out of memory")
        self._sim = ffi.gc(raw, lib.ibn_sim_free)
        self._shape = (len(network.src), network.vls, len(traffic.numbers))
        self._tables = {"lft": network.lft.shape, "sl2vl": network.sl2vl.shape, "sl": network.sl.shape}

    def run(self, until: int, events: int, *, stop_at_standstill: bool) -> tuple[int, int, int]:
        """Why it stopped (0 time, 1 nothing left, 2 standstill, 3 events), when, events handled so far."""
        told = np.zeros(3, np.int64)
        check(lib.ibn_sim_run(self._sim, until, events, int(stop_at_standstill), pointer("int64_t *", told, "i8")))
        return int(told[0]), int(told[1]), int(told[2])

    def _rows(self, function: Any, count: int, width: int) -> Ints:
        rows = np.zeros((count, width), np.int64)
        function(self._sim, pointer("int64_t *", rows, "i8"))
        return rows

    def totals(self) -> dict[str, int]:
        """By the names in ``TOTALS``."""
        return dict(zip(TOTALS, self._rows(lib.ibn_sim_totals, 1, len(TOTALS))[0].tolist(), strict=True))

    def channels(self) -> Ints:
        """int64[N, 12], by ``CHANNEL_COUNTERS``."""
        return self._rows(lib.ibn_sim_channels, self._shape[0], len(CHANNEL_COUNTERS))

    def lanes(self) -> Ints:
        """int64[N, V, 14], by ``LANE_FIELDS``."""
        channels, vls, _ = self._shape
        return self._rows(lib.ibn_sim_lanes, channels * vls, len(LANE_FIELDS)).reshape(channels, vls, -1)

    def flows(self) -> Ints:
        """int64[F, 10], by ``FLOW_FIELDS``."""
        return self._rows(lib.ibn_sim_flows, self._shape[2], len(FLOW_FIELDS))

    def log(self, start: int = 0) -> Ints:
        """int64[n, 6], what breakers and drops wrote from that row on, by ``LOG_FIELDS``."""
        count = self.totals()["logged"] - start
        rows = np.zeros((max(count, 0), len(LOG_FIELDS)), np.int64)
        lib.ibn_sim_log(self._sim, start, len(rows), pointer("int64_t *", rows, "i8"))
        return rows

    def packets(self) -> Ints:
        """int64[n, 7], the packets that wait in switches, by ``PACKET_FIELDS``."""
        rows = np.zeros((lib.ibn_sim_packets(self._sim, 0, ffi.NULL), len(PACKET_FIELDS)), np.int64)
        lib.ibn_sim_packets(self._sim, len(rows), pointer("int64_t *", rows, "i8"))
        return rows

    def waits(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """int32[n] lanes that wait, int32[n] lanes that they wait for, bool[N V] lanes whose buffer can move."""
        moves = np.zeros(self._shape[0] * self._shape[1], np.uint8)
        can_move = pointer("uint8_t *", moves, "u1")
        count = lib.ibn_sim_waits(self._sim, 0, ffi.NULL, ffi.NULL, can_move)
        waiter, awaited = np.zeros(count, np.int32), np.zeros(count, np.int32)
        places = pointer("int32_t *", waiter, "i4"), pointer("int32_t *", awaited, "i4")
        lib.ibn_sim_waits(self._sim, count, *places, can_move)
        return waiter, awaited, moves.astype(bool)

    def lft(self) -> npt.NDArray[np.uint8]:
        """uint8[S, L], the forwarding tables as they are now."""
        lft = np.zeros(self._tables["lft"], np.uint8)
        lib.ibn_sim_get_lft(self._sim, pointer("uint8_t *", lft, "u1"))
        return lft

    def set_table(self, name: str, table: npt.NDArray[np.uint8]) -> None:
        """Replace ``lft``, ``sl2vl`` or ``sl``; the shape has to stay."""
        if table.shape != self._tables[name]:
            raise TypeError(f"{name} has to be {self._tables[name]}, got {table.shape}")
        table = np.ascontiguousarray(table)
        getattr(lib, f"ibn_sim_set_{name}")(self._sim, pointer("uint8_t *", table, "u1"))

    def fail(self, channel: int) -> int:
        """Take both directions of a link down; the packets lost on it and waiting for it, -1 if it is down already."""
        return int(lib.ibn_sim_fail(self._sim, channel))

    def restore(self, channel: int) -> bool:
        """Bring both directions of a link up; False if they are."""
        return int(lib.ibn_sim_restore(self._sim, channel)) == 0

    def stop_flow(self, flow: int, at: int) -> None:
        """No message of the flow begins at that tick or later."""
        lib.ibn_sim_stop_flow(self._sim, flow, at)
