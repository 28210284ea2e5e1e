"""Check the grammar of net files: results equal ibsim's results, and lines that ibsim refuses or skips are errors."""

import os
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given
from in_one_test import cases_in_one_test
from strategies import fabrics

from ibsim_fixtures.ibsim import Ibsim
from routing.errors import FabricError, IbnueError, InputError, ParseError
from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.formats.fabric_files import read_fabric, write_net
from routing.formats.ibsim_net import parse_net
from routing.formats.ibsim_net_write import net_text
from routing.rates import SPEED_OF, WIDTHS

DATA = Path(__file__).parent / "data"


def net(text):
    return parse_net(text, "x.net")


def pair(near="", far="", head=""):
    """Return a net file of two switches with one cable, with options at its ends."""
    return net(f'{head}Switch 2 "a"\n[1] "b"[2]{near}\n\nSwitch 2 "b"\n[2] "a"[1]{far}\n')


def guids(fabric):
    return [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist(), *fabric.endport_guid.tolist()]


def test_guids_are_counted_as_ibsim_counts():
    fabric = net(
        'Switch 4 "s"\n[1] "h"[1]\n[2] "k"[2]\n\nSwitch 4 "t"\n\nHca 2 "h"\n[1] "s"[1]\n\nCa 2 "k"\n[2] "s"[2]\n'
    )
    assert guids(fabric) == [0x200000, 0x200001, 0x100000, 0x100003, 0x100001, 0x100005]


@pytest.mark.parametrize(
    ("directive", "guid"),
    [
        ("switchguid=0x5", 5),
        ("switchguid+16", 0x200010),
        ("switchguid=0x5(7)", 5),
        ("switchguid=9\nswitchguid+3", 12),
        ("switchguid=020", 16),
    ],
)
def test_guid_directives(directive, guid):
    assert net(f'{directive}\nSwitch 1 "s"\n').switch_guid.tolist() == [guid]


def test_directives_that_change_nothing():
    assert pair(head="vendid=0x2c9\ndevid=0xbd36\nsysimgguid=0x1\npdebug=0\ndo Verbose 1\n# x\n").links == 1


@pytest.mark.parametrize(
    ("near", "far", "head", "width", "speed"),
    [
        ("", "", "", 4, "SDR"),
        (" w=8", " w=15", "", 12, "SDR"),
        (" w=16 s=2", " w=31 s=7", "", 2, "DDR"),
        (" s=4 e=1", " s=7 e=7", "", 4, "FDR"),
        (" s=4 e=8", " s=4 e=12", "", 4, "NDR"),
        (" s=0", " s=4", "", 4, "QDR"),
        (" s=4 e=4", "", "speed=7\n", 4, "QDR"),
        ("", "", "width=4\nspeed=4\nextspeed=2\n", 8, "EDR"),
        ('\t# "b" lid 4 12xHDR', '\t# "a" lid 3 12xHDR', "", 12, "HDR"),
        ('\t# "b" lid 4 4xHDR', '\t# "a" lid 3 4xDDR', "", 4, "DDR"),
        (" # lid 0 4xFDR10", ' # "lid" lid 0 4xFDR10', "", 4, "FDR10"),
        (" s=4 e=4 # 4xXDR", " s=4 e=4 # 4xXDR", "", 4, "XDR"),
    ],
)
def test_a_link_runs_at_what_both_ends_have_enabled(near, far, head, width, speed):
    fabric = pair(near, far, head)
    assert (fabric.link_width[0], fabric.link_speed[0]) == (width, SPEED_OF[speed])


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ('"s"', "s"),
        ('"s" # "long name"', "long name"),
        ('"s" # long name', "long name"),
        ('"s" # long name base port 0 lid 3 lmc 0', "long name"),
        ('"s" # ""', "s"),
        ('"s" # "' + 70 * "x" + '"', 63 * "x"),
    ],
)
def test_names_are_node_descriptions(header, name):
    assert net(f"Switch 4 {header}\n").switch_name == (name,)


