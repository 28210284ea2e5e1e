"""Compute the levels of a tree's switches, and tables in closed form, destination by destination.

A switch that has the destination below itself sends down.  Any other switch sends up, towards the top switch of the
LID.  On a tree without missing links, the top switches follow from D-mod-K.  On other trees, the top switches are
chosen such that all links get about equally many LIDs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.closed_form import TreeGraph, TreeLids, TreeTables, closed_form, leaf_level
from routing._kernels.descent import NO_CHANNEL
from routing.errors import RoutingError
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.trees.levels import MOST_ACROSS, distances, even_leaves, tree_levels

MOST_FILLED = 0.41
"""Largest share of the LFT entries from one leaf to another that may lack a path up and then down.  With a larger
share, the fabric does not count as a tree.  The closed form fills the entries without a path up and then down with
other paths.
"""
FEW_FILLED = 0.25
"""If this share of the entries (see :data:`MOST_FILLED`) or less lacks such a path, no other levels are tried."""

REMEDY = "use updn or nue, or name the roots"


class NotATree(RoutingError):
    """Error: the switches of a fabric have no levels such that paths lead up and then down."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """The leaves of a tree, given by the end ports at leaves, and optionally the switches at the top of the tree.

    Attributes
    ----------
    compute
        bool[E], end ports that count as compute nodes: their switches are leaves.  At each switch, the LIDs of compute
        nodes come before all other LIDs (:func:`lids_of`).
    roots
        Rows of the switches at the top; empty: no roots are named, and levels are distances from the leaves.
    """

    compute: npt.NDArray[np.bool_]
    roots: tuple[int, ...] = ()


def route_tree(
    fabric: Fabric,
    leaves: Leaves,
    inverse_capacity: npt.NDArray[np.float64],
    *,
    passes: int,
    threads: int,
    loads: bool = False,
) -> tuple[TreeTables, npt.NDArray[np.int32]]:
    """Compute the tables of a tree, and the levels of its switches.

    Parameters
    ----------
    fabric
        The fabric.
    leaves
        End ports and roots that determine the levels.
    inverse_capacity
        float64[C], inverse capacity of each channel.
    passes
        Number of passes, after the first pass, over the entries that the closed form leaves open.
    threads
        Worker threads; they do not change the result.
    loads
        Whether to add up the flow on each channel.

    Returns
    -------
    tables
        The tables.
    level : int32[S]
        Level of each switch; leaves have 0, or a higher level if switches are below leaves.

    Raises
    ------
    NotATree
        Too many links join two switches of one level (more than :data:`routing.trees.levels.MOST_ACROSS`), or too many
        pairs of switches with end ports have no switch above both.

    Notes
    -----
    Levels without links between switches of one level are preferred.  Otherwise, paths use these links only where no
    path leads up and then down over other links.
    """
    lids = lids_of(fabric, leaves)
    problem: NotATree | None = None
    best: tuple[float, TreeTables, npt.NDArray[np.int32]] | None = None
    for level, most_filled, within in _by_links_within(fabric, leaves):
        if within > 0 and best is not None and best[0] <= MOST_FILLED:
            break
        if within > MOST_ACROSS * len(fabric.channels):
            problem = problem or _links_within(fabric, level)
            continue
        tables = closed_form(
            TreeGraph.of(fabric.channels, level, inverse_capacity),
            lids,
            fabric.senders_at.astype(np.float64),
            fabric.component,
            len(fabric.lids),
            passes=passes,
            threads=threads,
            loads=loads,
        )
        leaf = (level == leaf_level(level, fabric.senders_at)) & (fabric.senders_at > 0)
        delivers = np.repeat(leaf[lids.at], np.diff(lids.first))
        pairs = int(np.count_nonzero(leaf)) * int(np.count_nonzero(lids.share[delivers]))
        filled = tables.filled_between_leaves / max(pairs, 1)
        if filled <= most_filled:
            return tables, level
        if best is None or filled < best[0]:
            best = filled, tables, level
        problem = problem or _unrelated(fabric, level)
    if best is not None and best[0] <= MOST_FILLED:
        return best[1], best[2]
    # At this point, every candidate for the levels has failed and has set `problem`.  There is at least one candidate.
    assert problem is not None
    raise problem


def channel_indices(fabric: Fabric, lft: npt.NDArray[np.uint8], lid: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    """Return uint8[D, S], the index of the channel that each switch takes to each LID (int32[D]).

    The index counts among the channels of the switch.  The index is 255 where the out-port (``lft``: uint8[S, L]) does
    not lead to a channel.
    """
    channels = fabric.channels
    found = np.empty((fabric.switches, len(lid)), np.uint8)
    for switch, at_port in enumerate(channels.at_port):
        found[switch] = np.where(at_port < 0, NO_CHANNEL, at_port - channels.first[switch])[lft[switch, lid]]
    return np.ascontiguousarray(found.T)


def lids_of(fabric: Fabric, leaves: Leaves) -> TreeLids:
    """Return all LIDs that a switch delivers, sorted by this switch.

    At each switch, the LIDs of compute nodes come first, followed by the LIDs of other end ports, the LIDs of
    aggregation nodes, and the LID of the switch.  LIDs of the last two kinds have no flow.

    Each LID gets a number, its digit.  Of n channels up, the paths to the LID take the channel with the number (digit
    modulo n), as in D-mod-K.  Compute nodes are numbered in the order of their switches and switch ports, and so are
    the other end ports.  The digit of an end port's first LID is the number of the end port.  Each further LID of the
    end port has the next higher digit, so that packets to the LIDs of an end port take different channels.
    """
    table = fabric.lids
    lid = np.flatnonzero(table.switch >= 0)
    owner, switch, port = table.endport[lid], table.switch[lid], table.port[lid]
    # The LID of a switch has the owner -1, as it belongs to no end port.  The index -1 selects the last element of
    # `kinds`, which is 3: a switch.
    kinds = np.append(np.where(fabric.aggregation, 2, np.where(leaves.compute, 0, 1)), 3)
    kind = kinds[owner]
    offset = np.where(owner < 0, 0, lid - fabric.endport_lid[owner].astype(np.int64) if fabric.endports else 0)
    order = np.lexsort((port, offset, kind, switch))
    lid, owner, switch = lid[order], owner[order], switch[order]
    port, kind, offset = port[order], kind[order], offset[order]
    digit, base = switch.astype(np.int64), offset == 0
    for each in (0, 1):
        rows = np.flatnonzero(base & (kind == each))
        number = np.zeros(fabric.endports + 1, np.int64)
        number[owner[rows]] = np.arange(len(rows))
        same = kind == each
        digit[same] = number[owner[same]] + offset[same]
    lmc = fabric.endport_lmc[owner].astype(np.int64) if fabric.endports else np.zeros(len(owner), np.int64)
    begin = np.flatnonzero(np.diff(switch, prepend=-1))
    return TreeLids(
        first=np.append(begin, len(lid)).astype(np.int32),
        at=switch[begin].astype(np.int32),
        lid=lid.astype(np.int32),
        owner=owner.astype(np.int32),
        digit=digit.astype(np.int32),
        port=np.ascontiguousarray(port),
        share=np.where(kind >= 2, 0.0, 1.0 / (1 << lmc)),
    )


def _by_links_within(fabric: Fabric, leaves: Leaves) -> Iterator[tuple[npt.NDArray[np.int32], float, int]]:
    """Yield the candidates of :func:`_candidates`, each with its number of channels between switches of one level.
    Candidates with fewer such channels come first.
    """
    channels, later = fabric.channels, list[tuple[npt.NDArray[np.int32], float, int]]()
    for level, most_filled in _candidates(fabric, leaves):
        within = int(np.count_nonzero(level[channels.src] == level[channels.dst]))
        if within == 0:
            yield level, most_filled, within
        else:
            later.append((level, most_filled, within))
    yield from sorted(later, key=lambda each: each[2])


def _candidates(fabric: Fabric, leaves: Leaves) -> Iterator[tuple[npt.NDArray[np.int32], float]]:
    """Yield candidates for the levels of the switches (int32[S]), each with a limit.

    The caller counts the LFT entries of leaves towards other leaves for which no path leads up and then down.  If the
    share of these entries is at most the limit, no further candidates are tried.

    If the options name roots, levels are distances from the roots.  Otherwise, levels are distances from the leaves.
    I/O nodes and managers can be on switches of any level, so not every switch with end ports is a leaf.  The
    candidates take these switches as leaves, in this order:

    - all switches with end ports,
    - the leaves of the levels that other engines use (:func:`routing.trees.levels.tree_levels`),
    - switches with end ports that share a neighbour with another switch with end ports,
    - switches with many end ports,
    - switches with end ports and with the fewest neighbours,
    - switches with end ports, chosen so that the distance between any two of them is even.
    """
    if leaves.roots:
        depth = distances(fabric, np.isin(np.arange(fabric.switches), list(leaves.roots)))
        deepest = np.zeros(int(fabric.component.max(initial=0)) + 1, np.int32)
        np.maximum.at(deepest, fabric.component, depth)
        yield deepest[fabric.component] - depth, FEW_FILLED
        return
    rows = np.flatnonzero((fabric.endport_switch >= 0) & leaves.compute & ~fabric.aggregation)
    ports = np.bincount(fabric.endport_switch[rows], minlength=fabric.switches)
    near, far, neighbours = _neighbours(fabric)
    served = np.bincount(near[ports[far] > 0], minlength=fabric.switches)
    sharing = np.zeros(fabric.switches, bool)
    sharing[near[served[far] >= 2]] = True
    most, few = int(ports.max(initial=0)), neighbours[ports > 0].min(initial=fabric.switches)
    given: list[bytes] = []
    for chosen in (True, sharing, 4 * ports > most, 2 * ports > most, neighbours == few):
        found = (ports > 0) & chosen
        if found.tobytes() not in given:
            given.append(found.tobytes())
            yield _lower(fabric, distances(fabric, found), ports > 0), FEW_FILLED
        if len(given) == 1 and (levels := tree_levels(fabric, ports.astype(np.float64))) is not None:
            given.append(b"")
            yield levels, 0.0
    even = even_leaves(fabric, ports.astype(np.float64))
    if even is not None:
        yield _lower(fabric, distances(fabric, even), ports > 0), FEW_FILLED


def _neighbours(fabric: Fabric) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return all pairs of neighbours as two arrays (int64[N] each), and the number of neighbours of each switch
    (int64[S]).
    """
    size = max(fabric.switches, 1)
    pairs = np.unique(fabric.channels.src.astype(np.int64) * size + fabric.channels.dst)
    return pairs // size, pairs % size, np.bincount(pairs // size, minlength=fabric.switches)


