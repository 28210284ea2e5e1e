"""Trace the channel dependency graph from tables, by following every route."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import trace, trace_endports
from routing._kernels.cdg_by_vl import trace_vls, trace_vls_endports
from routing._kernels.slots import Slots
from routing.cdg.acyclic import AcyclicCdg, Cdg
from routing.cdg.certificate import Certificate
from routing.cdg.graph import DependencyGraph
from routing.fabric import Fabric
from routing.tables import DATA_VLS, Routing, identity_sl2vl

REPLIES = 16
"""First of the bits for requests or replies, in the 32-bit mask that a trace returns for each CDG edge.

Bits 0 to 15 mark the VLs on which requests use the edge.  Bits 16 to 31 mark the VLs on which requests or replies use
the edge.
"""


def dependency_graph(
    fabric: Fabric, routing: Routing, *, replies: bool = False, switch_pairs: bool = True, threads: int = 2
) -> DependencyGraph:
    """Build the channel dependency graph of tables.

    Parameters
    ----------
    fabric, routing
        The fabric and its tables.
    replies
        Whether to include the replies to all requests.
    switch_pairs
        Whether to include switch-to-switch traffic.
    threads
        Worker threads.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.
    """
    routing.check_shapes(fabric)
    row = uniform_sl2vl(routing)
    if row is not None:
        traffic = {"replies": replies, "switch_pairs": switch_pairs}
        return trace_cdg(fabric, routing, vl_bits(row), **traffic, threads=threads).graph()
    slots = Slots.of(fabric)
    found = trace_vls(fabric, routing, slots, replies=replies, threads=threads)
    masks = found.dep
    if not switch_pairs:
        masks = trace_vls_endports(fabric, routing, slots, found, replies=replies, threads=threads)
    return DependencyGraph.of_changing_vls(fabric.channels, masks, max(1, found.vls.bit_length()))


def trace_cdg(
    fabric: Fabric, routing: Routing, vl_bit: npt.NDArray[np.uint16], *, replies: bool, switch_pairs: bool, threads: int
) -> Cdg:
    """Follow every route, and return the CDG; packets must keep their VL along a path.

    Parameters
    ----------
    fabric, routing
        The fabric and its tables.
    vl_bit
        uint16[16], for each SL the bit of its VL (``1 << vl``); 0 for SLs to leave out.
    replies, switch_pairs
        Whether to include the replies to all requests, and switch-to-switch traffic.
    threads
        Worker threads.

    Notes
    -----
    Cost: O(S L + V N) for N possible CDG edges and V VLs.
    """
    slots = Slots.of(fabric)
    found = trace(fabric, routing, slots, vl_bit, threads=threads)
    dep = found.dep if switch_pairs else trace_endports(fabric, routing, slots, vl_bit, found, threads=threads)
    return Cdg(fabric, vl_masks(dep, replies=replies))


def trace_acyclic_cdg(
    fabric: Fabric, routing: Routing, certificate: Certificate, vl_bit: npt.NDArray[np.uint16], *, threads: int
) -> AcyclicCdg | None:
    """Return the CDG of the traffic that a certificate covers, with a topological order; None if the CDG has a cycle.

    The topological order has the same number of VLs as the certificate's order.  ``vl_bit`` (uint16[16]) has the bit of
    the VL (``1 << vl``) of each SL; 0 for SLs to leave out.
    """
    found = trace_cdg(
        fabric,
        routing,
        vl_bit,
        replies=certificate.strength == "reversible",
        switch_pairs=certificate.scope == "all",
        threads=threads,
    )
    return found.sorted(len(certificate.order), threads=threads)


def vl_masks(dep: npt.NDArray[np.uint32], *, replies: bool) -> npt.NDArray[np.uint16]:
    """Extract from a trace (``dep``, uint32[edges]) the VLs on which each CDG edge is used, with or without replies."""
    return (dep >> np.uint32(REPLIES if replies else 0)).astype(np.uint16)


def uniform_sl2vl(routing: Routing) -> npt.NDArray[np.uint8] | None:
    """Return uint8[16], the VL of each SL, if all ports of all switches have the same SL2VL table; else None."""
    table = routing.sl2vl
    if routing.sl_to_vl.uniform:
        return table
    row = table.reshape(-1, 16)[0] if table.size else identity_sl2vl(1)
    # All tables are equal if the table of each port equals the table of the next port.  NumPy compares two long arrays
    # in less time than many short tables with one table.
    return row if bool((table.ravel()[16:] == table.ravel()[:-16]).all()) else None


def vl_bits(row: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    """Return uint16[16], for each SL the bit of its VL (``1 << vl``); 0 for SLs whose packets are dropped.

    ``row`` has the VL of each of the 16 SLs.
    """
    return np.where(row < DATA_VLS, 1 << row.astype(np.int64), 0).astype(np.uint16)
