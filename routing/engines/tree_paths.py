"""Paths up and then down on trees, for the engines whose rules allow such paths."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.closed_form import TreeTables
from routing.engines import tree_quality
from routing.engines.base import Engine, EngineOptions
from routing.engines.destinations import Destinations, forwarding_tables, inverse_capacity
from routing.engines.effort import is_moderate
from routing.engines.order_balance import balanced_in_orders, searched_orders
from routing.engines.provenance import engine_tables
from routing.engines.tree_quality import LOWER_PEAK, TOLERANCE
from routing.engines.vl_assignment import round_robin_sls, vl_tables, vls_allowed
from routing.fabric import Fabric
from routing.quality import channel_loads
from routing.tables import Routing
from routing.trees.closed_form import Leaves, NotATree, route_tree
from routing.trees.descent import LEAST_SWEEPS, MOST_SWEEPS, affordable_sweeps, is_whole, tree_slots, tree_tables
from routing.trees.levels import MOST_FAR, MOST_LONGER, TreeOrder, closed_form_order, reaches_all, tree_order
from routing.trees.switch_orders import chained_order

OBJECTIVE_REFUSAL = (
    "balances trees for all-to-all traffic and bisections at once",
    "leave the objective out, or use minhop",
)
"""Two parts of the error message for an objective other than all-to-all: the problem, and what the user can do."""

MOST_VISITS = 600_000_000
"""At effort 1, a descent is long if even the least number of passes compares more channels than this number.  These
comparisons take about two seconds.  At another effort, the limit is this number times the effort.  Before a long
descent, tables in closed form are tried.
"""
MOST_EXCESS = 0.05
"""Factor in a limit.  Tables in closed form replace a long descent if no utilisation exceeds its ceiling by more than
the limit.

The limit is a fraction of the ceiling.  It is this factor times the number of channels that the descent would compare
in the least number of passes, divided by :data:`MOST_VISITS` and by the effort.
"""
ENOUGH_SWEEPS = 4
"""Number of passes ("sweeps") of the descent that are enough for some trees, because further passes do not improve the
balance.  These trees have equal leaves.  Between any two consecutive levels, their number of links is nearly the number
of end ports, or higher (:data:`FULL`).
"""
FULL = 0.8
"""Threshold for a small number of passes: if any two consecutive levels have at least this number of links for each
end port between them, :data:`ENOUGH_SWEEPS` passes are enough.
"""
MOST_COST = 0.05
"""If the cost of a tree's switch order (:attr:`routing.trees.levels.TreeOrder.cost`) is higher, tables in other orders
are tried.
"""
SEARCH = 0.5
"""Part of the run's effort that the search for a switch order may use."""
NOTABLY = 1.05
"""Tables in another order are taken only if they carry more than this factor times the traffic of the given tables."""
CLOSED_FORM_PASSES = 2
"""Number of passes after the first pass.  Each pass chooses again the LFT entries that the closed form leaves open,
because links are missing.
"""


@dataclass(frozen=True, eq=False)
class TreePaths:
    """Tables of a tree that follow one order of the switches, so that they are free of credit loops on one VL.

    Attributes
    ----------
    order
        Levels and order of the switches.
    lft
        uint8[S, L], the tables.
    load
        float64[C], all-to-all load of each channel.
    """

    order: TreeOrder
    lft: npt.NDArray[np.uint8]
    load: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _ClosedForm:
    """Tables in closed form, and figures about them.

    Attributes
    ----------
    lft, level
        The tables (uint8[S, L]), and the level of each switch (int32[S]).
    load
        float64[C], all-to-all load of each channel.
    is_shortest
        Whether all paths between end ports are shortest.
    """

    lft: npt.NDArray[np.uint8]
    level: npt.NDArray[np.int32]
    load: npt.NDArray[np.float64]
    is_shortest: bool

    def peak(self, inverse_rate: npt.NDArray[np.float64]) -> float:
        """Return the highest utilisation; ``inverse_rate`` is the inverse capacity of each channel, float64[C]."""
        return float((self.load * inverse_rate).max(initial=0.0))


