"""SLs for ways that have changed, by which the tables are as safe as they were."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.fit_ways import NO_LANE, Groups, fit_ways
from routing._kernels.native import grouped
from routing._kernels.repair import Waits
from routing.deadlock.certificate import Certificate
from routing.fabric import Fabric
from routing.reroute.fewest import between
from routing.reroute.ground import exact_waits
from routing.tables import Routing

SLS = 16
MOST_WAYS = 400_000
"""Ways that may look for a VL where others are cleared for ways that close a cycle on every one."""
LOOKS = 30_000_000
"""Channels that all searches for cycles may come by: about a second."""


def with_levels(
    fabric: Fabric,
    routing: Routing,
    earlier: Routing,
    certificate: Certificate,
    vl_bit: npt.NDArray[np.uint16],
    *,
    level: npt.NDArray[np.uint8],
    threads: int,
) -> tuple[Routing, npt.NDArray[np.int32]] | None:
    """The same tables, with SLs by which they are as safe as the earlier ones; None if the VLs do not hold them.

    With them comes an order (int32[V, C]) in which all that they make wait climbs.

    Ways that are what they were keep their SLs.  Each of the others, the longest first, takes the first VL from its own
    on that closes no cycle with what is there; if replies count, together with the ways back, which ride the same SL.
    Where that does not do, the VL with the fewest other ways is cleared of them first, then the next, to all but one.

    Parameters
    ----------
    fabric, routing
        Complete tables, one SL-to-VL row everywhere, SLs by LID or by source switch and LID.
    earlier, certificate
        Tables in the same rows and columns, 255 where an entry no longer holds, and what they were certified for.
    vl_bit, level
        uint16[16]: 1 << VL of each SL; uint8[V]: an SL that rides each VL of the certificate, 255: none is to be given.
    threads
        Of the trace.

    Notes
    -----
    Cost: a trace of all ways, and what :func:`routing._kernels.fit_ways.fit_ways` takes for those that have changed.
    """
    counted, given_away = _counted(fabric, certificate), np.flatnonzero(level != NO_LANE)
    moved = _moved(fabric, routing, earlier, replies=certificate.strength == "reversible") & counted
    lane_of = np.searchsorted(1 << np.arange(SLS), vl_bit).astype(np.uint8)
    lane = lane_of[np.broadcast_to(routing.sl, moved.shape)]
    still = counted & ~moved & between(fabric)
    busy = np.bincount(lane[still], minlength=SLS)[given_away]
    emptiest = given_away[np.argsort(busy, kind="stable")]
    search = _Search(fabric, routing, certificate, vl_bit, level, lane, moved, threads)
    first, budget = np.zeros_like(moved), LOOKS
    for clear in range(len(emptiest)):
        cleared = still & np.isin(lane, emptiest[:clear])
        if clear and np.count_nonzero(cleared | moved) > MOST_WAYS:
            return None
        found, left, budget = search.place(cleared, first, int(emptiest[0]), budget)
        if found is not None or budget <= 0:
            return found
        first |= left
    return None


@dataclass(frozen=True, eq=False)
class _Search:
    """Ways that look for VLs: uint8[S, L] the VL of each, bool[S, L] whether it has to find one; the rest as above."""

    fabric: Fabric
    routing: Routing
    certificate: Certificate
    vl_bit: npt.NDArray[np.uint16]
    level: npt.NDArray[np.uint8]
    lane: npt.NDArray[np.uint8]
    moved: npt.NDArray[np.bool_]
    threads: int

    def place(
        self, cleared: npt.NDArray[np.bool_], first: npt.NDArray[np.bool_], emptiest: int, budget: int
    ) -> tuple[tuple[Routing, npt.NDArray[np.int32]] | None, npt.NDArray[np.bool_], int]:
        """SLs for all that has moved, with an order, or None; what found no VL; what is left of the budget.

        Those of ``first`` go first, and to the emptiest VL; then others that are ``cleared`` off theirs, and go back
        only if no other takes them; then the rest.
        """
        sl, left = np.broadcast_to(self.routing.sl, self.routing.lft.shape), np.zeros_like(self.moved)
        waits = self.waits(sl, self.moved | cleared)
        if waits is None:
            return None, left, 0
        turns = (first, cleared & ~first, self.moved & ~first)
        parts = [_longest_first(self.fabric, self.routing, ways) for ways in turns]
        at, lid = (np.concatenate(part) for part in zip(*parts, strict=True))
        own = self.lane[at, lid]
        turn = np.repeat(np.arange(3), [len(part[0]) for part in parts])
        start = np.choose(turn, [np.full_like(own, emptiest), (own + 1) % len(self.level), own]).astype(np.uint8)
        given, placed, budget = fit_ways(
            self.fabric.channels,
            self.fabric.lids.switch,
            self.routing.lft,
            self.groups(at, lid, start),
            waits=waits,
            allowed=self.level != NO_LANE,
            budget=budget,
        )
        left[at, lid] = given == NO_LANE
        if left.any():
            return None, left, budget
        if (given == own).all():
            return (self.routing, placed.order), left, budget
        new = sl.copy()
        new[at, lid] = np.where(given == own, new[at, lid], self.level[given])
        return (replace(self.routing, sl=new, vls_needed=self.routing.vls), placed.order), left, budget

    def groups(self, at: npt.NDArray[np.int32], lid: npt.NDArray[np.int32], start: npt.NDArray[np.uint8]) -> Groups:
        """Each way by itself; if replies count, with the ways from its LID's switch to all LIDs where it begins."""
        if self.certificate.strength == "forward":
            return Groups(np.arange(len(at) + 1, dtype=np.int32), at, lid, start)
        lid_switch = self.fabric.lids.switch
        first, members = grouped(lid_switch, self.fabric.switches)
        size = 1 + first[at + 1] - first[at]
        end = np.cumsum(size)
        begin = end - size
        source, place = np.repeat(lid_switch[lid], size), np.arange(len(at) and end[-1]) - np.repeat(begin, size)
        to = members[np.maximum(np.repeat(first[at], size) + place - 1, 0)]
        source[begin], to[begin] = at, lid
        return Groups(np.append(0, end).astype(np.int32), source, to, start)

    def waits(self, sl: npt.NDArray[np.uint8], without: npt.NDArray[np.bool_]) -> Waits | None:
        """What waits for what by all other ways; None if that cannot be said."""
        unused = np.flatnonzero(np.bincount(sl.ravel(), minlength=SLS) == 0)
        if not len(unused):
            return None
        bit = self.vl_bit.copy()
        bit[unused[0]] = 0
        others = replace(self.routing, sl=np.where(without, np.uint8(unused[0]), sl))
        return exact_waits(self.fabric, others, self.certificate, bit, threads=self.threads)


