"""Partition the switches of a fabric into regions with METIS."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric


def regions(fabric: Fabric, count: int, *, seed: int) -> npt.NDArray[np.int32]:
    """Partition the switches into ``count`` regions with about equally many end ports and few cables between regions.

    The result is int32[S], the region (0..count-1) of each switch.  Regions without end ports can occur if fewer than
    ``count`` switches have end ports.

    METIS gets weights.  The weight of a switch grows with the number of its counted end ports.  The weight of a link
    is the number of parallel cables.

    Notes
    -----
    METIS k-way (G. Karypis, V. Kumar, SIAM J. Sci. Comput. 20, 1998) with a fixed seed; about O(C).
    """
    if count == 1 or fabric.switches <= count:
        return (np.arange(fabric.switches) % count).astype(np.int32)
    import pymetis  # noqa: PLC0415 - its import takes as long as NumPy's mathematics, and few VLs need no partition

    channels = fabric.channels
    pair = channels.src.astype(np.int64) * fabric.switches + channels.dst
    pairs, cables = np.unique(pair, return_counts=True)
    starts = np.searchsorted(pairs // fabric.switches, np.arange(fabric.switches + 1))
    # The weight of a switch without end ports is small but not 0, which helps to keep regions connected.
    weight = fabric.senders_at * 16 + 1
    if np.count_nonzero(fabric.senders_at) < count:
        # There are fewer switches with end ports than regions.  With the weights above, METIS would print complaints
        # about this on standard output.  With equal weights of all switches, METIS prints none.
        weight = np.ones_like(weight)
    _, part = pymetis.part_graph(
        count,
        adjacency=pymetis.CSRAdjacency(starts, pairs % fabric.switches),
        vweights=weight.tolist(),
        eweights=cables.tolist(),
        options=pymetis.Options(seed=seed, contig=False),
    )
    return np.asarray(part, np.int32)
