"""Wrapper of the simulator with adaptive routing: one handle, arrays in, arrays out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.running import Fields, NetworkArrays, Running, TrafficArrays

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


class AdaptiveHandle(Running):
    """A simulation with adaptive routing, under way."""

    prefix = "ibn_adaptive"
    fields = Fields(TOTALS, CHANNEL_COUNTERS, LANE_FIELDS, FLOW_FIELDS)

    def __init__(self, network: NetworkArrays, adaptive: AdaptiveArrays, traffic: TrafficArrays) -> None:
        super().__init__(network, adaptive, traffic)
        self._switches = network.switches

    def _vertices(self) -> int:
        """Lanes, then the spares of switches."""
        return super()._vertices() + self._switches
