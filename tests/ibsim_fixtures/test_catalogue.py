"""Check that fixture fabrics are as the index states, can be generated again, and load in a real ibsim."""

import numpy as np
import pytest
from in_one_test import cases_in_one_test

from ibsim_fixtures.catalogue import FIXTURES, FOLDER, Recipe
from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.recipes import regenerate
from routing.errors import OptionError
from routing.fabric import NodeKind
from routing.formats.fabric_files import read_fabric, write_net

ALL = list(FIXTURES.values())
MADE = [fixture for fixture in ALL if fixture.recipe is not None]


def named(fixture):
    return fixture.name


def test_index_and_folder_agree():
    assert {path.stem for path in FOLDER.glob("*.net")} == set(FIXTURES)
    assert len(FIXTURES) >= 24


@cases_in_one_test("fixture", ALL, ids=named)
def test_each_entry_describes_its_fabric(fixture):
    assert fixture.purpose
    assert "\n" not in fixture.purpose
    assert fixture.layout in ("circle", "grid", "levels", "tiers", "groups")
    fabric = read_fabric(fixture.path)
    in_one_piece = len(np.unique(fabric.component)) == 1 and bool((fabric.endport_switch >= 0).all())
    assert fixture.connected == in_one_piece
    assert fabric.switches + fabric.terminals <= 100


@cases_in_one_test("fixture", MADE, ids=named)
def test_made_again_byte_by_byte(fixture, tmp_path):
    write_net(regenerate(fixture.recipe), tmp_path / "again.net")
    assert (tmp_path / "again.net").read_bytes() == fixture.path.read_bytes()
    assert read_fabric(fixture.path).digest == regenerate(fixture.recipe).digest


@cases_in_one_test("fixture", ALL, ids=named)
def test_written_and_read_again(fixture, tmp_path):
    fabric = read_fabric(fixture.path)
    write_net(fabric, tmp_path / "again.net")
    assert read_fabric(tmp_path / "again.net").digest == fabric.digest


@pytest.mark.lab
@pytest.mark.parametrize("fixture", ALL, ids=named)
def test_ibsim_loads_it_and_sees_the_same_fabric(fixture):
    fabric = read_fabric(fixture.path)
    with Ibsim(fixture.path) as ibsim:
        assert ibsim.warnings == []
        kinds = {"Switch": NodeKind.SWITCH, "Ca": NodeKind.CA, "Router": NodeKind.ROUTER}
        seen = {(kinds[device.kind], device.guid, device.ports) for device in ibsim.devices}
        guid_of = {device.id: device.guid for device in ibsim.devices}
        cables = {
            frozenset([(guid_of[port.device], port.port), (guid_of[port.peer[0]], port.peer[1])])
            for port in ibsim.ports()
            if port.peer is not None
        }
    guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
    ports = [*fabric.switch_ports.tolist(), *fabric.terminal_ports.tolist()]
    kind = [NodeKind.SWITCH] * fabric.switches + [NodeKind(k) for k in fabric.terminal_kind.tolist()]
    assert seen == set(zip(kind, guids, ports, strict=True))
    ends, at = fabric.link_device.tolist(), fabric.link_port.tolist()
    assert cables == {frozenset([(guids[a], p), (guids[b], q)]) for (a, b), (p, q) in zip(ends, at, strict=True)}


def test_a_cable_that_is_not_there_cannot_be_pulled():
    for position in (("sw0.0", 9), ("sw9.9", 2)):
        with pytest.raises(OptionError, match=r"has no (port|device)"):
            regenerate(Recipe("torus", ("3x3",), {}, (position,)))


def shortest_paths(fabric, source, target):
    return len(fabric.graph.get_all_shortest_paths(source, target))


def test_purposes_describe_the_fabrics():
    fabrics = {name: read_fabric(fixture.path) for name, fixture in FIXTURES.items()}
    five = fabrics["ring-5"]
    assert all(shortest_paths(five, a, b) == 1 for a in range(5) for b in range(5) if a != b)
    torus = fabrics["torus-4x4"]
    assert shortest_paths(torus, 0, torus.switch_name.index("sw2.2")) == 24
    faulty = fabrics["tree-4-2-faults"]
    spines = [set(faulty.graph.successors(faulty.switch_name.index(leaf))) for leaf in ("sw1.0", "sw1.3")]
    assert not spines[0] & spines[1]
    assert fabrics["dragonfly-2-1-1"].graph.isomorphic(
        fabrics["dragonfly-2-1-1"].graph.Ring(6, directed=True, mutual=True)
    )
    assert set(fabrics["lmc-2"].endport_lmc.tolist()) == {2}
    assert len(set(fabrics["mixed-speeds"].link_capacity.tolist())) == 4
    assert set(fabrics["mixed-widths"].link_width.tolist()) == {1, 4, 8, 12}
    assert np.count_nonzero(fabrics["routers"].terminal_kind == NodeKind.ROUTER) == 2
    loops = fabrics["loop-cable"].link_device
    assert np.count_nonzero(loops[:, 0] == loops[:, 1]) == 3
    assert len(fabrics["bridge"].graph.as_undirected().bridges()) == 1
    assert fabrics["switches-only"].terminals == fabrics["back-to-back"].switches == 0
    own = fabrics["own-lids"]
    assert own.switch_lid.tolist() == [17, 3, 9]
    assert own.endport_lmc.tolist() == [0, 0, 2]
    guids = fabrics["own-guids"]
    assert guids.switch_name == ("MF0;rack 1:leaf b/U1", "MF0;rack 2:spine/U1", "MF0;rack 1:leaf a/U1")
    rails, cluster = fabrics["rails-uneven"], fabrics["cluster-uneven"]
    assert rails.aggregation.sum() == rails.switches and cluster.aggregation.sum() == cluster.switches
    assert len(set(rails.link_speed.tolist())) == 2 and set(cluster.link_width.tolist()) == {2, 4}
    down = {name: int(n) for name, n in zip(rails.switch_name, np.diff(rails.channels.first), strict=True)}
    assert [down[f"spine{number}"] for number in range(3)] == [8, 6, 4]
