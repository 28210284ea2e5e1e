"""What a simulation tells: why it stopped, its log, its counters, its lanes, its flows."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Why(enum.IntEnum):
    """Why a run stopped."""

    TIME = 0
    """It came to the time it was told."""
    FINISHED = 1
    """Everything was delivered or dropped, and nothing more is due."""
    STANDSTILL = 2
    """Packets are in the network, and no data moves: nothing ever will, or (where a run is told to stop then) only a
    limit on lifetimes or a breaker will move it."""
    EVENTS = 3
    """It came to the number of events it was told."""


class Event(enum.IntEnum):
    """What the log tells; ``a``, ``b``, ``c``, ``d`` of each."""

    HOQ_DROP = 0
    """lane, LID, input, drops in a row."""
    STALLED = 1
    """lane, until."""
    UNSTALLED = 2
    """lane."""
    SUSPECTED = 3
    """lane, its SPUID."""
    CLEARED = 4
    """lane."""
    CLCM = 5
    """lane that it is sent by, SPUID, phase, index."""
    REPLACED = 6
    """lane, the smaller SPUID that it sends from now on, lane that it came by."""
    MASTER = 7
    """lane out, lane in, SPUID, switch."""
    REROUTED = 8
    """switch, LID, new port, lane that it leaves."""
    RELEASED = 9
    """lane, lane in, packets."""
    OVERRUN = 10
    """lane, LID, blocks: a packet sent without credit found no room."""
    FOUND = 11
    """lane out, lane in, lanes of the loop, switch."""
    RULE = 12
    """lane out, lane in, blocks more."""
    RULE_END = 13
    """lane out, lane in."""
    ROUND = 14
    """lane, its new SPUID, number of the round."""
    FAILED = 15
    """channel, packets lost with its link."""
    RESTORED = 16
    """channel."""


class Stop(NamedTuple):
    """Why a run stopped, at which tick, after how many events in all."""

    why: Why
    time: int
    events: int


@dataclass(frozen=True, eq=False)
class Counters:
    """Counters by channel, of the port that sends on it, under InfiniBand's names: int64[N] each.

    Attributes
    ----------
    port_xmit_data
        Octets over 4, rounded down.
    port_xmit_pkts
        Packets.
    port_xmit_wait
        Ticks with something to send and nothing sent.
    port_xmit_discards
        Packets that the port dropped, for any of the reasons below, because its link was down, or because the VL of the
        packet does not exist.
    port_sw_hoq_lifetime_limit_discards, port_sw_lifetime_limit_discards, vl_stalled_discards
        Of these: head of queue for too long, in the switch for too long, while the VL was stalled.
    buffer_overrun_errors
        Packets that came without credit and found no room at the other end.
    port_rcv_switch_relay_errors
        Packets that the other end had no way for.
    control_bytes
        Of breakers' messages.
    link_down_discards
        Packets lost with the channel's link: on it, waiting for it (these are xmit discards too), or arriving for it
        while it was down.
    waiting
        Packets that wait for the channel now.
    """

    port_xmit_data: npt.NDArray[np.int64]
    port_xmit_pkts: npt.NDArray[np.int64]
    port_xmit_wait: npt.NDArray[np.int64]
    port_xmit_discards: npt.NDArray[np.int64]
    port_sw_hoq_lifetime_limit_discards: npt.NDArray[np.int64]
    port_sw_lifetime_limit_discards: npt.NDArray[np.int64]
    vl_stalled_discards: npt.NDArray[np.int64]
    buffer_overrun_errors: npt.NDArray[np.int64]
    port_rcv_switch_relay_errors: npt.NDArray[np.int64]
    control_bytes: npt.NDArray[np.int64]
    link_down_discards: npt.NDArray[np.int64]
    waiting: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lanes:
    """Every VL of every channel, int64[N, V] each, in blocks of 64 bytes.

    Attributes
    ----------
    fctbs, fccl
        Blocks sent since the beginning, and the limit of what may be sent (on the wire: modulo 4096).
    credits
        Their difference; below 0 where a packet was sent without.
    occupancy
        Blocks in the input buffer at the other end that have not begun to leave.
    flying, returning
        Blocks on the way to it; blocks given back that the sender does not know of yet.
    buffer
        The sum of the four, always.
    waiting
        Packets that wait for the lane at its sender.
    sent
        Tick at which the last packet's tail left.
    suspected, spuid, stalled
        Of the sending port.
    paused, pauses
        Whether the sender has been told to stop; how often the receiver told it so.
    """

    fctbs: npt.NDArray[np.int64]
    fccl: npt.NDArray[np.int64]
    credits: npt.NDArray[np.int64]
    occupancy: npt.NDArray[np.int64]
    flying: npt.NDArray[np.int64]
    returning: npt.NDArray[np.int64]
    buffer: npt.NDArray[np.int64]
    waiting: npt.NDArray[np.int64]
    sent: npt.NDArray[np.int64]
    suspected: npt.NDArray[np.int64]
    spuid: npt.NDArray[np.int64]
    stalled: npt.NDArray[np.int64]
    paused: npt.NDArray[np.int64]
    pauses: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FlowCounts:
    """What became of each flow, int64[F] each; latencies are sums over delivered packets, in ticks.

    Attributes
    ----------
    messages, messages_done
        Begun, delivered to their last packet.
    sent_packets, sent_bytes, packets, bytes, dropped
        Sent by the CA, delivered, dropped on the way.
    latency, network_latency, worst
        From the message's being due, and from the packet's first byte on a wire, to the last byte's arrival; the
        longest of the former.
    """

    messages: npt.NDArray[np.int64]
    sent_packets: npt.NDArray[np.int64]
    sent_bytes: npt.NDArray[np.int64]
    packets: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    dropped: npt.NDArray[np.int64]
    latency: npt.NDArray[np.int64]
    network_latency: npt.NDArray[np.int64]
    worst: npt.NDArray[np.int64]
    messages_done: npt.NDArray[np.int64]
