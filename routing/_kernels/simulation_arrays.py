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
        int64[M, 3]: tick, LID and size in bytes of each of M messages, for flows whose messages are given.
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
        Order in which an output serves its inputs; 0: round robin, 1: by arrival, 2: random.
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
        Whether Loop Breaker may elect a port as master even if its blocked flows have no other shortest path.  1: yes,
        and the port then moves its other flows to other paths.  0: no.
    rounds
        Number of control messages that a port sends before the port draws a new random identifier; 0: the port keeps
        its identifier.
    xoff, xon
        Thresholds of pauses: number of blocks in a buffer at which its sender is paused, and at which the sender
        resumes.  If ``xoff`` is 0, credits are used instead of pauses.
    hoq, detect, repeat, release
        int64[N] each, in ticks: head-of-queue lifetime of packets (0: no limit); time without progress after which a
        virtual channel is suspected of a deadlock; time between two control messages of a suspected virtual channel;
        time for which a rule of Deadlock Breaker is in force.
    stall_count, breaker, extra, arbiter
        int32[N] each: number of packets dropped in a row at the head of queues after which a VL stalls (0: never);
        deadlock breaker (0: none, 1: Loop Breaker, 2: Deadlock Breaker); number of blocks that Deadlock Breaker adds to
        a buffer; row of ``vlarb`` for the channel.
    lifetime
        int64[devices]: longest time in ticks that a packet may stay in a switch, 0: no limit.
    vlarb
        uint8[A, 260], A different VL arbitration tables: limit of high priority, number of entries of the high table,
        number of entries of the low table, 0, and 64 pairs (VL, weight) of each table.
    mechanism_names, mechanism_counts, mechanism_numbers
        uint8[M, 16], int64[M] and int64[...]: names of the M mechanisms to be attached, padded with zeros; number of
        settings of each mechanism; settings of all mechanisms, one mechanism after the other.
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
