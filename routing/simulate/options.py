"""Define the options of simulated switches: arbitration, input queues, flow control, lifetime limits and deadlock
breakers.

Deadlock breakers (Loop Breaker, Deadlock Breaker) are protocols between ports that detect and resolve a deadlock.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from routing._kernels.simulation_arrays import VLARB_WIDTH, NetworkArrays, OptionArrays
from routing.errors import OptionError
from routing.numerals import count_noun
from routing.simulate.bounds import LONGEST, is_float_in, is_int_in
from routing.simulate.network import BLOCK, COST_BITS, LEAST_TICK, Network
from routing.tables import DATA_VLS

HOQ_UNIT = 4.096e-6
"""Unit of InfiniBand's packet lifetime limits in seconds: a field value n means 4.096 us x 2^n."""
HOQ_NEVER = 20
"""Smallest field value n of a lifetime limit that means "no limit"."""
STALL_MULTIPLE = 8
"""Duration of a VL stall, as a multiple of the head-of-queue lifetime."""
NO_LIMIT = 255
TABLE_ENTRIES = 64
MOST, MOST_SEED = (1 << 31) - 1, (1 << 63) - 1
MOST_STALL = (1 << 16) - 1
"""Largest threshold of consecutive drops.  The kernel counts the drops of a virtual channel in 16 bits."""
MOST_SPEEDUP = 255
"""Largest speedup of a crossbar.  The kernel counts the packets that an input is sending in 8 bits."""
WHEEL_BITS = (10, 16)
MOST_ROOM = 1 << 26
"""Largest number of bytes that Deadlock Breaker can add to a buffer."""


class Arbitration(enum.IntEnum):
    """Order in which an output serves the inputs that have packets for the output."""

    ROUND_ROBIN = 0
    """The inputs in cyclic order (round robin)."""
    ARRIVAL = 1
    """The input whose packet arrived first; round robin if packets arrived in the same tick."""
    RANDOM = 2
    """A random one of the inputs that have packets for the output."""
    CROSSBAR = 3
    """The crossbar inputs in cyclic order, whatever VL their packets leave on.

    The other methods serve the VLs of the output in cyclic order first, and then choose an input for the VL.  Each
    input of the switch has n crossbar inputs, where n is the speedup or the number of VLs, whichever is smaller.  If
    the speedup is 0 (no limit), n is the number of VLs.  The queue for VL q of the input belongs to crossbar input
    q mod n.  The queues of one crossbar input take turns.
    """


class Inputs(enum.IntEnum):
    """Organisation of the queues at a switch's input."""

    VOQ = 0
    """One queue for each output and VL (virtual output queues)."""
    FIFO = 1
    """One queue for each VL, from which one packet leaves at a time."""


class Breaker(enum.IntEnum):
    """Protocol by which a port detects and resolves a deadlock: Loop Breaker, Deadlock Breaker or none."""

    NONE = 0
    LOOP = 1
    DEADLOCK = 2


def lifetime_ticks(value: int, tick: float) -> int:
    """Convert a HOQLife or LifeTimeValue field (5 bits) to ticks; the result 0 means no limit.

    ``tick`` is the length of a tick in seconds.

    Raises
    ------
    OptionError
        The value does not fit 5 bits, or the length of a tick is out of range.
    """
    if not is_int_in(value, 0, 31):
        raise OptionError(f"{value!r} is not a lifetime limit", remedy="use 0 to 31; 20 and more mean none")
    if not is_float_in(tick, LEAST_TICK, 1):
        raise OptionError(f"a tick of {tick!r} s takes no time", remedy="use seconds over 0")
    return 0 if value >= HOQ_NEVER else max(1, round(HOQ_UNIT * 2**value / tick))


@dataclass(frozen=True)
class VLArb:
    """VL arbitration tables, which are the same for every port.

    Attributes
    ----------
    high, low
        Entries (VL, weight in units of 64 bytes) of the high-priority and the low-priority table, at most 64 each.
        Entries of weight 0 are skipped.
    limit
        Bytes that high-priority entries may send before a low-priority entry sends a packet, in units of 4096 bytes.
        255: no limit; 0: one packet.
    """

    high: tuple[tuple[int, int], ...] = ()
    low: tuple[tuple[int, int], ...] = tuple((vl, 64) for vl in range(15))
    limit: int = 0

    def row(self, vls: int) -> list[int]:
        """Return the arbitration tables as the 260 bytes that the C kernel reads.

        Raises
        ------
        OptionError
            A table is too long, a value is out of range, or no entry serves one of the first ``vls`` VLs.
        """
        for entries in (self.high, self.low):
            fits = all(is_int_in(vl, 0, DATA_VLS - 1) and is_int_in(weight, 0, 255) for vl, weight in entries)
            if len(entries) > TABLE_ENTRIES or not fits:
                raise OptionError("a VL arbitration table has over 64 entries, or an invalid VL or weight")
        if not is_int_in(self.limit, 0, NO_LIMIT):
            raise OptionError(f"{self.limit!r} is not a high limit", remedy="use 0 to 255")
        served = {vl for vl, weight in (*self.high, *self.low) if weight}
        for vl in range(vls):
            if vl not in served:
                raise OptionError(f"the VL arbitration tables never serve VL {vl}", remedy="give it a weight")
        row = [self.limit, len(self.high), len(self.low), 0]
        for entries in (self.high, self.low):
            row += [number for entry in entries for number in entry] + [0, 0] * (TABLE_ENTRIES - len(entries))
        return row


