"""MUD: Up*/Down* over several virtual networks (VLs), each with its own root.  The destination determines the
virtual network.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Targets, balance
from routing._kernels.order import build_order
from routing.engines.base import LONGER_PATHS, EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.orders import VISITS_PER_SECOND, OrderSearch, breadth_first, central_switch, top_switches
from routing.engines.roots import named_roots
from routing.engines.tree_paths import routing_of_tree
from routing.engines.uncounted import without_uncounted
from routing.engines.updn import tables_in_orders
from routing.engines.vl_assignment import vls_allowed
from routing.fabric import Fabric
from routing.tables import Routing

CLUSTERED_ORDERS = 8
"""Number of switch orders from maximum cardinality search, with random ties, that are tried for each root.
Breadth-first orders are tried in addition.
"""

MOST_TRAFFIC = 1.05
"""Limit for the traffic of a virtual network, divided by the mean traffic of all virtual networks.  A switch gets a
network beyond the limit only if no network can take its traffic within the limit.
"""


class MultipleUpDown:
    """Up*/Down* in several virtual networks with different roots.

    Notes
    -----
    After J. Flich, P. Lopez, J. C. Sancho, A. Robles, J. Duato, "Improving InfiniBand routing through multiple virtual
    networks", ISHPC 2002.  Each virtual network is a VL with an Up*/Down* order from its own root, and a packet stays
    in its network.  So traffic does not meet at one root.  Differences:

    - The published source chooses the network for each pair of hosts.  Forwarding tables have one next hop for each
      LID.  So the destination LID determines the virtual network and the SL for all sources.
    - A destination takes a network in which its paths are short, as long as the traffic of the network stays within a
      limit (:data:`MOST_TRAFFIC`).  Assigning networks in turn is tried as well, and the better balanced result counts.
    - The roots are as far from each other as possible; on trees they are top switches.  The order of a network begins
      with its root.  The order is breadth first, or the next switch is always the switch with the most links to
      switches before it (:mod:`routing.engines.orders`), whichever balances better.
    - Paths balance the load, with a small cost per hop.
    - On a tree, if no root is named, all networks have the same order of the switches: the levels of the tree
      (:mod:`routing.engines.tree_paths`).

    An SL per destination is safe for requests (``forward``).  With one VL there is one network.
    """

    name = "mud"
    summary = "Up*/Down* over several virtual lanes with different roots; free of credit loops"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(
        options=("roots", "root_guid_file"), refusals={"minimal": LONGER_PATHS}, opensm_options=("root_guid_file",)
    )

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: O(L S radix hops) per pass, and O(V S^2 radix hops) for V virtual networks (one for each root).
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        named = named_roots(fabric, options)
        if not named and (tree := routing_of_tree(self, fabric, options)) is not None:
            return tree
        vls = vls_allowed(options)
        destinations = Destinations.of(fabric)
        roots = _roots(fabric, named, vls)
        visits = round(VISITS_PER_SECOND * options.effort) // max(len(roots), 1)
        search = OrderSearch(fabric, destinations, visits, options.seed, options.threads)
        if not roots:
            position = np.zeros((1, 0), np.int32)
            layer = np.zeros(0, np.int32)
        else:
            position = np.stack([search.pick(list(_orders(fabric, root, options.seed))) for root in roots])
            layer = _best_networks(fabric, destinations, search, position, options)
        return tables_in_orders(
            self, fabric, destinations, options, layer=layer, position=position, vls=vls, start=start,
            found={"roots": [fabric.labels[root] for root in roots]},
        )  # fmt: skip


ENGINE = MultipleUpDown()


def _roots(fabric: Fabric, named: list[int], count: int) -> list[int]:
    """Return a root for each virtual network: the named roots, or top switches of a tree, or central and distant
    switches.

    If no root is named, the first root is the first top switch of a tree, or the most central switch of any other
    fabric.  Each further root is farthest from all earlier roots; on a tree, it is a top switch too.  There are fewer
    roots than ``count`` if fewer are named, or if the tree has fewer top switches, or the fabric fewer switches.
    """
    if named or fabric.switches == 0:
        return named[:count]
    tops = top_switches(fabric)
    eligible = np.zeros(fabric.switches, np.bool_)
    eligible[tops or slice(None)] = True
    roots = [tops[0] if tops else central_switch(fabric)]
    distance = np.asarray(fabric.graph.distances(mode="out"), float)
    distance[~np.isfinite(distance)] = 0.0
    degree = np.diff(fabric.channels.first)
    while len(roots) < min(count, eligible.sum()):
        near = np.where(eligible, distance[roots].min(axis=0), -1.0)
        near[roots] = -2.0
        roots.append(int(np.lexsort((-degree, -near))[0]))
    return roots


def _orders(fabric: Fabric, root: int, seed: int) -> Iterator[npt.NDArray[np.int32]]:
    """Yield switch orders for one virtual network.  Each order begins with the root of the network.

    The first order is breadth-first from the root.  If the root is a top switch of a tree, the second order is
    breadth-first from all top switches.  The other orders come from maximum cardinality search with random ties.
    """
    yield breadth_first(fabric, [root])
    tops = top_switches(fabric)
    if root in tops:
        yield breadth_first(fabric, [root, *(top for top in tops if top != root)])
    rng = np.random.default_rng([seed, root])
    for _ in range(CLUSTERED_ORDERS):
        key = rng.random(fabric.switches)
        key[root] = -1.0
        yield build_order(fabric.channels, key, pull=1.0)


def _best_networks(
    fabric: Fabric,
    destinations: Destinations,
    search: OrderSearch,
    position: npt.NDArray[np.int32],
    options: EngineOptions,
) -> npt.NDArray[np.int32]:
    """Return int32[D], the virtual network of each destination.  Each destination gets a network in which its paths are
    short.  If this balances better, the networks are assigned to the switches in turn instead.

    ``position`` (int32[networks, S]) is the position of each switch in the order of each network.
    """
    networks = len(position)
    if networks == 1:
        return np.zeros(len(destinations.lid), np.int32)
    hops = np.stack([_mean_hops(fabric, order, options) for order in position])
    weight = np.bincount(destinations.root, destinations.share, fabric.switches).astype(np.float64)
    by_turns = np.arange(fabric.switches) % networks
    choices = [_short(hops, weight), by_turns]
    layers = [np.asarray(choice[destinations.root], np.int32) for choice in choices]
    return min(layers, key=lambda layer: search.rate(position, layer))


def _mean_hops(fabric: Fabric, order: npt.NDArray[np.int32], options: EngineOptions) -> npt.NDArray[np.float64]:
    """Return float64[S], mean hops of the paths to each switch in an order of the switches (int32[S])."""
    switches, channels = fabric.switches, fabric.channels
    every = np.arange(switches, dtype=np.int32)
    targets = Targets.single(every, np.ones(switches))
    trees = balance(
        channels, inverse_capacity(fabric), np.ones(switches), targets, position=order[None], passes=0,
        seed=options.seed, threads=options.threads, hop_cost=1.0,
    )  # fmt: skip
    at = np.tile(every, (switches, 1))
    rows, total = every[:, None], np.zeros(switches)
    while True:
        index = trees.next_channel[rows, at]
        moving = index != 255
        if not moving.any():
            return total / switches
        total += moving.sum(axis=1)
        at = np.where(moving, channels.dst[np.where(moving, channels.first[at] + index, 0)], at)


def _short(hops: npt.NDArray[np.float64], weight: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return int64[S], the virtual network of each switch.

    ``hops`` is float64[networks, S], the mean hops to each switch in each network.  ``weight`` is float64[S], the
    traffic to each switch.  Each pair of a switch and a network has a number of extra hops: the mean hops to the switch
    in this network, minus the fewest mean hops to the switch in any network.  Pairs with fewer extra hops are processed
    first.  The switch of a pair gets the network if the traffic of the network then stays within a limit
    (:data:`MOST_TRAFFIC`).  A switch for which no network stayed within its limit gets the network that is farthest
    below its limit.
    """
    networks, switches = hops.shape
    extra = hops - hops.min(axis=0)
    left = np.full(networks, MOST_TRAFFIC * weight.sum() / networks)
    network = np.full(switches, -1)
    for pair in np.argsort(np.round(extra, 9), axis=None, kind="stable").tolist():
        number, switch = divmod(pair, switches)
        if network[switch] < 0 and weight[switch] <= left[number]:
            network[switch] = number
            left[number] -= weight[switch]
    for switch in np.flatnonzero(network < 0).tolist():
        network[switch] = int(left.argmax())
        left[network[switch]] -= weight[switch]
    return network
