"""The ground on which tables are mended: channels that are and that were, and what waits for what on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import trace, trace_endports
from routing._kernels.dependencies import Dependencies
from routing._kernels.load import WHOLE
from routing._kernels.repair import Ground, Waits
from routing._kernels.slots import Slots, slot_numbers
from routing._kernels.up_down import climbing, up_down
from routing.deadlock.cdg import REPLIES
from routing.deadlock.certificate import Certificate
from routing.fabric import NO_PORT, Channels, Fabric
from routing.reroute.translate import old_rows
from routing.reroute.values import Published
from routing.tables import Routing

Number = TypeVar("Number", np.uint8, np.int32, np.int64)


@dataclass(frozen=True, eq=False)
class Frame:
    """The fabric of now as a part of one that has all its switches and channels.

    What is gone for the moment keeps its row and its number, and so its place in the order of what may wait for what.

    Attributes
    ----------
    base
        The fabric whose rows and channels count.
    fabric
        The fabric of now.
    row
        int32[S], row of each switch of now.
    channel
        int32[C], number of each channel of now.
    """

    base: Fabric
    fabric: Fabric
    row: npt.NDArray[np.int32]
    channel: npt.NDArray[np.int32]

    @classmethod
    def of(cls, fabric: Fabric, earlier: Sequence[Fabric]) -> Frame:
        """On the first of the earlier fabrics that has all that there is now, else on the fabric itself."""
        for base in earlier:
            row, channel = old_rows(base, fabric), channel_numbers(fabric, base)
            if (row >= 0).all() and (channel >= 0).all():
                return cls(base, fabric, row, channel)
        everything = np.arange(fabric.switches, dtype=np.int32), np.arange(len(fabric.channels), dtype=np.int32)
        return cls(fabric, fabric, *everything)

    @cached_property
    def whole(self) -> bool:
        """Whether no switch of the base is missing."""
        return len(self.row) == self.base.switches

    @cached_property
    def ground(self) -> Ground:
        """For the kernel."""
        fabric, channels = self.fabric, self.base.channels
        alive = np.zeros(len(channels), np.uint8)
        alive[self.channel] = 1
        lids = fabric.lids
        here = lids.switch >= 0
        lid_switch = np.full(len(lids), -1, np.int32)
        lid_switch[here] = self.row[lids.switch[here]]
        return Ground(
            channels=channels,
            slot=slot_numbers(channels)[0],
            alive=alive,
            part=self.spread(fabric.component, -1),
            lid_switch=lid_switch,
            lid_port=lids.port,
            has_endport=self.spread((fabric.terminals_at > 0).astype(np.uint8), 0),
            slowness=slowness(channels),
            sources=self.spread(fabric.terminals_at, 0),
            weight=lid_weights(fabric),
        )

    def spread(self, rows: npt.NDArray[Number], missing: int) -> npt.NDArray[Number]:
        """An array with a row for each switch of now as one for all of the base."""
        if self.whole:
            return rows
        out: npt.NDArray[Number] = np.full((self.base.switches, *rows.shape[1:]), missing, rows.dtype)
        out[self.row] = rows
        return out

    def gathered(self, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The rows of the switches of now."""
        return rows if self.whole else np.ascontiguousarray(rows[self.row])

    def holes(self, lft: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The tables of now in rows of the base."""
        return lft if self.whole else self.spread(lft, NO_PORT)


def lid_weights(fabric: Fabric) -> npt.NDArray[np.int64]:
    """int64[L], what each source sends to a LID: its share of :data:`WHOLE`; nothing to the LIDs of switches."""
    lids, weight = fabric.lids, np.zeros(len(fabric.lids), np.int64)
    owned = lids.endport >= 0
    weight[owned] = WHOLE >> fabric.endport_lmc[lids.endport[owned]].astype(np.int64)
    return weight


def slowness(channels: Channels) -> npt.NDArray[np.int64]:
    """int64[C], what a unit of flow weighs on each channel: 100 on the fastest kind of link, more on slower ones."""
    capacity = channels.capacity
    weight: npt.NDArray[np.int64] = np.rint(100 * capacity.max(initial=0.0) / capacity).astype(np.int64)
    return weight


def channel_numbers(fabric: Fabric, base: Fabric) -> npt.NDArray[np.int32]:
    """int32[C], the number in another fabric of each channel: the same ports of the same switches; -1: none there."""
    mine, theirs = fabric.channels, base.channels
    if np.array_equal(fabric.switch_guid, base.switch_guid):
        there = theirs.at_port[mine.src, mine.port]
        same = (there >= 0) & (theirs.dst[there] == mine.dst) & (theirs.dst_port[there] == mine.dst_port)
        return np.where(same, there, np.int32(-1))
    row = old_rows(base, fabric)
    number = np.full(len(mine), -1, np.int32)
    known = np.flatnonzero((row[mine.src] >= 0) & (row[mine.dst] >= 0))
    there = theirs.at_port[row[mine.src[known]], mine.port[known]]
    same = there >= 0
    known, there = known[same], there[same]
    same = (theirs.dst[there] == row[mine.dst[known]]) & (theirs.dst_port[there] == mine.dst_port[known])
    number[known[same]] = there[same]
    return number


def moved_masks(masks: npt.NDArray[np.uint16], fabric: Fabric, base: Fabric) -> npt.NDArray[np.uint16]:
    """Masks of turns in the slots of another fabric; turns over channels that it does not have are left out."""
    if fabric is base:
        return masks
    if np.array_equal(fabric.switch_guid, base.switch_guid):
        fewer, more = (base, fabric) if len(base.channels) < len(fabric.channels) else (fabric, base)
        number = channel_numbers(fewer, more)
        if (number >= 0).all():
            there = slots_without(more.channels, number)
            return np.delete(masks, there) if fewer is base else _spread(masks, there)
    return _moved_one_by_one(masks, fabric, base)


def _spread(masks: npt.NDArray[np.uint16], between: npt.NDArray[np.int64]) -> npt.NDArray[np.uint16]:
    """Masks with zeros put where these slots (each one once or more) are then."""
    known = np.ones(len(masks) + len(np.unique(between)), bool)
    known[between] = False
    out = np.zeros(len(known), np.uint16)
    out[known] = masks
    return out


def slots_without(channels: Channels, left: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Slots that go when only some of the channels are left: those of the others, and of the turns into them."""
    gone = np.ones(len(channels), bool)
    gone[left] = False
    slot, count = slot_numbers(channels)
    end, into = np.append(slot, count)[1:], channels.into_first
    slots = [np.zeros(0, np.int64)]
    for c in np.flatnonzero(gone).tolist():
        s = channels.src[c]
        slots.append(np.arange(slot[c], end[c]))
        slots.append(slot[channels.into[into[s] : into[s + 1]]].astype(np.int64) + c - channels.first[s])
    return np.concatenate(slots)


def _moved_one_by_one(masks: npt.NDArray[np.uint16], fabric: Fabric, base: Fabric) -> npt.NDArray[np.uint16]:
    mine, theirs = fabric.channels, base.channels
    slot, their_slot = slot_numbers(mine)[0], slot_numbers(theirs)
    number = channel_numbers(fabric, base)
    out = np.zeros(their_slot[1], np.uint16)
    if not len(slot):
        return out
    taken = np.flatnonzero(masks[slot[0] :]) + int(slot[0])
    before = np.searchsorted(slot, taken, side="right") - 1
    k = taken - slot[before]
    real = k < np.diff(mine.first)[mine.dst[before]]
    taken, before, k = taken[real], before[real], k[real]
    source, target = number[before], number[mine.first[mine.dst[before]] + k]
    both = (source >= 0) & (target >= 0)
    taken, source, target = taken[both], source[both], target[both]
    out[their_slot[0][source] + target - theirs.first[theirs.dst[source]]] = masks[taken]
    return out


def known_waits(base: Fabric, tables: Sequence[Published], *, threads: int) -> Waits | None:
    """What may wait for what so that any mixture of these tables is safe, with an order; None if there is none.

    Tables of Up*/Down* get an order in which all turns climb that lead up, then down, if the switches have one.
    """
    found = _known_waits(base, tables, threads=threads)
    loosen = found is not None and all(t.routing.provenance.engine == "updn" for t in tables)
    return _loosest(base, found) if found is not None and loosen else found


def _known_waits(base: Fabric, tables: Sequence[Published], *, threads: int) -> Waits | None:
    if len(tables) == 1 and tables[0].fabric is base:
        proof = tables[0].proof
        assert proof.waits is not None and proof.certificate is not None
        return Waits(proof.waits, proof.certificate.order)
    lanes = max(len(t.proof.certificate.order) for t in tables if t.proof.certificate is not None)
    slot, count = slot_numbers(base.channels)
    masks = np.zeros(count, np.uint16)
    for table in tables:
        assert table.proof.waits is not None
        masks |= moved_masks(table.proof.waits, table.fabric, base)
    return _ordered(base, slot, masks, lanes, threads)


def exact_waits(
    fabric: Fabric, routing: Routing, certificate: Certificate, vl_bit: npt.NDArray[np.uint16], *, threads: int
) -> Waits | None:
    """What waits for what by these tables alone, of the traffic that a certificate speaks of; None if in a cycle.

    Cost: that of a proof.
    """
    slots = Slots.of(fabric)
    found = trace(fabric, routing, slots, vl_bit, threads=threads)
    dep = found.dep
    if certificate.scope == "endports":
        dep = trace_endports(fabric, routing, slots, vl_bit, found, threads=threads)
    masks = (dep >> np.uint32(REPLIES if certificate.strength == "reversible" else 0)).astype(np.uint16)
    return _ordered(fabric, slots.slot, masks, len(certificate.order), threads)


def _ordered(
    base: Fabric, slot: npt.NDArray[np.int32], masks: npt.NDArray[np.uint16], lanes: int, threads: int
) -> Waits | None:
    graph = Dependencies(base.channels.first, base.channels.dst, slot, masks.astype(np.uint32))
    order, ordered = graph.order(np.arange(lanes, dtype=np.uint8), threads=threads)
    return Waits(masks, order) if (ordered == len(slot)).all() else None


def _loosest(base: Fabric, waits: Waits) -> Waits:
    position = up_down(base.channels, slot_numbers(base.channels)[0], waits.masks)
    if position is None:
        return waits
    return Waits(waits.masks, np.tile(climbing(base.channels, position), (len(waits.order), 1)), position)
