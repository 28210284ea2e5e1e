"""Quality figures of tables: channel loads, shares of traffic patterns, and hops.

All figures depend on the forwarding tables alone and are the same on every machine and for any number of threads.  A
*share* is the rate of a flow relative to the reference rate, which is the most common data rate of the end ports'
links.  ``docs/quality.md`` defines every figure.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

import numpy as np
import numpy.typing as npt

from routing.endports import attached, reference_rate
from routing.errors import OptionError
from routing.fabric import Fabric
from routing.quality.disjoint_paths import DisjointPaths, disjoint_paths
from routing.quality.flows import Flows, Table
from routing.quality.parts import (
    ClassShare,
    Stretch,
    ThinLeaf,
    class_shares,
    mean_share,
    others_in_part,
    share_of,
    stretch,
    thin_leaf,
)
from routing.tables import Routing

BISECTIONS = 100


def _figure(unit: str) -> dict[str, str]:
    return {"unit": unit}


@dataclass(frozen=True)
class TierLoad:
    """All-to-all load of the channels between two tiers of a tree.

    Attributes
    ----------
    level
        Level of the lower switch, which is its distance in channels to the nearest switch with end ports.
    direction
        "up" (away from the end ports), "down", or "across" (same level).
    channels
        Number of channels.
    load_mean, load_max, load_deviation
        Mean, maximum and standard deviation of the number of flows on a channel.
    """

    level: int
    direction: str
    channels: int
    load_mean: float
    load_max: float
    load_deviation: float


@dataclass(frozen=True)
class Quality:
    """Figures of one routing of one fabric; the metadata of each field states its unit.

    Attributes
    ----------
    endports, pairs, pairs_lost
        ``endports``: number of end ports that count in traffic (N; see :func:`~routing.endports.attached`).
        ``pairs``: number of ordered pairs of such end ports.  ``pairs_lost``: number of these pairs whose packets do
        not arrive.
    reference_rate
        Data rate to which shares are relative.
    hops_mean, hops_max, hops_histogram
        Number of channels from the switch of the sender to the switch of the receiver: the mean and the maximum over
        all pairs whose packets arrive.  ``hops_histogram``: number of pairs with 0, 1, 2, ... channels.
    load_mean, load_max, load_deviation
        Mean, maximum and standard deviation of the all-to-all load over all channels (``load_max`` is the edge
        forwarding index).
    all_to_all, bound
        Share of the reference rate at which all-to-all traffic saturates the first channel.  ``bound`` is this share
        if the same total load were spread over the channels in proportion to their capacities.  If a share is above 1,
        the links of the end ports limit the rate.
    bisection_mean, bisection_least
        ``bisection_mean``: effective bisection bandwidth, which is the mean share of a flow over all random bisections.
        ``bisection_least``: mean share of a flow in the worst of these bisections.
    shift_mean, shift_least, permutation_mean, permutation_least
        Mean share of a flow, and least share of any flow, over the measured cyclic shifts (``shift``) or over the
        measured random permutations (``permutation``).  The figures of a kind of pattern (bisections, shifts or
        permutations) are NaN if no pattern of this kind was requested.  All these figures are NaN if there are fewer
        than two end ports.
    levels
        Load between the levels of a tree.
    classes
        All-to-all share, bisections and permutations among the end ports of each class.
    thin_leaf
        The leaf whose links alone limit ``all_to_all``; None if there is no such leaf.
    stretch
        Length of the paths compared with shortest paths; None if it was not requested.
    disjoint
        Pairs with several link-disjoint paths.  None if no end port has more than one LID, or if all end ports are on
        one switch.
    """

    endports: int = field(metadata=_figure("end ports"))
    pairs: int = field(metadata=_figure("ordered pairs of end ports"))
    pairs_lost: float = field(metadata=_figure("ordered pairs of end ports"))
    reference_rate: float = field(metadata=_figure("Gb/s"))
    hops_mean: float = field(metadata=_figure("channels"))
    hops_max: int = field(metadata=_figure("channels"))
    hops_histogram: tuple[float, ...] = field(metadata=_figure("ordered pairs of end ports, by channels"))
    load_mean: float = field(metadata=_figure("flows on a channel"))
    load_max: float = field(metadata=_figure("flows on a channel"))
    load_deviation: float = field(metadata=_figure("flows on a channel"))
    all_to_all: float = field(metadata=_figure("of the reference rate"))
    bound: float = field(metadata=_figure("of the reference rate"))
    bisection_mean: float = field(metadata=_figure("of the reference rate"))
    bisection_least: float = field(metadata=_figure("of the reference rate"))
    shift_mean: float = field(metadata=_figure("of the reference rate"))
    shift_least: float = field(metadata=_figure("of the reference rate"))
    permutation_mean: float = field(metadata=_figure("of the reference rate"))
    permutation_least: float = field(metadata=_figure("of the reference rate"))
    levels: tuple[TierLoad, ...] = field(metadata=_figure("flows on a channel"))
    classes: tuple[ClassShare, ...] = field(metadata=_figure("of the reference rate"))
    thin_leaf: ThinLeaf | None = field(metadata=_figure("of the reference rate"))
    stretch: Stretch | None = field(metadata=_figure("channels, and ratios of channels"))
    disjoint: DisjointPaths | None = field(default=None, metadata=_figure("ordered pairs of end ports"))

    def as_dict(self) -> dict[str, object]:
        """Return plain values for JSON; infinity (no channel carries traffic) and NaN become None."""
        return {_JSON_NAMES.get(name, name): _plain(value) for name, value in asdict(self).items()}


_JSON_NAMES = {
    "endports": "end_ports",
    "reference_rate": "reference_rate_gbps",
    "bound": "all_to_all_if_even",
    "bisection_least": "bisection_min",
    "shift_least": "shift_min",
    "permutation_least": "permutation_min",
    "label": "class",
    "disjoint": "disjoint_paths",
    "mean": "ratio_mean",
    "most": "ratio_max",
    "more_mean": "extra_mean",
    "more_most": "extra_max",
}
"""JSON key of each figure whose JSON key differs from its name in Python."""


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {_JSON_NAMES.get(name, name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (tuple, list)) else value


def measure(
    fabric: Fabric,
    routing: Table,
    *,
    seed: int = 1,
    bisections: int = BISECTIONS,
    shifts: int | None = BISECTIONS,
    permutations: int = BISECTIONS,
    stretches: bool = False,
    threads: int = 2,
) -> Quality:
    """Measure all figures of a routing.

    Parameters
    ----------
    fabric, routing
        The fabric and its tables (or the LFT alone, uint8[S, L]).
    seed
        Seed of all random patterns.
    bisections, permutations
        Number of random bisections and permutations.
    shifts
        Number of cyclic shifts, drawn at random; None: all N - 1 shifts of N counted end ports.
    stretches
        Whether to compare the paths with shortest paths.
    threads
        Number of threads; never changes the result.

    Raises
    ------
    TableError
        The tables do not fit the fabric.
    OptionError
        A number of patterns is negative.

    Notes
    -----
    Cost: O(S L) for the loads, and O(patterns x N x hops) for the random patterns, with N counted end ports.
    """
    if min(bisections, permutations, shifts or 0) < 0:
        raise OptionError("the number of traffic patterns is negative", remedy="use 0 to leave a figure out")
    flows = Flows.of(fabric, routing, threads)
    loads, hop_count = flows.all_to_all()
    n = len(flows.endports)
    histogram = hop_count[: int(hop_count.nonzero()[0].max(initial=-1)) + 1]
    arrived = float(histogram.sum())
    bisection_mean, _ = flows.shares(bisections, lambda first, last: flows.bisections(seed, first, last))
    steps = flows.shift_steps(seed, shifts)
    shift_mean, shift_least = flows.shares(len(steps), lambda first, last: flows.shifts(steps[first:last]))
    random_mean, random_least = flows.shares(permutations, lambda a, b: flows.permutations(seed, a, b))
    whole = share_of(fabric, loads, flows.endports), mean_share(bisection_mean), mean_share(random_mean)
    return Quality(
        endports=n,
        pairs=n * (n - 1),
        pairs_lost=n * (n - 1) - arrived,
        reference_rate=reference_rate(fabric),
        hops_mean=float(histogram @ np.arange(len(histogram))) / arrived if arrived else 0.0,
        hops_max=max(len(histogram) - 1, 0),
        hops_histogram=tuple(histogram.tolist()),
        load_mean=_mean(loads),
        load_max=float(loads.max(initial=0.0)),
        load_deviation=_deviation(loads),
        all_to_all=whole[0],
        bound=all_to_all_bound(fabric, loads),
        bisection_mean=whole[1],
        bisection_least=_least(bisection_mean),
        shift_mean=mean_share(shift_mean),
        shift_least=_least(shift_least),
        permutation_mean=whole[2],
        permutation_least=_least(random_least),
        levels=tier_loads(fabric, loads),
        classes=class_shares(flows, whole, seed=seed, bisections=bisections, permutations=permutations),
        thin_leaf=thin_leaf(fabric, loads, flows.endports),
        stretch=stretch(flows) if stretches else None,
        disjoint=disjoint_paths(fabric, routing.lft if isinstance(routing, Routing) else routing),
    )


def channel_loads(fabric: Fabric, routing: Table, *, threads: int = 2) -> npt.NDArray[np.float64]:
    """Compute the load of every channel if every end port sends one unit to every other end port.

    Parameters
    ----------
    fabric, routing
        The fabric and its tables (or the LFT alone, uint8[S, L]).
    threads
        Number of threads; never changes the result.

    Returns
    -------
    float64[C]
        Exact number of ordered pairs of end ports that use each channel.  A pair is split evenly over the destination's
        2^LMC LIDs.  Pairs whose packets do not arrive are not counted.

    Raises
    ------
    TableError
        The tables do not fit the fabric.

    Notes
    -----
    O(S L).
    """
    return Flows.of(fabric, routing, threads).all_to_all(hops=False)[0]


def all_to_all_share(fabric: Fabric, loads: npt.NDArray[np.float64]) -> float:
    """Return the share of the reference rate at which all-to-all traffic saturates the first channel.

    ``loads`` (float64[C]) is the result of :func:`channel_loads`.  If all links have one speed, the share for N end
    ports is (N - 1) divided by the largest load.  The load of a link of twice the speed counts half.  In a fabric of
    several connected parts, N is the number of end ports in the part to which the channel belongs.  The share is
    infinite if no channel carries traffic.
    """
    return share_of(fabric, loads, attached(fabric))


def all_to_all_bound(fabric: Fabric, loads: npt.NDArray[np.float64]) -> float:
    """Return an upper bound of :func:`all_to_all_share`: the share if the total load were spread over the channels in
    proportion to their capacities, in each connected part of the fabric.
    """
    found, part = math.inf, fabric.component[fabric.channels.src]
    for number, others in enumerate(others_in_part(fabric, attached(fabric)).tolist()):
        total = math.fsum(loads[part == number].tolist())
        if total > 0:
            capacity = math.fsum(fabric.channels.capacity[part == number].tolist())
            found = min(found, capacity / total * others / reference_rate(fabric))
    return found


def bisection_share(
    fabric: Fabric, routing: Table, *, seed: int = 1, bisections: int = BISECTIONS, threads: int = 2
) -> float:
    """Return the effective bisection bandwidth: the mean rate of a flow in random bisections.

    The rate is a share of the reference rate.  The result is NaN with fewer than two end ports.

    In each bisection, the end ports are split at random into two halves.  Each end port of the first half sends to one
    end port of the second half.  A flow gets an equal share of the capacity of the most loaded channel on its path.
    The links of both end ports also limit the rate of the flow.

    Raises
    ------
    TableError
        The tables do not fit the fabric.

    Notes
    -----
    After Hoefler, Schneider, Lumsdaine: Multistage switches are not crossbars (Cluster 2008).  Cost: O(bisections x N
    x hops).
    """
    flows = Flows.of(fabric, routing, threads)
    mean, _ = flows.shares(bisections, lambda first, last: flows.bisections(seed, first, last))
    return mean_share(mean)


def tier_loads(fabric: Fabric, loads: npt.NDArray[np.float64]) -> tuple[TierLoad, ...]:
    """Return figures of the loads of a tree's channels, by level and direction, lowest level first.

    The level of a switch is its distance, in channels, to the nearest switch with end ports.  For each level there are
    up to three elements: for the channels up to the next level, for the channels down from the next level, and for the
    channels between switches of the level.

    ``loads`` (float64[C]) is the result of :func:`channel_loads`.
    """
    channels = fabric.channels
    level = _levels(fabric)
    low = np.minimum(level[channels.src], level[channels.dst])
    step = np.sign(level[channels.dst] - level[channels.src])
    found = []
    for depth in range(int(level.max(initial=-1)) + 1):
        for sign, direction in ((1, "up"), (-1, "down"), (0, "across")):
            part = loads[(low == depth) & (step == sign)]
            if part.size:
                figures = _mean(part), float(part.max()), _deviation(part)
                found.append(TierLoad(depth, direction, len(part), *figures))
    return tuple(found)


def _levels(fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return the distance in channels to the nearest switch with end ports, int64[S]; -1 if no such switch is
    connected.
    """
    channels = fabric.channels
    level = np.where(fabric.senders_at > 0, 0, -1).astype(np.int64)
    for depth in range(fabric.switches):
        beyond = channels.dst[(level[channels.src] == depth) & (level[channels.dst] < 0)]
        if not beyond.size:
            break
        level[beyond] = depth + 1
    return level


def _mean(values: npt.NDArray[np.float64]) -> float:
    # The mean must be equal on all machines.  fsum is exact, whereas rounding in NumPy's sum depends on the processor.
    return math.fsum(values.tolist()) / values.size if values.size else 0.0


def _deviation(values: npt.NDArray[np.float64]) -> float:
    return math.sqrt(_mean((values - _mean(values)) ** 2))


def _least(shares: npt.NDArray[np.float64]) -> float:
    return float(shares.min()) if shares.size else math.nan
