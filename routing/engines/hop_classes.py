"""VLs by hop class: the VL on which a packet leaves a switch depends on the link by which the packet came.

A packet begins in the first class.  Some links are *advancing*: after such a link, a packet is in the second class.
SL2VL distinguishes the classes by the in-port.

A path is regular if it has only one link, or if it has these links in this order: at most one link that is not
advancing, one advancing link, and at most one link of any kind.  In the first class, dependencies of regular paths lead
only from links that are not advancing to advancing links.  All other dependencies of regular paths lead from the first
class to the second class.  So these dependencies close no cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing._kernels.assign_vls import NO_VL, PathGroups, assign_vls
from routing.engines.base import Engine, EngineOptions
from routing.engines.destinations import Destinations, forwarding_tables
from routing.engines.dfsssp import route_in_layers
from routing.engines.provenance import engine_tables
from routing.engines.vl_assignment import VlTables, most_vls
from routing.errors import NotEnoughVLs
from routing.fabric import Channels, Fabric
from routing.quality import all_to_all_share, channel_loads
from routing.tables import Routing

SLS = 16
"""Number of SLs of InfiniBand."""

CLASSES = 2
"""Number of hop classes."""

VISITS = 20_000_000
"""Number of channels that cycle searches for irregular paths may visit, for each number of VLs that is tried."""

SPARE_VISITS = 1_000_000
"""Number of channels that cycle searches may visit for irregular paths between switches without end ports."""

NOTHING = 255


@dataclass(frozen=True, eq=False)
class HopClasses:
    """Trees, and the advancing links, after which a packet is in the second hop class.

    Attributes
    ----------
    fabric, destinations
        The fabric, and the destinations of the trees.
    next_channel
        uint8[D, S], index of the selected channel among the channels of the switch, 255 for none.
    advancing
        bool[C], the advancing links, after which a packet is in the second class.
    """

    fabric: Fabric
    destinations: Destinations
    next_channel: npt.NDArray[np.uint8]
    advancing: npt.NDArray[np.bool_]

    @cached_property
    def irregular(self) -> npt.NDArray[np.bool_]:
        """Pairs of switches with an irregular path in either direction, bool[S, S].

        A path of one link is regular.  A longer path is regular if it has these links in this order: at most one link
        that is not advancing, one advancing link, and at most one link of any kind.

        Cost: O(D S).
        """
        channels = self.fabric.channels
        found = np.zeros((self.fabric.switches, self.fabric.switches), np.bool_)
        if len(channels) == 0:
            return found
        for root, row in zip(self.destinations.root.tolist(), self.next_channel, strict=True):
            channel, to, first = _columns(channels, row)
            # A regular path may end after an advancing link (after which packets are in the second class).
            fits_after = to == root
            last = first & (to == root)
            # After an advancing link, a regular path may also have one more link of any kind.
            fits_after = fits_after | (first & last[to])
            own = self.advancing[channel] & first
            direct = own & fits_after | last
            fine = direct | (first & ~self.advancing[channel] & (own & fits_after)[to])
            found[:, root] |= first & ~fine
        return found | found.T

    def changes_class(self) -> bool:
        """Return whether packets of any path change their class: whether a path continues after an advancing link."""
        channels = self.fabric.channels
        if len(channels) == 0:
            return False
        for row in self.next_channel:
            channel, to, first = _columns(channels, row)
            if (first & self.advancing[channel] & first[to]).any():
                return True
        return False


def _columns(
    channels: Channels, row: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return int64[S], the next channel of each switch in a tree; int64[S], the switch where this channel ends; and
    bool[S], whether the switch has a next channel.

    ``row`` (uint8[S]) is the tree: the index of the next channel among the channels of each switch, 255 for none.
    """
    there = row != NOTHING
    channel = np.where(there, channels.first[:-1] + row.astype(np.int64), 0)
    to = np.where(there, channels.dst[channel] if len(channels) else 0, 0)
    return channel, to.astype(np.int64), there


