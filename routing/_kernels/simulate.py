"""Kernel wrapper: simulate packets that are routed by fixed tables."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from routing._kernels.native import ffi, lib, pointer
from routing._kernels.simulation_handle import Fields, Ints, NetworkArrays, SimulationHandle, TrafficArrays
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
VLARB_WIDTH = 260
ADAPTIVE = b"adaptive"
"""Name of the mechanism that makes switches adaptive."""
MECHANISM_NAME = 16
"""Length in bytes of a mechanism's name in :attr:`OptionArrays.mechanism_names`."""


@dataclass(frozen=True, eq=False)
class OptionArrays:
    """Options of the simulated switches for the kernel.

    Arrays have one element for each channel, except ``lifetime`` and ``vlarb``.

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
        1: a port whose blocked flows have no other shortest path may become master, and then moves its other flows; 0:
        such a port is never elected.
    rounds
        Number of control messages that a port sends before it draws a new random identifier; 0: it keeps its
        identifier.
    xoff, xon
        Thresholds of pauses: number of blocks in a buffer at which its sender is paused, and at which the sender
        resumes.  If ``xoff`` is 0, credits are used instead of pauses.
    hoq, detect, repeat, release
        int64[N] each, in ticks: head-of-queue lifetime (0: no limit), time without progress until a virtual channel is
        suspected, time between two control messages, time for which a rule of Deadlock Breaker is in force.
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


class Handle(SimulationHandle):
    """Handle to a simulation in the C kernel that routes packets by fixed tables."""

    prefix = "ibn_simulate"
    fields = Fields(TOTALS, CHANNEL_COUNTERS, VC_FIELDS, FLOW_FIELDS)

    def __init__(self, network: NetworkArrays, options: OptionArrays, traffic: TrafficArrays) -> None:
        sizes = {"arbiters": len(options.vlarb), "mechanisms": len(options.mechanism_names)}
        super().__init__(network, options, traffic, **sizes)
        # The wait-for graph of adaptive switches also has a vertex for each of the two spare buffers of each switch.
        adaptive = bytes(ADAPTIVE) in (bytes(name).rstrip(b"\0") for name in options.mechanism_names)
        self._spares = 2 * network.switches if adaptive else 0
        self._tables = {"lft": network.lft.shape, "sl2vl": network.sl2vl.shape, "sl": network.sl.shape}

    def _vertices(self) -> int:
        return super()._vertices() + self._spares

    def log(self, start: int = 0) -> Ints:
        """Return the log of drops, breakers and link faults from row ``start`` on: int64[n, 6], columns ``LOG_FIELDS``.

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
        """Replace the table that is called ``name`` (``lft``, ``sl2vl`` or ``sl``) by another table of equal shape."""
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
        """Return the results of a mechanism, which is identified by its number among the attached mechanisms."""
        numbers = np.zeros(lib.ibn_simulate_read(self._sim, mechanism, 0, ffi.NULL), np.int64)
        lib.ibn_simulate_read(self._sim, mechanism, len(numbers), pointer(numbers))
        return numbers
