"""Kernel wrapper: assign paths to layers (VLs) such that the dependencies in every layer are acyclic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, ffi, grouped, lib, struct_of
from routing.fabric import Channels

MOST_LAYERS = 32


COUNTS = ("needed", "used", "left", "left_uncounted", "rechosen", "unloaded", "visited")
"""Names of the kernel's counts, which are attributes of :class:`Layers`."""


@dataclass(frozen=True, eq=False)
class Layers:
    """Result of assigning paths to layers (VLs).

    Attributes
    ----------
    next_channel
        uint8[D, S], index of each switch's next channel among the channels of the switch, by target.  Next hops may
        differ from the given trees, see ``rechosen`` and ``unloaded``.
    load
        float64[C], flow on each channel.
    layer
        uint8[D, S], layer of each path, by target and source.  If all paths between two switches get one layer (the
        parameter ``mutual`` of :func:`layering`): uint8[S, S], layer of each pair of switches.
    needed
        Number of layers that the counted paths need.
    used
        Number of layers over which the paths are spread: the larger one of ``needed`` and the parameter ``have`` of
        :func:`layering`.
    left, left_uncounted
        ``left`` is 0 if all counted paths got a layer; otherwise, ``layer`` is not valid.  ``left_uncounted`` is 0 if
        all paths that are not counted paths got a layer; otherwise, paths without a layer are put into layer 0.
    rechosen
        Number of paths that got another first hop, because they fitted into no layer with the given first hop.  With
        ``mutual``: number of pairs of switches with such paths.
    unloaded
        Number of next hops that were moved off the channels with the highest utilisation.
    visited
        Number of channels that cycle searches visited.
    """

    next_channel: npt.NDArray[np.uint8]
    load: npt.NDArray[np.float64]
    layer: npt.NDArray[np.uint8]
    needed: int
    used: int
    left: int
    left_uncounted: int
    rechosen: int
    unloaded: int
    visited: int


def layering(
    channels: Channels,
    inverse_capacity: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    *,
    root: npt.NDArray[np.int32],
    share: npt.NDArray[np.float64],
    next_channel: npt.NDArray[np.uint8],
    load: npt.NDArray[np.float64],
    counted: npt.NDArray[np.bool_],
    avoid: npt.NDArray[np.uint32] | None = None,
    most: int = MOST_LAYERS,
    have: int = 1,
    mutual: bool = False,
    rechoose: bool = False,
    unload_rounds: int = 0,
    region: npt.NDArray[np.int32] | None = None,
    order: npt.NDArray[np.int32] | None = None,
    budget: int = 1 << 62,
    spare: int = 1 << 62,
) -> Layers:
    """Assign every path to the first layer (VL) whose dependencies stay acyclic with the path.  Long paths are assigned
    before short paths.

    Parameters
    ----------
    channels
        The channels of the fabric.
    inverse_capacity
        float64[C], inverse capacity of each channel.
    sources
        float64[S], flow that each switch sends to every LMC group.
    root
        int32[D], switch that delivers each destination.
    share
        float64[D], part of the flow to an LMC group that goes to each destination.
    next_channel
        uint8[D, S], the trees: index of the next channel among the channels of the switch.  The array is not changed.
    load
        float64[C], flow on each channel.  The array is not changed.
    counted
        bool[S], whether each switch is marked.  A path that begins or ends at a marked switch is a counted path.
        Counted paths are assigned before all other paths.
    avoid
        uint32[N], for each of the N possible CDG edges: the layers, as bits, that must not use the edge in a first
        assignment.  Counted paths that fit into no layer under this restriction are assigned again without the
        restriction.  The edges are in the order of :meth:`~routing.edges.Edges.channels`.
    most
        Maximum number of layers, up to 32.
    have
        Number of layers over which the paths are spread in the end, even if they need fewer layers.  If the counted
        paths need more layers than this number, the paths are spread over the needed layers.
    mutual
        Whether all paths between two switches, in both directions, get one layer.
    rechoose
        Whether a path that fits into no layer may get another first hop, if the path does not become longer.  This is
        possible only if the path is not a section of another path.
    unload_rounds
        Maximum number of rounds that lower the highest utilisation.  In each round, next hops move off the channels
        with this utilisation.  A next hop moves only if the paths of all switches upstream still fit into a layer.
    region
        int32[S], a number for each switch.  A path first tries the layer with the number of its destination switch.
        With ``mutual``, the paths between two switches first try the layer with the sum of the numbers of both
        switches.  If there is no layer with this number, the number modulo the number of layers is taken.  There are
        ``most`` layers for counted paths, and ``used`` layers (:attr:`Layers.used`) for all other paths.
    order
        int32[M, C], position of each channel in the initial topological order of each of the first M layers.  These
        orders influence the run time.  They influence the layers only if the search reaches a work limit.
    budget, spare
        Work limits: ``budget`` is the number of channels that cycle searches may visit for the counted paths, and
        ``spare`` is this number for all other paths.  Beyond a limit, no more paths are assigned.

    Notes
    -----
    The incremental topological order follows D. J. Pearce, P. H. J. Kelly, "A dynamic topological sort algorithm for
    directed acyclic graphs", ACM J. Exp. Algorithmics 11, 2007.  Memory: 2 D S bytes, 8 bytes per CDG edge, 4 per
    channel and layer.
    """
    request = _path_set(
        channels, inverse_capacity, sources, root, share, counted, order, most=min(most, MOST_LAYERS), have=have,
        mutual=mutual, rechoose=rechoose, region=region, unload_rounds=unload_rounds, budget=budget, spare=spare,
        avoid=avoid,
    )  # fmt: skip
    result = ffi.new("ibn_layers *")
    trees, loads = next_channel.copy(), load.copy()
    switches = len(sources)
    layer = np.empty((switches, switches) if mutual else (len(root), switches), np.uint8)
    call(lib.ibn_layering_assign, request, trees, loads, layer, result)
    return Layers(trees, loads, layer, **{name: getattr(result, name) for name in COUNTS})


