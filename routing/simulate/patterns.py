"""Make traffic patterns at a given load: which CA sends to which, and when messages are due.

CAs are numbered in the order of :func:`routing.simulate.traffic.senders`.  The generators number the CAs of tori and
meshes by coordinate.  So with one CA at each switch, the patterns have their usual meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from routing.errors import OptionError
from routing.numerals import count_noun
from routing.simulate.bounds import LONGEST_MEAN, is_float_in
from routing.simulate.network import Network
from routing.simulate.traffic import Flow, Pattern, Process, Traffic, base_lids, message_interval, senders

Partners = Sequence[int]


def _transpose(count: int, _: int) -> Partners:
    side = math.isqrt(count)
    if side * side != count:
        raise OptionError(f"{count_noun(count, 'CA')} form no square", remedy="use transpose with n x n CAs")
    return [(n % side) * side + n // side for n in range(count)]


def _bit_reverse(count: int, _: int) -> Partners:
    bits = count.bit_length() - 1
    if count != 1 << bits:
        raise OptionError(f"{count} is not a power of two", remedy="use bit-reverse with 2^n CAs")
    return [int(f"{n:0{bits}b}"[::-1], 2) if bits else 0 for n in range(count)]


def _random(count: int, seed: int) -> Partners:
    """Return a random permutation without fixed points, by Sattolo's algorithm (one cycle of all CAs)."""
    partner = list(range(count))
    random = np.random.Generator(np.random.PCG64(seed))
    for last in range(count - 1, 0, -1):
        other = int(random.integers(last))
        partner[last], partner[other] = partner[other], partner[last]
    return partner


PERMUTATIONS: Mapping[str, Callable[[int, int], Partners]] = {
    "permutation": _random,
    "neighbour": lambda count, _: [(n + 1) % count for n in range(count)],
    "tornado": lambda count, _: [(n + (count + 1) // 2 - 1) % count for n in range(count)],
    "transpose": _transpose,
    "bit-complement": lambda count, _: [count - 1 - n for n in range(count)],
    "bit-reverse": _bit_reverse,
}
"""Patterns in which each CA sends to one other CA, as functions of the number of CAs and a seed."""

PATTERNS = ("uniform", *PERMUTATIONS, "hotspot", "incast")
HOT_SHARE = 0.2
"""Fraction of the messages of ``hotspot`` that go to the first CA."""
PROCESSES = {"poisson": Process.POISSON, "bernoulli": Process.BERNOULLI, "bursty": Process.BURSTY}


def pattern_traffic(
    network: Network,
    pattern: str,
    load: float,
    *,
    process: Process = Process.POISSON,
    burst: float = 8.0,
    bytes: int = 2048,  # noqa: A002
    mtu: int = 2048,
    seed: int = 1,
) -> Traffic:
    """Make the traffic of a pattern.

    Parameters
    ----------
    network
        Network.  All its CAs that have LIDs send.
    pattern
        Name of the pattern.  In all patterns except the first two, each CA always sends to the same CA.

        - ``uniform``: random destinations.
        - ``hotspot``: a fifth of the messages goes to the first CA, and all others go to random destinations.
        - ``incast``: the first CA.
        - ``permutation``: the CA that a random permutation selects.
        - ``neighbour``: the next CA.
        - ``tornado``: the CA nearly halfway round all CAs.
        - ``transpose``: with the CAs in a square, the CA with row and column exchanged.
        - ``bit-complement``: for CA n of N CAs, CA N - 1 - n.  If N is a power of two, all bits of n are inverted.
        - ``bit-reverse``: the CA whose number has the bits in the opposite order.
    load
        Load of each sending CA's link, as a fraction.  For ``incast`` it is the load of the receiving CA's link.
    process
        Arrival process of messages: Poisson, Bernoulli (a slot is the time of a message), or bursty.
    burst
        Mean number of messages of a burst.  The messages of a burst follow each other at the rate of the link.
    bytes, mtu
        Size in bytes of a message, and of the largest packet.
    seed
        Seed of the random permutation.

    Raises
    ------
    OptionError
        The pattern is unknown or does not fit the number of CAs, or a value is out of range.
    """
    rows, lids = senders(network.fabric), tuple(base_lids(network.fabric).tolist())
    if pattern not in PATTERNS:
        raise OptionError(f"{pattern!r} is not a pattern", remedy=f"use {', '.join(PATTERNS)}")
    if len(rows) < 2:
        raise OptionError("a pattern needs two CAs")
    flows = []
    partner = PERMUTATIONS[pattern](len(rows), seed) if pattern in PERMUTATIONS else None
    for n, row in enumerate(rows):
        if (partner is not None and partner[n] == n) or (pattern == "incast" and n == 0):
            continue
        aims = lids if pattern in ("uniform", "hotspot") else (lids[0 if partner is None else partner[n]],)
        own_load = load / (len(rows) - 1) if pattern == "incast" else load
        hot = lids[:1] if pattern == "hotspot" and n else ()
        choice = Pattern.HOTSPOT if hot else Pattern.UNIFORM
        flow = Flow(row, aims, choice, bytes=bytes, hot=hot, hot_share=HOT_SHARE if hot else 0.0)
        flows.append(_timed(network, flow, process, own_load, burst))
    return Traffic(tuple(flows), mtu)


def _timed(network: Network, flow: Flow, process: Process, load: float, burst: float) -> Flow:
    """Return a copy of a flow with the given arrival process of messages.

    ``load`` is the mean load of the sending CA's link, and ``burst`` the mean number of messages of a burst.
    """
    interval = message_interval(network, flow.source, load, flow.bytes)
    busy = message_interval(network, flow.source, 1.0, flow.bytes)
    if process is Process.POISSON:
        return replace(flow, process=process, interval=interval)
    if process is Process.BERNOULLI:
        slot = float(max(1, round(busy)))
        return replace(flow, process=process, interval=slot, probability=min(1.0, slot / interval))
    if process is not Process.BURSTY:
        raise OptionError(f"{process!r} has no load", remedy="use POISSON, BERNOULLI or BURSTY")
    if not is_float_in(burst, 1, LONGEST_MEAN):
        raise OptionError(f"{burst!r} messages are not a valid burst", remedy="use 1 or more")
    return replace(flow, process=process, interval=busy, burst=burst, gap=burst * (interval - busy))


def offered_rate(traffic: Traffic) -> float:
    """Return the mean rate at which messages of a pattern become due, in bytes per tick of all CAs together."""
    return sum(flow.bytes / _mean_interval(flow) for flow in traffic.flows)


def _mean_interval(flow: Flow) -> float:
    if flow.process is Process.BERNOULLI:
        return max(1, round(flow.interval)) / flow.probability
    if flow.process is Process.BURSTY:
        return flow.interval + flow.gap / flow.burst
    return flow.interval
