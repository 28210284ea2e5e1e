"""Kernel wrapper: compute a spanning tree for multicast packets that closes no cycle with unicast packets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib, struct_of
from routing.fabric import Channels


def grow_tree(
    channels: Channels, switches: int, used: npt.NDArray[np.uint8], order: npt.NDArray[np.int32], root: int
) -> tuple[npt.NDArray[np.int32], int]:
    """Compute a tree of links from switch ``root`` for multicast packets.  Their dependencies close no cycle with the
    dependencies of unicast packets.

    Packets on the tree may pass a switch from any of its links in the tree to any other of these links.

    Parameters
    ----------
    channels, switches
        Channels of the fabric, and number of switches S.
    used
        uint8[edges], 1 for each CDG edge that unicast packets use.
    order
        int32[C], position of each channel in a topological order of the CDG edges in ``used``.
    root
        Switch from which the tree grows, breadth first.

    Returns
    -------
    up : int32[S]
        Channel from each switch to its parent; -1 for the root and for switches that the tree does not reach.
    reached : int
        Number of switches in the tree.

    Notes
    -----
    Cost: one attempt for each link, with a cycle search in the CDG (Pearce and Kelly, 2007).
    """
    up, reached = np.full(switches, -1, np.int32), np.zeros(1, np.int32)
    sizes = {"switches": switches, "channels": len(channels)}
    unicast = struct_of("cdg_unicast", channels, **sizes, slot=channels.edges.first, used=used, order=order)
    call(lib.ibn_cdg_grow_tree, unicast, root, up, reached)
    return up, int(reached[0])
