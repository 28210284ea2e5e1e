"""Paths between switches without traffic that counts, in the orders that the other paths leave.

Engines in layers assign VLs to the paths from or to end ports that count.  Two aggregation nodes on inner switches of a
tree need paths as well, and such a path leads down and then up.  It must not need a further VL.  So this module takes
paths along which the channels increase in a topological order of a VL: longer ones, if the shortest does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.up_down import is_increasing
from routing.cdg.acyclic import Cdg
from routing.cdg.trace import trace_cdg, vl_bits
from routing.engines.orders import breadth_first, central_switch, top_switches
from routing.fabric import NO_PORT, Channels, Fabric
from routing.tables import Routing

MOST_ORDERS = 8
"""Orders that are tried for one VL."""

MOST_TRIALS = 200
"""Paths that each order tries to include."""

_AT_TARGET = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class _Inner:
    """Tables, and the switches between which paths are missing.

    Attributes
    ----------
    fabric, routing
        The fabric without the end ports that do not count, and its tables, with one SL-to-VL table for all ports.
    inner
        bool[S], switches without end ports that count.
    senders
        bool[S], inner switches with end ports that do not count.  A pair of inner switches needs a path if one of them
        is marked.
    """

    fabric: Fabric
    routing: Routing
    inner: npt.NDArray[np.bool_]
    senders: npt.NDArray[np.bool_]


def connect_inner_switches(
    fabric: Fabric, routing: Routing, senders: npt.NDArray[np.bool_], *, reversible: bool
) -> Routing | None:
    """Return tables whose paths between inner switches close no cycle, with all other paths unchanged.

    Parameters
    ----------
    fabric, routing
        The fabric without the end ports that do not count, and its tables.  The SLs are by LID, or by switch and LID.
    senders
        bool[S], switches that have only end ports that do not count.
    reversible
        Whether replies must stay safe if they are so now.  They always stay so with SLs by switch and LID.

    Returns
    -------
    Routing or None
        The given tables if they have no cycle; None if no such paths were found.

    Notes
    -----
    Cost: that of two proofs, and O(C hops) for each VL and each inner switch.
    """
    bits = vl_bits(routing.sl2vl)
    job = _Inner(fabric, routing, fabric.senders_at == 0, senders)
    for replies in (True, False):
        whole = trace_cdg(fabric, routing, bits, replies=replies, switch_pairs=True, threads=1)
        if whole.sorted(routing.vls, threads=1) is not None:
            return routing
        counted = trace_cdg(fabric, routing, bits, replies=replies, switch_pairs=False, threads=1)
        if counted.sorted(routing.vls, threads=1) is None:
            continue
        if routing.sl.ndim == 2 and len(routing.sl) != fabric.switches:
            return None  # SLs by pair of LIDs are fixed already
        found = _by_lid(job, counted, replies=replies) if routing.sl.ndim == 1 else _on_one_vl(job, counted)
        if found is not None or reversible or routing.sl.ndim == 2:
            return found
    return None


def _on_one_vl(job: _Inner, counted: Cdg) -> Routing | None:
    """Return the tables with all paths between inner switches on one SL; None if no SL admits them."""
    for sl in np.unique(job.routing.sl).tolist():
        columns = _columns(job, np.flatnonzero(job.inner), _of_vls(counted, 1 << int(job.routing.sl2vl[sl])))
        if columns is not None:
            return _with_columns(job, columns, sl)
    return None


def _by_lid(job: _Inner, counted: Cdg, *, replies: bool) -> Routing | None:
    """Return the tables with each path between inner switches on the VL of its LID; None if a VL does not admit them.

    A reply uses the VL of the request, so that with ``replies`` all VLs follow one order.
    """
    inner = np.flatnonzero(job.inner)
    vls = job.routing.sl2vl[job.routing.sl[job.fabric.switch_lid[inner]]]
    columns: list[_Column] = []
    for vl in np.unique(vls).tolist() if not replies else [None]:
        own = _of_vls(counted, 0xFFFF if vl is None else 1 << vl)
        found = None if own.sorted(1, threads=1) is None else _columns(job, inner[(vls == vl) | (vl is None)], own)
        if found is None:
            return None
        columns += found
    return _with_columns(job, columns, None)


def _of_vls(cdg: Cdg, mask: int) -> Cdg:
    """Return the edges that are used on any of these VLs, as a CDG with one VL."""
    return Cdg(cdg.fabric, (cdg.masks & np.uint16(mask) != 0).astype(np.uint16))


@dataclass(frozen=True, eq=False)
class _Column:
    """Paths of all switches to an inner switch.

    Attributes
    ----------
    target
        The inner switch.
    ports, following
        uint8[S], int64[S]: the out-ports, and their channels (-1: none).
    fixed
        bool[S], switches whose entries stay, because paths that count use them.
    first
        int64[S], position of the first channel of each path whose channels increase in the order; -1 for others.
    """

    target: int
    ports: npt.NDArray[np.uint8]
    following: npt.NDArray[np.int64]
    fixed: npt.NDArray[np.bool_]
    first: npt.NDArray[np.int64]

    def path(self, channels: Channels, first: int) -> list[int]:
        """Return the channels of the path that begins with a channel."""
        found = [first]
        while (switch := int(channels.dst[found[-1]])) != self.target and len(found) < len(self.ports):
            found.append(int(self.following[switch]))
        return found


def _columns(job: _Inner, targets: npt.NDArray[np.intp], own: Cdg) -> list[_Column] | None:
    """Return paths to the targets from all inner switches that need them; None if they were not found.

    The paths increase in an order near that of a tree.  Where that is impossible, the order changes: it includes the
    paths that were found, and one more.
    """
    fabric, edges = job.fabric, job.fabric.channels.edges
    base = is_increasing(fabric.channels, breadth_first(fabric, top_switches(fabric) or [central_switch(fabric)]))
    masks = own.masks.copy()
    targets = targets[fabric.switch_lid[targets] > 0]
    for _ in range(MOST_ORDERS):
        order = _nearest_order(Cdg(fabric, masks), base)
        found = [_column(job, target, order) for target in targets.tolist()]
        missing = [(column, int(switch)) for column in found for switch in np.flatnonzero(_lacks_path(job, column))]
        if not missing:
            return found
        for column in found:
            reached = np.flatnonzero(job.inner & (column.first >= 0) & (column.following >= 0))
            after = column.following[fabric.channels.dst[column.following[reached]]]
            before = column.following[reached][after >= 0]
            masks[edges.first[before] + after[after >= 0] - edges.after[before]] = 1
        admitted = [_admit(fabric, masks, column, switch) for column, switch in missing[:MOST_TRIALS]]
        if not any(admitted):
            return None
    return None


def _lacks_path(job: _Inner, column: _Column) -> npt.NDArray[np.bool_]:
    """Return bool[S], the inner switches that need a path of the column and have none that increases."""
    has_entry = job.routing.lft[:, job.fabric.switch_lid[column.target]] != NO_PORT
    needed = job.inner & (job.senders | job.senders[column.target]) & has_entry
    return np.asarray(needed & (column.first < 0))


def _admit(fabric: Fabric, masks: npt.NDArray[np.uint16], column: _Column, switch: int) -> bool:
    """Add the edges of a path from a switch to the target of a column, unless they close a cycle with ``masks``."""
    channels, edges = fabric.channels, fabric.channels.edges
    choices = np.arange(channels.first[switch], channels.first[switch + 1])
    leads = column.first[channels.dst[choices]] >= 0
    choices = column.following[[switch]] if column.fixed[switch] else choices[leads]
    for choice in choices.tolist():
        path = np.array(column.path(channels, choice))
        new = edges.first[path[:-1]] + path[1:] - edges.after[path[:-1]]
        new = new[masks[new] == 0]
        masks[new] = 1
        if Cdg(fabric, masks).sorted(1, threads=1) is not None:
            return True
        masks[new] = 0
    return False


def _nearest_order(cdg: Cdg, base: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return int32[C], a topological order of an acyclic CDG with one VL that follows ``base`` as far as possible.

    A channel moves behind those before it in the CDG, and no farther.
    """
    channels = cdg.fabric.channels
    used = cdg.masks[channels.edges.numbers()] != 0
    before, after = (ends[used] for ends in channels.edges.channels())
    key = base.astype(np.int64) * (len(channels) + 1)
    while (key[after] <= key[before]).any():
        np.maximum.at(key, after, key[before] + 1)
    order = np.empty(len(channels), np.int32)
    order[np.argsort(key, kind="stable")] = np.arange(len(channels), dtype=np.int32)
    return order


