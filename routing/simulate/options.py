"""How switches behave, and what they do against deadlock."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from routing._kernels.simulate import VLARB_WIDTH, OptionArrays
from routing.errors import OptionError
from routing.numerals import number_of
from routing.simulate.bounds import LONGEST, real, whole
from routing.simulate.network import BLOCK, COST_BITS, LEAST_TICK, Network
from routing.tables import DATA_VLS

HOQ_UNIT = 4.096e-6
"""Seconds of the lifetime limits: they are 4.096 us x 2^n."""
HOQ_NEVER = 20
"""From this n on there is no limit."""
STALL_MULTIPLE = 8
"""Head-of-queue lifetimes that a stalled VL drops everything."""
NO_LIMIT = 255
TABLE_ENTRIES = 64
MOST, MOST_SEED = (1 << 31) - 1, (1 << 63) - 1
MOST_STALL = (1 << 16) - 1
"""Drops in a row that a lane counts."""
WHEEL_BITS = (10, 16)
MOST_ROOM = 1 << 26
"""Bytes of the most that a breaker can add to a buffer."""


class Arbitration(enum.IntEnum):
    """Which input an output serves next."""

    ROUND_ROBIN = 0
    """In turn, those that have something."""
    ARRIVAL = 1
    """The packet that came first; in turn among those that came in the same tick."""
    RANDOM = 2
    """Any of those that have something."""


class Inputs(enum.IntEnum):
    """How an input keeps its packets."""

    VOQ = 0
    """A queue for each output and VL."""
    FIFO = 1
    """One queue for each VL; one packet leaves at a time."""


class Breaker(enum.IntEnum):
    """What a port does about a deadlock."""

    NONE = 0
    LOOP = 1
    DEADLOCK = 2


def lifetime_ticks(value: int, tick: float) -> int:
    """Ticks of a 5-bit HOQLife or LifeTimeValue; 0 for no limit.

    Raises
    ------
    OptionError
        The value does not fit 5 bits, or a tick takes no time.
    """
    if not whole(value, 0, 31):
        raise OptionError(f"{value!r} is no lifetime limit", remedy="use 0 to 31; 20 and more mean none")
    if not real(tick, LEAST_TICK, 1):
        raise OptionError(f"a tick of {tick!r} s takes no time", remedy="use seconds over 0")
    return 0 if value >= HOQ_NEVER else max(1, round(HOQ_UNIT * 2**value / tick))


@dataclass(frozen=True)
class VLArb:
    """VL arbitration tables of every port: pairs (VL, weight in 64-byte units), and the limit of the high table.

    Attributes
    ----------
    high, low
        Up to 64 entries; weight 0: left out.
    limit
        Times 4096 bytes that high entries may send before low ones get a packet; 255: any number; 0: one packet.
    """

    high: tuple[tuple[int, int], ...] = ()
    low: tuple[tuple[int, int], ...] = tuple((vl, 64) for vl in range(15))
    limit: int = 0

    def row(self, vls: int) -> list[int]:
        """The 260 bytes of the kernel.

        Raises
        ------
        OptionError
            A table too long, a value out of range, a VL in use that no entry ever serves.
        """
        for entries in (self.high, self.low):
            fits = all(whole(vl, 0, DATA_VLS - 1) and whole(weight, 0, 255) for vl, weight in entries)
            if len(entries) > TABLE_ENTRIES or not fits:
                raise OptionError("a VL arbitration table has over 64 entries, or a VL or weight that cannot be")
        if not whole(self.limit, 0, NO_LIMIT):
            raise OptionError(f"{self.limit!r} is no high limit", remedy="use 0 to 255")
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
    """What one port does with a packet that cannot go on.

    Attributes
    ----------
    hoq
        Ticks that a packet may stand at the head of a VL of the port, 0: for ever.
    stall_count
        Drops in a row after which the VL drops everything for 8 x ``hoq``; 0: never.
    breaker
        Loop Breaker, Deadlock Breaker or none.
    detect, repeat, release
        Ticks of standing still until the port is suspected, between its control messages, and that a rule of Deadlock
        Breaker holds.
    extra
        Bytes that Deadlock Breaker adds to a buffer: at least a packet.
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
    """What all ports of all switches do.

    Attributes
    ----------
    port
        Every port, unless it is told otherwise.
    leaf
        Ports to CAs and routers; None: like the others.
    ports
        Single ports, by (row of the switch, port number).
    lifetime
        Ticks that a packet may be in a switch, 0: for ever.
    sample
        Ticks between looks for suspected ports, where there is a breaker.
    control_delay
        Ticks to handle a control message.
    release_packets
        Packets that a master of Loop Breaker lets go without credit.
    move_others
        A master whose flows have no other shortest way moves the other flows of the port; False: it never asks to be
        master.
    rounds
        Messages that a port sends under one number before it draws a new one; 0: it keeps the first.  Not in the paper,
        where a port that stands still behind the loop may have the smallest number, so that nobody becomes master.
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


@dataclass(frozen=True)
class Pauses:
    """Thresholds of pauses (IEEE 802.1Qbb), in blocks of 64 bytes.

    What counts is what has come into a VL's input buffer at a switch, each packet until its tail has left.

    Attributes
    ----------
    xoff
        So many, or more, and the sender is told to stop.
    xon
        So many, or fewer, and it is told to go on.
    """

    xoff: int
    xon: int


@dataclass(frozen=True)
class Switching:
    """How packets get through switches.

    Attributes
    ----------
    arbitration, inputs
        Which packet goes next.  Whether a credit loop locks can depend on it, so every result has to state it.
    fcp_period
        Ticks between flow control packets; 0: credits come back at once.
    vlarb
        VL arbitration tables of all ports; None: VLs take turns.
    seed
        Of all that is drawn: traffic, random arbitration, identifiers of breakers.
    pauses
        Pauses instead of credits, as lossless Ethernet has them; None: credits.
    """

    arbitration: Arbitration = Arbitration.ROUND_ROBIN
    inputs: Inputs = Inputs.VOQ
    fcp_period: int = 0
    vlarb: VLArb | None = None
    seed: int = 1
    pauses: Pauses | None = None


def _remedy_of(network: Network, remedies: Remedies) -> list[Remedy]:
    """The remedy of every channel's sending port; CAs have none."""
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