def test_modules_prefix_ids_and_reach_each_other():
    fabric = net(
        'module="m"\nSwitch 2 "s"\n[1] "s"[2]\n[2] "m#s"[1]\n\nmodule="n"\nSwitch 2 "s"\n[1] "m#h"[1]\n\n'
        'module="m"\nHca 1 "h"\n[1] "n#s"[1]\n'
    )
    assert fabric.switch_name == ("m#s", "n#s")
    assert fabric.link_device.tolist() == [[0, 0], [1, 2]]


def test_a_link_by_alias_is_stated_once():
    fabric = net('Hca 1 "h"\n@[1] "up"\n\nSwitch 2 "s"\n[2] "@up"\n')
    assert fabric.link_device.tolist() == [[0, 1]]
    assert fabric.link_port.tolist() == [[2, 1]]


def test_commands_that_shape_the_fabric():
    fabric = net(
        'Hca 1 "h"\n\nSwitch 2 "s"\n\ndo Link "s"[2] "h"[1]\ndo guid "h" 0x900\ndo Guid "h"[1] 7\n'
        'do Baselid "h"[1] 8 2\ndo Baselid "s"[0] 5\n'
    )
    assert fabric.terminal_guid.tolist() == [0x900]
    assert fabric.endport_guid.tolist() == [0x901]
    assert (fabric.endport_lid[0], fabric.endport_lmc[0], fabric.switch_lid[0]) == (8, 2, 5)


def test_lids_in_comments():
    fabric = net(
        'Switch 2 "s" # "s" base port 0 lid 4 lmc 0\n[1] "h"[1] # "h" lid 2 4xSDR\n\n'
        'Hca 1 "h"\n[1](77) "s"[1] # lid 2 lmc 1 "s" lid 4 4xSDR\n'
    )
    assert (fabric.switch_lid[0], fabric.endport_lid[0], fabric.endport_lmc[0]) == (4, 2, 1)
    assert fabric.endport_guid.tolist() == [0x77]


def test_include_is_found_beside_the_file(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "s.net").write_text('Switch 2 "s"\n[1] "h"[1]\n')
    (tmp_path / "a.net").write_text('include "part/s.net"\nHca 1 "h"\n[1] "s"[1]\n')
    assert read_fabric(tmp_path / "a.net").links == 1
    (tmp_path / "part" / "s.net").write_text('\nSwitch 2 "s"\n[1] "h"\n[1] "h"\n')
    with pytest.raises(InputError, match=r"part/s\.net:4: port 1 of 's' is stated twice"):
        read_fabric(tmp_path / "a.net")


def test_include_of_itself(tmp_path):
    (tmp_path / "a.net").write_text('include "b.net"\n')
    (tmp_path / "b.net").write_text('\ninclude "a.net"\n')
    with pytest.raises(ParseError, match=r"b\.net:2: 'a\.net' includes itself"):
        read_fabric(tmp_path / "a.net")


@pytest.mark.parametrize("name", ["a\0b", "x" * 240, "loop", ".", "pipe"])
def test_include_of_what_cannot_be_read(tmp_path, name):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.net").write_text(f'include "{name}"\n')
    with pytest.raises(ParseError, match=r"a\.net:1: there is no file"):
        read_fabric(tmp_path / "a.net")


def test_includes_do_not_fan_out_for_ever(tmp_path):
    for depth in range(8):
        (tmp_path / f"{depth}.net").write_text(f'include "{depth + 1}.net"\n' * 10)
    (tmp_path / "8.net").write_text("# the end\n")
    with pytest.raises(ParseError, match="too many includes"):
        read_fabric(tmp_path / "0.net")


