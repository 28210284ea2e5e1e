"""Assign SLs to the paths that changed, so that the new certificate covers as much traffic as the old certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.assign_vls import NO_VL, PathGroups, assign_vls
from routing._kernels.native import grouped
from routing.cdg.acyclic import AcyclicCdg
from routing.cdg.certificate import Certificate
from routing.cdg.trace import trace_acyclic_cdg
from routing.fabric import Fabric
from routing.reroute.budget import Budget
from routing.reroute.minimal_change import remote_pairs
from routing.tables import Routing

SLS = 16


def reassign_sls(
    fabric: Fabric,
    routing: Routing,
    earlier: Routing,
    certificate: Certificate,
    vl_bit: npt.NDArray[np.uint16],
    *,
    sl_of_vl: npt.NDArray[np.uint8],
    threads: int,
    budget: Budget,
) -> tuple[Routing, npt.NDArray[np.int32]] | None:
    """Reassign SLs so that the new tables have a certificate as strong as the certificate of the earlier tables.

    Unchanged paths keep their SLs.  The changed paths are placed one after the other, the longest first.  A path takes
    the first VL on which it closes no cycle with the dependencies of the paths placed before.  The search starts at the
    present VL of the path.  If the certificate covers replies, the reply path moves to the same VL, because a reply
    uses the SL of its request.

    If a path finds no VL, further attempts also assign new VLs to unchanged paths.  The first further attempt does this
    for all unchanged paths on one VL: the VL with the fewest unchanged paths.  Each later attempt adds the VL that has
    the fewest unchanged paths among the remaining VLs.  The unchanged paths on the VL with the most unchanged paths
    always keep their VL.

    Parameters
    ----------
    fabric, routing
        Complete tables.  All ports have the same SL2VL mapping, and SLs are by LID, or by source switch and LID.
    earlier, certificate
        The earlier tables in the rows and columns of ``routing``, and the certificate of the earlier tables.  Entries
        that became invalid are 255.
    vl_bit
        uint16[16], 1 << VL of each SL.  0: changed paths must not keep this SL.
    sl_of_vl
        uint8[V], an SL for each VL of the certificate.  255: changed paths must not use this VL.
    threads
        Threads of the trace.
    budget
        Two limits: how many paths an attempt may assign, and how many channels the cycle searches may visit.

    Returns
    -------
    (routing, order) or None
        The tables with their new SLs, and a topological order of all their dependencies (int32[V, C]).  None if the VLs
        do not suffice.

    Notes
    -----
    Cost: a trace of all paths, and :func:`routing._kernels.assign_vls.assign_vls` for the changed paths.
    """
    counted = counted_paths(fabric, certificate)
    changed = changed_paths(fabric, routing, earlier, replies=certificate.strength == "reversible") & counted
    vl = vls_of_sls(vl_bit)[np.broadcast_to(routing.sl, changed.shape)]
    search = _VlSearch(fabric, routing, certificate, vl_bit, sl_of_vl, vl, changed, threads)
    return search.run(counted & ~changed, budget)


@dataclass(frozen=True, eq=False)
class _VlSearch:
    """A search for a VL for every changed path, such that the CDG of each VL stays acyclic.

    Attributes
    ----------
    fabric, routing, certificate, vl_bit, sl_of_vl, threads
        The arguments of :func:`reassign_sls`.
    vl
        uint8[S, L], the VL of each path (from a switch to a LID) before the search, 255 if ``vl_bit`` is 0 for its SL.
    changed
        bool[S, L], whether a path has changed, so that it needs a VL.
    """

    fabric: Fabric
    routing: Routing
    certificate: Certificate
    vl_bit: npt.NDArray[np.uint16]
    sl_of_vl: npt.NDArray[np.uint8]
    vl: npt.NDArray[np.uint8]
    changed: npt.NDArray[np.bool_]
    threads: int

    def run(self, unchanged: npt.NDArray[np.bool_], budget: Budget) -> tuple[Routing, npt.NDArray[np.int32]] | None:
        """Find a VL for every changed path.  Return the tables and the topological order; None if a path found no VL,
        or if a work limit is reached.

        The first attempt keeps the VLs of all unchanged paths (``unchanged``: bool[S, L]).  Each further attempt also
        assigns new VLs to the unchanged paths on one more VL, the emptiest VLs first.
        """
        given_away = np.flatnonzero(self.sl_of_vl != NO_VL)
        busy = np.bincount(self.vl[unchanged], minlength=SLS)[given_away]
        emptiest = given_away[np.argsort(busy, kind="stable")]
        first, visits = np.zeros_like(self.changed), budget.vl_visits
        for vacated in range(len(emptiest)):
            evicted = unchanged & np.isin(self.vl, emptiest[:vacated])
            if vacated and np.count_nonzero(evicted | self.changed) > budget.vl_paths:
                return None
            found, left, visits = self.assign(evicted, first, int(emptiest[0]), visits)
            if found is not None or visits <= 0:
                return found
            first |= left
        return None

    def assign(
        self, evicted: npt.NDArray[np.bool_], first: npt.NDArray[np.bool_], emptiest: int, visits: int
    ) -> tuple[tuple[Routing, npt.NDArray[np.int32]] | None, npt.NDArray[np.bool_], int]:
        """Find a VL for every changed path and every evicted path (an unchanged path that gave up its VL).

        Three groups of paths are assigned one after the other.  In each group, the search for a VL starts at another
        VL:

        1. Paths that found no VL in earlier attempts (``first``: bool[S, L]) start at VL ``emptiest``, the VL with the
           fewest unchanged paths.
        2. The other evicted paths start at the VL after their previous VL.  So they try their previous VL last,
           and other paths can use the room that they leave on it.
        3. The other changed paths start at their present VL.

        ``visits`` limits the channels that all searches together may visit.

        Returns
        -------
        found : (Routing, int32[V, C]) or None
            Tables and topological order; None if a path found no VL.
        left : bool[S, L]
            Paths that found no VL.
        visits : int
            Number of visits that the limit still allows.
        """
        sl, left = np.broadcast_to(self.routing.sl, self.routing.lft.shape), np.zeros_like(self.changed)
        dependencies = self.dependencies(sl, self.changed | evicted)
        if dependencies is None:
            return None, left, 0
        turns = (first, evicted & ~first, self.changed & ~first)
        parts = [longest_first(self.fabric, self.routing, paths) for paths in turns]
        at, lid = (np.concatenate(part) for part in zip(*parts, strict=True))
        own = self.vl[at, lid]
        turn = np.repeat(np.arange(3), [len(part[0]) for part in parts])
        present = np.where(own == NO_VL, np.uint8(0), own)
        start = np.choose(turn, [np.full_like(own, emptiest), (own + 1) % len(self.sl_of_vl), present]).astype(np.uint8)
        groups = path_groups(self.fabric, at, lid, start, replies=self.certificate.strength == "reversible")
        given, _, order, visits = assign_vls(
            self.fabric.channels, self.fabric.lids.switch, self.routing.lft, groups,
            masks=dependencies.masks, order=dependencies.order, allowed_vls=self.sl_of_vl != NO_VL, budget=visits,
        )  # fmt: skip
        left[at, lid] = given == NO_VL
        if left.any():
            return None, left, visits
        if (given == own).all():
            return (self.routing, order), left, visits
        new = sl.copy()
        new[at, lid] = np.where(given == own, new[at, lid], self.sl_of_vl[given])
        return (replace(self.routing, sl=new, vls_needed=self.routing.vls), order), left, visits

    def dependencies(self, sl: npt.NDArray[np.uint8], without: npt.NDArray[np.bool_]) -> AcyclicCdg | None:
        """Return the CDG edges of all paths except the paths in ``without`` (bool[S, L]).

        The excluded paths are marked by an SL that no path uses.  Returns None if all SLs are in use, so that no path
        can be marked.
        """
        unused = np.flatnonzero(np.bincount(sl.ravel(), minlength=SLS) == 0)
        if not len(unused):
            return None
        bit = self.vl_bit.copy()
        bit[unused[0]] = 0
        others = replace(self.routing, sl=np.where(without, np.uint8(unused[0]), sl))
        return trace_acyclic_cdg(self.fabric, others, self.certificate, bit, threads=self.threads)


def changed_paths(fabric: Fabric, routing: Routing, earlier: Routing, *, replies: bool) -> npt.NDArray[np.bool_]:
    """Return bool[S, L], whether the path from each switch to each LID has changed.  A path has changed if one of its
    entries or its SL has changed.  With ``replies``, a path also counts as changed if its reply path has changed.
    ``earlier`` has the earlier tables, with 255 where an entry became invalid.
    """
    channels, lids = fabric.channels, fabric.lids
    changed: npt.NDArray[np.bool_] = (routing.lft != earlier.lft) | (routing.sl != earlier.sl)
    columns = np.flatnonzero((routing.lft != earlier.lft).any(axis=0))
    channel = channels.at_port[np.arange(fabric.switches)[:, None], routing.lft[:, columns]]
    # A 0 is appended to `channels.dst`, so that index -1 (no next channel) is valid even in a fabric without channels.
    # The value of the 0 is not used.
    behind = np.where(channel >= 0, np.append(channels.dst, 0)[channel], np.arange(fabric.switches)[:, None])
    through, before = changed[:, columns], -1
    while before != (before := int(np.count_nonzero(through))):
        through |= np.take_along_axis(through, behind, axis=0)
    changed[:, columns] = through
    here = np.flatnonzero(lids.switch >= 0)
    if replies:
        # back[s, t] is true if a path from switch s to any LID of switch t has changed.
        back = np.zeros((fabric.switches, fabric.switches), bool)
        np.logical_or.at(back.T, lids.switch[here], changed[:, here].T)
        changed[:, here] |= back[lids.switch[here]].T
    return changed & remote_pairs(fabric)


def counted_paths(fabric: Fabric, certificate: Certificate) -> npt.NDArray[np.bool_]:
    """Return bool[S, L], whether the certificate covers any packets to a LID of another switch that the switch or its
    end ports send.
    """
    everything = certificate.scope == "all"
    covered = everything | (fabric.terminals_at > 0)[:, None] | (fabric.lids.port > 0)
    return covered & remote_pairs(fabric)


def vls_of_sls(vl_bit: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint8]:
    """Return uint8[16], the VL of each SL; 255 if ``vl_bit`` (1 << VL of each SL) is 0."""
    return np.where(vl_bit > 0, np.searchsorted(1 << np.arange(SLS), vl_bit), NO_VL).astype(np.uint8)


def path_groups(
    fabric: Fabric,
    at: npt.NDArray[np.int32],
    lid: npt.NDArray[np.int32],
    start: npt.NDArray[np.uint8],
    *,
    replies: bool,
) -> PathGroups:
    """Return the groups of paths that must use the same VL.

    Group number i is for the path from switch ``at[i]`` to ``lid[i]``, and tries VL ``start[i]`` first.  With
    ``replies``, the group also has the paths from the LID's switch to each LID of switch ``at[i]``.
    """
    if not replies:
        return PathGroups(np.arange(len(at) + 1, dtype=np.int32), at, lid, start)
    lid_switch = fabric.lids.switch
    first, members = grouped(lid_switch, fabric.switches)
    size = 1 + first[at + 1] - first[at]
    end = np.cumsum(size)
    begin = end - size
    source, position = np.repeat(lid_switch[lid], size), np.arange(len(at) and end[-1]) - np.repeat(begin, size)
    to = members[np.maximum(np.repeat(first[at], size) + position - 1, 0)]
    source[begin], to[begin] = at, lid
    return PathGroups(np.append(0, end).astype(np.int32), source, to, start)


def longest_first(
    fabric: Fabric, routing: Routing, which: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the source switch and the LID of each path that ``which`` (bool[S, L]) marks, the paths with the most hops
    first.
    """
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
