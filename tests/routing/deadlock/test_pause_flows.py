"""Check flows along the routes of tables, and the files that name flows."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from routing.deadlock.flow_files import read_demands, read_paths
from routing.deadlock.pause import analyse_pauses
from routing.deadlock.pause_flows import Demand, flows_along
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import EnvironmentProblem, OptionError, ParseError, TableError
from routing.topologies import generate


@pytest.fixture(scope="module")
def ring():
    fabric = generate("ring", ["5"])
    return fabric, ENGINES["minhop"].route(fabric, EngineOptions(vls=1))


def two_on(fabric):
    return [Demand(row, int(fabric.endport_lid[(row + 2) % 5])) for row in range(5)]


def test_ring_of_five(ring):
    flows = flows_along(*ring, two_on(ring[0]))
    assert [len(flow.links) for flow in flows.flows] == [4] * 5
    assert [flows.names[link] for link in flows.flows[0].links] == [
        "ca0.0[1] -> sw0[1]",
        "sw0[3] -> sw1[2], VL 0",
        "sw1[3] -> sw2[2], VL 0",
        "sw2[1] -> ca2.0, VL 0",
    ]
    found = analyse_pauses(flows)
    assert found.verdict == "deadlock"
    assert sorted(flows.names[link].split("[")[0] for link in found.cycle) == ["sw0", "sw1", "sw2", "sw3", "sw4"]


def test_proven_tables_have_no_cycle_of_links(ring):
    fabric = ring[0]
    found = analyse_pauses(
        flows_along(fabric, ENGINES["updn"].route(fabric, EngineOptions(vls=1, effort=0.05)), two_on(fabric))
    )
    assert found.verdict == "free"


def test_two_vls_share_a_cable():
    """Two CAs send to two CAs over one path.  On two VLs, each flow has separate links and half of the cable's rate."""
    fabric = generate("ring", ["5"], cas=2)
    lids = fabric.endport_lid
    routing = ENGINES["minhop"].route(fabric, EngineOptions(vls=1))
    sl = routing.sl.copy()
    sl[lids[3]] = 1
    routing = replace(routing, sl=sl, sl2vl=np.arange(16, dtype=np.uint8) % 2)
    flows = flows_along(fabric, routing, [Demand(0, int(lids[2])), Demand(1, int(lids[3]))])
    assert sorted(name[-6:] for name in flows.names if name.startswith("sw0[")) == [", VL 0", ", VL 1"]
    assert analyse_pauses(flows).rates == (Fraction(1, 2), Fraction(1, 2))


def test_slower_links_count(ring):
    fabric, routing = ring
    speed = fabric.link_speed.copy()
    speed[fabric.endport_link[0]] /= 2
    slower = replace(fabric, link_speed=speed)
    flows = flows_along(slower, routing, [Demand(0, int(fabric.endport_lid[1]), Fraction(1, 2))])
    assert flows.flows[0].rate == flows.capacity[0] / 2
    assert flows.capacity[0] < max(flows.capacity) == 1


def test_undelivered_flows_are_errors(ring):
    fabric, routing = ring
    lft = routing.lft.copy()
    lft[1, fabric.endport_lid[2]] = 255
    with pytest.raises(TableError, match=r"ca0\.0 to ca2\.0"):
        flows_along(fabric, replace(routing, lft=lft), two_on(fabric))
    lft[1, fabric.endport_lid[2]] = 2
    with pytest.raises(TableError):
        flows_along(fabric, replace(routing, lft=lft), two_on(fabric))
    for lid in (0, 4000, int(fabric.endport_lid[0])):
        with pytest.raises(OptionError):
            flows_along(fabric, routing, [Demand(0, lid)])


def test_demands_from_a_file(ring, tmp_path):
    fabric, path = ring[0], tmp_path / "flows.txt"
    guid, lid = int(fabric.endport_guid[2]), int(fabric.endport_lid[3])
    path.write_text(f"# who to whom\nca0.0 {guid:#x}\n'ca1.0'  {lid} 1/3  # slower\n\n")
    assert read_demands(path, fabric) == [Demand(0, int(fabric.endport_lid[2])), Demand(1, lid, Fraction(1, 3))]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ca0.0", "1 word ("),
        ("ca0.0 ca9.0", "no CA or router is called 'ca9.0'"),
        ("ca0.0 99", "has LID 99"),
        ("ca0.0 0xnought", "0xnought"),
        ("ca0.0 ca0.0", "itself"),
        ("ca0.0 ca1.0 0", "not a rate"),
        ("ca0.0 ca1.0 1/0", "not a rate"),
        ("ca0.0 'ca1.0", "closing quotation"),
        ("", "no flow"),
    ],
)
def test_wrong_lines_are_refused(ring, tmp_path, line, expected):
    (tmp_path / "flows.txt").write_text(f"# flows\n{line}\n")
    with pytest.raises(ParseError, match=r"flows\.txt") as error:
        read_demands(tmp_path / "flows.txt", ring[0])
    assert expected in str(error.value)
    assert error.value.line == (2 if line else None)


def test_paths_from_a_file(tmp_path):
    path = tmp_path / "paths.txt"
    path.write_text("f: l5 l1\ng: l1 # through\n")
    flows = read_paths(path)
    assert flows.names == ("l5", "l1")
    assert [flow.links for flow in flows.flows] == [(0, 1), (1,)]
    for text in ("f l1", "f:", "f: a\nf: b", "f: a a", ": a", ""):
        path.write_text(text)
        with pytest.raises(ParseError):
            read_paths(path)
    with pytest.raises(EnvironmentProblem):
        read_paths(tmp_path / "none.txt")