def _column(job: _Inner, target: int, order: npt.NDArray[np.int32]) -> _Column:
    """Compute an LFT column in which the entries of all paths that count stay."""
    channels, rows = job.fabric.channels, np.arange(job.fabric.switches)
    ports = job.routing.lft[:, job.fabric.switch_lid[target]].copy()
    following = channels.at_port[rows, ports].astype(np.int64)
    following[target] = -1
    fixed, reached = ~job.inner, ~job.inner
    while reached.any():
        ahead = np.zeros_like(fixed)
        ahead[channels.dst[following[reached & (following >= 0)]]] = True
        reached = ahead & ~fixed
        fixed = fixed | ahead
    first = np.full(len(rows), -1, np.int64)
    first[target] = _AT_TARGET
    while True:
        open_to = (first[channels.src] < 0) & (order < first[channels.dst])
        kept = following[channels.src] == np.arange(len(channels))
        usable = np.flatnonzero(open_to & (kept | ~fixed[channels.src]))
        if not len(usable):
            return _Column(target, ports, following, fixed, first)
        # The channel that is the last in the order leaves most room for the paths of other switches.
        by_source = usable[np.lexsort((order[usable], channels.src[usable]))]
        chosen = by_source[np.append(np.diff(channels.src[by_source]) != 0, True)]
        switches = channels.src[chosen]
        first[switches], following[switches], ports[switches] = order[chosen], chosen, channels.port[chosen]


def _with_columns(job: _Inner, columns: list[_Column], sl: int | None) -> Routing:
    """Return the tables with the paths of ``columns`` between inner switches.

    The paths use the SL ``sl``; None: the SL that the destination LID already has.
    """
    lft, sls = job.routing.lft.copy(), job.routing.sl.copy()
    for column in columns:
        lid, fits = int(job.fabric.switch_lid[column.target]), column.first >= 0
        lft[:, lid] = np.where(fits, column.ports, lft[:, lid])
        if sl is not None:
            sls[fits & job.inner, lid] = sl
    return replace(job.routing, lft=lft, sl=sls)