def _lower(fabric: Fabric, level: npt.NDArray[np.int32], has_ports: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return int32[S], the levels after a correction: leaves that seemed to be at the top of the tree are moved below
    their neighbours.

    Such a leaf is a switch with end ports, and is linked to only one or two upper switches.  A real top switch has more
    neighbours.
    """
    near, far, neighbours = _neighbours(fabric)
    highest, lowest = np.full(fabric.switches, -1, np.int32), np.full(fabric.switches, fabric.switches, np.int32)
    np.maximum.at(highest, near, level[far])
    np.minimum.at(lowest, near, level[far])
    moved = has_ports & (highest < level) & (lowest > 0) & (neighbours > 0) & (neighbours <= 2)
    return np.where(moved, lowest - 1, level).astype(np.int32)


def _links_within(fabric: Fabric, level: npt.NDArray[np.int32]) -> NotATree:
    """Return an error that names a link between two switches of one level."""
    channels = fabric.channels
    within = np.flatnonzero((level[channels.src] == level[channels.dst]) & (channels.src < channels.dst))
    c = int(within[0])
    near, far = (fabric.labels[int(end[c])] for end in (channels.src, channels.dst))
    return NotATree(
        f"the fabric is not a tree: the link {near} port {channels.port[c]} - {far} port {channels.dst_port[c]} joins "
        f"two switches of level {level[channels.src[c]]}, as {count_noun(len(within), 'link')} of "
        f"{len(channels) // 2} do ({REMEDY})"
    )


def _unrelated(fabric: Fabric, level: npt.NDArray[np.int32]) -> NotATree:
    """Return an error that names two switches with end ports, such that no switch is above both.  Cost: O(S C)."""
    channels = fabric.channels
    up = np.flatnonzero(level[channels.dst] > level[channels.src])
    leaves = np.flatnonzero(fabric.senders_at)
    above = np.zeros((len(leaves), fabric.switches), bool)
    above[np.arange(len(leaves)), leaves] = True
    for height in range(int(level.max(initial=0))):
        for c in up[level[channels.src[up]] == height].tolist():
            above[:, channels.dst[c]] |= above[:, channels.src[c]]
    for row, leaf in enumerate(leaves.tolist()):
        apart = ~(above & above[row]).any(axis=1) & (fabric.component[leaves] == fabric.component[leaf])
        if apart.any():
            near, far = fabric.labels[leaf], fabric.labels[int(leaves[apart.argmax()])]
            return NotATree(
                f"the fabric is not a tree: no switch is above both {near} (level {level[leaf]}) and {far} "
                f"(level {level[leaves[apart.argmax()]]}), and so for many pairs ({REMEDY})"
            )
    return NotATree(f"the fabric is not a tree: many pairs of switches have no switch above both ({REMEDY})")