@dataclass(frozen=True)
class Remedy:
    """Settings of one port for packets that cannot move: lifetime limit, VL stall and deadlock breaker.

    Attributes
    ----------
    hoq
        Head-of-queue lifetime: number of ticks that a packet may wait at the head of a queue before it is dropped.  0:
        no limit.
    stall_count
        Number of consecutive drops after which a VL stalls, which means that it drops all packets for 8 x ``hoq``.  0:
        it never stalls.
    breaker
        Kind of deadlock breaker: Loop Breaker, Deadlock Breaker or none.
    detect
        Ticks without progress after which the breaker suspects that the port is in a deadlock.
    repeat
        Ticks between two control messages that a suspected port sends around the loop.
    release
        Ticks for which a rule of Deadlock Breaker is in force.  A rule makes a port serve only the traffic of the loop.
    extra
        Bytes that Deadlock Breaker adds to a buffer on the loop, at least the size of a packet.
    """

    hoq: int = 0
    stall_count: int = 7
    breaker: Breaker = Breaker.NONE
    detect: int = 0
    repeat: int = 1
    release: int = 1
    extra: int = 2048


@dataclass(frozen=True)
class Remedies:
    """Settings of all ports of all switches for packets that cannot move.

    Attributes
    ----------
    port
        Settings of the ports for which ``leaf`` and ``ports`` state nothing.
    leaf
        Settings of ports to CAs and routers.  None: the settings of ``port``.
    ports
        Exceptions for single ports, by (row of the switch, port number).
    lifetime
        Number of ticks that a packet may stay in a switch before it is dropped.  0: no limit.
    sample
        Ticks between two searches of the breakers for suspected ports.
    control_delay
        Ticks that a switch takes to process a control message of a breaker.
    release_packets
        Packets that the master sends without credit.  The master is the port that Loop Breaker elects to resolve a
        loop.
    move_others
        Whether a port may become the master if its blocked packets have no other shortest path.  Such a master moves
        packets from its other inputs to other paths.  If false, such a port is never elected.
    rounds
        Number of control messages that a port sends with one SPUID before it draws a new random SPUID.  0: the port
        keeps its SPUID, as in the published protocol.  But then a port outside the loop, which only waits for the
        loop, may have the smallest SPUID for ever, so that no master is elected.
    """

    port: Remedy = Remedy()
    leaf: Remedy | None = None
    ports: Mapping[tuple[int, int], Remedy] = field(default_factory=dict)
    lifetime: int = 0
    sample: int = 1
    control_delay: int = 1
    release_packets: int = 1
    move_others: bool = False
    rounds: int = 0

    @property
    def end_every_knot(self) -> bool:
        """Return whether all switches drop packets that cannot move, so that no knot of buffers is permanent.

        A switch drops such packets if it limits the lifetime of packets, or if all of its ports have a head-of-queue
        lifetime.
        """
        ports = (self.port, *self.ports.values(), *(() if self.leaf is None else (self.leaf,)))
        return self.lifetime > 0 or all(port.hoq > 0 for port in ports)


@dataclass(frozen=True)
class Pauses:
    """Thresholds at which a receiver pauses and resumes its sender (IEEE 802.1Qbb), in blocks of 64 bytes.

    The thresholds apply to each VL's input buffer at a switch.  A packet occupies the buffer until its tail has left.

    Attributes
    ----------
    xoff
        Occupancy at or above which the sender is paused.
    xon
        Occupancy at or below which the sender resumes.
    """

    xoff: int
    xon: int


@dataclass(frozen=True)
class Switching:
    """Arbitration, input queues and flow control of all switches, and the random seed.

    Attributes
    ----------
    arbitration, inputs
        Arbitration at outputs, and organisation of the input queues.  These settings can decide whether a credit loop
        deadlocks, so every printed result must name them.
    speedup
        Number of packets that an input of a switch can send at once, each to another output at the rate of its link.
        Crossbars of real switches have a speedup of 1 to 2.  0 means any number, an ideal crossbar.
    fcp_period
        Ticks between flow control packets.  0: credits return to the sender at once.
    vlarb
        VL arbitration tables of all ports; None: VLs are served round robin.
    seed
        Random seed of traffic, of random arbitration and of the identifiers that breakers use.
    pauses
        Thresholds of pauses as in lossless Ethernet; None: flow control by credits.
    """

    arbitration: Arbitration = Arbitration.ROUND_ROBIN
    inputs: Inputs = Inputs.VOQ
    fcp_period: int = 0
    vlarb: VLArb | None = None
    seed: int = 1
    pauses: Pauses | None = None
    speedup: int = 1


