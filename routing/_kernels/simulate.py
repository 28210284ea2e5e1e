"""Wrapper of the packet simulator: one handle, arrays in, arrays out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.native import ffi, lib, pointer
from routing._kernels.running import Fields, Ints, NetworkArrays, Running, TrafficArrays
from routing.errors import KernelError

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


class Handle(Running):
    """A simulation that forwards by tables, under way."""

    prefix = "ibn_sim"
    fields = Fields(TOTALS, CHANNEL_COUNTERS, LANE_FIELDS, FLOW_FIELDS)

    def __init__(self, network: NetworkArrays, options: OptionArrays, traffic: TrafficArrays) -> None:
        super().__init__(network, options, traffic, arbiters=len(options.vlarb))
        self._tables = {"lft": network.lft.shape, "sl2vl": network.sl2vl.shape, "sl": network.sl.shape}

    def log(self, start: int = 0) -> Ints:
        """int64[n, 6], what breakers and drops wrote from that row on, by ``LOG_FIELDS``.

        Raises
        ------
        KernelError
            ``start`` is below 0.
        """
        logged = self.totals()["logged"]
        start = min(start, logged)
        rows = np.zeros((logged - start, len(LOG_FIELDS)), np.int64)
        there = lib.ibn_sim_log(self._sim, start, len(rows), pointer(rows))
        if there != len(rows):
            raise KernelError(f"kernel failed: no {len(rows)} rows of a log of {logged} from {start} on")
        return rows

    def packets(self) -> Ints:
        """int64[n, 7], the packets that wait in switches, by ``PACKET_FIELDS``."""
        rows = np.zeros((lib.ibn_sim_packets(self._sim, 0, ffi.NULL), len(PACKET_FIELDS)), np.int64)
        lib.ibn_sim_packets(self._sim, len(rows), pointer(rows))
        return rows

    def lft(self) -> npt.NDArray[np.uint8]:
        """uint8[S, L], the forwarding tables as they are now."""
        lft = np.zeros(self._tables["lft"], np.uint8)
        lib.ibn_sim_get_lft(self._sim, pointer(lft))
        return lft

    def set_table(self, name: str, table: npt.NDArray[np.uint8]) -> None:
        """Replace ``lft``, ``sl2vl`` or ``sl``; the shape has to stay."""
        if table.shape != self._tables[name]:
            raise TypeError(f"{name} has to be {self._tables[name]}, got {table.shape}")
        table = np.ascontiguousarray(table)
        getattr(lib, f"ibn_sim_set_{name}")(self._sim, pointer(table))

    def fail(self, channel: int) -> int:
        """Take both directions of a link down; the packets lost on it and waiting for it, -1 if it is down already."""
        return int(lib.ibn_sim_fail(self._sim, channel))

    def restore(self, channel: int) -> bool:
        """Bring both directions of a link up; False if they are."""
        return int(lib.ibn_sim_restore(self._sim, channel)) == 0

    def stop_flow(self, flow: int, at: int) -> None:
        """No message of the flow begins at that tick or later."""
        lib.ibn_sim_stop_flow(self._sim, flow, at)
