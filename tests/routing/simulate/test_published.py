"""Check assumptions behind the published scenarios: an error in a caption, tables for trees, and swapped cables."""

from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest

from routing.errors import OptionError
from routing.simulate.case_runners import run_case
from routing.simulate.handmade import d_mod_k
from routing.simulate.network import distances
from routing.simulate.scenario import find_scenario, read_scenario
from routing.simulate.scenario_fabric import scenario_fabric
from routing.topologies import generate

SWAPPED = """
title = "swapped"
[fabric]
switches = ["a", "b"]
cables = [["a", "b"]]
cas = { x = "a", y = "b" }
faults = ["swap a/2 b/2"]
[[flow]]
path = ["x", "b", "a", "y"]
[[case]]
name = "c"
expect = { outcome = "progress" }
"""


def shortest_paths(failed):
    """Return all shortest paths of the four flows of a two-level tree without two of its cables."""
    tree = nx.Graph([(core, leaf) for core in ("11", "12") for leaf in ("21", "22", "23", "24")])
    tree.remove_edges_from(failed)
    return [
        list(nx.all_shortest_paths(tree, *ends)) for ends in (("21", "24"), ("24", "21"), ("22", "23"), ("23", "22"))
    ]


@pytest.mark.parametrize(("failed", "loops"), [([("12", "21"), ("11", "23")], 0), ([("12", "21"), ("11", "24")], 2)])
def test_the_caption_names_the_wrong_cable(failed, loops):
    """Without cable 11-23, no choice of shortest paths closes a loop.  Without 11-24, two choices do, one in each
    direction.
    """
    found = []
    for paths in product(*shortest_paths(failed)):
        waits = nx.DiGraph(pair for path in paths for pair in pairwise(pairwise(path)))
        found += [set(cycle) for cycle in nx.simple_cycles(waits)]
    reported = set(pairwise(["11", "23", "12", "22", "11"]))
    back = {(b, a) for a, b in reported}
    assert sorted(found, key=sorted) == sorted([reported, back], key=sorted)[:loops]


@pytest.mark.parametrize("size", ["2,2", "4,2", "2,3", "3,3"])
def test_d_mod_k_gives_every_channel_of_a_shift_to_one_pair(size):
    fabric = generate("kary-ntree", size.split(","))
    lft, channels, lids = d_mod_k(fabric).lft, fabric.channels, fabric.lids
    far = {(int(channels.src[c]), int(channels.port[c])): int(channels.dst[c]) for c in range(len(channels))}
    count = fabric.endports
    for by in range(1, count):
        used = set()
        for sender in range(count):
            lid, switch = int(fabric.endport_lid[(sender + by) % count]), int(fabric.endport_switch[sender])
            while switch != lids.switch[lid]:
                hop = switch, int(lft[switch, lid])
                assert hop not in used
                used.add(hop)
                switch = far[hop]
        assert np.array_equal(lft[lids.switch[fabric.endport_lid], fabric.endport_lid], lids.port[fabric.endport_lid])


def test_d_mod_k_is_for_trees():
    with pytest.raises(OptionError, match="not a tree"):
        d_mod_k(generate("ring", ["5"], cas=1))


def test_a_scenario_may_change_which_cables_go_where(tmp_path):
    """Two cables exchange their plugs: x is then cabled to b, and y to a."""
    path = tmp_path / "mine.toml"
    path.write_text(SWAPPED)
    scenario = read_scenario(path)
    assert run_case(scenario, scenario.cases[0]).right


def test_the_flows_of_the_tree_with_swapped_cables_take_shortest_paths():
    """Host n of the published figure is CA n - 1 in the order of the tree.  The flows link the hosts that the figure
    names.
    """
    scenario = find_scenario("swapped-cables")
    fabric = scenario_fabric(scenario)
    hops, row = distances(fabric), {name: n for n, name in enumerate(fabric.switch_name)}
    for flow in scenario.flows:
        path = flow["path"]
        assert hops[row[path[1]], row[path[-2]]] == len(path) - 3
        source, target = (fabric.endport_name.index(path[end]) + 1 for end in (0, -1))
        assert flow["name"] == f"{source} to {target}"
    cables = {frozenset(ends) for ends in fabric.link_device.tolist()}
    before = {frozenset(ends) for ends in generate("xgft", ["2x4x4", "1x2x2"]).link_device.tolist()}
    assert len(before - cables) == 5
