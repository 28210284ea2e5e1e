"""Define the input of a simulation: flows of messages between end ports.  Functions build common traffic patterns."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.simulation_arrays import FLOW_NUMBERS, FLOW_REALS, TrafficArrays
from routing.errors import OptionError
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.simulate.bounds import LONGEST_MEAN, is_float_in, is_int_in
from routing.simulate.network import BLOCK, Network

FOREVER = 1 << 62
MOST_BYTES = 1 << 30
MOST_PACKET = 0xFFFF
LEAST_LOAD = 1e-6


class Process(enum.IntEnum):
    """Arrival process of the messages of a flow: when the next message is due."""

    PERSISTENT = 0
    """The next message is always due, so the flow sends at full rate."""
    POISSON = 1
    """Messages become due at exponentially distributed intervals."""
    BERNOULLI = 2
    """In every time slot, a message becomes due with a fixed probability."""
    BURSTY = 3
    """Messages come in bursts.

    Within a burst, messages are a fixed interval apart.  The number of messages in a burst has a geometric
    distribution, and the gaps between bursts have an exponential distribution.
    """
    TRACE = 4
    """Messages become due at given ticks."""


class Pattern(enum.IntEnum):
    """Rule by which a flow chooses the destination of each message."""

    CYCLE = 0
    """The destinations in the order of :attr:`Flow.destinations`, repeatedly.

    If this list contains the sender's own LID, the first destination is the LID that follows the sender's own LID.
    """
    UNIFORM = 1
    """A random destination; all destinations have the same probability."""
    HOTSPOT = 2
    """With a given probability one of the hot destinations, otherwise any destination."""


@dataclass(frozen=True)
class Flow:
    """Flow of messages from one end port to one or more destinations.

    Attributes
    ----------
    source
        Row of the sending end port in the fabric's end-port arrays.
    destinations
        Destination LIDs.  If the list contains the sender's own LID, this LID is skipped.
    pattern, process
        Rule for the choice of destinations, and arrival process of the messages.
    bytes
        Size of a message in bytes.
    messages
        Number of messages.  None: no limit.
    interval
        Mean ticks between messages (Poisson), length of a slot in ticks (Bernoulli), or ticks from one message of a
        burst to the next (bursty).
    probability
        Probability of a message in a slot (Bernoulli).
    burst, gap
        Mean number of messages in a burst, and mean ticks between bursts.
    hot, hot_share
        LIDs of the hotspot (destinations that get extra traffic), and the probability that the destination of a message
        is chosen among these LIDs.
    window
        Largest number of packets in flight.  None: no limit.  After a packet was delivered or lost, the next packet can
        be sent one tick later.
    start, stop
        First tick of the flow, and the tick from which on the flow begins no further message.
    trace
        Messages (tick, LID, bytes) in order of time, for process TRACE.
    """

    source: int
    destinations: tuple[int, ...] = ()
    pattern: Pattern = Pattern.CYCLE
    process: Process = Process.PERSISTENT
    bytes: int = 2048
    messages: int | None = None
    window: int | None = None
    interval: float = 1.0
    probability: float = 1.0
    burst: float = 1.0
    gap: float = 0.0
    hot: tuple[int, ...] = ()
    hot_share: float = 0.0
    start: int = 0
    stop: int = FOREVER
    trace: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Traffic:
    """All flows of a simulation, and the largest packet size.

    Attributes
    ----------
    flows
        The flows.  Results have one row for each flow in this order.
    mtu
        Size of the largest packet in bytes.
    """

    flows: tuple[Flow, ...]
    mtu: int = 2048


def _check(flow: Flow, number: int, fabric: Fabric) -> None:
    """Raise OptionError if a flow has an invalid value.  ``number`` is the number of the flow, for the
    error message.
    """
    what = f"flow {number}"
    if not is_int_in(flow.source, 0, fabric.endports - 1):
        raise OptionError(f"{what}: there is no end port {flow.source}")
    if not isinstance(flow.pattern, Pattern) or not isinstance(flow.process, Process):
        raise OptionError(f"{what}: {flow.pattern!r} of {flow.process!r}", remedy="use a Pattern and a Process")
    own = int(fabric.endport_lid[flow.source])
    tracing = flow.process is Process.TRACE
    aims = [lid for _, lid, _ in flow.trace] if tracing else [*flow.destinations, *flow.hot]
    owner = fabric.lids.endport
    for lid in aims:
        if not is_int_in(lid, 1, len(owner) - 1) or owner[lid] < 0:
            raise OptionError(f"{what}: no CA or router has LID {lid}")
    if not [lid for lid in aims if lid != own]:
        raise OptionError(f"{what}: it has no destination", remedy="give it a destination other than its source")
    if not tracing:
        _check_destinations(flow, own, what)
    if own in flow.hot or (tracing and own in aims):
        raise OptionError(
            f"{what}: {fabric.endport_label[flow.source]} sends to itself", remedy="leave its own LID out"
        )
    sizes = [size for _, _, size in flow.trace] if tracing else [flow.bytes]
    times = [time for time, _, _ in flow.trace]
    for fits, problem in (
        (all(is_int_in(size, 1, MOST_BYTES) for size in sizes), "a message has no bytes, or more than 2^30"),
        (is_float_in(flow.interval, 0, LONGEST_MEAN) and flow.interval > 0, "the interval is not over 0, up to 2^50"),
        (is_float_in(flow.probability, 0, 1) and flow.probability > 0, "the probability is not within 0 to 1"),
        (is_float_in(flow.burst, 1, LONGEST_MEAN), "bursts have less than one message, or more than 2^50"),
        (is_float_in(flow.gap, 0, LONGEST_MEAN), "gaps are negative, or over 2^50"),
        (is_float_in(flow.hot_share, 0, 1) and (flow.hot or not flow.hot_share), "the hotspot's share is invalid"),
        (
            is_int_in(flow.stop, 0, FOREVER) and is_int_in(flow.start, 0, flow.stop),
            "it stops before it starts, or starts before 0",
        ),
        (flow.messages is None or is_int_in(flow.messages, 1, FOREVER), "it has no messages, or more than 2^62"),
        (flow.window is None or is_int_in(flow.window, 1, FOREVER), "its window lets no packet out, or is over 2^62"),
        (all(is_int_in(time, 0, FOREVER) for time in times), "its trace has invalid times"),
        (times == sorted(times), "its trace is not in order of time"),
    ):
        if not fits:
            raise OptionError(f"{what}: {problem}")
    if flow.process is Process.BERNOULLI and max(1, round(flow.interval)) / flow.probability > LONGEST_MEAN:
        raise OptionError(f"{what}: a message is due after more than 2^50 ticks", remedy="use a larger probability")


def _check_destinations(flow: Flow, own: int, what: str) -> None:
    """Raise OptionError if some message of a flow would have no valid destination.

    ``own`` is the LID of the sender, and ``what`` names the flow in the error message.
    """
    if flow.destinations.count(own) > 1:
        raise OptionError(f"{what}: its own LID is among the destinations twice", remedy="leave it out")
    always_hot = flow.pattern is Pattern.HOTSPOT and flow.hot_share == 1
    if not always_hot and all(lid == own for lid in flow.destinations):
        raise OptionError(f"{what}: it has no destination", remedy="give it a destination other than its source")


@dataclass
class _Lists:
    """Destination lists of all flows for the C kernel.  Equal lists are stored once.

    Attributes
    ----------
    where
        Position in ``lids`` at which each list begins.
    lids
        Concatenated LIDs of all lists.
    """

    where: dict[tuple[int, ...], int] = field(default_factory=dict)
    lids: list[int] = field(default_factory=list)

    def position_of(self, lids: tuple[int, ...]) -> int:
        """Return the index at which the list ``lids`` begins in the array of all lists.  A list that the array does not
        have yet is appended.
        """
        if lids not in self.where:
            self.where[lids] = len(self.lids)
            self.lids.extend(lids)
        return self.where[lids]


def _sl_row(network: Network, source: int) -> int:
    """Return the row of the SL table for packets of an end port.  Tables may have rows by switch or by LID."""
    fabric, sls = network.fabric, network.routing.service_levels
    if sls.by_switch and fabric.endport_switch[source] < 0:
        raise OptionError(f"{fabric.endport_label[source]} is at no switch, and SLs depend on the switch")
    return int(sls.row_of(fabric.endport_switch[source], fabric.endport_lid[source]))


def _check_sizes(network: Network, traffic: Traffic) -> None:
    """Raise OptionError if the largest packet does not fit every buffer, or there is no flow."""
    if not is_int_in(traffic.mtu, 1, MOST_PACKET):
        raise OptionError(f"{traffic.mtu} bytes are not a valid packet size", remedy=f"use 1 to {MOST_PACKET}")
    buffer = int(network.arrays.buffer.min(initial=1 << 30)) * BLOCK
    if traffic.mtu > buffer:
        raise OptionError(
            f"a packet of {traffic.mtu} bytes does not fit a buffer of {buffer}",
            remedy=f"give every VL at least {count_noun(-(-traffic.mtu // BLOCK), 'block')}",
        )
    if not traffic.flows:
        raise OptionError("there is no traffic", remedy="give at least one flow")


def _reals(flow: Flow) -> tuple[float, ...]:
    """Return the floating-point parameters of a flow, in the order of ``FLOW_REALS``."""
    # The kernel uses this factor for Bernoulli traffic, with the probability p of a message in a slot.  The logarithm
    # of a random number, times the factor 1 / log(1 - p), is the number of empty slots before a message.  For p = 1
    # this factor is undefined.  The factor 0 then gives the correct result, 0 empty slots.
    factor = 0.0 if flow.probability >= 1 else 1.0 / math.log1p(-flow.probability)
    return flow.interval, factor, flow.burst, flow.gap, flow.hot_share, 0.0


def traffic_arrays(network: Network, traffic: Traffic) -> TrafficArrays:
    """Check the flows and convert them to the arrays of the C kernel.

    Raises
    ------
    OptionError
        A flow has an invalid source, destination or size, or a packet does not fit a buffer.
    """
    _check_sizes(network, traffic)
    lists = _Lists()
    trace: list[tuple[int, int, int]] = []
    numbers = np.zeros((len(traffic.flows), len(FLOW_NUMBERS)), np.int64)
    reals = np.zeros((len(traffic.flows), len(FLOW_REALS)))
    used: dict[int, int] = {}
    channel_of: dict[int, int] = {}
    for number, flow in enumerate(traffic.flows):
        _check(flow, number, network.fabric)
        if flow.source not in channel_of:
            channel_of[flow.source] = network.endport_channel(flow.source)
        channel = channel_of[flow.source]
        index = used.get(channel, 0)
        used[channel] = index + 1
        own = int(network.fabric.endport_lid[flow.source])
        tracing = flow.process is Process.TRACE
        position, count = (len(trace), len(flow.trace)) if tracing else (lists.position_of(flow.destinations), 0)
        trace += flow.trace
        messages = FOREVER if flow.messages is None else flow.messages
        numbers[number] = (
            channel, index, flow.process, flow.pattern, position, len(flow.destinations),
            flow.destinations.index(own) if own in flow.destinations else -1,
            lists.position_of(flow.hot), len(flow.hot),
            flow.bytes, traffic.mtu, _sl_row(network, flow.source), flow.start, flow.stop,
            count if tracing else messages, max(1, round(flow.interval)),
            FOREVER if flow.window is None else flow.window,
        )  # fmt: skip
        reals[number] = _reals(flow)
    return TrafficArrays(numbers, reals, np.asarray(lists.lids, np.int32), np.asarray(trace, np.int64).reshape(-1, 3))


def base_lids(fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return int64[n]: the base LIDs of the end ports that have a LID and are attached to a switch."""
    at_switch = (fabric.endport_lid > 0) & (fabric.endport_switch >= 0)
    return fabric.endport_lid[at_switch].astype(np.int64)


