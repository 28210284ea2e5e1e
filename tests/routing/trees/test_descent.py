"""Compare tables by descent with loads and costs that are counted path by path."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from strategies import pull_links

from routing._kernels.descent import DescentCosts, descend, updown_hops
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations, inverse_capacity
from routing.errors import OptionError
from routing.fabric_figures import fabric_figures
from routing.publish import verify
from routing.quality import all_to_all_share, channel_loads, measure
from routing.quality.flows import Flows
from routing.quality.parts import share_of
from routing.topologies import generate
from routing.trees.descent import affordable_sweeps, ceilings, is_whole, tree_slots, tree_tables
from routing.trees.levels import tree_order


def broken_tree():
    return pull_links(generate("kary-ntree", ["3", "3"]), 2, 0.08)


def routed(fabric, sweeps=6, seed=1):
    """Return the destinations, the order and the trees of a fabric."""
    destinations, order = Destinations.of(fabric), tree_order(fabric)
    trees = tree_tables(
        fabric,
        order,
        destinations.targets(),
        lid=destinations.lid,
        inverse_capacity=inverse_capacity(fabric),
        sources=fabric.senders_at.astype(float),
        sweeps=sweeps,
        seed=seed,
    )
    return destinations, order, trees


def path(fabric, following, switch, root):
    """Return the channels from a switch to the root, where ``following`` has the next hop of each switch."""
    channels = []
    while switch != root:
        channels.append(int(fabric.channels.first[switch]) + int(following[switch]))
        switch = int(fabric.channels.dst[channels[-1]])
    return channels


@pytest.mark.parametrize("lmc", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_paths_are_the_shortest_up_and_then_down_and_loads_are_their_sums(seed, lmc):
    fabric = pull_links(generate("cluster", ["3x3x3", "3x2"], lmc=lmc, aggregation=1), seed, 0.05)
    destinations, order, trees = routed(fabric, seed=seed)
    hops = updown_hops(fabric.channels, order.position, destinations.root)
    load = np.zeros(len(fabric.channels))
    for row, root in enumerate(destinations.root.tolist()):
        for switch in range(fabric.switches):
            channels = path(fabric, trees.next_channel[row], switch, root)
            assert len(channels) == hops[row, switch]
            up = order.position[fabric.channels.dst[channels]] < order.position[fabric.channels.src[channels]]
            assert (np.diff(up.astype(int)) <= 0).all()
            load[channels] += fabric.senders_at[switch] * destinations.share[row]
    assert np.allclose(trees.load, load)


def test_every_next_hop_meets_the_least_weight_where_a_sweep_changes_nothing():
    """The weights of channels and turns are counted path by path, without the destination whose next hop is checked."""
    fabric = broken_tree()
    destinations, order = Destinations.of(fabric), tree_order(fabric)
    sources, channels, sweeps = fabric.senders_at.astype(float), fabric.channels, 60
    trees = descend(
        channels,
        np.ones(len(channels)),
        sources,
        destinations.targets(),
        tree=tree_slots(fabric, order),
        order=np.arange(len(destinations.lid), dtype=np.int32),
        costs=DescentCosts(
            sources, destinations.share, np.full(len(channels), 1e9), 1e9, np.ones(sweeps), np.zeros(sweeps)
        ),
        seed=3,
    )
    hops = updown_hops(channels, order.position, destinations.root)
    meet, turn = defaultdict(lambda: defaultdict(float)), defaultdict(lambda: defaultdict(float))
    for row, root in enumerate(destinations.root.tolist()):
        for switch in np.flatnonzero(sources).tolist():
            taken = path(fabric, trees.next_channel[row], switch, root)
            for channel in taken:
                meet[channel][row] += sources[switch] * destinations.share[row]
            for pair in pairwise(taken):
                turn[pair][row] += sources[switch] * destinations.share[row]
    for row in np.flatnonzero(destinations.share).tolist():
        root, cost = int(destinations.root[row]), {int(destinations.root[row]): 0.0}

        def others(weights, row=row):
            return sum(weights.values()) - weights[row]

        for switch in np.argsort(hops[row], kind="stable").tolist():
            if switch == root:
                continue
            chosen = path(fabric, trees.next_channel[row], switch, root)[0]
            prices = {}
            for channel in range(channels.first[switch], channels.first[switch + 1]):
                near = int(channels.dst[channel])
                allowed = hops[row, near] == hops[row, switch] - 1 and near in cost
                down = order.position[near] > order.position[switch]
                if allowed and down == (order.position[channels.dst[chosen]] > order.position[switch]):
                    following = path(fabric, trees.next_channel[row], near, root)[:1]
                    met = others(turn[channel, following[0]]) if following else 0.0
                    prices[channel] = others(meet[channel]) - met + cost[near]
            assert prices[chosen] <= min(prices.values()) + 1e-9
            cost[switch] = prices[chosen]


def test_the_first_sweep_of_a_whole_tree_is_d_mod_k():
    """Each top switch serves the same number of destinations, and further sweeps change nothing."""
    fabric = generate("kary-ntree", ["4", "3"])
    _, _, one = routed(fabric, sweeps=1)
    _, _, more = routed(fabric, sweeps=9)
    assert np.array_equal(one.load, more.load)
    assert one.load.max() == 60  # 4 senders of a leaf send to the 60 others over 4 links


@pytest.mark.parametrize("lmc", [1, 2])
def test_lids_of_a_port_leave_a_leaf_by_different_switches(lmc):
    fabric = generate("kary-ntree", ["4", "2"], lmc=lmc)
    destinations, _, trees = routed(fabric)
    for first, end in zip(destinations.lmc_group_first, destinations.lmc_group_first[1:], strict=False):
        for leaf in np.flatnonzero(fabric.senders_at).tolist():
            if end - first > 1 and leaf != destinations.root[first]:
                assert len({int(trees.next_channel[row, leaf]) for row in range(first, end)}) == end - first


def test_the_ceiling_follows_from_the_leaf_with_the_least_room():
    fabric = generate("kary-ntree", ["4", "2"])
    mass = fabric.senders_at.astype(float)
    ceiling, least = ceilings(fabric, tree_order(fabric).level, np.ones(len(fabric.channels)), mass, mass)
    assert least == 4 * 12 / 4
    assert (ceiling == ceiling[0]).all() and ceiling[0] >= least


def test_a_thin_leaf_has_a_ceiling_of_its_own():
    fabric = generate("cluster", ["8x14x16", "16x6"])
    mass = fabric.senders_at.astype(float)
    order = tree_order(fabric)
    ceiling, least = ceilings(fabric, order.level, np.ones(len(fabric.channels)), mass, mass)
    thin = fabric.channels.src == fabric.switch_name.index("leaf-management")
    assert (ceiling[thin] > 1.2 * least).all()
    assert least < np.median(ceiling) < 1.02 * least


def test_a_slow_leaf_does_not_limit_the_traffic_of_all_others():
    """The storage leaf has 3 % of the end ports, and half of the rate.  The next narrow cut could carry 1.8 times as
    much.
    """
    fabric = generate("rails", ["4x8x16", "8"], speed="NDR")
    compute = [row for row, name in enumerate(fabric.endport_name) if name.startswith("node")]
    routing = ENGINES["updn"].route(fabric, EngineOptions(threads=1))
    flows = Flows.of(fabric, routing, 1)
    assert share_of(fabric, flows.all_to_all()[0], flows.endports) >= 0.255  # 0.257 was measured
    among = flows.among(np.array(compute))
    assert share_of(fabric, among.all_to_all()[0], among.endports) >= 0.43  # 0.451 was measured


FLOORS = [
    # fabric, options of the generator, share of missing links between switches, all-to-all rate, bisection rate
    ("kary-ntree 4 3", {}, 0.0, 1.05, 0.79),
    ("kary-ntree 6 3", {}, 0.05, 0.85, 0.70),
    ("cluster 8x8x8 8x4", {"aggregation": 1}, 0.0, 0.33, 0.585),
    ("xgft 8,8 1,6", {"cas": 8}, 0.03, 0.65, 0.74),
]


@pytest.mark.parametrize("engine", ["updn", "nue", "dfsssp"])
@pytest.mark.parametrize(("words", "options", "missing", "alltoall", "bisection"), FLOORS, ids=[r[0] for r in FLOORS])
def test_all_to_all_and_bisection_rates_reach_their_floors(words, options, missing, alltoall, bisection, engine):
    name, *arguments = words.split()
    fabric = pull_links(generate(name, arguments, **options), 1, missing)
    routing = ENGINES[engine].route(fabric, EngineOptions())
    proof = verify(fabric, routing, ENGINES[engine]).proof
    assert proof.certified and proof.complete
    found = measure(fabric, routing, shifts=0, permutations=0)
    assert found.all_to_all >= alltoall
    assert found.bisection_mean >= bisection
    if engine != "dfsssp":
        assert routing.vls_needed == 1 and proof.strength == "reversible"


@pytest.mark.parametrize("engine", ["updn", "nue"])
def test_the_objective_is_refused_with_the_reason(engine):
    with pytest.raises(OptionError, match="balances trees for all-to-all traffic and bisections at once"):
        ENGINES[engine].route(broken_tree(), EngineOptions.of({"objective": "bisection"}))


def test_effort_buys_sweeps_within_limits():
    fabric = generate("kary-ntree", ["6", "3"])
    counts = [affordable_sweeps(fabric, 300, effort) for effort in (0.0, 0.2, 1.0, 1000.0)]
    assert counts == sorted(counts) and counts[0] >= 1 and counts[-1] == 24


def test_a_switch_with_one_path_down_sends_up_by_all_others():
    """If a top switch has lost its link to the pod of the first leaf, another spine precedes it in the order.

    This spine has one path down and 15 paths up of the same length.  If it sent down, all its traffic would need one
    channel.
    """
    whole = generate("kary-ntree", ["16", "3"])
    cables = np.unique(whole.channels.link)
    gone = np.random.default_rng(2).choice(cables, len(cables) // 20, replace=False)
    fabric = whole.without_links(gone.tolist())
    routing = ENGINES["updn"].route(fabric, EngineOptions(effort=0.1, threads=1))
    found = measure(fabric, routing, shifts=0, permutations=0, bisections=0)
    links = np.bincount(fabric.channels.src)[fabric.senders_at > 0].min()
    assert found.all_to_all >= 0.97 * 4095 * links / (16 * 4080)


def test_a_tree_that_lacks_one_of_two_parallel_cables_is_not_whole():
    fabric = generate("xgft", ["6x4", "1x3"], redundancy=2)
    broken = fabric.without_links([int(fabric.channels.link[0])])
    for subnet, whole in ((fabric, True), (broken, False)):
        order = tree_order(subnet)
        assert is_whole(subnet, tree_slots(subnet, order)) is whole


@pytest.mark.parametrize("seed", [1, 4])
def test_missing_parallel_cables_leave_no_channel_far_above_the_others(seed):
    # In the closed form alone, the highest utilisation is a fifth higher.
    fabric = pull_links(generate("xgft", ["8x6x4", "1x4x4"], redundancy=2), seed, 0.01)
    routing = ENGINES["ftree"].route(fabric, EngineOptions(threads=1))
    share = all_to_all_share(fabric, channel_loads(fabric, routing))
    assert share > 0.9 * fabric_figures(fabric).bound.all_to_all
