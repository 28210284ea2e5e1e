"""Compute paths between inner switches, such that no VL gets a dependency cycle.  An inner switch is a switch without
end ports that count in traffic patterns.

Engines that use layers assign VLs to the paths from or to end ports that count.  Two aggregation nodes on inner
switches of a tree need paths as well, which lead down and then up.  These paths should not need a further VL.  So this
module takes paths that follow a topological order of the channels of a VL in use.  If the shortest path does not follow
the order, a longer path is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.cdg.acyclic import Cdg
from routing.cdg.trace import trace_cdg, vl_bits
from routing.engines.inner_columns import (
    MOST_TRIALS,
    Column,
    Inner,
    bases,
    columns_of,
    increasing_column,
    nearest_order,
    of_vls,
    with_columns,
)
from routing.fabric import Fabric
from routing.tables import Routing


def connect_inner_switches(
    fabric: Fabric, routing: Routing, senders: npt.NDArray[np.bool_], *, reversible: bool
) -> Routing | None:
    """Return tables with paths between inner switches that close no cycle.  All other paths stay as they are.

    Parameters
    ----------
    fabric, routing
        The fabric without its uncounted end ports, and the tables of this fabric.  The SLs are by LID, or by switch and
        LID.
    senders
        bool[S], switches with uncounted end ports and without counted end ports.
    reversible
        Whether the new paths must keep replies free of credit loops.  If replies close a credit loop even without the
        new paths, nothing is required of replies.  With SLs by switch and LID, ``reversible`` has no effect: it
        counts as true.

    Returns
    -------
    Routing or None
        The tables with new paths.  The given tables if their paths already close no cycle.  None if no such paths were
        found.

    Notes
    -----
    Cost: two proofs, and O(C hops) for each VL and each inner switch.
    """
    bits = vl_bits(routing.sl2vl)
    job = Inner(fabric, routing, fabric.senders_at == 0, senders)
    for replies in (True, False):
        whole = trace_cdg(fabric, routing, bits, replies=replies, switch_pairs=True, threads=1)
        if whole.sorted(routing.vls, threads=1) is not None:
            return routing
        counted = trace_cdg(fabric, routing, bits, replies=replies, switch_pairs=False, threads=1)
        if counted.sorted(routing.vls, threads=1) is None:
            continue
        if routing.service_levels.by_source_lid:
            return None  # If SLs are by pair of LIDs, the SL of a path is given and cannot be chosen.
        if routing.service_levels.by_lid:
            found = _by_lid(job, counted, replies=replies)
        else:
            found = _on_one_vl(job, counted) or _by_pair(job, counted, replies=replies)
        if found is not None or reversible or routing.service_levels.by_switch:
            return found
    return None


def _on_one_vl(job: Inner, counted: Cdg) -> Routing | None:
    """Return the tables with all paths between inner switches on one SL.  If these paths close a cycle with every SL,
    return None.

    ``job`` holds the given tables, whose paths between inner switches are replaced.  ``counted`` is the CDG of all
    other paths.
    """
    for sl in np.unique(job.routing.sl).tolist():
        columns = columns_of(job, np.flatnonzero(job.inner), of_vls(counted, 1 << int(job.routing.sl2vl[sl])))
        if columns is not None:
            return with_columns(job, columns, sl)
    return None


def _by_pair(job: Inner, counted: Cdg, *, replies: bool) -> Routing | None:
    """Return tables with an SL for each path between inner switches.  On the VL of this SL, the path closes no cycle.
    Return None if some path fits on no SL.

    ``job`` holds the given tables, whose paths between inner switches are replaced.  ``counted`` is the CDG of all
    other paths.  With ``replies``, the two paths between two switches have the same SL.

    The function makes several attempts, each with another order of the channels.  The order determines the new paths,
    and then an SL is searched for each path.  The attempts end when all paths have an SL.

    Cost of each attempt: at most one topological sort for each VL and each pair of switches that needs a cycle search.
    A pair needs a cycle search if its new paths do not follow the topological order of any VL.
    """
    sls = np.unique(job.routing.sl).tolist()
    bits = [1 << int(job.routing.sl2vl[sl]) for sl in sls]
    targets = np.flatnonzero(job.inner & (job.fabric.switch_lid > 0)).tolist()
    for base in bases(job.fabric):
        orders = [nearest_order(of_vls(counted, bit), base) for bit in bits]
        for order in (base, *orders):
            columns = {target: increasing_column(job, target, order) for target in targets}
            columns = _mirrored(job, columns, order) if replies else columns
            chosen = _fit_pairs(job, counted, columns, bits, orders, replies=replies)
            if chosen is not None:
                found = with_columns(job, list(columns.values()), None)
                rows = np.array(list(chosen), np.int64).reshape(-1, 2)
                found.sl[rows[:, 0], job.fabric.switch_lid[rows[:, 1]]] = [sls[number] for number in chosen.values()]
                return found
    return None


def _mirrored(job: Inner, columns: Mapping[int, Column], order: npt.NDArray[np.int32]) -> dict[int, Column]:
    """Return the LFT columns, after some paths between inner switches were replaced by the reverse of a fixed path.

    A counted path to an inner switch may lead over other inner switches.  The path from such a switch to the end of the
    counted path is fixed: its entries cannot change.  If a fixed path does not follow the order of the channels, the
    path in the other direction is replaced by the reverse of the fixed path.  (Entries of counted paths on the reverse
    path do not change.)  Both directions may then fit on the VL of the counted path, on which the dependencies of the
    fixed path are already in use.
    """
    channels = job.fabric.channels
    preset: dict[int, dict[int, int]] = {target: {} for target in columns}
    for target, column in columns.items():
        for switch in np.flatnonzero(job.inner & column.fixed & (column.first < 0) & (column.following >= 0)).tolist():
            for channel in column.whole_path(channels, switch) if switch in columns else []:
                preset[switch].setdefault(int(channels.dst[channel]), int(channels.reverse[channel]))
        assert target not in preset[target]
    return {target: increasing_column(job, target, order, preset[target]) for target in columns}


def _fit_pairs(
    job: Inner,
    counted: Cdg,
    columns: Mapping[int, Column],
    bits: Sequence[int],
    orders: Sequence[npt.NDArray[np.int32]],
    *,
    replies: bool,
) -> dict[tuple[int, int], int] | None:
    """Choose an SL for each path between inner switches; None if some path fits on no SL.

    The keys of the result are the source and the destination switch of each path.  The values are the indices of the
    chosen SLs in ``bits`` and ``orders``.

    Parameters
    ----------
    job, counted
        The given tables, and the CDG of all paths except those between inner switches.
    columns
        The paths to each inner switch.
    bits, orders
        For each SL, its VL as a bit, and a topological order (int32[C]) of the CDG edges in use on this VL.
    replies
        Whether the two paths between two switches must have the same SL.
    """
    fabric, masks = job.fabric, counted.masks.copy()
    chosen: dict[tuple[int, int], int] = {}
    late: list[tuple[int, int, _Pair]] = []

    def choose(a: int, b: int, pair: _Pair, number: int) -> None:
        masks[pair.edges] |= np.uint16(bits[number])
        chosen[a, b] = number
        if replies:
            chosen[b, a] = number

    for a, b in (itertools.combinations if replies else itertools.permutations)(columns, 2):
        if not (job.senders[a] or job.senders[b]) or columns[b].following[a] < 0:
            continue
        back = columns[a].whole_path(fabric.channels, b) if replies else []
        pair = _Pair.of(fabric, columns[b].whole_path(fabric.channels, a), back)
        number = next((n for n, order in enumerate(orders) if pair.increases(order)), None)
        if number is None:
            late.append((a, b, pair))
            if len(late) > MOST_TRIALS:
                return None
        else:
            choose(a, b, pair, number)
    for a, b, pair in late:
        number = next((n for n, bit in enumerate(bits) if pair.closes_no_cycle(fabric, masks, bit)), None)
        if number is None:
            return None
        choose(a, b, pair, number)
    return chosen


@dataclass(frozen=True, eq=False)
class _Pair:
    """Dependencies of a path between two switches and, if replies count, of its reply path.

    Attributes
    ----------
    before, after
        int64[N], the channels that each dependency joins.
    edges
        int64[N], the numbers of the dependencies as edges of the CDG.
    """

    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    edges: npt.NDArray[np.int64]

    @classmethod
    def of(cls, fabric: Fabric, one: list[int], other: list[int]) -> _Pair:
        """Return the dependencies of two paths, each a list of channels."""
        before, after = (np.array([*a, *b], np.int64) for a, b in ((one[:-1], other[:-1]), (one[1:], other[1:])))
        edges = fabric.channels.edges
        return cls(before, after, edges.first[before] + after - edges.after[before])

    def increases(self, order: npt.NDArray[np.int32]) -> bool:
        """Return whether all dependencies lead from a channel to a later channel in the order (int32[C], position of
        each channel).
        """
        return bool((order[self.before] < order[self.after]).all())

    def closes_no_cycle(self, fabric: Fabric, masks: npt.NDArray[np.uint16], bit: int) -> bool:
        """Return whether the dependencies close no cycle if they are added to the CDG of one VL.

        ``masks`` (uint16[edges]) has the VLs on which each CDG edge is in use, as bits.  ``bit`` is the bit of the VL.
        """
        own = (masks & np.uint16(bit) != 0).astype(np.uint16)
        if own[self.edges].all():
            return True
        own[self.edges] = 1
        return Cdg(fabric, own).sorted(1, threads=1) is not None


def _by_lid(job: Inner, counted: Cdg, *, replies: bool) -> Routing | None:
    """Return tables with new paths between inner switches, for SLs by LID: the destination LID determines the VL of a
    path.  If these paths close a cycle on some VL, return None.

    ``counted`` is the CDG of all other paths.  A reply uses the SL of its request, which may differ from the SL of the
    LID to which the reply is sent.  So with ``replies``, the paths on all VLs follow one topological order.
    """
    inner = np.flatnonzero(job.inner)
    vls = job.routing.sl2vl[job.routing.sl[job.fabric.switch_lid[inner]]]
    columns: list[Column] = []
    for vl in np.unique(vls).tolist() if not replies else [None]:
        own = of_vls(counted, 0xFFFF if vl is None else 1 << vl)
        found = None if own.sorted(1, threads=1) is None else columns_of(job, inner[(vls == vl) | (vl is None)], own)
        if found is None:
            return None
        columns += found
    return with_columns(job, columns, None)