def hop_routing(engine: Engine, paths: HopClasses, options: EngineOptions, start: float, **facts: object) -> Routing:
    """Return the tables of an engine for paths in hop classes.

    Pairs of switches with regular paths share one or more SLs.  On these SLs, packets change from a VL of the first
    class to a VL of the second class.  If more than two VLs are allowed, there may be several such SLs.  The packets of
    pairs with irregular paths keep one VL.  On each VL, the dependencies of requests and replies together close no
    cycle.  So replies are safe.

    Parameters
    ----------
    engine, paths, options
        The engine, its paths, and the options of the run.
    start
        Start of the run, by ``time.perf_counter``.
    facts
        Further results for the provenance.

    Raises
    ------
    NotEnoughVLs
        The classes and the irregular paths do not fit into the allowed VLs.
    """
    fabric, destinations = paths.fabric, paths.destinations
    lft = forwarding_tables(fabric, destinations, paths.next_channel)
    chosen, needed = _assign(paths, lft, options)
    return engine_tables(
        engine, fabric, options, start, lft=lft, tables=chosen.tables(paths, options.first_vl), vls_needed=needed,
        **facts, irregular_pairs=int(np.tril(paths.irregular, -1).sum()),
    )  # fmt: skip


def fallback(engine: Engine, fabric: Fabric, options: EngineOptions, **facts: object) -> Routing:
    """Return tables of the engine LASH under the name of another engine, for a fabric with too many irregular paths.

    Raises
    ------
    NotEnoughVLs
        No paths were found that fit into the allowed VLs.
    """
    routing = route_in_layers(engine, fabric, options, mutual=True)
    record = routing.provenance
    found = {**record.options, **facts, "fallback": "layers of shortest paths, as in LASH"}
    return replace(routing, provenance=replace(record, options=found))


def highest_all_to_all(found: Sequence[Routing], fabric: Fabric, options: EngineOptions) -> Routing:
    """Return the tables with the highest all-to-all share.  If several tables have this share, return the first."""
    loads = [channel_loads(fabric, routing, threads=options.threads) for routing in found]
    # The all-to-all shares are rounded, because the shares of equal tables may differ in their last bits.
    return found[int(np.argmax([round(all_to_all_share(fabric, one), 6) for one in loads]))]


def _assign(paths: HopClasses, lft: npt.NDArray[np.uint8], options: EngineOptions) -> tuple[_Assignment, int]:
    """Assign VLs to hop classes and irregular paths.  Return an assignment that uses all allowed VLs, and the smallest
    number of VLs for which an assignment was found.

    Raises
    ------
    NotEnoughVLs
        There is no assignment within the allowed VLs.
    """
    minimal = options.vls == "min"
    have = most_vls(options)
    classes = CLASSES if paths.changes_class() else 1
    if have < classes:
        raise NotEnoughVLs(classes, have)
    groups, found = PairGroups.of(paths.fabric, paths.destinations, paths.irregular), None
    if not minimal:
        found = _Assignment.search(
            paths, lft, groups, classes=classes, vls=have, copies=have // classes, first_vl=options.first_vl
        ) or _Assignment.search(paths, lft, groups, classes=classes, vls=have, copies=1, first_vl=options.first_vl)
        if found is None:
            raise NotEnoughVLs(None, have)
    for vls in range(classes, have + 1):
        fewest = _Assignment.search(paths, lft, groups, classes=classes, vls=vls, copies=1, first_vl=options.first_vl)
        if fewest is not None:
            return found or fewest, vls
    if found is None:
        raise NotEnoughVLs(None, have)
    return found, have


