"""LFT columns of inner switches: switches without end ports that count in traffic patterns.  Each path in these columns
uses channels with ascending positions in a given order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.up_down import is_increasing
from routing.cdg.acyclic import Cdg
from routing.engines.orders import breadth_first, central_switch, top_switches
from routing.fabric import NO_PORT, Channels, Fabric
from routing.tables import Routing
from routing.trees.levels import tree_order

MOST_ORDERS = 8
"""Number of orders of the channels that are tried for one VL."""

MOST_TRIALS = 200
"""Limit for two searches.  :func:`columns_of` tries to add at most this number of missing paths to one order of the
channels, before it computes the next order.  In :mod:`routing.engines.inner_pairs`, an attempt ends without success if
the paths of more than this number of pairs of switches need a cycle search.
"""

_AT_TARGET = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Inner:
    """Tables, and the inner switches between which new paths are needed.

    Attributes
    ----------
    fabric, routing
        The fabric, from which uncounted end ports such as aggregation nodes were removed.  The tables of this fabric,
        with one SL2VL table for all ports.
    inner
        bool[S], inner switches: switches without counted end ports.
    senders
        bool[S], inner switches with uncounted end ports in the whole fabric.  Two inner switches need paths between
        them if ``senders`` marks at least one of the two switches.
    """

    fabric: Fabric
    routing: Routing
    inner: npt.NDArray[np.bool_]
    senders: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Column:
    """Paths from all switches to one inner switch.

    Attributes
    ----------
    target
        The inner switch.
    ports, following
        uint8[S], the out-port of each switch; int64[S], the channel at this port (-1: none).
    fixed
        bool[S], switches whose entries must not change, for example because counted paths use these entries.
    first
        int64[S], for each switch, the position of the first channel of its path.  The position is counted in the order
        of the channels that all paths of the column follow.  It is -1 if no path from the switch follows this order.
    """

    target: int
    ports: npt.NDArray[np.uint8]
    following: npt.NDArray[np.int64]
    fixed: npt.NDArray[np.bool_]
    first: npt.NDArray[np.int64]

    def whole_path(self, channels: Channels, switch: int) -> list[int]:
        """Return the channels of the path from a switch to the inner switch."""
        return self.path(channels, int(self.following[switch]))

    def path(self, channels: Channels, first: int) -> list[int]:
        """Return the channels of a path to the column's target, given the first channel of the path."""
        found = [first]
        while (switch := int(channels.dst[found[-1]])) != self.target and len(found) < len(self.ports):
            found.append(int(self.following[switch]))
        return found


def of_vls(cdg: Cdg, mask: int) -> Cdg:
    """Return a CDG with one VL, which has each edge that is in use on at least one VL in ``mask`` (VLs as bits)."""
    return Cdg(cdg.fabric, (cdg.masks & np.uint16(mask) != 0).astype(np.uint16))


def bases(fabric: Fabric) -> Iterator[npt.NDArray[np.int32]]:
    """Yield one or two orders of the channels, int32[C], in which all channels up precede all channels down.

    A path that leads up and then down follows such an order.  The first order comes from a breadth-first order of the
    switches.  On trees, a second order comes from the levels of the tree.
    """
    top = top_switches(fabric) or [central_switch(fabric)]
    yield is_increasing(fabric.channels, breadth_first(fabric, top))
    tree = tree_order(fabric)
    if tree is not None:
        yield is_increasing(fabric.channels, tree.position)