def _remedy_of(network: Network, remedies: Remedies) -> list[Remedy]:
    """Return the remedies of the sending port of each channel.  Ports of CAs get settings without a remedy."""
    arrays, none = network.arrays, Remedy()
    leaf = remedies.port if remedies.leaf is None else remedies.leaf
    chosen = []
    for src, port, dst in zip(arrays.src.tolist(), arrays.src_port.tolist(), arrays.dst.tolist(), strict=True):
        usual = leaf if dst >= arrays.switches else remedies.port
        chosen.append(remedies.ports.get((src, port), usual) if src < arrays.switches else none)
    known = set(zip(arrays.src.tolist(), arrays.src_port.tolist(), strict=True))
    for switch, port in remedies.ports:
        if (switch, port) not in known or switch >= arrays.switches:
            raise OptionError(f"there is no cabled port {port} at switch {switch}")
    return chosen


def _check_int(what: str, value: int, least: int, most: int) -> None:
    """Raise OptionError if a value is not an integer from ``least`` to ``most``.  ``what`` names the value in the
    error.
    """
    if not is_int_in(value, least, most):
        raise OptionError(f"{what} is {value!r}", remedy=f"use a whole number from {least} to {most}")


def _check_remedies(remedies: Remedies, each: set[Remedy], mtu: int) -> None:
    """Raise OptionError if a setting for packets that cannot move is out of range.

    ``each`` is the set of all ports' settings, and ``mtu`` the size of the largest packet in bytes.
    """
    for remedy in each:
        if not isinstance(remedy.breaker, Breaker):
            raise OptionError(f"{remedy.breaker!r} is not a breaker", remedy="use a Breaker")
        if remedy.breaker is not Breaker.NONE and remedy.detect == 0:
            raise OptionError("a breaker needs the time after which it suspects a port", remedy="set detect")
        for name, lowest in (("hoq", 0), ("detect", 0), ("repeat", 1), ("release", 1)):
            _check_int(f"{name} of a remedy", getattr(remedy, name), lowest, LONGEST)
        _check_int("stall_count of a remedy", remedy.stall_count, 0, MOST_STALL)
        deadlock = remedy.breaker is Breaker.DEADLOCK
        _check_int("room that Deadlock Breaker adds", remedy.extra, mtu if deadlock else 0, MOST_ROOM)
    for name, lowest in (("lifetime", 0), ("sample", 1), ("control_delay", 1)):
        _check_int(f"{name} of remedies", getattr(remedies, name), lowest, LONGEST)
    _check_int("rounds of remedies", remedies.rounds, 0, MOST)
    _check_int("release_packets of remedies", remedies.release_packets, 1, (1 << 15) - 1)


