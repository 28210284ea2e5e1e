"""Wrapper of the simulator with adaptive routing: one handle, arrays in, arrays out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, pointer
from routing._kernels.simulate import Ints, NetworkArrays, TrafficArrays, fill
from routing.errors import KernelError

TOTALS = (
    "now", "injected", "delivered", "in_flight", "hops", "events", "last_move", "injected_bytes", "delivered_bytes",
    "broken_lanes", "moving", "escapes", "seized", "pings", "loops", "bubbles", "sheltered",
)  # fmt: skip
CHANNEL_COUNTERS = ("xmit_bytes", "xmit_pkts", "saved")
LANE_FIELDS = ("credits", "occupancy", "flying", "returning", "buffer")
FLOW_FIELDS = ("messages", "sent_packets", "sent_bytes", "packets", "bytes", "latency", "network_latency", "worst")


@dataclass(frozen=True, eq=False)
class AdaptiveArrays:
    """How packets choose, and what is done about deadlock.

    Attributes
    ----------
    scheme
        0 nothing, 1 escape, 2 token, 3 bubble.
    adaptive_vls
        VLs from 0 on that may be taken on any shortest way (A); escape VL n is VL A + n.
    ca_vls
        VLs from 0 on that CAs send on.
    stay
        1: what is on an escape VL stays there.
    by_arrival
        1: the packet that has waited longest goes first; 0: inputs in turn.
    seed
        Of traffic and pings.
    detect, repeat, lasts, hold, sample, step
        Ticks: that a packet waits until it is suspected; between pings of a queue; that a mark lasts, and a locked one;
        between looks for suspects; of the token from switch to switch.
    enter_sl, enter_port
        uint8[S, L], uint8[S]: SL, and in-port for SL2VL, of a packet that enters the escape VLs at a switch.
    way_first, way
        int32[S^2 + 1], int32[...]: channels on shortest ways, by switch x S + last switch.
    lid_channel
        int32[L]: the channel from the last switch to the owner of a LID.
    """

    scheme: int
    adaptive_vls: int
    ca_vls: int
    stay: int
    by_arrival: int
    seed: int
    detect: int
    repeat: int
    lasts: int
    hold: int
    sample: int
    step: int
    enter_sl: npt.NDArray[np.uint8]
    enter_port: npt.NDArray[np.uint8]
    way_first: npt.NDArray[np.int32]
    way: npt.NDArray[np.int32]
    lid_channel: npt.NDArray[np.int32]


class AdaptiveHandle:
    """A simulation under way; freed with the object.

    Raises
    ------
    KernelError
        Out of memory.
    """

    def __init__(self, network: NetworkArrays, adaptive: AdaptiveArrays, traffic: TrafficArrays) -> None:
        net, how, what = ffi.new("ibn_sim_network *"), ffi.new("ibn_adaptive_options *"), ffi.new("ibn_sim_traffic *")
        kept = fill(net, network) + fill(how, adaptive) + fill(what, traffic)
        net.channels, net.lids, net.sl_rows = len(network.src), network.lft.shape[1], len(network.sl)
        net.sl2vl_ports = network.sl2vl.shape[1] if network.sl2vl.ndim > 1 else 0
        what.flows, what.listed, what.traced = len(traffic.numbers), len(traffic.lists), len(traffic.trace)
        raw = lib.ibn_adaptive_new(net, how, what)
        del kept
        if raw == ffi.NULL:
            raise KernelError("kernel failed: out of memory")
        self._sim = ffi.gc(raw, lib.ibn_adaptive_free)
        self._channels, self._vls, self._flows = len(network.src), network.vls, len(traffic.numbers)
        self._switches = network.switches

    def run(self, until: int, events: int, *, stop_at_standstill: bool) -> tuple[int, int, int]:
        """Why it stopped (0 time, 1 nothing left, 2 standstill, 3 events), when, events handled so far."""
        told = np.zeros(3, np.int64)
        check(lib.ibn_adaptive_run(self._sim, until, events, int(stop_at_standstill), pointer("int64_t *", told, "i8")))
        return int(told[0]), int(told[1]), int(told[2])

    def _rows(self, function: Any, count: int, width: int) -> Ints:
        rows = np.zeros((count, width), np.int64)
        function(self._sim, pointer("int64_t *", rows, "i8"))
        return rows

    def totals(self) -> dict[str, int]:
        """By the names in ``TOTALS``."""
        return dict(zip(TOTALS, self._rows(lib.ibn_adaptive_totals, 1, len(TOTALS))[0].tolist(), strict=True))

    def channels(self) -> Ints:
        """int64[N, 3], by ``CHANNEL_COUNTERS``."""
        return self._rows(lib.ibn_adaptive_channels, self._channels, len(CHANNEL_COUNTERS))

    def lanes(self) -> Ints:
        """int64[N, V, 5], by ``LANE_FIELDS``."""
        rows = self._rows(lib.ibn_adaptive_lanes, self._channels * self._vls, len(LANE_FIELDS))
        return rows.reshape(self._channels, self._vls, -1)

    def flows(self) -> Ints:
        """int64[F, 8], by ``FLOW_FIELDS``."""
        return self._rows(lib.ibn_adaptive_flows, self._flows, len(FLOW_FIELDS))

    def waits(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """int32[n] who waits, int32[n] for whom, bool[N V + S] who can move: lanes, then the spares of switches."""
        moves = np.zeros(self._channels * self._vls + self._switches, np.uint8)
        can_move = pointer("uint8_t *", moves, "u1")
        count = lib.ibn_adaptive_waits(self._sim, 0, ffi.NULL, ffi.NULL, can_move)
        waiter, awaited = np.zeros(count, np.int32), np.zeros(count, np.int32)
        places = pointer("int32_t *", waiter, "i4"), pointer("int32_t *", awaited, "i4")
        lib.ibn_adaptive_waits(self._sim, count, *places, can_move)
        return waiter, awaited, moves.astype(bool)