def senders(fabric: Fabric) -> list[int]:
    """Return the rows of the end ports that have a LID and are attached to a switch."""
    return np.flatnonzero((fabric.endport_lid > 0) & (fabric.endport_switch >= 0)).tolist()


def all_to_all(fabric: Fabric, *, bytes: int = 2048, rounds: int = 1, mtu: int = 2048) -> Traffic:  # noqa: A002
    """Make an all-to-all exchange: every CA sends one message to every other CA at full rate, ``rounds`` times.

    CA n sends its first message to CA n + 1, so that the CAs do not all begin with the same destination.

    ``bytes`` is the size of a message, and ``mtu`` the size of the largest packet in bytes.

    Raises
    ------
    OptionError
        There are fewer than two CAs, or ``rounds`` is out of range.
    """
    lids = tuple(base_lids(fabric).tolist())
    if len(lids) < 2 or not is_int_in(rounds, 1, FOREVER // len(lids)):
        raise OptionError(f"an exchange needs two CAs and a round, not {len(lids)} and {rounds!r}")
    count = (len(lids) - 1) * rounds
    return Traffic(tuple(Flow(row, lids, bytes=bytes, messages=count) for row in senders(fabric)), mtu)


def within(traffic: Traffic, window: int) -> Traffic:
    """Limit each flow of the traffic to ``window`` packets in flight."""
    return replace(traffic, flows=tuple(replace(flow, window=window) for flow in traffic.flows))


def message_interval(network: Network, source: int, load: float, size: int) -> float:
    """Return the interval between messages that gives an end port's link the given load.

    ``load`` is a fraction of the link's rate, ``size`` the bytes of a message.  The result is in ticks.

    Raises
    ------
    OptionError
        The load or the size is out of range.
    """
    if not is_float_in(load, LEAST_LOAD, 1):
        raise OptionError(f"{load!r} is not a load", remedy=f"use a share from {LEAST_LOAD:g} to 1")
    if not is_int_in(size, 1, MOST_BYTES):
        raise OptionError(f"{size!r} bytes are not a valid message size", remedy=f"use 1 to {MOST_BYTES}")
    ticks = int(network.arrays.cost[network.endport_channel(source)]) / (1 << 20) * size
    return ticks / load


def uniform(
    network: Network,
    load: float,
    *,
    bytes: int = 2048,  # noqa: A002
    mtu: int = 2048,
    process: Process = Process.POISSON,
    slot: int = 1,
    hot: Sequence[int] = (),
    hot_share: float = 0.0,
) -> Traffic:
    """Make uniform random traffic between all CAs: each message goes to a random other CA.  If ``hot_share`` is
    positive, more messages go to the CAs of the hotspot, and fewer messages go to the other CAs.

    Parameters
    ----------
    network
        Network.  All its CAs that have a LID and are cabled to a switch send and receive.
    load
        Rate at which each CA creates messages, as a fraction of the rate of its link.
    bytes, mtu
        Size in bytes of a message, and of the largest packet.
    process
        Rule for the times of the messages: ``POISSON``, ``BERNOULLI``, or ``PERSISTENT``.  With ``PERSISTENT``, each CA
        sends at full rate, and ``load`` has no effect.
    slot
        Length of a slot in ticks, only for ``BERNOULLI``: at most one message is due in each slot.
    hot, hot_share
        LIDs of the hotspot, and the probability that the destination of a message is chosen among these LIDs.
        Otherwise, or if the sender has the only LID of the hotspot, the destination is any other CA.
    """
    lids = tuple(base_lids(network.fabric).tolist())
    flows = []
    for row in senders(network.fabric):
        others = tuple(lid for lid in hot if lid != network.fabric.endport_lid[row])
        share = hot_share if others else 0.0
        pattern = Pattern.HOTSPOT if share else Pattern.UNIFORM
        interval = message_interval(network, row, load, bytes)
        probability = 1.0
        if process is Process.BERNOULLI:
            probability, interval = min(1.0, slot / interval), float(slot)
        flows.append(
            Flow(row, lids, pattern, process, bytes, interval=interval, probability=probability, hot=others,
                 hot_share=share)
        )  # fmt: skip
    return Traffic(tuple(flows), mtu)


def permutation(fabric: Fabric, partner: Sequence[int], *, bytes: int = 2048, mtu: int = 2048) -> Traffic:  # noqa: A002
    """Make a permutation pattern: sender n of :func:`senders` sends to sender ``partner[n]`` at full rate.

    A sender that is its own partner sends nothing.

    ``bytes`` is the size of a message, and ``mtu`` the size of the largest packet in bytes.

    Raises
    ------
    OptionError
        ``partner`` is not a permutation of the senders.
    """
    rows, lids = senders(fabric), base_lids(fabric).tolist()
    if not all(is_int_in(position, 0, len(rows) - 1) for position in partner) or len(set(partner)) != len(rows):
        raise OptionError(f"{list(partner)} is not a permutation of {len(rows)} CAs")
    pairs = [(row, partner[n]) for n, row in enumerate(rows) if partner[n] != n]
    return Traffic(tuple(Flow(row, (lids[to],), bytes=bytes) for row, to in pairs), mtu)


def shift(fabric: Fabric, by: int, *, bytes: int = 2048, mtu: int = 2048) -> Traffic:  # noqa: A002
    """Make a shift pattern: CA n sends to CA n + ``by``, modulo the number of CAs, at full rate.

    ``bytes`` is the size of a message, and ``mtu`` the size of the largest packet in bytes.
    """
    count = len(senders(fabric))
    return permutation(fabric, [(n + by) % count for n in range(count)], bytes=bytes, mtu=mtu)