def columns_of(job: Inner, targets: npt.NDArray[np.intp], others: Cdg) -> list[Column] | None:
    """Search for LFT columns with paths to the inner switches ``targets`` from all inner switches that need a path.

    ``job`` holds the tables and the inner switches.  ``others`` is a CDG with one VL, which has the CDG edges of the
    paths that stay: the paths from or to counted end ports.  All new paths follow one topological order of this CDG, so
    they close no cycle with the paths that stay.

    The search begins with an order that is similar to an order in which paths lead up and then down.  If paths are
    missing, the order is changed such that it allows some missing paths in addition to all paths found before.  Return
    None if no change of the order allows a further path, or if paths are still missing after :data:`MOST_ORDERS`
    orders.
    """
    fabric, edges = job.fabric, job.fabric.channels.edges
    base = next(bases(fabric))
    masks = others.masks.copy()
    targets = targets[fabric.switch_lid[targets] > 0]
    for _ in range(MOST_ORDERS):
        order = nearest_order(Cdg(fabric, masks), base)
        found = [increasing_column(job, target, order) for target in targets.tolist()]
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


def _lacks_path(job: Inner, column: Column) -> npt.NDArray[np.bool_]:
    """Return bool[S], the inner switches that need a path to the column's target, but have no path that follows the
    order of the channels (see :attr:`Column.first`).
    """
    has_entry = job.routing.lft[:, job.fabric.switch_lid[column.target]] != NO_PORT
    needed = job.inner & (job.senders | job.senders[column.target]) & has_entry
    return np.asarray(needed & (column.first < 0))


def _admit(fabric: Fabric, masks: npt.NDArray[np.uint16], column: Column, switch: int) -> bool:
    """Search for a path from ``switch`` to the target of ``column`` that closes no cycle, and add its CDG edges.

    ``masks`` (uint16[edges]) is 1 for each CDG edge in use; the function sets the edges of the path in this array.
    Return whether such a path was found.
    """
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


def nearest_order(cdg: Cdg, base: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return int32[C], a topological order of an acyclic CDG with one VL.  The result is similar to the order ``base``.

    The result differs from ``base`` only where a CDG edge leads from a channel to an earlier channel.  The earlier
    channel then moves directly behind the other channel.
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


def increasing_column(
    job: Inner, target: int, order: npt.NDArray[np.int32], preset: Mapping[int, int] | None = None
) -> Column:
    """Compute an LFT column whose paths follow an order of the channels.  Entries on paths from switches with counted
    end ports do not change.

    ``job`` holds the tables, and ``target`` is the inner switch of the column.  ``order`` (int32[C]) is the position of
    each channel in the order.  ``preset`` prescribes the next channel of some switches, unless the entry of the switch
    must not change.
    """
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
    for switch, channel in (preset or {}).items():
        if not fixed[switch]:
            fixed[switch], following[switch], ports[switch] = True, channel, channels.port[channel]
    first = np.full(len(rows), -1, np.int64)
    first[target] = _AT_TARGET
    while True:
        open_to = (first[channels.src] < 0) & (order < first[channels.dst])
        kept = following[channels.src] == np.arange(len(channels))
        usable = np.flatnonzero(open_to & (kept | ~fixed[channels.src]))
        if not len(usable):
            return Column(target, ports, following, fixed, first)
        # Of the possible channels of a switch, the channel with the last position in the order is taken.  A path
        # through this switch has to enter it by a channel with an earlier position.  So the later the position of the
        # taken channel, the more channels can be used to enter the switch.
        by_source = usable[np.lexsort((order[usable], channels.src[usable]))]
        chosen = by_source[np.append(np.diff(channels.src[by_source]) != 0, True)]
        switches = channels.src[chosen]
        first[switches], following[switches], ports[switches] = order[chosen], chosen, channels.port[chosen]


def with_columns(job: Inner, columns: list[Column], sl: int | None) -> Routing:
    """Return the tables of ``job`` with the paths in ``columns`` between inner switches.

    The paths get SL ``sl``; None: the SL of the destination LID.
    """
    lft, sls = job.routing.lft.copy(), job.routing.sl.copy()
    for column in columns:
        lid, fits = int(job.fabric.switch_lid[column.target]), column.first >= 0
        lft[:, lid] = np.where(fits | column.fixed, column.ports, lft[:, lid])
        if sl is not None:
            sls[fits & job.inner, lid] = sl
    return replace(job.routing, lft=lft, sl=sls)