@dataclass(frozen=True, eq=False)
class ChangingVls:
    """SLs of all pairs of switches, where packets on some SLs move to higher VLs along their path.

    Attributes
    ----------
    sl
        uint8[S, S], SL of all paths between two switches, in both directions.
    turn_vl
        uint8[K, N]: VL of packets on the second channel of each of N possible CDG edges, for each of K SLs.  The value
        is 255 if no path on the SL uses the edge.  The K SLs are the SLs whose packets may change their VL; paths on
        these SLs begin on VL 0.  The edges are in the order of :meth:`~routing.edges.Edges.channels`.
    left
        1 if a pair of switches with counted paths fits on no SL, so that ``sl`` is not valid; else 0.
    left_uncounted
        Number of pairs of switches without counted paths that fit on no SL; these pairs have SL 0.
    changing
        Number of pairs of switches that have an SL whose packets may change their VL.
    visited
        Number of channels that were visited by cycle searches and by attempts to assign a path.
    """

    sl: npt.NDArray[np.uint8]
    turn_vl: npt.NDArray[np.uint8]
    left: int
    left_uncounted: int
    changing: int
    visited: int


def changing_vls(
    channels: Channels,
    inverse_capacity: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    *,
    root: npt.NDArray[np.int32],
    share: npt.NDArray[np.float64],
    next_channel: npt.NDArray[np.uint8],
    load: npt.NDArray[np.float64],
    counted: npt.NDArray[np.bool_],
    vls: int,
    sls: int,
    avoid: npt.NDArray[np.uint32] | None = None,
    order: npt.NDArray[np.int32] | None = None,
    budget: int = 1 << 62,
    spare: int = 1 << 62,
) -> ChangingVls:
    """Assign one SL to all paths between two switches, in both directions, such that the dependencies on each VL are
    acyclic.

    There are ``sls`` SLs.  Packets on the first ``vls`` SLs keep their VL.  Paths that fit on none of these SLs get one
    of the remaining SLs.  Packets on the remaining SLs begin on VL 0.  At each hop whose dependency would close a cycle
    on the VL so far, these packets move to the next higher VL.  The trees do not change.  :func:`layering` explains the
    parameters other than ``vls`` and ``sls``.

    Notes
    -----
    Cost: O(S^2 sls hops), and the searches for cycles.  Memory: 2 D S bytes, and ``sls`` bytes per CDG edge.
    """
    fields = {"most": vls, "have": 1, "mutual": True, "budget": budget, "spare": spare, "avoid": avoid}
    request = _path_set(channels, inverse_capacity, sources, root, share, counted, order, **fields)
    switches, counts = len(sources), ffi.new("ibn_transition_counts *")
    sl = np.empty((switches, switches), np.uint8)
    turn_vl = np.empty((sls - vls, len(channels.edges)), np.uint8)
    trees, loads = next_channel.copy(), load.copy()
    call(lib.ibn_layering_assign_transitions, request, sls, trees, loads, sl, turn_vl, counts)
    return ChangingVls(sl, turn_vl, counts.left, counts.left_uncounted, counts.changing, counts.visited)


def _path_set(  # noqa: PLR0917 - the two callers pass their own parameters on
    channels: Channels,
    inverse_capacity: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    root: npt.NDArray[np.int32],
    share: npt.NDArray[np.float64],
    counted: npt.NDArray[np.bool_],
    order: npt.NDArray[np.int32] | None,
    **fields: Any,
) -> Any:
    """Return the C struct with the fabric, the destinations, and the rules by which paths are assigned to layers.

    ``fields`` are the fields of the struct that the other parameters do not give.
    """
    switches = len(sources)
    at_first, at = grouped(root, switches)
    return struct_of(
        "ibn_path_set", channels, switches=switches, channels=len(channels), targets=len(root), root=root, share=share,
        inverse_capacity=inverse_capacity, sources=sources, at_first=at_first, at=at, counted=counted.astype(np.uint8),
        order=order, orders=0 if order is None else len(order), **fields,
    )  # fmt: skip
