"""Complete an LFT column whose paths would close a cycle with the paths to other LIDs, by moving these other paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import FAILED, SKIP, repair
from routing.fabric import NO_PORT, Channels
from routing.reroute.context import RerouteContext
from routing.reroute.minimal_change import fill_with_fewest_changes
from routing.reroute.strategies.columns import Progress
from routing.reroute.vacate import edge_usage, lid_vls, without_paths_over

MOST_MOVED = 256
"""Largest number of entries of other columns that may change, so that one column can be filled."""
Masks = npt.NDArray[np.integer]


def make_room(context: RerouteContext, progress: Progress) -> Progress | None:
    """Fill the LFT column of the first LID in ``progress.failed``, with as few changed entries as possible.

    Paths to other LIDs that would close a cycle with the new column are moved.  The dependencies in ``progress`` are
    the CDG edges that the present entries use, in the numbers of the present fabric.

    Returns
    -------
    Progress or None
        The state with the new column.  The caller has to trace the CDG edges of its tables again.  None if the blocking
        paths cannot be moved, if more than :data:`MOST_MOVED` entries would move, or if the certificate covers replies.
    """
    numbering, tables, dependencies = progress.numbering, progress.tables, progress.dependencies
    rules = context.service_levels(numbering, progress.certificate, tables)
    if rules.replies or numbering.base is not context.request.fabric or progress.load is None:
        return None
    lft, lid, vls = tables.lft.copy(), progress.failed[0], lid_vls(rules, tables.lft.shape[1])
    lft[:, lid] = fill_with_fewest_changes(numbering.base, lft)[:, lid]
    found = np.stack([dependencies.masks, np.zeros_like(dependencies.masks)])
    new = edge_usage(numbering, lft, progress.failed[:1])
    usage = edge_usage(numbering, lft, np.flatnonzero(vls & vls[lid])) + lft.size * new
    for vl in np.flatnonzero(vls[lid] >> np.arange(len(dependencies.order)) & 1):
        if not _vacate(numbering.base.channels, int(vl), usage, np.flatnonzero(new), found):
            return None
    masks, vacated = found
    dependencies = replace(dependencies, masks=masks).sorted(len(dependencies.order), threads=1) or dependencies
    if dependencies.masks is not masks:
        return None
    treatment = (np.isin(np.arange(lft.shape[1]), progress.failed) * SKIP).astype(np.uint8)
    repaired = repair(
        numbering.repair_fabric, rules, without_paths_over(numbering, rules, lft, vacated), preferred=tables.lft,
        masks=masks, order=dependencies.order, load=progress.load, treatment=treatment, forbidden=vacated,
    )  # fmt: skip
    if not np.isin(np.flatnonzero(repaired.done == FAILED), progress.failed).all():
        return None
    displaced = int(np.count_nonzero((repaired.lft != tables.lft) & (tables.lft != NO_PORT)))
    tables, statistics = replace(tables, lft=repaired.lft), progress.statistics.plus(displaced=displaced)
    return replace(progress, tables=tables, failed=progress.failed[1:], load=repaired.load, statistics=statistics)


def _vacate(channels: Channels, vl: int, usage: npt.NDArray[np.int64], new: Masks, found: Masks) -> bool:
    """Find the CDG edges of one VL that have to be vacated, so that the edges of the new column close no cycle.

    The result is False if more than :data:`MOST_MOVED` entries use edges that have to be vacated on any VL.  The search
    ends at the first cut with which this is so.

    Parameters
    ----------
    channels, vl
        The channels of the fabric, and the number of the VL.
    usage
        int64[edges], the number of entries that use each edge.
    new
        Numbers of the edges that the new column uses.
    found
        uint16[2, edges], VLs as bits, changed in place.  The first row has the VLs on which each edge is in use.  The
        second row has the VLs on which each edge has to be vacated.
    """
    import igraph  # noqa: PLC0415 - the start of the worker in OpenSM would take a tenth more time

    numbers, (masks, vacated), bit = channels.edges.numbers(), found, np.uint16(1 << vl)
    ends, used = np.column_stack(channels.edges.channels()), np.flatnonzero(masks[numbers] & bit)
    graph = igraph.Graph(len(channels), ends[used], directed=True, edge_attrs={"edge": numbers[used].tolist()})
    for edge in new[masks[new] & bit == 0].tolist():
        a, b = ends[np.searchsorted(numbers, edge)].tolist()
        if a in graph.subcomponent(b, mode="out"):
            cut = graph.mincut(b, a, usage[graph.es["edge"]].tolist()).cut
            removed = graph.es[cut]["edge"]
            vacated[removed] |= bit
            if usage[vacated > 0].sum() > MOST_MOVED:
                return False
            masks[removed] &= ~bit
            graph.delete_edges(cut)
        graph.add_edge(a, b, edge=edge)
        masks[edge] |= bit
    return True
