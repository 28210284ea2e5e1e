"""Compute the flow on each channel before and after a repair, from the LFT columns that differ."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.differing import changed_lids
from routing.fabric import NO_PORT
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.baseline import is_same
from routing.reroute.context import Request, RerouteContext
from routing.reroute.flow import flow_towards
from routing.reroute.rebalance import in_frame, kept_share
from routing.reroute.values import Rerouted
from routing.tables import Routing


def load_before(context: RerouteContext) -> npt.NDArray[np.int64]:
    """Return int64[C], the flow on each channel by the tables with which a repair starts.

    A repair starts with the previous tables, in which some columns were restored from the baseline tables (the tables
    of the fault-free fabric).
    """
    request, numbering, start = context.request, context.numbering, context.start
    if not context.restored or not request.translated.in_place:
        return in_frame(numbering, request.before.fabric, request.before.load)
    back = ((start.lft != request.translated.earlier) & (start.lft != NO_PORT)).any(axis=0)
    return _load_of_columns(context, numbering, start, back)


def load_after(context: RerouteContext, numbering: BaseNumbering, tables: Routing) -> npt.NDArray[np.int64]:
    """Return int64[C], the exact flow on each channel by repaired tables.  These tables have no missing entries."""
    request = context.request
    if not request.translated.in_place:
        flow = flow_towards(request.fabric, tables, threads=request.options.threads)
        return in_frame(numbering, request.fabric, flow)
    return _load_of_columns(context, numbering, tables, changed_lids(tables.lft, request.translated.earlier))


def rate_kept(found: Rerouted, request: Request) -> float | None:
    """Return the all-to-all rate with the new tables as a fraction of the rate with the previous tables.

    If the strategy that found the tables has not computed the fraction, the flow of the tables is computed here.
    """
    before, fabric = request.before, request.fabric
    if found.kept is not None:
        return found.kept
    for there in (before, request.baseline):
        # The flow on a channel is known, but the channel may have become slower since.
        if there is not None and found.routing is there.routing and is_same(there.fabric, fabric):
            return kept_share(before, fabric.channels, there.load)
    return kept_share(before, fabric.channels, flow_towards(fabric, found.routing, threads=request.options.threads))


def _load_of_columns(
    context: RerouteContext, numbering: BaseNumbering, tables: Routing, lids: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Return the flow on each channel by ``tables``, which differ from the previous tables only towards some LIDs
    (bool[L]).

    Only the columns of these LIDs are traced, in the previous tables and in ``tables``.  The flow towards all other
    LIDs is known from the previous tables.
    """
    fabric, before, threads = context.request.fabric, context.request.before, context.request.options.threads
    old = before.load - flow_towards(before.fabric, before.routing, lids, threads=threads)
    new = flow_towards(fabric, tables, lids, threads=threads)
    return in_frame(numbering, before.fabric, old) + in_frame(numbering, fabric, new)
