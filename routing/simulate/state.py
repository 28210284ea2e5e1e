"""Define the results of a simulation: reason for stopping, log events, counters, virtual channels and flows."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class StopReason(enum.IntEnum):
    """Reason for which a run of a simulation stopped."""

    TIME = 0
    """The run reached the tick that the caller has given."""
    FINISHED = 1
    """All packets were delivered or dropped, and no message is due."""
    STANDSTILL = 2
    """Some packets or messages are not delivered yet, but no data moves.

    If the run was made with ``stop_at_standstill``, a lifetime limit, a deadlock breaker or a recovery scheme may still
    make data move later.  If the run was made without this argument, no data will ever move again.
    """
    EVENTS = 3
    """The run has handled as many events as the caller has allowed."""


class Event(enum.IntEnum):
    """Kinds of events in the log of a simulation.

    The description of each kind lists the meaning of its numbers ``a``, ``b``, ``c``, ``d`` in this order.  VC is the
    number channel x V + VL of a virtual channel.  SPUID is the random identifier that a suspected virtual channel sends
    (see docs/glossary.md).
    """

    HOQ_DROP = 0
    """A packet was dropped at the head of a queue, because it exceeded the head-of-queue lifetime.

    Numbers: VC for which the packet was queued, LID, input, drops in a row.  With adaptive switches, the VC is the one
    whose buffer held the packet, and the last number is always 1.
    """
    STALLED = 1
    """A VL stall begins: all packets for the VL are dropped.  Numbers: VC, tick at which the stall ends."""
    UNSTALLED = 2
    """A VL stall ends.  Number: VC."""
    SUSPECTED = 3
    """A deadlock breaker begins to suspect that a port is in a deadlock.

    Numbers: VC, SPUID (identifier) of the port.
    """
    CLEARED = 4
    """A deadlock breaker no longer suspects a port.  Number: VC."""
    CLCM = 5
    """A deadlock breaker sends a control message (CLCM).

    Numbers: VC by which the message is sent, SPUID, phase, index.

    - Loop Breaker: the phase has no meaning.  The index is the number of the election round.
    - Deadlock Breaker, phase 0 (search for a loop): the index is the number of VCs on the message's path.
    - Deadlock Breaker, phase 1 (setting of rules): the index is the position on this path.
    """
    REPLACED = 6
    """A suspected port has received a SPUID that is smaller than all SPUIDs that it knew, and passes this SPUID on.

    Numbers: VC, the smaller SPUID, VC by which this SPUID arrived.
    """
    MASTER = 7
    """Loop Breaker elects a master, the port that resolves a loop.  Numbers: output VC, input VC, SPUID, switch."""
    REROUTED = 8
    """A master of Loop Breaker changes an LFT entry.  Numbers: switch, LID, new port, VC of the previous port."""
    RELEASED = 9
    """A master of Loop Breaker permits packets to leave without credit.

    Numbers: output VC, input VC, number of packets.
    """
    OVERRUN = 10
    """A packet that was sent without credit is lost, because it found no room.  Numbers: VC, LID, blocks."""
    FOUND = 11
    """Deadlock Breaker finds a loop.  Numbers: output VC, input VC, number of VCs on the loop, switch."""
    RULE = 12
    """A rule of Deadlock Breaker begins: the output VC serves only the input by which packets of the loop arrive.

    Numbers: output VC, input VC, blocks added to the buffer.
    """
    RULE_END = 13
    """A rule of Deadlock Breaker ends, and the port serves all inputs again.  Number: output VC."""
    ROUND = 14
    """A port draws a new SPUID (identifier), because Loop Breaker has elected no master.

    Numbers: VC, new SPUID, number of the round.
    """
    FAILED = 15
    """A link goes down.  Numbers: channel, packets lost."""
    RESTORED = 16
    """A link comes up.  Number: channel."""


class RunResult(NamedTuple):
    """Result of a run: why it stopped, at which tick, and the number of events since the start of the simulation."""

    reason: StopReason
    time: int
    events: int


@dataclass(frozen=True, eq=False)
class Counters:
    """Counters of the sending port of each channel, int64[N] each for N channels.

    A counter that InfiniBand defines, too, has InfiniBand's name.

    Attributes
    ----------
    port_xmit_data
        Bytes sent, divided by 4 and rounded down.
    port_xmit_pkts
        Packets sent.
    port_xmit_wait
        Ticks during which the port had packets to send but sent none.
    port_xmit_discards
        Packets that the port dropped.  There are three reasons: one of the limits to which the next three counters
        belong, a link that was down, or a VL that does not exist.
    port_sw_hoq_lifetime_limit_discards, port_sw_lifetime_limit_discards, vl_stalled_discards
        Part of ``port_xmit_discards``: packets dropped by the head-of-queue lifetime, by the switch lifetime, and
        because the VL was stalled.
    buffer_overrun_errors
        Packets that were sent without credit and found no room at the receiver.
    port_rcv_switch_relay_errors
        Packets that the receiver could not forward or deliver.
    control_bytes
        Bytes sent in control messages of deadlock breakers.
    link_down_discards
        Packets lost because the channel's link was down: on the link, queued for the link, or forwarded to it later.
        Queued and later packets also count as ``port_xmit_discards``.
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
    """State of every virtual channel (one VL of one channel), int64[N, V] each for N channels.

    A block is 64 bytes.

    Attributes
    ----------
    fctbs, fccl
        Number of blocks sent since the start, and the number of blocks up to which the sender may send.  (On the wire
        both numbers are sent modulo 4096.)
    credits
        Blocks that may be sent now: ``fccl - fctbs``.  The value is negative after a packet was sent without credit.
    occupancy
        Blocks in the receiver's input buffer whose packets have not begun to leave.
    flying, returning
        Blocks on the wire to the buffer, and blocks that have left the buffer but whose credit has not yet reached the
        sender.
    buffer
        Size of the buffer in blocks.  It always equals credits + occupancy + flying + returning.
    waiting
        Packets queued for the virtual channel at its sender.
    sent
        Tick at which the tail of the last packet was sent, -1 if no packet was sent.
    suspected, spuid, stalled
        State of the sending port: whether a deadlock breaker suspects the port, the port's SPUID (the identifier in its
        control messages), and whether the VL is stalled.
    paused, pauses
        Whether the sender is paused, and how often the receiver has paused it.
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
    """Counters of each flow of a simulation, int64[F] each.

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
        Sums over delivered packets, in ticks.  ``latency``: time from the due time of the message to the arrival of the
        packet's last byte.  ``network_latency``: time from the departure of the packet's first byte to this arrival.
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
