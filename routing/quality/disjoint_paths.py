"""Count the pairs of end ports that have link-disjoint paths to the 2^LMC LIDs of the destination."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from routing._kernels.disjoint import count_disjoint
from routing.endports import attached
from routing.fabric import Fabric

MOST = 4
"""Largest number of link-disjoint paths that the search looks for.  Pairs with more such paths count as pairs with this
number.
"""


@dataclass(frozen=True)
class DisjointPaths:
    """Shares of the pairs of end ports with at least two, three and four link-disjoint paths.

    A pair has one path for each LID of the destination.  Two paths are link-disjoint if no cable between switches is on
    both paths, in either direction.  Parallel cables count as different cables.  The number of link-disjoint paths of a
    pair is the size of its largest set of paths of which every two are link-disjoint.

    Attributes
    ----------
    pairs
        Number of ordered pairs of end ports on different switches.
    two, three, four
        Share of the pairs with at least this many link-disjoint paths.  A pair has no link-disjoint paths if one of its
        paths does not arrive.
    """

    pairs: int = field(metadata={"unit": "ordered pairs of end ports on different switches"})
    two: float = field(metadata={"unit": "of the pairs"})
    three: float = field(metadata={"unit": "of the pairs"})
    four: float = field(metadata={"unit": "of the pairs"})

    @property
    def shares(self) -> tuple[float, float, float]:
        """Shares of the pairs of end ports with at least two, three and four link-disjoint paths."""
        return self.two, self.three, self.four


def disjoint_paths(fabric: Fabric, lft: npt.NDArray[np.uint8]) -> DisjointPaths | None:
    """Find how many link-disjoint paths each pair of end ports has, by exact search.

    Parameters
    ----------
    fabric
        The fabric.
    lft
        uint8[S, L], the forwarding tables.

    Returns
    -------
    DisjointPaths or None
        None if no end port has more than one LID, or no two end ports are on different switches.

    Notes
    -----
    Cost: O(S L hops) to follow the paths.  The search for each pair takes at most binomial(2^LMC, 4) steps,
    which is fast up to an LMC of 3.
    """
    ports = attached(fabric)
    lmc = fabric.endport_lmc[ports].astype(np.int64)
    senders = np.bincount(fabric.endport_switch[ports], minlength=fabric.switches)
    pairs = len(ports) ** 2 - int((senders**2).sum())
    if not lmc.any() or pairs == 0:
        return None
    first = np.concatenate([[0], np.cumsum(1 << lmc)])
    offset = np.arange(first[-1]) - np.repeat(first[:-1], 1 << lmc)
    lid = np.repeat(fabric.endport_lid[ports].astype(np.int64), 1 << lmc) + offset
    found = count_disjoint(
        fabric.channels, lft, fabric.lids.switch, group_first=first.astype(np.int32), group_lid=lid.astype(np.int32),
        source=senders > 0, most=MOST,
    )  # fmt: skip
    lids = fabric.lids
    wrong = lft[lids.switch[lid], lid] != lids.port[lid]
    found[np.logical_or.reduceat(wrong, first[:-1])] = 0
    shares = [int(((found >= number) @ senders).sum()) / pairs for number in (2, 3, 4)]
    return DisjointPaths(pairs, *shares)