def tree_paths(fabric: Fabric, destinations: Destinations, options: EngineOptions) -> TreePaths | None:
    """Return paths of a tree that suit both all-to-all traffic and bisections.

    Return None in three cases: the fabric is not a tree, too much flow would have paths much longer than the shortest
    paths, or the fabric is too large.

    Two kinds of tables are possible: tables in closed form, and tables by descent.  The closed form is returned only if
    all of its paths are shortest paths, and in one of three cases:

    - All channels between two levels have the same load, and no channel limits the rate of the end ports.
    - The descent would take long, and no utilisation of the closed form is far above its ceiling (:data:`MOST_EXCESS`).
    - The tables by descent have a notably higher peak utilisation.

    None of these cases applies if the option ``passes`` is given.  On a tree with 27,648 CAs the descent takes a
    minute, and the closed form a few seconds.

    The tables by descent are compared with other tables (:func:`_or_in_other_orders`) if the cost of the tree's switch
    order is high (:data:`MOST_COST`) and a utilisation is notably above its ceiling.  This comparison is made only on
    fabrics of moderate size, and only without the option ``passes``.

    Cost: see :func:`routing.trees.closed_form.route_tree` and :func:`routing.trees.descent.tree_tables`.
    """
    inverse_rate = inverse_capacity(fabric, options.link_weights)
    may_replace = options.passes is None
    closed = None
    is_large = not may_descend(fabric, destinations, options)
    if may_replace and (is_large or tree_quality.is_regular(fabric)):
        closed = _closed_form(fabric, destinations, inverse_rate, options.threads)
        if closed is not None and (
            _is_perfect(fabric, destinations, closed)
            or (is_large and _is_good_enough(fabric, destinations, closed, options))
        ):
            return _as_paths(fabric, closed)
    order = tree_order(fabric)
    if order is None or order.far > MOST_FAR:
        return None
    if closed is None and not is_whole(fabric, tree_slots(fabric, order)):
        closed = _closed_form(fabric, destinations, inverse_rate, options.threads)
    paths = descended(fabric, destinations, options, order, closed=None if closed is None else closed.lft)
    if paths is None:
        return None
    excess = tree_quality.excess_utilisation(fabric, destinations, paths.load, order.level, options).max(initial=0.0)
    if may_replace:
        if closed is None and excess > TOLERANCE:
            closed = _closed_form(fabric, destinations, inverse_rate, options.threads)
        peak = float((paths.load * inverse_rate).max(initial=0.0))
        if closed is not None and closed.is_shortest and closed.peak(inverse_rate) * LOWER_PEAK < peak:
            return _as_paths(fabric, closed)
    if may_replace and order.cost > MOST_COST and excess > TOLERANCE and is_moderate(fabric):
        return _or_in_other_orders(fabric, destinations, options, paths)
    return paths


def descended(
    fabric: Fabric,
    destinations: Destinations,
    options: EngineOptions,
    order: TreeOrder,
    *,
    closed: npt.NDArray[np.uint8] | None = None,
) -> TreePaths | None:
    """Compute tables by descent in an order of the switches.  Return None if a switch does not reach all switches in
    this order, or if the descent needs too much memory.

    ``closed`` (uint8[S, L]) has tables in closed form, if they are given.  If the descent has few passes, its first
    pass prefers the next hops of these tables.  :data:`routing.trees.descent.FEW_SWEEPS` describes the first pass of
    all other descents.
    """
    sweeps = _sweeps(fabric, destinations, order.level, options)
    if sweeps == 0 or not reaches_all(fabric, order.position):
        return None
    trees = tree_tables(
        fabric, order, destinations.targets(), lid=destinations.lid,
        inverse_capacity=inverse_capacity(fabric, options.link_weights),
        sources=fabric.source_weight_at.astype(np.float64), sweeps=sweeps, seed=options.seed, start=closed,
    )  # fmt: skip
    return TreePaths(order, forwarding_tables(fabric, destinations, trees.next_channel), trees.load)


