"""Check aggregation nodes: they get routes, but no traffic counts them.  The fabrics are cabled as clusters are."""

import numpy as np
import pytest

from routing.cli.fabric import describe
from routing.cli.output import fabric_object
from routing.cli.proof_report import fabric_line
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations
from routing.engines.orders import top_switches
from routing.errors import OptionError
from routing.faults import apply_faults, parse_fault
from routing.quality import measure
from routing.topologies import generate

KINDS = [("kary-ntree", ["4", "2"]), ("torus", ["4x4"]), ("cluster", ["4x4x4", "4x2"])]


@pytest.fixture(params=KINDS, ids=lambda kind: kind[0], scope="module")
def pair(request):
    """Return the same fabric without aggregation nodes, and with one on each switch."""
    name, arguments = request.param
    return generate(name, arguments), generate(name, arguments, aggregation=1)


def test_each_switch_has_one_on_a_port_of_its_own(pair):
    plain, more = pair
    assert not plain.aggregation.any()
    assert more.aggregation.sum() == more.switches == more.endports - plain.endports
    assert np.array_equal(np.bincount(more.endport_switch[more.aggregation]), np.ones(more.switches))
    assert np.array_equal(more.senders_at, plain.terminals_at)


def test_aggregation_nodes_have_no_share_of_the_flow(pair):
    _, more = pair
    found = Destinations.of(more)
    owner = more.lids.endport[found.lid]
    inside = (owner >= 0) & more.aggregation[owner]
    assert inside.sum() == more.switches
    assert (found.share[inside] == 0).all() and (found.share[~inside & (owner >= 0)] > 0).all()


def test_the_levels_of_a_tree_are_those_without_them(pair):
    plain, more = pair
    names = [[fabric.switch_name[row] for row in top_switches(fabric)] for fabric in (plain, more)]
    assert names[0] == names[1]


@pytest.mark.parametrize("engine", ["updn", "nue", "dfsssp"])
def test_aggregation_nodes_hardly_change_other_figures(pair, engine):
    figures = []
    for fabric in pair:
        routing = ENGINES[engine].route(fabric, EngineOptions())
        proof = prove(fabric, routing)
        assert proof.certified and proof.complete
        figures.append(measure(fabric, routing, shifts=0))
    plain, more = figures
    assert more.endports == plain.endports
    assert more.all_to_all >= 0.9 * plain.all_to_all


def test_a_cluster_has_its_irregularities():
    fabric = generate("cluster", ["4x8x6", "4x2"])
    leaves = [name for name in fabric.switch_name if name.startswith("leaf")]
    assert len(leaves) == 3 * 8 + 5 + 1
    assert sum(name.startswith("management") for name in fabric.terminal_name) == 5
    storage = [row for row, name in enumerate(fabric.endport_name) if name.startswith("storage")]
    rate = fabric.link_capacity[fabric.endport_link]
    assert len(storage) == 6 and set(rate[storage] * 2) == {rate.max()}
    down = {name: 0 for name in fabric.switch_name if name.startswith("spine")}
    for source, target in zip(fabric.channels.src, fabric.channels.dst, strict=True):
        if fabric.switch_name[target].startswith("leaf") and fabric.switch_name[source] in down:
            down[fabric.switch_name[source]] += 1
    assert {down[f"spine{pod}.0"] for pod in range(3)} == {8} and down["spine3.0"] == 5


@pytest.mark.parametrize("arguments", [["4x4", "4x2"], ["4x4x4", "4"], ["0x4x4", "4x2"], ["99x99x9", "9x9"]])
def test_clusters_that_cannot_be(arguments):
    with pytest.raises(OptionError):
        generate("cluster", arguments)


def test_the_number_of_aggregation_nodes_is_none_or_one():
    with pytest.raises(OptionError, match="choose 0 or 1"):
        generate("ring", ["4"], aggregation=2)


def test_aggregation_nodes_are_not_counted_as_cas():
    fabric = generate("ring", ["4"], cas=2, aggregation=1)
    broken = apply_faults(fabric, [parse_fault(fabric.switch_name[0], fabric)])
    for each, links in ((fabric, 16), (broken, 11)):
        assert each.aggregation_nodes.sum() == 4
        assert f"8 CAs and routers, 4 aggregation nodes, {links} links" in fabric_line(each)
        shown = fabric_object(each, None)
        assert (shown["cas"], shown["aggregation_nodes"]) == (8, 4)
        assert sum(describe(each)["cables_by_kind"].values()) == links
    kinds = describe(fabric)["cables_by_kind"].items()
    assert [count for kind, count in kinds if kind.startswith("switch to aggregation node ")] == [4]
    assert fabric_object(generate("ring", ["4"]), None)["aggregation_nodes"] == 0
