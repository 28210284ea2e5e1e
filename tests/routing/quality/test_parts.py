"""Check the quality of parts of the traffic (classes, the thin leaf, stretch) against slow counts of single paths."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from command_runs import run

from routing.class_settings import PortClass, Weight
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.formats.guid_files import apply_port_classes
from routing.port_classes import port_classes_of
from routing.quality import all_to_all_share, channel_loads, measure
from routing.simulate.handmade import literal_fabric
from routing.topologies import generate

STORAGE = ("names", "storage", "storage*"), ("names", "management", "management*")


def cluster(**options):
    fabric = generate("cluster", ["3x4x4", "4x2"], **options)
    return apply_port_classes(fabric, port_classes_of(STORAGE, lambda _: ()))


def routed(fabric, engine="updn", **options):
    return ENGINES[engine].route(fabric, EngineOptions(effort=0.1, **options))


def paths(fabric, routing, rows):
    """Yield the channels of the path between every two of the given end ports, to the first LID."""
    for source in rows:
        for target in rows:
            at, lid, path = int(fabric.endport_switch[source]), int(fabric.endport_lid[target]), []
            while (channel := int(fabric.channels.at_port[at, routing.lft[at, lid]])) >= 0:
                path.append(channel)
                at = int(fabric.channels.dst[channel])
            if source != target:
                yield source, target, path


def test_shares_of_classes_are_those_of_the_traffic_among_their_ports():
    fabric = cluster(aggregation=1)
    routing = routed(fabric)
    found = {own.label: own for own in measure(fabric, routing, shifts=0, permutations=0, bisections=0).classes}
    assert list(found) == ["compute", "storage", "management", "aggregation"]
    rows = np.flatnonzero(fabric.endport_class == 0).tolist()
    loads = np.zeros(len(fabric.channels))
    for _, _, path in paths(fabric, routing, rows):
        loads[path] += 1
    unit = np.unique(fabric.link_capacity[fabric.endport_link])[-1]
    slow = (fabric.channels.capacity[loads > 0] / loads[loads > 0]).min() * (len(rows) - 1) / unit
    assert found["compute"].all_to_all == pytest.approx(slow) and found["compute"].endports == len(rows)
    assert not found["aggregation"].counted and math.isnan(found["aggregation"].all_to_all)
    assert math.isinf(found["management"].all_to_all)  # all end ports are on one switch


def test_patterns_of_a_class_are_those_of_a_fabric_without_traffic_of_the_others():
    fabric = cluster()
    routing = routed(fabric)
    whole = measure(fabric, routing, shifts=0, permutations=5, bisections=5)
    for row, own in enumerate(PortClass):
        weights = tuple(Weight() if other == row else Weight(0, 0) for other in range(len(PortClass)))
        alone = replace(fabric, port_classes=replace(fabric.port_classes, weights=weights))
        for each in (each for each in whole.classes if each.label == own.label and each.counted):
            expected = measure(alone, routing, shifts=0, permutations=5, bisections=5)
            unit = expected.reference_rate / whole.reference_rate
            assert each.bisection_mean == pytest.approx(unit * expected.bisection_mean)
            assert each.permutation_mean == pytest.approx(unit * expected.permutation_mean)


def test_one_class_has_the_share_of_all():
    fabric = generate("kary-ntree", ["3", "2"], aggregation=1)
    figures = measure(fabric, routed(fabric), shifts=0, permutations=0, bisections=0)
    assert [own.label for own in figures.classes] == ["compute", "aggregation"]
    assert figures.classes[0].all_to_all == figures.all_to_all


@pytest.mark.parametrize(("name", "arguments"), [("mesh", ["4x3"]), ("cluster", ["3x4x2", "2x2"])])
def test_the_stretch_is_that_of_every_pair(name, arguments):
    fabric = generate(name, arguments)
    routing = routed(fabric, roots=(fabric.switch_name[0],))
    distance = fabric.graph.distances()
    ratios, more = [], []
    for source, target, path in paths(fabric, routing, range(fabric.endports)):
        if path:
            least = distance[fabric.endport_switch[source]][fabric.endport_switch[target]]
            ratios.append(len(path) / least)
            more.append(len(path) - least)
    found = measure(fabric, routing, shifts=0, permutations=0, bisections=0, stretches=True).stretch
    assert (found.most, found.more_most) == (max(ratios), max(more))
    assert found.mean == pytest.approx(np.mean(ratios)) and found.more_mean == pytest.approx(np.mean(more))


def test_shortest_paths_have_no_stretch_also_with_lmc():
    fabric = generate("torus", ["4x3"], lmc=2)
    found = measure(fabric, routed(fabric, "minhop"), bisections=0, shifts=0, permutations=0, stretches=True).stretch
    assert (found.mean, found.most, found.more_mean, found.more_most) == (1.0, 1.0, 0.0, 0)
    lone = generate("ring", ["3"], cas=0)
    assert measure(lone, routed(lone), bisections=0, shifts=0, permutations=0, stretches=True).stretch is None


def test_a_leaf_that_lost_uplinks_is_thin():
    fabric = generate("kary-ntree", ["4", "2"])
    whole = measure(fabric, routed(fabric), shifts=0, permutations=0, bisections=0)
    assert whole.thin_leaf is None
    leaf = int(np.flatnonzero(fabric.senders_at)[0])
    uplinks = fabric.channels.link[fabric.channels.src == leaf]
    less = fabric.without_links(uplinks[:3].tolist())
    routing = routed(less)
    found = measure(less, routing, shifts=0, permutations=0, bisections=0)
    assert found.thin_leaf.switch == fabric.labels[leaf] and found.thin_leaf.endports == 4
    loads = channel_loads(less, routing)
    at_leaf = (less.channels.src == leaf) | (less.channels.dst == leaf)
    assert found.all_to_all == pytest.approx(15 / loads[at_leaf].max())
    assert found.thin_leaf.all_to_all_without == pytest.approx(15 / loads[~at_leaf].max())
    assert found.thin_leaf.all_to_all_without > found.all_to_all
    assert all_to_all_share(less, loads) == found.all_to_all


def test_a_thin_leaf_of_the_smaller_part_is_found():
    """The channels of the larger part carry more than the only link of the thin leaf, but to more end ports."""
    cables, cas = [], {}
    for part, size in (("large", 16), ("small", 4)):
        leaves = [f"{part}-leaf{n}" for n in range(size)]
        cables += [(leaf, f"{part}-spine{n}") for leaf in leaves for n in range(4)]
        cas |= {f"{leaf}-ca{n}": leaf for leaf in leaves for n in range(4)}
    cables = [(leaf, spine) for leaf, spine in cables if leaf != "small-leaf0" or spine == "small-spine0"]
    fabric = literal_fabric("parts", sorted({name for cable in cables for name in cable}), cables, cas)
    found = measure(fabric, routed(fabric), shifts=0, permutations=0, bisections=0).thin_leaf
    assert found.switch == "small-leaf0" and found.endports == 4


def test_the_command_reports_classes_stretch_and_the_thin_leaf(tmp_path):
    fabric, tables = "cluster:3x4x4,4x2,aggregation=1", tmp_path / "t"
    classes = ["--class", "storage=storage*", "--class-weight", "storage=1:4"]
    summary = run("route", fabric, "-e", "updn", *classes, "-o", tables).stdout
    assert "in no traffic pattern" in summary and "storage" in summary
    text = run("quality", fabric, tables, *classes).stdout
    assert "stretch" in text and "most hops longer than the shortest path" in text
    found = json.loads(run("quality", fabric, tables, *classes, "--json").stdout)
    assert [own["class"] for own in found["classes"]] == ["compute", "storage", "aggregation"]
    assert found["classes"][2]["all_to_all"] is None and found["stretch"]["ratio_mean"] >= 1
