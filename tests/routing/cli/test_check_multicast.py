"""Check ``ibnue check --multicast``: OpenSM's multicast tables together with unicast tables."""

import json
import random

import networkx as nx
import numpy as np
import pytest
from command_runs import run

from routing.errors import ParseError
from routing.formats.mcfdbs import read_mcfdbs
from routing.topologies import generate

DUMP = """\
Switch 0x0000000000200000
LID    : Out Port(s)
0xC000 : 0x002  0x005  0x006

Switch 0x0000000000200001
LID    : Out Port(s)
0xC000 : 0x003  0x004  0x005

Switch 0x0000000000200003
LID    : Out Port(s)
0xC000 : 0x001  0x006

Switch 0x0000000000200005
LID    : Out Port(s)
0xC000 : 0x002  0x003

Switch 0x0000000000200008
LID    : Out Port(s)
0xC000 : 0x001  0x006

Switch 0x0000000000200009
LID    : Out Port(s)
0xC000 : 0x004  0x005  0x006

Switch 0x000000000020000a
LID    : Out Port(s)
0xC000 : 0x002  0x005

Switch 0x000000000020000c
LID    : Out Port(s)
0xC000 : 0x005  0x006

Switch 0x000000000020000d
LID    : Out Port(s)
0xC000 : 0x002  0x003  0x004  0x005

Switch 0x000000000020000f
LID    : Out Port(s)
0xC000 : 0x001  0x006
"""
"""File opensm.mcfdbs of OpenSM 3.3.23 with minhop on a 4x4 torus with two CAs at each switch, and a group of seven
CAs.
"""


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "opensm.mcfdbs"
    path.write_text(DUMP)
    return path


def check(tmp_path, dump, *engine):
    assert run("route", "torus:4x4,cas=2", *engine, "-o", tmp_path / "tables").exit_code == 0
    return run("check", "torus:4x4,cas=2", tmp_path / "tables", "--multicast", dump)


def test_every_port_is_read(dump):
    fabric = generate("torus", ["4x4"], cas=2)
    (group,) = read_mcfdbs(dump, fabric).values()
    assert group[0] == (2, 5, 6)
    assert len(group) == DUMP.count("Switch")


def test_a_tree_of_opensm_and_up_down_close_a_loop(tmp_path, dump):
    # In the switch order of these tables, OpenSM's tree has turns that lead down and then up.
    result = check(tmp_path, dump, "-e", "updn", "--vls", "1")
    assert result.exit_code == 1
    assert "1 group on VL 0: a CREDIT LOOP together with unicast" in result.output
    lines = [line for line in result.output.splitlines() if " > " in line]
    assert any(line.endswith("unicast") for line in lines)
    assert any(line.endswith("multicast 0xC000") for line in lines)
    ends = [(line.split()[0], line.split(" > ")[1].split()[0]) for line in lines]
    assert all(far == near for (_, far), (near, _) in zip(ends, ends[1:] + ends[:1], strict=True))


def test_a_vl_without_unicast_keeps_multicast_apart(tmp_path, dump):
    result = check(tmp_path, dump, "-e", "updn", "--vls", "1", "--first-vl", "1")
    assert result.exit_code == 0
    assert "1 group on VL 0: no credit loop together with unicast" in result.output


def test_json_has_the_verdict(tmp_path, dump):
    run("route", "torus:4x4,cas=2", "-e", "updn", "--vls", "1", "-o", tmp_path / "tables")
    result = run("check", "torus:4x4,cas=2", tmp_path / "tables", "--multicast", dump, "--json")
    found = json.loads(result.output)["multicast"]
    assert (found["groups"], found["vl"], found["verdict"], found["circling_mlids"]) == (1, 0, "yes", [])


def test_a_group_whose_links_form_a_circle(tmp_path):
    fabric = generate("ring", ["3"], cas=1)
    lines = []
    for row in range(3):
        ports = [int(fabric.channels.port[c]) for c in np.flatnonzero(fabric.channels.src == row)]
        lines += [f"Switch 0x{int(fabric.switch_guid[row]):016x}", "LID    : Out Port(s)"]
        lines += ["0xC001 : " + "".join(f"0x{port:03X}  " for port in ports), ""]
    path = tmp_path / "opensm.mcfdbs"
    path.write_text("\n".join(lines))
    run("route", "ring:3,cas=1", "-e", "updn", "-o", tmp_path / "tables")
    result = run("check", "ring:3,cas=1", tmp_path / "tables", "--multicast", path)
    assert result.exit_code == 1
    assert "1 group: a FORWARDING LOOP of 0xC001" in result.output
    graph = nx.Graph([(0, 1), (1, 2), (2, 0)])
    assert not nx.is_forest(graph)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Switch 0x0000000000200001", "Switch 0x0000000000999999", "switch 0x0000000000999999 is not in the fabric"),
        ("0xC000 : 0x002", "0x0001 : 0x002", "has no multicast LID"),
        ("0xC000 : 0x002  0x005", "0xC000 : 0x0FF  0x005", "or a port over 254"),
        ("LID    : Out Port(s)\n", "0xC000 : 0x001\n", "has group 0xC000 twice"),
        ("Switch 0x0000000000200000\n", "", "is not a line of multicast tables"),
        ("0xC000 : 0x002", "0xC000 : port 2", "is not a line of multicast tables"),
    ],
)
def test_lines_that_cannot_be_are_named(tmp_path, old, new, expected):
    assert old in DUMP
    path = tmp_path / "opensm.mcfdbs"
    path.write_text(DUMP.replace(old, new, 1))
    with pytest.raises(ParseError, match=expected) as error:
        read_mcfdbs(path, generate("torus", ["4x4"], cas=2))
    assert error.value.line is not None


def test_damaged_dumps_give_one_line(tmp_path):
    fabric, rng, path = generate("torus", ["4x4"], cas=2), random.Random(7), tmp_path / "opensm.mcfdbs"
    for _ in range(60):
        data = bytearray(DUMP.encode())
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data))
            data[at : at + rng.choice([0, 1, 9])] = bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 3])))
        path.write_bytes(bytes(data))
        try:
            read_mcfdbs(path, fabric)
        except ParseError as error:
            assert "\n" not in str(error)