def _moved(fabric: Fabric, routing: Routing, earlier: Routing, *, replies: bool) -> npt.NDArray[np.bool_]:
    """bool[S, L], whether the way of a switch to a LID, its SL, or a way back is another than before."""
    channels, lids = fabric.channels, fabric.lids
    moved: npt.NDArray[np.bool_] = (routing.lft != earlier.lft) | (routing.sl != earlier.sl)
    columns = np.flatnonzero((routing.lft != earlier.lft).any(axis=0))
    channel = channels.at_port[np.arange(fabric.switches)[:, None], routing.lft[:, columns]]
    behind = np.where(channel >= 0, channels.dst[channel], np.arange(fabric.switches)[:, None])
    through, before = moved[:, columns], -1
    while before != (before := int(np.count_nonzero(through))):
        through |= np.take_along_axis(through, behind, axis=0)
    moved[:, columns] = through
    here = np.flatnonzero(lids.switch >= 0)
    if replies:
        back = np.zeros((fabric.switches, fabric.switches), bool)  # from each switch to any LID at another
        np.logical_or.at(back.T, lids.switch[here], moved[:, here].T)
        moved[:, here] |= back[lids.switch[here]].T
    return moved & between(fabric)


def _counted(fabric: Fabric, certificate: Certificate) -> npt.NDArray[np.bool_]:
    """bool[S, L], whether a certificate speaks of what a switch and all that is cabled to it send to a LID."""
    everything = certificate.scope == "all"
    return everything | (fabric.terminals_at > 0)[:, None] | (fabric.lids.port > 0)


def _longest_first(
    fabric: Fabric, routing: Routing, which: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Source and LID of each of these ways."""
    columns = np.flatnonzero(which.any(axis=0))
    nth, at = np.nonzero(which[:, columns].T)
    lid = columns[nth]
    channels, target, s = fabric.channels, fabric.lids.switch[lid], at.copy()
    hops, on = np.zeros(len(at), np.int32), np.arange(len(at))
    while len(on := on[s[on] != target[on]]):
        s[on] = channels.dst[channels.at_port[s[on], routing.lft[s[on], lid[on]]]]
        hops[on] += 1
    order = np.argsort(-hops, kind="stable")
    return at[order].astype(np.int32), lid[order].astype(np.int32)
