"""Kernel wrapper: prove changed tables by following only the packets whose path or VL changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, grouped, lib, pointer, struct_of
from routing._kernels.shared_copy import PAGE
from routing.fabric import Channels, Fabric
from routing.tables import ServiceLevels


@dataclass(frozen=True, eq=False)
class DeltaCheck:
    """Result of checking the packets whose path or VL changed.

    Attributes
    ----------
    dependencies
        uint16[edges], for each CDG edge the VLs, as bits, on which packets may use the edge.  These are packets that
        follow the old tables, and packets that follow the new tables.
    hops
        uint8[S, L], hops from each switch to the switch that delivers each LID; 255: the packet is not delivered.
    walked
        Number of changed packets (pairs of switch and LID), which were followed hop by hop.
    lost
        Number of changed packets that do not arrive or violate the topological order.
    against_order
        Number of dependencies of unchanged packets that violate the topological order.
    """

    dependencies: npt.NDArray[np.uint16]
    hops: npt.NDArray[np.uint8]
    walked: int
    lost: int
    against_order: int


def check_delta(
    fabric: Fabric,
    tables: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]],
    sls: tuple[ServiceLevels, ServiceLevels],
    *,
    vl_bit: npt.NDArray[np.uint16],
    order: npt.NDArray[np.int32],
    replies: bool,
    endports_only: bool,
    dependencies: npt.NDArray[np.uint16],
    hops: npt.NDArray[np.uint8],
    increasing: bool,
    pages: npt.NDArray[np.uint8] | None = None,
) -> DeltaCheck:
    """Check that all packets of changed tables use channels in topological order.

    Only the packets whose path or VL has changed are followed.  The dependencies of all other packets are known from
    the old tables.

    Parameters
    ----------
    fabric
        The fabric.
    tables
        New and old LFTs, uint8[S, L] each.  An old entry that became invalid is 255.
    sls
        New and old SLs, both by LID or both by source switch and LID.
    vl_bit
        uint16[16], 1 << VL of each SL.
    order
        int32[V, C], position of each channel in the order of each VL.  The packets have to follow this order.
    replies
        Whether to include reply traffic.
    endports_only
        Whether to leave out switch-to-switch traffic.
    dependencies, hops
        On entry, the dependencies of the old tables (uint16[edges], VLs as bits), and the hops by the old tables
        (uint8[S, L]).  Both arrays are changed in place: they receive the dependencies and the hops of changed packets.
        If ``increasing`` is False, a dependency that violates the order is removed unless some packet still has it.
    increasing
        Whether the caller knows that all of ``dependencies`` follow the order.  If so, they are not checked again.
    pages
        uint8[N] for N pages of :data:`~routing._kernels.shared_copy.PAGE` consecutive LFT entries: whether the page may
        contain a changed or missing entry.  Other pages are skipped.  None: all entries are compared, which is
        necessary if an SL has changed.

    Notes
    -----
    Cost: one pass over the pages of the LFT and over the CDG edges, and the hops of every packet whose path or VL has
    changed.
    """
    lids, channels = fabric.lids, fabric.channels
    starts, by_switch = grouped(lids.switch, fabric.switches)
    tables_of_both = struct_of(
        "delta_tables", channels, switches=fabric.switches, lids=len(lids), channels=len(channels), vls=len(order),
        sl_by_switch=sls[0].by_switch, replies=replies, endports_only=endports_only, known_increasing=increasing,
        slot=channels.edges.first, lid_switch=lids.switch, lid_port=lids.port, lids_at_first=starts, lids_at=by_switch,
        has_endport=(fabric.terminals_at > 0).astype(np.uint8), vl_bit=vl_bit, lft=tables[0], was=tables[1],
        sl=sls[0].table, sl_was=sls[1].table, order=order, pages=pages, page=PAGE,
    )  # fmt: skip
    counts = np.zeros(3, np.int64)
    call(lib.ibn_cdg_check_delta, tables_of_both, dependencies, hops, counts)
    return DeltaCheck(dependencies, hops, *counts.tolist())


def dependencies_against_order(
    channels: Channels, dependencies: npt.NDArray[np.uint16], order: npt.NDArray[np.int32]
) -> int:
    """Count the dependencies (uint16[edges], VLs as bits) that violate a topological order (int32[V, C]).

    A dependency counts once for each VL on which it violates the order.  Cost: O(edges).
    """
    order = np.ascontiguousarray(order)
    found: int = lib.ibn_cdg_dependencies_against(
        len(channels),
        len(order),
        pointer(channels.first),
        pointer(channels.dst),
        pointer(channels.edges.first),
        pointer(dependencies),
        pointer(order),
    )
    return found
