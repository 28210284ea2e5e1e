"""Results of a simulation: reason for stopping, log events, counters, virtual channels and flows."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class StopReason(enum.IntEnum):
    """Reason for which a run stopped."""

    TIME = 0
    """The run reached the given tick."""
    FINISHED = 1
    """All packets were delivered or dropped, and no message is due."""
    STANDSTILL = 2
    """Packets are in the network, and no data moves.  It never will, or (if the run had to stop at a standstill) only a
    lifetime limit or a breaker could make it move."""
    EVENTS = 3
    """The run reached the given number of events."""


class Event(enum.IntEnum):
    """Kinds of events in the log; the text of each lists its numbers ``a``, ``b``, ``c``, ``d``.

    A VC (virtual channel) is numbered channel x V + VL.  An SPUID is the number by which a breaker identifies a port.
    """

    HOQ_DROP = 0
    """Head of a queue dropped: VC, LID, input, drops in a row."""
    STALLED = 1
    """VL stall begins: VC, tick at which it ends."""
    UNSTALLED = 2
    """VL stall ends: VC."""
    SUSPECTED = 3
    """VC suspected: VC, its SPUID."""
    CLEARED = 4
    """VC not suspected any more: VC."""
    CLCM = 5
    """Control message sent: VC by which it is sent, SPUID, phase, index."""
    REPLACED = 6
    """SPUID replaced by a smaller one: VC, the SPUID it sends from now on, VC by which the SPUID arrived."""
    MASTER = 7
    """Master of a loop elected: output VC, input VC, SPUID, switch."""
    REROUTED = 8
    """LFT entry changed by a master: switch, LID, new port, VC of the previous port."""
    RELEASED = 9
    """Packets may be sent without credit: output VC, input VC, number of packets."""
    OVERRUN = 10
    """Packet sent without credit found no room: VC, LID, blocks."""
    FOUND = 11
    """Loop found by Deadlock Breaker: output VC, input VC, number of VCs on the loop, switch."""
    RULE = 12
    """Rule of Deadlock Breaker begins: output VC, input VC, blocks added to the buffer."""
    RULE_END = 13
    """Rule of Deadlock Breaker ends: output VC, input VC."""
    ROUND = 14
    """New round of Loop Breaker: VC, its new SPUID, number of the round."""
    FAILED = 15
    """Link down: channel, packets lost."""
    RESTORED = 16
    """Link up: channel."""


class RunResult(NamedTuple):
    """Reason for which a run stopped, its tick, and the number of events since the start of the simulation."""

    reason: StopReason
    time: int
    events: int


@dataclass(frozen=True, eq=False)
class Counters:
    """Counters of each channel at its sending port, int64[N] each, with InfiniBand's names where they exist.

    Attributes
    ----------
    port_xmit_data
        Bytes sent, divided by 4 and rounded down.
    port_xmit_pkts
        Packets sent.
    port_xmit_wait
        Ticks with packets to send during which none was sent.
    port_xmit_discards
        Packets that the port dropped: by the limits below, because its link was down, or because the packet's VL does
        not exist.
    port_sw_hoq_lifetime_limit_discards, port_sw_lifetime_limit_discards, vl_stalled_discards
        Of these, packets dropped by the head-of-queue lifetime, by the switch lifetime, and because the VL was stalled.
    buffer_overrun_errors
        Packets that were sent without credit and found no room at the receiver.
    port_rcv_switch_relay_errors
        Packets that the receiver could not forward or deliver.
    control_bytes
        Bytes of breakers' control messages sent.
    link_down_discards
        Packets lost because the channel's link was down: on the link, queued for it, or arriving for it later.  Queued
        and arriving ones also count as ``port_xmit_discards``.
    waiting
        Packets queued for the channel now.
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
class VirtualChannels:
    """State of every virtual channel (one VL of one channel), int64[N, V] each, in blocks of 64 bytes.

    Attributes
    ----------
    fctbs, fccl
        Blocks sent since the start, and the limit of blocks that may be sent (on the wire: modulo 4096).
    credits
        Difference ``fccl - fctbs``; negative after a packet was sent without credit.
    occupancy
        Blocks in the receiver's input buffer that have not begun to leave.
    flying, returning
        Blocks on the way to the buffer; blocks freed in the buffer whose credit has not reached the sender.
    buffer
        Size of the buffer, always the sum of credits, occupancy, flying and returning.
    waiting
        Packets queued for the VC at its sender.
    sent
        Tick at which the last packet's tail left, -1 if none did.
    suspected, spuid, stalled
        State of the sending port: whether a breaker suspects the VC, its SPUID, whether the VL is stalled.
    paused, pauses
        Whether the sender is paused; how often the receiver has paused it.
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
    """Counters of each flow, int64[F] each.

    Attributes
    ----------
    messages, messages_done
        Messages begun, and messages whose last packet was delivered.
    sent_packets, sent_bytes
        Packets and bytes sent by the CA.
    packets, bytes
        Packets and bytes delivered.
    dropped
        Packets dropped on their path.
    latency, network_latency
        Sums over delivered packets, in ticks, of the time until the last byte's arrival: since the message was due, and
        since the packet's first byte left the CA.
    worst
        Largest latency of a packet since its message was due, in ticks.
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
