"""Paths between switches without traffic that counts, in the orders that the other paths leave.

Engines in layers assign VLs to the paths from or to end ports that count.  Two aggregation nodes on inner switches of a
tree need paths as well, and such a path leads down and then up.  It must not need a further VL.  So this module takes
paths along which the channels increase in a topological order of a VL: longer ones, if the shortest does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.up_down import is_increasing
from routing.cdg.acyclic import Cdg
from routing.cdg.trace import trace_cdg, vl_bits
from routing.engines.orders import breadth_first, central_switch, top_switches
from routing.fabric import NO_PORT, Fabric
from routing.tables import Routing

_AT_TARGET = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class _Inner:
    """Tables, and the switches between which paths are missing.

    Attributes
    ----------
    fabric, routing
        The fabric without the end ports that do not count, and its tables, with the same SL-to-VL table everywhere.
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


def connect_inner_switches(fabric: Fabric, routing: Routing, senders: npt.NDArray[np.bool_]) -> Routing | None:
    """Return tables whose paths between inner switches close no cycle, with all other paths unchanged.

    Parameters
    ----------
    fabric, routing
        The fabric without the end ports that do not count, and its tables.  The SLs are by LID, or by switch and LID.
    senders
        bool[S], switches that have only end ports that do not count.

    Returns
    -------
    Routing or None
        The given tables if they have no cycle; None if no such paths were found.

    Notes
    -----
    Cost: that of two proofs, and O(C hops) for each VL and each inner switch.
    """
    bits = vl_bits(routing.sl2vl)
    for replies in (True, False):
        whole = trace_cdg(fabric, routing, bits, replies=replies, switch_pairs=True, threads=1)
        if whole.sorted(routing.vls, threads=1) is not None:
            return routing
        counted = trace_cdg(fabric, routing, bits, replies=replies, switch_pairs=False, threads=1)
        if counted.sorted(routing.vls, threads=1) is not None:
            job = _Inner(fabric, routing, fabric.senders_at == 0, senders)
            return _connected(job, counted, replies=replies)
    return None


def _connected(job: _Inner, counted: Cdg, *, replies: bool) -> Routing | None:
    """Return the tables with one VL for all paths between inner switches, or the VL of the LID; None if none fits."""
    by_lid = job.routing.sl.ndim == 1
    orders = {vl: list(_orders(counted, vl)) for vl in range(job.routing.vls)}
    if by_lid:
        return None if replies and job.routing.vls > 1 else _by_lid(job, orders)
    for sl in range(16):
        for order in orders.get(int(job.routing.sl2vl[sl]), ()):
            found = _in_order(job, dict.fromkeys(np.flatnonzero(job.inner).tolist(), order), sl)
            if found is not None:
                return found
    return None


def _by_lid(job: _Inner, orders: dict[int, list[npt.NDArray[np.int32]]]) -> Routing | None:
    fabric, routing = job.fabric, job.routing
    of_target: dict[int, npt.NDArray[np.int32]] = {}
    for target in np.flatnonzero(job.inner).tolist():
        known = orders[int(routing.sl2vl[routing.sl[fabric.switch_lid[target]]])]
        if not known:
            return None
        of_target[target] = known[0]
    return _in_order(job, of_target, None)


def _orders(counted: Cdg, vl: int) -> Iterator[npt.NDArray[np.int32]]:
    """Yield int32[C], topological orders of a VL's edges; those that allow most other paths come first."""
    fabric = counted.fabric
    own = Cdg(fabric, (counted.masks >> np.uint16(vl)) & np.uint16(1))
    tops = top_switches(fabric)
    base = is_increasing(fabric.channels, breadth_first(fabric, tops or [central_switch(fabric)]))
    yield _nearest_order(own, base)
    if (found := own.switch_order()) is not None:
        yield is_increasing(fabric.channels, found)


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


def _in_order(job: _Inner, orders: dict[int, npt.NDArray[np.int32]], sl: int | None) -> Routing | None:
    """Return tables in which the channels of every path between inner switches increase in the target's order.

    With ``sl``, these paths take that SL.  None: there are no such paths for a pair that needs one.
    """
    fabric, routing = job.fabric, job.routing
    lft, sls = routing.lft.copy(), routing.sl.copy()
    for target, order in orders.items():
        lid = int(fabric.switch_lid[target])
        if lid == 0:
            continue
        column, fits = _column(job, target, lid, order)
        needed = job.inner & (job.senders | job.senders[target]) & (routing.lft[:, lid] != NO_PORT)
        if (needed & ~fits).any():
            return None
        lft[:, lid] = np.where(fits, column, lft[:, lid])
        if sl is not None:
            sls[fits & job.inner, lid] = sl
    return replace(routing, lft=lft, sl=sls)


def _column(
    job: _Inner, target: int, lid: int, order: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Compute an LFT column in which the entries of all paths that count stay.

    Returns
    -------
    column : uint8[S]
        The out-ports.
    fits : bool[S]
        Switches from which the channels of the path increase in ``order``.
    """
    channels, rows = job.fabric.channels, np.arange(job.fabric.switches)
    column = job.routing.lft[:, lid].copy()
    following = channels.at_port[rows, column]
    following[target] = -1
    fixed, reached = ~job.inner, ~job.inner
    while reached.any():
        ahead = np.zeros_like(fixed)
        ahead[channels.dst[following[reached & (following >= 0)]]] = True
        reached = ahead & ~fixed
        fixed = fixed | ahead
    # The position of the first channel on each path that fits; a channel before it may lead there.
    first = np.full(len(rows), -1, np.int64)
    first[target] = _AT_TARGET
    while True:
        open_to = (first[channels.src] < 0) & (order < first[channels.dst])
        kept = following[channels.src] == np.arange(len(channels))
        usable = np.flatnonzero(open_to & np.where(fixed[channels.src], kept, True))
        if not len(usable):
            return column, first >= 0
        # The channel that is the last in the order leaves most room for the paths of other switches.
        by_source = usable[np.lexsort((order[usable], kept[usable], channels.src[usable]))]
        last = np.append(np.diff(channels.src[by_source]) != 0, True)
        chosen = by_source[last]
        first[channels.src[chosen]] = order[chosen]
        column[channels.src[chosen]] = channels.port[chosen]
