"""Arguments of the simulation kernel as arrays: network, options and traffic."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

FLOW_NUMBERS = (
    "channel", "index", "process", "pattern", "list", "count", "self", "hot_list", "hot_count", "bytes", "mtu",
    "sl_row", "start", "stop", "messages", "slot", "window",
)  # fmt: skip
FLOW_REALS = ("mean", "factor", "burst", "gap", "hot", "spare")

LATENCY_BUCKETS = 2048
"""Number of buckets of a histogram of latencies (``IBN_LATENCY_BUCKETS`` of the kernel)."""

VLARB_WIDTH = 260
ADAPTIVE = b"adaptive"
"""Name of the mechanism that makes switches adaptive."""
MECHANISM_NAME = 16
"""Length in bytes of a mechanism's name in :attr:`OptionArrays.mechanism_names`."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NetworkArrays:
    """Channels, sorted by sending device and out-port, and routing tables, as arrays for the simulation kernel.

    There are N channels, V VLs and N x V virtual channels.

    Attributes
    ----------
    devices
        Number of devices.  The switches come first.
    switches, vls
        Number S of switches, and number V of VLs.
    src, dst
        int32[N] each: device that sends on the channel, and device that receives.
    reverse
        int32[N]: channel of the same link in the opposite direction.
    wire
        int32[N]: ticks that a signal takes from one end of the cable to the other.
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
        uint8[R, L]: SLs by destination LID, in R rows.  Each flow has the number of the row from which its packets take
        their SLs.
    distance
        uint8[S, S]: hops between switches; uint8[0, 0] if no port has a Loop Breaker.
    lid_switch, lid_device
        int32[L] each: switch that delivers each LID, and device that owns each LID; -1: there is no such switch or
        device.
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
    """Flows of a simulation, as arrays for the simulation kernel.

    Attributes
    ----------
    numbers, reals
        int64[F, 17] and float64[F, 6]: one row for each flow, with the columns ``FLOW_NUMBERS`` and ``FLOW_REALS``.
    lists
        int32[...]: destination LIDs of all flows; a flow refers to a range of this array.
    trace
        int64[M, 3]: tick, destination LID and size in bytes of each of M messages.  Only flows that send a given list
        of messages use this array.
    """

    numbers: Ints
    reals: npt.NDArray[np.float64]
    lists: npt.NDArray[np.int32]
    trace: Ints


@dataclass(frozen=True, eq=False)
class OptionArrays:
    """Options of the simulated switches for the kernel.

    N is the number of channels.  An array of length N has one element for each channel.

    Attributes
    ----------
    arbitration
        Order in which an output serves its inputs; 0: round robin, 1: by arrival, 2: random, 3: round robin
        of crossbar inputs.
    single_fifo
        1: an input has one queue for each VL; 0: an input has one queue for each output and VL (virtual output queues).
    speedup
        Number of packets that an input of a switch can send at one time, each to another output; 0: any number.
    fcp_period
        Ticks between flow control packets; 0: credits return at once.
    wheel_bits
        Logarithm to base 2 of the number of slots of the timing wheel, which stores future events.
    stall_multiple
        Duration of a VL stall, as a multiple of the head-of-queue lifetime.
    seed
        Seed of the random numbers.
    sample_period
        Ticks between two searches for virtual channels suspected of a deadlock; 0: no port has a deadlock breaker.
    control_delay
        Ticks that a switch takes to process a control message of a breaker.
    release_packets
        Number of packets that the master, which is the port that Loop Breaker elects, sends without credits.
    no_alternative
        1: Loop Breaker may elect a port as master even if the blocked flows of the port have no other shortest path.
        The master then moves flows from other inputs to other paths.  0: Loop Breaker never elects such a port.
    rounds
        Number of control messages that a port sends before the port draws a new random identifier; 0: the port keeps
        its identifier.
    xoff, xon
        Numbers of blocks in a buffer.  At ``xoff`` or more blocks, the sender pauses; at ``xon`` or fewer blocks, the
        sender resumes.  If ``xoff`` is 0, credits are used instead of pauses.
    hoq
        int64[N]: head-of-queue lifetime of packets in ticks; 0: no limit.
    detect
        int64[N]: ticks without progress after which a virtual channel is suspected of a deadlock.
    repeat
        int64[N]: ticks between two control messages of a suspected virtual channel.
    release
        int64[N]: ticks for which a rule of Deadlock Breaker is in force.
    stall_count
        int32[N]: number of consecutive drops at the head of queues after which a VL stalls; 0: never.
    breaker
        int32[N]: deadlock breaker; 0: none, 1: Loop Breaker, 2: Deadlock Breaker.
    extra
        int32[N]: number of blocks that a rule of Deadlock Breaker adds to a buffer.
    arbiter
        int32[N]: row of ``vlarb`` with the VL arbitration tables of the channel.
    lifetime
        int64[devices]: longest time in ticks that a packet may stay in a switch, 0: no limit.
    vlarb
        uint8[A, 260], one row for each of A settings of VL arbitration.  A row begins with the limit of high priority,
        the number of entries of the high-priority table, the number of entries of the low-priority table, and 0.  Then
        follow 64 pairs (VL, weight) of the high-priority table and 64 pairs of the low-priority table.
    mechanism_names
        uint8[M, 16]: name of each of the M mechanisms to be attached, padded with zeros.
    mechanism_counts
        int64[M]: number of settings of each mechanism.
    mechanism_numbers
        int64[...]: settings of all mechanisms, one mechanism after the other.
    """

    arbitration: int
    single_fifo: int
    speedup: int
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
    mechanism_names: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, MECHANISM_NAME), np.uint8))
    mechanism_counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    mechanism_numbers: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