def _check_pauses(network: Network, pauses: Pauses, fcp_period: int, breakers: set[Breaker], mtu: int) -> None:
    """Raise OptionError if the pause thresholds are invalid or the input buffers are too small for the thresholds.

    A buffer needs room for the data that its sender still sends before the pause takes effect.

    ``fcp_period`` is the time between flow control packets, ``breakers`` has the kinds of breakers in use, and ``mtu``
    is the size of the largest packet in bytes.
    """
    numbers = all(is_float_in(blocks, -MOST, MOST) for blocks in (pauses.xoff, pauses.xon))
    if numbers and not 0 <= pauses.xon < pauses.xoff:
        raise OptionError(
            f"pauses begin at {count_noun(pauses.xoff, 'block')} and end at {pauses.xon}",
            remedy="use an xon of at least 0, and a larger xoff",
        )
    for name in ("xoff", "xon"):
        _check_int(f"{name} of pauses", getattr(pauses, name), 0, MOST)
    if fcp_period or Breaker.DEADLOCK in breakers:
        raise OptionError("flow control packets and Deadlock Breaker need credits, which pauses replace")
    arrays = network.arrays
    inside = arrays.dst < arrays.switches
    trip = 2 * arrays.wire[inside].astype(np.int64) + arrays.switch_delay[arrays.dst[inside]]
    comes = -(-(trip << COST_BITS) // (arrays.cost[inside] * BLOCK))
    need = int(pauses.xoff - 1 + -(-mtu // BLOCK) + comes.max(initial=0))
    room = int(arrays.buffer[inside].astype(np.int64).min(initial=need))
    if room < need:
        raise OptionError(
            f"buffers of {count_noun(room, 'block')} overflow, with pauses from {pauses.xoff} on",
            remedy=f"use at least {need}: room for a packet, and for the data of a round trip",
        )


def _wheel_bits(network: Network, mtu: int) -> int:
    """Return the number n such that the kernel's timing wheel (its queue of future events) has 2^n slots.

    A slot is one tick.  The wheel should have more than four times as many slots as the largest packet takes ticks for
    one hop.  The smallest and the largest n in ``WHEEL_BITS`` limit the result.
    """
    arrays = network.arrays
    slowest = int(arrays.cost.max(initial=1)) * int(mtu) >> 20
    ahead = slowest + int(arrays.wire.max(initial=1)) + int(arrays.switch_delay.max(initial=0))
    least, most = WHEEL_BITS
    return min(max((4 * ahead).bit_length(), least), most)


def option_arrays(network: Network, switching: Switching, remedies: Remedies, mtu: int) -> OptionArrays:
    """Check the options of the switches and convert them to the arrays of the C kernel, one row for each channel.

    ``mtu`` is the size of the largest packet in bytes.

    Raises
    ------
    OptionError
        A value is out of range, or a port does not exist.
    """
    _check_int("fcp_period", switching.fcp_period, 0, LONGEST)
    _check_int("speedup", switching.speedup, 0, MOST_SPEEDUP)
    _check_int("seed", switching.seed, 0, MOST_SEED)
    if not isinstance(switching.arbitration, Arbitration) or not isinstance(switching.inputs, Inputs):
        raise OptionError(f"switches cannot be {switching.arbitration!r} and {switching.inputs!r}")
    if switching.arbitration is Arbitration.CROSSBAR and switching.vlarb is not None:
        raise OptionError(
            "VL arbitration tables choose a VL first, but Arbitration.CROSSBAR serves crossbar inputs in turn",
            remedy="use Arbitration.ROUND_ROBIN with VL arbitration tables",
        )
    each = _remedy_of(network, remedies)
    _check_remedies(remedies, set(each), mtu)
    kinds = {remedy.breaker for remedy in each}
    if switching.pauses is not None:
        _check_pauses(network, switching.pauses, switching.fcp_period, kinds, mtu)
    deadlock = [remedy.breaker is Breaker.DEADLOCK for remedy in each]
    extra = np.asarray([-(-remedy.extra // BLOCK) for remedy in each], np.int32)
    lifetime = np.full(network.arrays.devices, remedies.lifetime, np.int64)
    lifetime[network.arrays.switches :] = 0
    rows = [] if switching.vlarb is None else [switching.vlarb.row(network.vls)]
    return OptionArrays(
        arbitration=int(switching.arbitration),
        single_fifo=int(switching.inputs),
        speedup=switching.speedup,
        fcp_period=switching.fcp_period,
        wheel_bits=_wheel_bits(network, mtu),
        stall_multiple=STALL_MULTIPLE,
        seed=switching.seed,
        sample_period=remedies.sample if kinds - {Breaker.NONE} else 0,
        control_delay=remedies.control_delay,
        release_packets=remedies.release_packets,
        no_alternative=int(remedies.move_others),
        rounds=remedies.rounds,
        xoff=0 if switching.pauses is None else switching.pauses.xoff,
        xon=0 if switching.pauses is None else switching.pauses.xon,
        hoq=np.asarray([remedy.hoq for remedy in each], np.int64),
        stall_count=np.asarray([remedy.stall_count for remedy in each], np.int32),
        lifetime=lifetime,
        breaker=np.asarray([int(remedy.breaker) for remedy in each], np.int32),
        detect=np.asarray([remedy.detect for remedy in each], np.int64),
        repeat=np.asarray([remedy.repeat for remedy in each], np.int64),
        release=np.asarray([remedy.release for remedy in each], np.int64),
        extra=np.where(deadlock, extra, 0).astype(np.int32),
        arbiter=np.zeros(network.channels, np.int32),
        vlarb=np.asarray(rows, np.uint8).reshape(-1, VLARB_WIDTH),
    )


def frees_knots(arrays: NetworkArrays, options: OptionArrays) -> npt.NDArray[np.bool_]:
    """Return bool[N]: whether the sending port of each channel has a Deadlock Breaker that can work.

    A knot can be resolved only if the Deadlock Breakers of all channels of the knot can work.  A Deadlock Breaker can
    work on two conditions.  The channel leads to a switch, because CAs discard control messages.  A rule lasts longer
    than the period of flow control packets, because otherwise the added room is removed before the sender has credits
    for this room.
    """
    to_switch = arrays.dst < arrays.switches
    return np.asarray(to_switch & (options.breaker == Breaker.DEADLOCK) & (options.release > options.fcp_period))