def _check_whole(what: str, value: int, least: int, most: int) -> None:
    """Raise OptionError where a value is no whole number within bounds."""
    if not whole(value, least, most):
        raise OptionError(f"{what} is {value!r}", remedy=f"use a whole number from {least} to {most}")


def _check_remedies(remedies: Remedies, each: set[Remedy], mtu: int) -> None:
    for remedy in each:
        if not isinstance(remedy.breaker, Breaker):
            raise OptionError(f"{remedy.breaker!r} is no breaker", remedy="use a Breaker")
        if remedy.breaker is not Breaker.NONE and remedy.detect == 0:
            raise OptionError("a breaker needs a time to suspect a port after", remedy="set detect")
        for name, lowest in (("hoq", 0), ("detect", 0), ("repeat", 1), ("release", 1)):
            _check_whole(f"{name} of a remedy", getattr(remedy, name), lowest, LONGEST)
        _check_whole("stall_count of a remedy", remedy.stall_count, 0, MOST_STALL)
        deadlock = remedy.breaker is Breaker.DEADLOCK
        _check_whole(
            "room that Deadlock Breaker adds for a packet more", remedy.extra, mtu if deadlock else 0, MOST_ROOM
        )
    for name, lowest in (("lifetime", 0), ("sample", 1), ("control_delay", 1)):
        _check_whole(f"{name} of remedies", getattr(remedies, name), lowest, LONGEST)
    _check_whole("rounds of remedies", remedies.rounds, 0, MOST)
    _check_whole("release_packets of remedies", remedies.release_packets, 1, (1 << 15) - 1)


def _check_pauses(network: Network, pauses: Pauses, fcp_period: int, breakers: set[Breaker], mtu: int) -> None:
    """Raise OptionError where pauses cannot be, or buffers have no room for what comes before a pause is heard."""
    numbers = all(real(blocks, -MOST, MOST) for blocks in (pauses.xoff, pauses.xon))
    if numbers and not 0 <= pauses.xon < pauses.xoff:
        raise OptionError(
            f"pauses begin at {number_of(pauses.xoff, 'block')} and end at {pauses.xon}",
            remedy="let xoff be over xon, from 0 on",
        )
    for name in ("xoff", "xon"):
        _check_whole(f"{name} of pauses", getattr(pauses, name), 0, MOST)
    if fcp_period or Breaker.DEADLOCK in breakers:
        raise OptionError("flow control packets and Deadlock Breaker are of credits, and pauses take their place")
    arrays = network.arrays
    inside = arrays.dst < arrays.switches
    trip = 2 * arrays.wire[inside].astype(np.int64) + arrays.switch_delay[arrays.dst[inside]]
    comes = -(-(trip << COST_BITS) // (arrays.cost[inside] * BLOCK))
    need = int(pauses.xoff - 1 + -(-mtu // BLOCK) + comes.max(initial=0))
    room = int(arrays.buffer[inside].astype(np.int64).min(initial=need))
    if room < need:
        raise OptionError(
            f"buffers of {number_of(room, 'block')} overflow, with pauses from {pauses.xoff} on",
            remedy=f"use at least {need}: a packet, and what comes in the time of a round trip",
        )


def _wheel_bits(network: Network, mtu: int) -> int:
    """log2 of the ticks that a packet's events lie ahead, and some more."""
    arrays = network.arrays
    slowest = int(arrays.cost.max(initial=1)) * int(mtu) >> 20
    ahead = slowest + int(arrays.wire.max(initial=1)) + int(arrays.switch_delay.max(initial=0))
    least, most = WHEEL_BITS
    return min(max((4 * ahead).bit_length(), least), most)


def option_arrays(network: Network, switching: Switching, remedies: Remedies, mtu: int) -> OptionArrays:
    """Check the options and lay them out by channel.

    Raises
    ------
    OptionError
        A value that cannot be, a port that is not there.
    """
    _check_whole("fcp_period", switching.fcp_period, 0, LONGEST)
    _check_whole("seed", switching.seed, 0, MOST_SEED)
    if not isinstance(switching.arbitration, Arbitration) or not isinstance(switching.inputs, Inputs):
        raise OptionError(f"switches cannot be {switching.arbitration!r} and {switching.inputs!r}")
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