@dataclass(frozen=True, eq=False)
class PairGroups:
    """Irregular paths, grouped by pair of switches.  Pairs of which one switch or both have end ports come first.

    Attributes
    ----------
    high, low
        int64[G], the two switches.
    first
        int32[G+1], the paths of group ``g`` have the indices ``first[g]`` to ``first[g+1] - 1``.
    source, lid
        int32[W] each, the first switch and the destination LID of each path.
    counted
        Number of groups of which one switch or both have end ports.
    """

    high: npt.NDArray[np.int64]
    low: npt.NDArray[np.int64]
    first: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]
    lid: npt.NDArray[np.int32]
    counted: int

    @classmethod
    def of(cls, fabric: Fabric, destinations: Destinations, irregular: npt.NDArray[np.bool_]) -> PairGroups:
        """Return one group for each pair of switches that ``irregular`` (bool[S, S], symmetric) marks."""
        high, low = np.nonzero(np.tril(irregular, -1))
        has_ports = fabric.terminals_at > 0
        counted = has_ports[high] | has_ports[low]
        by_count = np.argsort(~counted, kind="stable")
        high, low = high[by_count], low[by_count]
        by_root = np.argsort(destinations.root, kind="stable")
        lids = destinations.lid[by_root]
        count = np.bincount(destinations.root, minlength=fabric.switches)
        begin = np.cumsum(count) - count
        # `ends` has the destination switches of all paths.  Each pair of switches has two elements: first `high` (for
        # the paths from `low` to `high`), and then `low` (for the paths from `high` to `low`).
        ends = np.stack([high, low], axis=1).reshape(-1)
        starts = np.stack([low, high], axis=1).reshape(-1)
        size = count[ends]
        offset = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
        first = np.concatenate([[0], np.cumsum(size.reshape(-1, 2).sum(axis=1))])
        return cls(
            high, low, first.astype(np.int32), np.repeat(starts, size).astype(np.int32),
            lids[np.repeat(begin[ends], size) + offset].astype(np.int32), int(counted.sum()),
        )  # fmt: skip

    def part(self, begin: int, end: int, start: npt.NDArray[np.uint8]) -> PathGroups:
        """Return the groups ``begin`` to ``end - 1`` in the form that the kernel function ``assign_vls`` takes.

        ``start`` (uint8[G]) is the VL that is tried first for each group.
        """
        low, high = int(self.first[begin]), int(self.first[end])
        return PathGroups(
            self.first[begin : end + 1] - np.int32(low), self.source[low:high], self.lid[low:high], start[begin:end]
        )

    def on_spare_vls(
        self, fabric: Fabric, lft: npt.NDArray[np.uint8], vls: int, *, visits: int
    ) -> npt.NDArray[np.int64]:
        """Return int64[G], the VL of each group, out of ``vls`` VLs that no other traffic uses.

        The groups on a VL, with their paths in both directions, close no cycle together.  ``visits`` is the number of
        channels that cycle searches may visit.

        Raises
        ------
        NotEnoughVLs
            The groups do not fit into these VLs.
        """
        count, channels = len(self.high), fabric.channels
        if count == 0:
            return np.zeros(0, np.int64)
        if vls < 1:
            raise NotEnoughVLs(None, vls)
        vl, *_ = assign_vls(
            channels, fabric.lids.switch, lft, self.part(0, count, np.zeros(count, np.uint8)),
            masks=np.zeros(channels.edges.count, np.uint16),
            order=np.tile(np.arange(len(channels), dtype=np.int32), (vls, 1)), allowed_vls=np.ones(vls, bool),
            budget=visits,
        )  # fmt: skip
        if (vl == NO_VL).any():
            raise NotEnoughVLs(None, vls)
        return vl.astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Assignment:
    """Assignment of VLs to the hop classes and to the irregular paths.

    The SLs 0 to ``copies - 1`` are for regular paths.  On SL ``k``, packets use VL ``k`` in the first class, and VL
    ``copies + k`` in the second class if there is a second class.  The next SLs are for irregular paths: on SL
    ``copies + v``, packets use VL ``v`` on all hops.

    Attributes
    ----------
    classes, copies, vls
        Number of hop classes, of SLs for regular paths, and of VLs.
    groups, vl
        The irregular paths, grouped by pair of switches, and the VL of each group, uint8[G].
    """

    classes: int
    copies: int
    vls: int
    groups: PairGroups
    vl: npt.NDArray[np.uint8]

    @classmethod
    def search(
        cls,
        paths: HopClasses,
        lft: npt.NDArray[np.uint8],
        groups: PairGroups,
        *,
        classes: int,
        vls: int,
        copies: int,
        first_vl: int,
    ) -> _Assignment | None:
        """Search for an assignment of VLs.

        The irregular paths between two switches form a group, which gets one VL.  A group counts if one or both of its
        switches have end ports.  Return None if a group that counts fits on no VL, or if the cycle searches reach their
        work limit before all groups that count have a VL.

        Parameters
        ----------
        paths, lft, groups
            The paths, their LFTs, and the irregular paths in groups.
        classes, copies, vls
            Number of hop classes, of SLs for regular paths, and of VLs.
        first_vl
            First VL that the engine may use.
        """
        channels, count = paths.fabric.channels, len(groups.high)
        vl = np.zeros(count, np.uint8)
        if count == 0:
            return cls(classes, copies, vls, groups, vl)
        before, after = channels.edges.channels()
        masks = np.zeros(channels.edges.count, np.uint16)
        turns = channels.edges.numbers()[~paths.advancing[before] & paths.advancing[after]]
        masks[turns] = (1 << copies) - 1
        place = np.empty(len(channels), np.int32)
        place[np.argsort(paths.advancing, kind="stable")] = np.arange(len(channels), dtype=np.int32)
        order = np.tile(place, (vls, 1))
        # Regular paths have dependencies only on the first `copies` VLs, which are the VLs of the first hop class.  So
        # the other VLs are tried first for irregular paths.
        free = np.arange(copies, vls) if vls > copies else np.arange(vls)
        start = free[np.arange(count) % len(free)].astype(np.uint8)
        usable = np.arange(vls) < SLS - first_vl - copies
        start[~usable[start]] = int(free[0]) if usable[free[0]] else 0
        for begin, end, budget in ((0, groups.counted, VISITS), (groups.counted, count, SPARE_VISITS)):
            vl[begin:end], masks, order, _ = assign_vls(
                channels, paths.fabric.lids.switch, lft, groups.part(begin, end, start), masks=masks, order=order,
                allowed_vls=usable, budget=budget,
            )  # fmt: skip
            if begin == 0 and (vl[:end] == NO_VL).any():
                return None
        return cls(classes, copies, vls, groups, np.where(vl == NO_VL, start, vl).astype(np.uint8))

    def tables(self, paths: HopClasses, first: int) -> VlTables:
        """Return the SLs by switch and LID, and the SL2VL tables.  VL 0 of the assignment becomes VL ``first``."""
        fabric, destinations, channels = paths.fabric, paths.destinations, paths.fabric.channels
        rows = np.arange(fabric.switches)
        by_pair = ((rows[:, None] + rows) % self.copies).astype(np.uint8)
        kept = self.vl + np.uint8(self.copies)
        by_pair[self.groups.high, self.groups.low] = kept
        by_pair[self.groups.low, self.groups.high] = kept
        sl = np.full((fabric.switches, len(fabric.lids)), first, np.uint8)
        sl[:, destinations.lid] = by_pair[:, destinations.root] + np.uint8(first)
        row = (np.arange(SLS) % (first + self.vls)).astype(np.uint8)
        own = np.arange(self.copies)
        row[first + own] = first + own
        constant = np.arange(min(self.vls, SLS - first - self.copies))
        row[first + self.copies + constant] = first + constant
        ports = 1 + int(fabric.switch_ports.max(initial=0))
        table = np.tile(row, (fabric.switches, ports, ports, 1))
        late = row.copy()
        late[first + own] = first + own + (self.copies if self.classes > 1 else 0)
        table[channels.dst[paths.advancing], channels.dst_port[paths.advancing]] = late
        return {"sl": sl, "sl2vl": table, "vls": first + self.vls}
