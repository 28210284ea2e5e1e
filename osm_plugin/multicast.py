"""Compute the spanning tree on which multicast groups are routed.

At every switch, OpenSM's own multicast routing takes the first port with the fewest hops.  OpenSM's hop counts are the
lengths of the engine's paths, not shortest distances.  So OpenSM's choice could form loops.

The paths of all switches towards one LID always form a tree.  So the tree towards a root switch is used for every
group.  Branches without members are removed.  If multicast packets on this tree could close a credit loop with unicast
packets, another tree without a credit loop is searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.cdg.trace import uniform_sl2vl
from routing.deadlock.multicast import MulticastTree, group_edges, is_free_of_loops, safe_tree
from routing.deadlock.proof import Proof
from routing.fabric import Fabric
from routing.tables import DATA_VLS, Routing


@dataclass(frozen=True, eq=False)
class MulticastChoice:
    """The tree for all multicast groups, and what is proven about it.

    Attributes
    ----------
    tree
        The tree.
    certified
        Whether it is proven that multicast packets with SL 0 close no credit loop, also together with unicast packets.
    """

    tree: MulticastTree
    certified: bool

    def describe(self) -> str:
        """Describe in a few words for OpenSM's log whether multicast is part of the proof."""
        if self.certified:
            return "multicast on SL 0 included"
        return "multicast not proven (first_vl = 1 keeps VL 0 for multicast)"


def choose_tree(
    fabric: Fabric, routing: Routing, proof: Proof, roots: Sequence[int] = (), *, threads: int = 1
) -> MulticastChoice:
    """Choose the tree for all multicast groups, preferably a tree that is proven together with unicast.

    The first choice is the tree of paths towards a root (:func:`multicast_tree`).  If multicast packets on this tree
    would close a credit loop with unicast packets on the VL of SL 0, other trees are tried.  If the fabric has roots
    that the administrator has named, only trees with these roots are tried then.

    Parameters
    ----------
    fabric, routing, proof
        The fabric, its tables and their proof.
    roots
        GUIDs of the root switches that the administrator has named, in order of preference.
    threads
        Number of worker threads.  Their number does not change the result.
    """
    usual = multicast_tree(fabric, routing, proof.hops, roots)
    mapping = uniform_sl2vl(routing)
    if proof.cdg is None or mapping is None or mapping[0] >= DATA_VLS:
        return MulticastChoice(usual, certified=False)
    vl = int(mapping[0])
    if is_free_of_loops(proof.cdg, group_edges(fabric, usual.links(fabric)), vl, threads=threads):
        return MulticastChoice(usual, certified=True)
    named = [row for guid in roots for row in np.flatnonzero(fabric.switch_guid == np.uint64(guid)).tolist()]
    linked = fabric.switch_lid > 0
    farthest = np.where(linked, proof.hops[:, fabric.switch_lid[linked]].max(axis=1, initial=0), 255)
    central = np.argsort(farthest, kind="stable").tolist()
    grown = safe_tree(fabric, proof.cdg, vl, named or central, threads=threads)
    return MulticastChoice(usual if grown is None else grown, certified=grown is not None)


def multicast_tree(
    fabric: Fabric, routing: Routing, hops: npt.NDArray[np.uint8], roots: Sequence[int] = ()
) -> MulticastTree:
    """Return the tree of paths towards a root switch, for each connected component.

    The root is the first switch of ``roots`` that is in the component.  If there is no such switch, but the component
    has the first switch of the engine's switch order (Up*/Down*), this switch is the root.  Multicast packets then go
    up and down as unicast packets do, and add no dependency that the order forbids.  Otherwise, the root is the switch
    with the smallest maximum hop count from all other switches.

    Parameters
    ----------
    fabric, routing
        The fabric, and tables that deliver everywhere.
    hops
        uint8[S, L], number of hops along the paths of the tables.
    roots
        GUIDs of the root switches that the administrator has named, in order of preference.

    Notes
    -----
    Cost: O(S^2).
    """
    up = np.full(fabric.switches, -1, np.int32)
    first = routing.provenance.options.get("first_switches", ())
    name = str(first[0]) if isinstance(first, Sequence) and first else ""
    for part in range(int(fabric.component.max(initial=-1)) + 1):
        rows = np.flatnonzero(fabric.component == part)
        root = _root(fabric, hops, rows, roots, name)
        if root is not None:
            up[rows] = fabric.channels.at_port[rows, routing.lft[rows, fabric.switch_lid[root]]]
    return MulticastTree.along(fabric, up)


def _root(
    fabric: Fabric, hops: npt.NDArray[np.uint8], rows: npt.NDArray[np.int64], roots: Sequence[int], name: str
) -> int | None:
    """Return the row of the root among the switches ``rows``, as :func:`multicast_tree` describes it; None if no switch
    has a LID.

    ``roots`` are GUIDs, and ``name`` is the name of the first switch of the engine's switch order; "" if unknown.
    """
    rows = rows[fabric.switch_lid[rows] > 0]
    if not len(rows):
        return None
    guids = fabric.switch_guid[rows].tolist()
    named = [int(rows[guids.index(guid)]) for guid in roots if guid in guids]
    named += [row for row in rows.tolist() if fabric.labels[row] == name]
    return named[0] if named else int(rows[hops[np.ix_(rows, fabric.switch_lid[rows])].max(axis=0).argmin()])
