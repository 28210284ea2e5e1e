"""Kernel wrapper: simulate adaptive routing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.simulation_handle import Fields, NetworkArrays, SimulationHandle, TrafficArrays

TOTALS = (
    "now", "injected", "delivered", "in_flight", "hops", "events", "last_move", "injected_bytes", "delivered_bytes",
    "broken_vcs", "moving", "escapes", "seized", "pings", "loops", "bubbles", "sheltered", "relayed",
    "diverted", "deflected",
)  # fmt: skip
CHANNEL_COUNTERS = ("xmit_bytes", "xmit_pkts", "saved")
VC_FIELDS = ("credits", "occupancy", "flying", "returning", "buffer")
FLOW_FIELDS = ("messages", "sent_packets", "sent_bytes", "packets", "bytes", "latency", "network_latency", "worst")


@dataclass(frozen=True, eq=False)
class AdaptiveArrays:
    """Options of adaptive routing for the kernel: how virtual channels are chosen, and how deadlock is handled.

    Attributes
    ----------
    scheme
        Handling of deadlock; 0: none, 1: escape VLs, 2: token, 3: pings and bubbles, 4: port groups, 5: CAs relay
        packets, 6: concurrent recovery, 7: deflection.
    adaptive_vls
        Number A of adaptive VLs.  VLs 0 to A - 1 can be used on any shortest path; escape VL n is VL A + n.
    ca_vls
        Number of VLs on which CAs send, which are VL 0 and the next ones.
    stay
        1: a packet on an escape VL stays on escape VLs; 0: it may leave them.
    by_arrival
        1: the packet that has waited longest is served first; 0: round robin of inputs.
    seed
        Seed of the random numbers for traffic and pings.
    detect
        Ticks at the head of a queue after which a packet is suspected to be blocked.
    repeat
        Smallest number of ticks between two pings from one queue.
    lasts, hold
        Ticks after which a mark expires, and ticks after which a locked mark expires.  A mark reserves room on a
        channel for one packet.  A ping sets the mark, and locks it once the ping has found a cycle.
    sample
        Ticks between two searches for suspected packets.
    step
        Ticks that the token takes from one switch to the next.
    enter_sl, enter_port
        uint8[S, L] and uint8[S]: SL of a packet that enters the escape VLs (or, with port groups, the fabric) at a
        switch, and the in-port under which SL2VL is read for the packet.
    columns, lid_column
        Number of destinations for which ``choice`` differs (one for each switch, or one for each LID), and int32[L]:
        the destination to which a LID belongs, or -1.
    choice_first, choice
        int32[S x columns + 1] and int32[...]: ``choice`` lists the channels by which packets may leave a switch, and
        ``choice_first`` holds where the channels of each switch and destination begin.  The pair (switch, destination)
        has the index switch x columns + destination.
    lid_channel
        int32[L]: channel from the last switch to the end port that owns each LID, or -1.
    recovery_next, recovery_rank
        int32[2, S, S] and int32[S], empty without concurrent recovery: channel by which a packet in a spare buffer of a
        switch continues to each last switch, or -1; and position of each switch in an order.  Channels to later
        switches lead to spare buffers 1, and channels to earlier switches lead to spare buffers 0.
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
    columns: int
    lid_column: npt.NDArray[np.int32]
    choice_first: npt.NDArray[np.int32]
    choice: npt.NDArray[np.int32]
    lid_channel: npt.NDArray[np.int32]
    recovery_next: npt.NDArray[np.int32]
    recovery_rank: npt.NDArray[np.int32]


class AdaptiveHandle(SimulationHandle):
    """Handle to a simulation with adaptive routing in the C kernel."""

    prefix = "ibn_simulate_adaptive"
    fields = Fields(TOTALS, CHANNEL_COUNTERS, VC_FIELDS, FLOW_FIELDS)

    def __init__(self, network: NetworkArrays, adaptive: AdaptiveArrays, traffic: TrafficArrays) -> None:
        super().__init__(network, adaptive, traffic)
        self._switches = network.switches

    def _vertices(self) -> int:
        """Return the number of vertices of the wait-for graph.  It has one vertex for each virtual channel, and one for
        each of the two spare buffers of each switch.
        """
        return super()._vertices() + 2 * self._switches