def _or_in_other_orders(
    fabric: Fabric, destinations: Destinations, options: EngineOptions, paths: TreePaths
) -> TreePaths:
    """Return the given tables of a tree, or other tables if these carry notably more traffic.

    First, two other sets of tables are computed.  One set is balanced as on fabrics other than trees, in the switch
    order of the given tables.  The other set is computed by descent, in the switch order of
    :func:`.switch_orders.chained_order`.  If one of these sets carries more traffic than the given tables, a search
    finds a further switch order.  In this order, balanced tables and tables by descent are computed as well.
    :func:`.tree_quality.carried` measures the traffic that tables carry.
    """
    layer = np.zeros(len(destinations.lid), np.int32)
    is_doubtful = paths.order.cost > tree_quality.DOUBTFUL

    def rated(found: TreePaths) -> tuple[float, TreePaths]:
        return tree_quality.carried(fabric, found.lft, options, is_doubtful=is_doubtful), found

    def tried(position: npt.NDArray[np.int32], *, descends: bool) -> tuple[float, TreePaths]:
        order = replace(paths.order, position=position, longer=MOST_LONGER)
        if descends:
            return rated(descended(fabric, destinations, options, order) or paths)
        trees = balanced_in_orders(fabric, destinations, layer, position[None], options)
        return rated(TreePaths(order, forwarding_tables(fabric, destinations, trees.next_channel), trees.load))

    given, chained = rated(paths)[0], chained_order(fabric, paths.order.level)
    found = [tried(paths.order.position, descends=False), tried(chained, descends=True)]
    if max(share for share, _ in found) > given:
        effort = SEARCH * options.effort
        position = searched_orders(fabric, destinations, layer, replace(options, effort=effort), 1)[0]
        found += [tried(position, descends=descends) for descends in (False, True)]
    share, best = max(found, key=lambda each: each[0])
    return best if share > given * NOTABLY else paths


def routing_of_tree(engine: Engine, fabric: Fabric, options: EngineOptions, **found: object) -> Routing | None:
    """Return up/down tables of a tree that follow one order of the switches; None if the fabric is not a tree.

    The function is for engines whose rule allows paths up and then down.  One VL is enough to prevent deadlocks.  If
    more VLs are allowed, the destinations are spread over all of these VLs.

    Parameters
    ----------
    engine
        The engine that the provenance names.
    fabric, options
        The fabric, and the options of the engine.
    found
        Further values of the provenance.
    """
    start = time.perf_counter()
    destinations = Destinations.of(fabric)
    paths = tree_paths(fabric, destinations, options)
    if paths is None:
        return None
    vls = vls_allowed(options)
    tables = vl_tables(round_robin_sls(destinations, len(fabric.lids), vls), vls, options)
    first = [fabric.labels[int(paths.order.position.argmin())]]
    return engine_tables(
        engine, fabric, options, start, lft=paths.lft, tables=tables, vls_needed=1, first_switches=first, **found
    )


def may_descend(fabric: Fabric, destinations: Destinations, options: EngineOptions) -> bool:
    """Return whether the effort allows a local search (descent) with the lowest number of passes."""
    return _least_visits(fabric, destinations) <= MOST_VISITS * options.effort


def _least_visits(fabric: Fabric, destinations: Destinations) -> float:
    """Return the number of channels that the descent compares if it makes only ``LEAST_SWEEPS`` passes."""
    return LEAST_SWEEPS * len(destinations.lid) * len(fabric.channels) / 2


def _sweeps(fabric: Fabric, destinations: Destinations, level: npt.NDArray[np.int32], options: EngineOptions) -> int:
    """Return the number of passes of the descent; 0 if the descent needs too much memory.

    The option ``passes`` sets the number of passes after the first.  Without this option, the number follows from the
    effort.  For trees with equal leaves and enough links between levels, :data:`ENOUGH_SWEEPS` passes are enough, so
    such trees get no further passes.  There are two exceptions: an effort above 1, and small trees, for which the
    effort allows ``MOST_SWEEPS`` passes.  ``level`` is the level of each switch, int32[S].
    """
    sweeps = affordable_sweeps(fabric, len(destinations.lid), options.effort)
    if sweeps and options.passes is not None:
        return options.passes + 1
    if not ENOUGH_SWEEPS < sweeps < MOST_SWEEPS or options.effort > 1.0:
        return sweeps
    if not tree_quality.has_equal_leaves(fabric) or not _is_unweighted(fabric, destinations, options):
        return sweeps
    links = np.bincount(level[fabric.channels.src], level[fabric.channels.dst] > level[fabric.channels.src])
    return ENOUGH_SWEEPS if links[: level.max()].min(initial=np.inf) >= FULL * fabric.senders_at.sum() else sweeps