WRONG = {
    'Switch 2 "s"\n\nSwitch 2 "s"\n': "x.net:3: there is a node 's' already",
    'switchguid=5\nSwitch 2 "s"\n\nswitchguid=5\nSwitch 2 "t"\n': "x.net:5: GUID 0x5 of 't' belongs to 's' already",
    'Switch 2 "s"\n[1] "t"[1]\n': "x.net:2: there is no node 't'",
    'Switch 2 "s"\n[1] "t"[1]\n\nSwitch 2 "t"\n': "x.net:2: port 1 is cabled to 't' port 1, which does not state",
    'Switch 2 "s"\n[1] "t"[1]\n\nSwitch 2 "t"\n[1] "s"[2]\n': "x.net:2: .* in line 5 .both ends",
    'Switch 2 "s"\n[1] "s"[1]\n': "x.net:2: 's' port 1 is cabled to itself",
    'Switch 2 "s"\n[1] "s"[2]\n[2] "s"[1]\n[1] "s"[2]\n': "x.net:4: port 1 of 's' is stated twice",
    'Switch 2 "s"\n[3] "s"[2]\n': "x.net:2: 's' has no port 3",
    'Switch 2 "s"\n[0] "s"[2]\n': "x.net:2: 's' has no port 0",
    'Switch 2 "s"\n[1] "s"[0]\n': "x.net:2: remote port 0",
    'Switch 2 "s"\n[1] s[2]\n': "x.net:2: .* states no link",
    'Switch 2 "s"\nHca 1 "h"\n': "x.net:2: .* inside the record of 's'",
    'Switch 2 "s"\n\n[1] "s"[2]\n': "x.net:3: this port is outside",
    'Switch 300 "s"\n': "x.net:1: 's' has 300 ports",
    'Switch 2 "s@t"\n': "x.net:1: node id 's@t' has",
    'Rt 2 "r"\n': "x.net:1: ibsim would give 'r' the GUID 0",
    'Swich 2 "s"\nSwitch 2 "s"\n': "x.net:1: unknown statement",
    'switchgiud=0x5\nSwitch 2 "s"\n': "x.net:1: unknown directive 'switchgiud'",
    'switchguid=x\nSwitch 2 "s"\n': "x.net:1: 'x' is not a number",
    'Switch 2 "s"\n[1] "s"[2] w=32\n': "x.net:2: w=32 is out of range",
    'Switch 2 "s"\n[1] "s"[2] speed=2\n': "x.net:2: unknown port option 'd'",
    'speed=9\nSwitch 2 "s"\n': "x.net:1: s=9 is out of range",
    'Switch 2 "s"\n[1] "s"[2] w=1\n[2] "s"[1]\n': "x.net:2: the two ends have no width in common",
    'Switch 2 "s"\n[1] "s"[2] s=1\n[2] "s"[1] s=2\n': "x.net:2: the two ends have no speed in common",
    'Switch 2 "s"\n[1] "@up"\n': "x.net:2: there is no alias '@up' yet",
    'Switch 2 "s"\n@[1] "up"\n@[2] "up"\n': "x.net:3: there is an alias '@up' already",
    'Switch 2 "s"\n\ndo Unlink "s"[1]\n': "x.net:3: .* is not a command that a file may have",
    'Switch 2 "s"\n\ndo Baselid "t"[0] 4\n': "x.net:3: there is no node 't' yet",
    'Switch 2 "s"\n\ndo Baselid "s"[0] 49152\n': "x.net:3: LID 0xc000 of 's' is not a unicast LID",
    'Hca 1 "h"\n\ndo Baselid "h"[1] 6 2\n': "x.net:3: base LID 0x6 of 'h' is not a multiple",
    'Hca 1 "h"\n\ndo Baselid "h"[1] 6 999999999\n': "x.net:3: LMC 999999999 of 'h' is out of range",
    'Switch 2 "s" # base port 0 lid 3\n\nSwitch 2 "t" # base port 0 lid 3 \n': "LID 3 belongs to",
    'caguid=0xffffffffffffffff\nHca 1 "h"\n[1] "s"[1]\n\nSwitch 1 "s"\n[1] "h"[1]\n': "GUID of port 1 of 'h' is over",
    'include "nothing.net"\nSwitch 2 "s"\n': "x.net:1: there is no file 'nothing.net'",
    'module=m\nSwitch 2 "s"\n': "x.net:1: module 'm' is out of range",
    f'Switch 2 "s"\n[1] "s"[2] {"x" * 250}\n': "x.net:2: a line of 26",
    'module="m"\nSwitch 2 "s"\n@[1] "up"\n[2] "@up"\n': "x.net:4: alias '@up' is used in a module",
    'switchguid=0099\nSwitch 2 "s"\n': "x.net:1: '0099' is not a number",
    'Switch 2 "s" # "s" base port 0 lid 0099 lmc 0\n': "x.net:1: '0099' is not a number",
    'Switch 2 "s"\n[1] "s"[2] w=0099\n': "x.net:2: w=0099 is out of range",
    'Switch 2 "s"\n\ndo Guid "s" 0099\n': "x.net:3: '0099' is not a number",
    "# nothing\n": "this file has no node",
}


