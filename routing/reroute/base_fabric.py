"""Map the present fabric onto an earlier one, so that channel and CDG edge numbers stay the same across faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import trace, trace_endports
from routing._kernels.dependencies import Dependencies
from routing._kernels.repair import AllowedDependencies, RepairFabric
from routing._kernels.slots import Slots, slot_numbers
from routing._kernels.up_down import climbing, up_down
from routing.deadlock.cdg import REPLIES
from routing.deadlock.certificate import Certificate
from routing.engines import ENGINES
from routing.engines.base import offers_of
from routing.fabric import NO_PORT, Channels, Fabric
from routing.reroute.flow import lid_weights, slowness
from routing.reroute.translate import old_rows
from routing.reroute.values import Published
from routing.tables import Routing

Number = TypeVar("Number", np.uint8, np.int32, np.int64)


@dataclass(frozen=True, eq=False)
class BaseNumbering:
    """The present fabric in the numbers of a base fabric, which has all its switches and channels.

    A switch or channel that is lost for the moment keeps its number, and so its position in the topological order.

    Attributes
    ----------
    base
        The fabric that gives the numbers.
    fabric
        The present fabric.
    row
        int32[S], row in the base of each switch of the present fabric.
    channel
        int32[C], number in the base of each channel of the present fabric.
    """

    base: Fabric
    fabric: Fabric
    row: npt.NDArray[np.int32]
    channel: npt.NDArray[np.int32]

    @classmethod
    def of(cls, fabric: Fabric, earlier: Sequence[Fabric]) -> BaseNumbering:
        """Return the numbering by the first earlier fabric that has all present devices, else by the fabric itself."""
        for base in earlier:
            row, channel = old_rows(base, fabric), channel_numbers(fabric, base)
            if (row >= 0).all() and (channel >= 0).all():
                return cls(base, fabric, row, channel)
        everything = np.arange(fabric.switches, dtype=np.int32), np.arange(len(fabric.channels), dtype=np.int32)
        return cls(fabric, fabric, *everything)

    @cached_property
    def whole(self) -> bool:
        """Return whether the present fabric has all switches of the base."""
        return len(self.row) == self.base.switches

    @cached_property
    def ground(self) -> RepairFabric:
        """Return the present fabric in base numbers, as the repair kernel takes it."""
        fabric, channels = self.fabric, self.base.channels
        alive = np.zeros(len(channels), np.uint8)
        alive[self.channel] = 1
        lids = fabric.lids
        here = lids.switch >= 0
        lid_switch = np.full(len(lids), -1, np.int32)
        lid_switch[here] = self.row[lids.switch[here]]
        return RepairFabric(
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
        """Return an array by present switch as an array by base switch, filled with ``missing``."""
        if self.whole:
            return rows
        out: npt.NDArray[Number] = np.full((self.base.switches, *rows.shape[1:]), missing, rows.dtype)
        out[self.row] = rows
        return out

    def gathered(self, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the rows of the present switches from an array by base switch."""
        return rows if self.whole else np.ascontiguousarray(rows[self.row])

    def in_base_rows(self, lft: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return LFTs with a row for each switch of the base; rows of lost switches have no entries."""
        return lft if self.whole else self.spread(lft, NO_PORT)


def channel_numbers(fabric: Fabric, base: Fabric) -> npt.NDArray[np.int32]:
    """Return int32[C], the number in ``base`` of each channel between the same ports of the same switches; -1: none."""
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


def renumber_dependencies(masks: npt.NDArray[np.uint16], fabric: Fabric, base: Fabric) -> npt.NDArray[np.uint16]:
    """Return VL masks of CDG edges in the edge numbers of ``base``; edges over channels that it lacks are left out."""
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
    """Return the masks with zeros inserted at these slots of the result (a slot may be named more than once)."""
    known = np.ones(len(masks) + len(np.unique(between)), bool)
    known[between] = False
    out = np.zeros(len(known), np.uint16)
    out[known] = masks
    return out


def slots_without(channels: Channels, left: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the edge slots that disappear if only the channels ``left`` remain: edges from or into the others."""
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


def union_of_proven_dependencies(
    base: Fabric, tables: Sequence[Published], *, threads: int
) -> AllowedDependencies | None:
    """Return the union of the dependencies of all these tables, with its topological order; None if it has a cycle.

    Any mixture of the tables is then safe.  For Up*/Down* tables the order admits every dependency from up to down, if
    the switches have such an order.
    """
    found = _known_waits(base, tables, threads=threads)
    loosen = found is not None and all(offers_of(ENGINES.get(t.routing.provenance.engine)).up_down for t in tables)
    return _relax_to_updown(base, found) if found is not None and loosen else found


def _known_waits(base: Fabric, tables: Sequence[Published], *, threads: int) -> AllowedDependencies | None:
    if len(tables) == 1 and tables[0].fabric is base:
        proof = tables[0].proof
        assert proof.dependencies is not None and proof.certificate is not None
        return AllowedDependencies(proof.dependencies, proof.certificate.order)
    vls = max(len(t.proof.certificate.order) for t in tables if t.proof.certificate is not None)
    slot, count = slot_numbers(base.channels)
    masks = np.zeros(count, np.uint16)
    for table in tables:
        assert table.proof.dependencies is not None
        masks |= renumber_dependencies(table.proof.dependencies, table.fabric, base)
    return _ordered(base, slot, masks, vls, threads)


def dependencies_of_tables(
    fabric: Fabric, routing: Routing, certificate: Certificate, vl_bit: npt.NDArray[np.uint16], *, threads: int
) -> AllowedDependencies | None:
    """Return the dependencies that the tables use now, for the traffic of a certificate; None if they have a cycle.

    Notes
    -----
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
    base: Fabric, slot: npt.NDArray[np.int32], masks: npt.NDArray[np.uint16], vls: int, threads: int
) -> AllowedDependencies | None:
    graph = Dependencies(base.channels.first, base.channels.dst, slot, masks.astype(np.uint32))
    order, ordered = graph.order(np.arange(vls, dtype=np.uint8), threads=threads)
    return AllowedDependencies(masks, order) if (ordered == len(slot)).all() else None


def _relax_to_updown(base: Fabric, dependencies: AllowedDependencies) -> AllowedDependencies:
    position = up_down(base.channels, slot_numbers(base.channels)[0], dependencies.masks)
    if position is None:
        return dependencies
    return AllowedDependencies(
        dependencies.masks, np.tile(climbing(base.channels, position), (len(dependencies.order), 1)), position
    )
