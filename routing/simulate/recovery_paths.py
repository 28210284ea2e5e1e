"""Recovery paths of adaptive routing (Disha Concurrent): paths through spare buffers that packets use at the same time.

Each switch has two spare buffers.  The switches have an order, as for Up*/Down* routing.  A packet moves towards
earlier switches through spare buffers 0, and then towards later switches through spare buffers 1.  So packets in spare
buffers never wait for each other in a cycle.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.simulate.escape import FAR
from routing.simulate.network import Network

MOST_HOPS = 1 << 30
"""Number of hops that stands for "no path"."""


def switch_ranks(network: Network) -> npt.NDArray[np.int32]:
    """Return the position of each switch in an order of all switches: int32[S].

    The switches are sorted by their hops to the first switch of their connected part, then by their numbers.
    """
    hops = network.arrays.distance.astype(np.int64)
    root = np.argmax(hops < FAR, axis=1)
    order = np.lexsort((np.arange(len(hops)), hops[np.arange(len(hops)), root]))
    ranks = np.empty(len(hops), np.int32)
    ranks[order] = np.arange(len(hops), dtype=np.int32)
    return ranks


def recovery_channels(network: Network) -> npt.NDArray[np.int32]:
    """Return the next channel of each recovery path, int32[2, S, S].

    The indexes are the spare buffer that holds the packet (0 or 1), the switch of this buffer, and the last switch of
    the path.  A packet in spare buffer 0 may continue to any neighbour.  A packet in spare buffer 1 may continue only
    to neighbours with a higher position in the order of :func:`switch_ranks`.

    Paths have as few hops as this rule allows.  If several channels begin such a path, the channel with the lowest
    number is returned.  An entry is -1 if no path exists.
    """
    arrays, ranks = network.arrays, switch_ranks(network)
    count = arrays.switches
    channel = np.full((2, count, count), -1, np.int32)
    hops = np.full((2, count, count), MOST_HOPS, np.int64)
    hops[:, np.arange(count), np.arange(count)] = 0
    inside = np.flatnonzero((arrays.src < count) & (arrays.dst < count))
    later = ranks[arrays.dst[inside]] > ranks[arrays.src[inside]]
    # From a spare buffer 1, a packet moves only to spare buffer 1 of a switch with a higher rank.  So the paths from
    # spare buffers 1 are computed first, in falling order of ranks.  From a spare buffer 0, a packet moves to spare
    # buffer 0 of a switch with a lower rank, or to spare buffer 1 of a switch with a higher rank.
    for buffer, order in ((1, np.argsort(-ranks)), (0, np.argsort(ranks))):
        for switch in order.tolist():
            leaves = (arrays.src[inside] == switch) & (later | (buffer == 0))
            for c, after in zip(inside[leaves].tolist(), later[leaves].astype(int).tolist(), strict=True):
                found = hops[after, arrays.dst[c]] + 1
                better = found < hops[buffer, switch]
                hops[buffer, switch][better] = found[better]
                channel[buffer, switch][better] = c
    return channel