@cases_in_one_test("text", WRONG)
def test_wrong_files_are_named_with_their_line(text):
    with pytest.raises(IbnueError, match=WRONG[text].replace("(", r"\(")) as caught:
        net(text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(")")  # the message ends with the remedy


@examples(60)
@given(fabrics(connected=False))
def test_written_and_read_back(fabric):
    again = net(net_text(fabric))
    assert again.digest == fabric.digest
    assert (again.switch_name, again.terminal_name) == (fabric.switch_name, fabric.terminal_name)
    assert (again.switch_ports == fabric.switch_ports).all()
    assert (again.terminal_ports == fabric.terminal_ports).all()


def awkward_fabric():
    """Return a fabric with every rate, with names that cannot be node ids, and with port GUIDs that are not
    consecutive.
    """
    builder = FabricBuilder()
    names = [
        "plain",
        "",
        'a "quoted" one',
        "twice",
        "twice",
        "at@sign",
        "S-0000000000000007",
        "x" * 80,
        "naïve é",
        "a\nb",
    ]
    switches = [builder.add_device(NodeKind.SWITCH, guid + 1, name, 100) for guid, name in enumerate(names)]
    for number, (width, speed) in enumerate((w, s) for w in WIDTHS for s in SPEED_OF.values()):
        ends = switches[number % 10], switches[(number + 1) % 10]
        builder.connect(ends[0], number + 1, ends[1], number + 51, width=width, speed=speed)
    for number, kind in enumerate((NodeKind.CA, NodeKind.ROUTER, NodeKind.CA)):
        ca = builder.add_device(kind, 0x100 + 16 * number, f"h{number}", 2)
        builder.connect(ca, 2, switches[number], 99, speed=212.5)
        builder.set_port(ca, 2, guid=0x900 + number, lid=32 * number, lmc=number)
    return builder.build(lmc=1)


def test_awkward_fabric_comes_back():
    fabric = awkward_fabric()
    again = net(net_text(fabric))
    assert again.digest == fabric.digest
    assert again.switch_name[:6] == ("plain", "S-0000000000000002", "a 'quoted' one", "twice", "twice", "at@sign")
    assert again.switch_name[7] == 63 * "x"


def test_rates_that_do_not_exist_are_refused(tmp_path):
    builder = FabricBuilder()
    a = builder.add_device(NodeKind.SWITCH, 1, "a", 4)
    builder.connect(a, 1, a, 2, speed=33.0)
    with pytest.raises(FabricError, match=r"'a' has a 4x link at 33\.0 Gb/s per lane"):
        write_net(builder.build(), tmp_path / "a.net")
    assert not list(tmp_path.iterdir())


# The next tests compare results with the real ibsim.


def dumped(text):
    """Return the data on ibsim's console: GUIDs of the nodes by id, and the links with both ends, width and rate."""
    speeds = {"2.5G": "SDR", "5.0G": "DDR", "10.0G": "QDR", "FDR10": "FDR10", "14G": "FDR", "25G": "EDR", "50G": "HDR"}
    nodes, links, own = {}, set(), ""
    for line in text.splitlines():
        words = line.split("\t")
        if "nodeguid" in line:
            own = words[0].split('"')[1]
            nodes[own] = int(words[1].split()[1], 16)
        elif len(words) > 2 and words[2].startswith('"') and words[1] != "[0]":
            peer, far = words[2].rstrip("]").rsplit("[", 1)
            state = words[3].replace("12x", " 12x").replace("4x", "4x ").split()
            lanes = next(w for w in state if w.endswith("x"))
            speed = next(speeds[w] for w in state if w in speeds)
            ends = frozenset([(own, int(words[1].strip("[]"))), (peer.strip('"'), int(far))])
            links.add((ends, int(lanes[:-1]), SPEED_OF[speed]))
    return nodes, links


def shown(fabric, ids):
    """Return the data of a fabric in the form of :func:`dumped`."""
    guid = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
    nodes = {ids[device]: guid[device] for device in range(len(guid))}
    rows = zip(
        fabric.link_device.tolist(), fabric.link_port.tolist(), fabric.link_width.tolist(), fabric.link_speed.tolist(),
        strict=True,
    )  # fmt: skip
    return nodes, {(frozenset([(ids[a], p), (ids[b], q)]), width, speed) for (a, b), (p, q), width, speed in rows}


def test_sample_is_what_ibsim_dumped():
    fabric = read_fabric(DATA / "mixed.net")
    ids = ["spine0", "spine1", "leaf0", "leaf1", "r0", "a0", "a1", "a2", "b0", "b1", "a3"]
    assert dumped((DATA / "mixed.ibsim_dump").read_text()) == shown(fabric, ids)


def example_of_the_page():
    page = Path(__file__).parents[3] / "docs" / "formats.md"
    return page.read_text().split("### ibsim net files")[1].split("```")[1].lstrip()


@pytest.mark.lab
def test_ibsim_makes_the_same_of_the_example(tmp_path):
    (tmp_path / "a.net").write_text(example_of_the_page())
    with Ibsim(tmp_path / "a.net") as ibsim:
        answer = ibsim.command("dump")
    ids = ["pod1#leaf0", "pod2#leaf0", "pod1#h0"]
    fabric = read_fabric(tmp_path / "a.net")
    assert dumped(answer) == shown(fabric, ids)
    assert fabric.switch_lid.tolist() == [4, 5]
    assert fabric.links == 4


@pytest.mark.lab
@examples(12)
@given(fabrics(connected=False))
def test_ibsim_makes_the_same_of_what_we_write(tmp_path_factory, fabric):
    path = tmp_path_factory.mktemp("net") / "a.net"
    write_net(fabric, path)
    with Ibsim(path) as ibsim:
        answer = ibsim.command("dump")
    assert dumped(answer) == shown(fabric, [*fabric.switch_name, *fabric.terminal_name])


@pytest.mark.lab
def test_ibsim_loads_awkward_names_and_rates(tmp_path):
    fabric = awkward_fabric()
    write_net(fabric, tmp_path / "a.net")
    with Ibsim(tmp_path / "a.net") as ibsim:
        nodes, links = dumped(ibsim.command("dump"))
    assert sorted(nodes.values()) == sorted([*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()])
    assert len(links) == fabric.links
    ibsim_knows = sorted(
        (w, min(s, SPEED_OF["HDR"])) for w, s in zip(fabric.link_width, fabric.link_speed, strict=True)
    )
    assert sorted((width, speed) for _, width, speed in links) == ibsim_knows


IBSIM_REFUSES = [
    'module="m"\nSwitch 2 "s"\n@[1] "up"\n[2] "@up"\n',
    'Switch 2 "s"\n[1] "t"[1]\n',
    'Switch 2 "s"\n[1] "t"[1]\n\nSwitch 2 "t"\n',
    'Switch 2 "s"\n[1] "t"[1]\n\nSwitch 2 "t"\n[1] "s"[2]\n',
    'Switch 2 "s"\n[3] "s"[2]\n',
    'Switch 2 "s"\n[1] "s"[0]\n',
    'Switch 2 "s"\n[1] "s"[2] w=32\n',
    'Switch 2 "s"\n[1] "s"[2] w=1\n[2] "s"[1]\n',
    'Switch 2 "s"\n[1] "s"[2] s=1\n[2] "s"[1] s=2\n',
    'Switch 2 "s"\n\nSwitch 2 "s"\n',
    'Switch 2 "s"\n\ndo Baselid "t"[0] 4\n',
]


@pytest.mark.lab
@pytest.mark.parametrize("text", IBSIM_REFUSES)
def test_ibsim_refuses_it_too(tmp_path, text):
    assert text in WRONG
    (tmp_path / "a.net").write_text(text)
    with pytest.raises(InputError), Ibsim(tmp_path / "a.net"):
        pass