def _closed_form(
    fabric: Fabric, destinations: Destinations, inverse_rate: npt.NDArray[np.float64], threads: int
) -> _ClosedForm | None:
    """Return the tables in closed form; None if the fabric is not a tree.

    ``inverse_rate`` (float64[C]) is the inverse capacity of each channel.
    """
    leaves = Leaves(np.ones(fabric.endports, bool))
    try:
        tables, level = route_tree(fabric, leaves, inverse_rate, passes=CLOSED_FORM_PASSES, threads=threads, loads=True)
    except NotATree:
        return None
    load = _flows(fabric, destinations, tables, level)
    if load is None:
        load = channel_loads(fabric, tables.lft, threads=threads)
    return _ClosedForm(tables.lft, level, load, tree_quality.all_shortest(fabric, destinations, load))


def _flows(
    fabric: Fabric, destinations: Destinations, tables: TreeTables, level: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64] | None:
    """Return float64[C], the all-to-all load of each channel, which was summed while the closed form was computed.
    Return None if these sums may be wrong.

    The sums leave out flows whose paths do not lead up and then down, and give all end ports equal weights.  So the
    sums are right only under these conditions: every two leaves have a path up and then down; all end ports that count
    are at leaves, and have equal weights; and as much flow leaves each switch as enters it.  ``level`` is the level of
    each switch, int32[S].
    """
    load, sources = tables.load, fabric.source_weight_at.astype(np.float64)
    mass = np.bincount(destinations.root, destinations.share, fabric.switches).astype(np.float64)
    uneven = (sources != fabric.senders_at) | (mass != sources) | ((sources > 0) & (level > 0))
    if load is None or tables.filled_between_leaves or uneven.any():
        return None
    sent, received = (np.bincount(end, load, fabric.switches) for end in (fabric.channels.src, fabric.channels.dst))
    return load if np.allclose(received, sent, rtol=0.0, atol=1e-9 * max(float(load.max(initial=0.0)), 1.0)) else None


def _is_good_enough(fabric: Fabric, destinations: Destinations, closed: _ClosedForm, options: EngineOptions) -> bool:
    """Return whether the closed form has shortest paths, and keeps the channels near their ceilings.

    The longer the descent would take, the more the utilisation may exceed a ceiling (:data:`MOST_EXCESS`).
    """
    excess = tree_quality.excess_utilisation(fabric, destinations, closed.load, closed.level, options).max(initial=0.0)
    most = MOST_EXCESS * _least_visits(fabric, destinations) / MOST_VISITS
    return closed.is_shortest and float(excess) * options.effort <= most


def _is_unweighted(fabric: Fabric, destinations: Destinations, options: EngineOptions) -> bool:
    """Return whether all end ports that count send and receive equally much, and no link has a separate weight."""
    shares = np.unique(destinations.share[destinations.share > 0])
    return not options.link_weights and len(shares) <= 1 and np.array_equal(fabric.source_weight_at, fabric.senders_at)


def _is_perfect(fabric: Fabric, destinations: Destinations, closed: _ClosedForm) -> bool:
    """Return whether all channels between two levels have the same load, and none limits the rate of end ports.

    If so, no other tables of a regular tree carry more all-to-all traffic, and tables by descent would not be better.
    """
    channels, level = fabric.channels, closed.level.astype(np.int64)
    group = level[channels.src] * (level.max() + 1) + level[channels.dst]
    for each in np.unique(group):
        load = closed.load[group == each]
        if not np.isclose(load.min(), load.max()):
            return False
    return closed.is_shortest and float(closed.load.max(initial=0.0)) <= float(destinations.share.sum())


def _as_paths(fabric: Fabric, closed: _ClosedForm) -> TreePaths:
    """Return the tables with their load, and with an order of the switches in which all paths lead up and then down."""
    return TreePaths(closed_form_order(fabric, closed.level), closed.lft, closed.load)
