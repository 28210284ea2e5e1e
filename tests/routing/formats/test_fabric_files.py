"""Check that read_fabric recognises formats by content, and write_fabric by suffix, and that written fabrics read
back.
"""

import gzip
from pathlib import Path

import networkx
import pytest
from examples import examples
from hypothesis import given
from strategies import fabrics, ring_fabric

from routing.errors import EnvironmentProblem, IbnueError, InputError, InputWarning, OptionError, ParseError
from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.formats.fabric_dot import dot_text, parse_dot
from routing.formats.fabric_files import read_fabric, write_fabric, write_net
from routing.formats.fabric_graphml import graphml_text, parse_graphml
from routing.formats.fabric_json import json_text, parse_json
from routing.formats.lft_files import read_lft_file

DATA = Path(__file__).parent / "data"
SUFFIXES = (".net", ".json", ".graphml", ".dot", ".net.gz", ".json.gz", ".graphml.gz", ".dot.gz")


def all_formats(fabric):
    """Return the fabric as it is read back from each format that has all data."""
    return (
        parse_json(json_text(fabric), "x"),
        parse_graphml(graphml_text(fabric), "x"),
        parse_dot(dot_text(fabric), "x"),
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("sample", ["mixed.net", "mixed.ibnetdiscover", "mixed_lmc2.ibnetdiscover", "mixed-subnet.lst"])
def test_every_sample_in_every_format(tmp_path, sample, suffix):
    fabric = read_fabric(DATA / sample)
    write_fabric(fabric, tmp_path / f"a{suffix}")
    again = read_fabric(tmp_path / f"a{suffix}")
    assert again.digest == fabric.digest
    assert (again.switch_name, again.terminal_name) == (fabric.switch_name, fabric.terminal_name)


@examples(60)
@given(fabrics(connected=False))
def test_json_graphml_and_dot_hold_everything(fabric):
    for again in all_formats(fabric):
        assert again.digest == fabric.digest
        assert again.name == fabric.name
        assert (again.switch_name, again.terminal_name) == (fabric.switch_name, fabric.terminal_name)
        assert again.switch_ports.tolist() == fabric.switch_ports.tolist()
        assert again.terminal_ports.tolist() == fabric.terminal_ports.tolist()


def test_names_and_rates_that_need_care():
    builder = FabricBuilder(name='<&"\x07')
    for number, name in enumerate(['<a href="&">', "é✓𝄞", "\x00\x1b", "\ud800"]):
        switch = builder.add_device(NodeKind.SWITCH, (1 << 64) - 1 - number, name, 4)
        builder.connect(switch, 1, switch, 2, speed=25.78)
    fabric = builder.build()
    for again in all_formats(fabric):
        assert again.digest == fabric.digest
        assert '<a href="&">' in again.switch_name
        assert "é✓𝄞" in again.switch_name


def test_gzip_is_the_same_each_time(tmp_path):
    for name in ("a.net.gz", "b.net.gz"):
        write_net(ring_fabric(4), tmp_path / name)
    assert (tmp_path / "a.net.gz").read_bytes() == (tmp_path / "b.net.gz").read_bytes()


@pytest.mark.parametrize("name", ["a.txt", "a", "a.gz", "a.net.bz2"])
def test_unknown_suffix(tmp_path, name):
    with pytest.raises(OptionError, match="no fabric format has the suffix"):
        write_fabric(ring_fabric(3), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_no_folder_to_write_to(tmp_path):
    with pytest.raises(EnvironmentProblem):
        write_fabric(ring_fabric(3), tmp_path / "nowhere" / "a.net")


def test_graphml_of_networkx_is_read(tmp_path):
    fabric = read_fabric(DATA / "mixed.ibnetdiscover")
    write_fabric(fabric, tmp_path / "a.graphml")
    networkx.write_graphml_xml(networkx.read_graphml(tmp_path / "a.graphml"), tmp_path / "b.graphml")
    assert read_fabric(tmp_path / "b.graphml").digest == fabric.digest


def test_graphml_of_igraph_is_read(tmp_path):
    igraph = pytest.importorskip("igraph")
    fabric = read_fabric(DATA / "mixed.ibnetdiscover")
    write_fabric(fabric, tmp_path / "a.graphml")
    igraph.Graph.Read_GraphML(str(tmp_path / "a.graphml")).write_graphml(str(tmp_path / "b.graphml"))
    assert read_fabric(tmp_path / "b.graphml").digest == fabric.digest


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"hello\n", b"\x00\xff\x80", b"0x1 0x2\n", gzip.compress(b"hello", mtime=0), b"\x1f\x8b"],
)
def test_no_fabric_file(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InputError, match=r"/a: (not a fabric file of a known format|an empty file|damaged gzip data)"):
        read_fabric(tmp_path / "a")


@pytest.mark.parametrize("line", ["#" * 200, "/" * 200, "# a\r" * 60], ids=["hash", "slash", "old Mac"])
def test_a_line_of_comment_signs_is_searched_once(tmp_path, line):
    path = tmp_path / "banner"
    path.write_bytes(line.encode() + b"\nno fabric\n")
    with pytest.raises(ParseError, match="not a fabric file"):
        read_fabric(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16_is_named(tmp_path, encoding):
    """PowerShell writes the redirected output of a command in this encoding."""
    mark = b"" if encoding == "utf-16" else b"\xfe\xff"
    text = mark + 'Switch 2 "s"\n'.encode(encoding)
    (tmp_path / "a").write_bytes(text)
    (tmp_path / "a.gz").write_bytes(gzip.compress(text, mtime=0))
    with pytest.raises(ParseError, match=r"/a: is UTF-16 text \(convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW\)"):
        read_fabric(tmp_path / "a")
    with pytest.raises(ParseError, match=r"/a.gz: is UTF-16 text"):
        read_fabric(tmp_path / "a.gz")
    with pytest.raises(ParseError, match=r"/a: is UTF-16 text"):
        read_lft_file(tmp_path / "a", ring_fabric(3))


def test_damaged_gzip(tmp_path):
    data = gzip.compress(b'Switch 2 "s"\n' * 1000, mtime=0)
    for damage in (data[:-9], data[:20] + b"\x00\x01\x02" + data[23:], data[:12]):
        (tmp_path / "a.net.gz").write_bytes(damage)
        with pytest.raises(InputError, match="damaged gzip data"):
            read_fabric(tmp_path / "a.net.gz")


@pytest.mark.parametrize("path", ["nothing", "a\x00b"])
def test_no_file(tmp_path, path):
    with pytest.raises(EnvironmentProblem):
        read_fabric(tmp_path / path)


def test_a_folder_without_a_fabric_file(tmp_path):
    with pytest.raises(InputError, match="no fabric file"):
        read_fabric(tmp_path)


def test_lmc_out_of_range(tmp_path):
    with pytest.raises(OptionError, match="LMC 8"):
        read_fabric(DATA / "mixed.net", lmc=8)


@pytest.mark.parametrize("suffix", [".json", ".graphml", ".dot"])
def test_a_file_that_was_cut_is_never_half_a_fabric(tmp_path, suffix):
    write_fabric(ring_fabric(3), tmp_path / f"a{suffix}")
    text = (tmp_path / f"a{suffix}").read_text().rstrip()
    for cut in range(0, len(text), 7):
        (tmp_path / "cut").write_text(text[:cut])
        with pytest.raises(IbnueError):
            read_fabric(tmp_path / "cut")


JSON = json_text(ring_fabric(3, cas=1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ibnue-fabric/1", "ibnue-fabric/2", "x: schema: not 'ibnue-fabric/1'"),
        ('"ports": 3', '"ports": "3"', r"x: switches\[0\]: 'ports' is missing or not an integer"),
        ('"ports": 3', '"ports": 300', r"x: switches\[0\]: 'sw0' has 300 ports"),
        (
            '"guid": "0x200001"',
            '"guid": "0x200000"',
            r"x: switches\[1\]: GUID 0x200000 of 'sw1' belongs to 'sw0' already",
        ),
        ('"guid": "0x200001"', '"guid": 2097153', r"x: switches\[1\]: a GUID is missing or not a string"),
        ('"kind": "ca"', '"kind": "cat"', r"x: terminals\[0\]: 'kind' is neither 'ca' nor 'router'"),
        ('"lmc": 0', '"lmc": 8', r"x: terminals\[0\]: LMC 8 of 'ca0' is out of range"),
        ('"lid": 2', '"lid": 1', "x: LID 1 belongs to 'sw0' and to 'sw1'"),
        ('"speed": "SDR"', '"speed": NaN', r"x: links\[0\]: 4x at nan Gb/s"),
        ('"speed": "SDR"', '"speed": 1' + 400 * "0", "x: a number is out of range"),
        ('"speed": "SDR"', '"speed": "ADR"', r"x: links\[0\]: 'speed' is neither"),
        ('"width": 4', '"width": 0', r"x: links\[0\]: 0x at"),
        ('[["0x200000", ', '[["0x20000f", ', r"x: links\[0\]: there is no device 0x20000f"),
        ('"links": [', '"links": 3, "l": [', "x: fabric: 'links' is missing or not an array"),
        ("]}\n", "]", "x:1[0-9]: "),
    ],
)
def test_wrong_json(old, new, message):
    assert old in JSON
    with pytest.raises(InputError, match=message):
        parse_json(JSON.replace(old, new, 1), "x")


def test_deeply_nested_json(tmp_path):
    (tmp_path / "a.json").write_text("{" + '"a":{' * 100_000)
    with pytest.raises(InputError):
        read_fabric(tmp_path / "a.json")


XML = graphml_text(ring_fabric(3, cas=1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<node id="0x200001">', '<node id="0x200000">', "x:20: there is a node '0x200000' already"),
        ('_kind">switch<', '_kind">hub<', "x:19: kind 'hub'"),
        ('_ports">3<', '_ports">three<', "x:19: ports 'three' is not a number"),
        ('target="0x200001"', 'target="0x2"', "x:26: an edge to '0x2', which is not a node"),
        ('_width">4<', '_width">-4<', "x:25: -4x at"),
        ("<graph id", '<!DOCTYPE x [<!ENTITY a "aaaa">]><graph id', "x:18: not XML"),
        ("</graph>", '</graph><graph id="b">', "x:31: the file has more than one graph"),
        (
            '<?xml version="1.0" encoding="UTF-8"?>',
            "<!DOCTYPE graphml>",
            "x:1: the file has a document type declaration",
        ),
    ],
)
def test_wrong_graphml(old, new, message):
    assert old in XML
    with pytest.raises(InputError, match=message):
        parse_graphml(XML.replace(old, new, 1), "x")


def test_entities_are_not_expanded(tmp_path):
    bomb = '<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><graphml>&b;</graphml>'
    (tmp_path / "a.graphml").write_text(bomb)
    with pytest.raises(InputError, match="document type declaration"):
        read_fabric(tmp_path / "a.graphml")


PLAIN_DOT = """// a lab
graph "my lab" {
  rankdir=LR; node [kind=ca] a; "b b" [label="node b"]
  node [kind=switch] edge [width=1]
  a -- s1 -- {s2 s3:7} [speed=10];
  "b b" -- s2:3:n; "S-00000000000abcde" -- s3 [speed="2" + ".5"]
  subgraph cluster { label=rack; /* no cable */ "c\\"\\\\" }
}
"""


def test_a_plain_graph_in_dot():
    fabric = parse_dot(PLAIN_DOT, "x")
    assert (fabric.name, fabric.terminal_name) == ("my lab", ("a", "node b"))
    assert fabric.terminal_guid.tolist() == [0x100000, 0x100002]
    names = dict(
        zip(
            fabric.switch_name, zip(fabric.switch_guid.tolist(), fabric.switch_ports.tolist(), strict=True), strict=True
        )
    )
    assert names == {
        "s1": (0x200000, 3), "s2": (0x200001, 3), "s3": (0x200002, 7), 'c"\\': (0x200003, 1),
        "S-00000000000abcde": (0xABCDE, 1),
    }  # fmt: skip
    cables = zip(fabric.link_device.tolist(), fabric.link_port.tolist(), fabric.link_speed.tolist(), strict=True)
    found = {
        tuple(sorted(zip(map(fabric.device_name, devices), ports, strict=True))): speed
        for devices, ports, speed in cables
    }
    assert found == {
        (("a", 1), ("s1", 1)): 10, (("s1", 2), ("s2", 1)): 10, (("s1", 3), ("s3", 7)): 10,
        (("node b", 1), ("s2", 3)): 2.5, (("S-00000000000abcde", 1), ("s3", 1)): 2.5,
    }  # fmt: skip
    assert set(fabric.link_width.tolist()) == {1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("digraph { a -> b }", "x:1: a directed graph"),
        ("graph {\n a -> b }", "x:2: a directed edge"),
        ("graph { a -- b", "x:1: the end of the file in place of a name"),
        ("graph {}\ngraph {}", "x:2: the file has more than one graph"),
        ("graph {}", "x: no node in this file"),
        ("graph {\n\n a [label=<b>] }", "x:3: unexpected '<'"),
        ("graph { a [kind=hub] }", "x:1: kind 'hub'"),
        ("graph { a:p -- b }", "x:1: source_port 'p' is not a number"),
        ("graph { a [guid=1]\n b [guid=1] }", "x:2: GUID 0x1 of 'b' belongs to 'a' already"),
        ("graph { a:1 -- b\n a:1 -- c }", "x:2: "),
        ("graph { a" + " -- b -- a" * 200 + " }", "x:1: '[ab]' has too many cables"),
        ("graph {" + "{" * 60 + "}" * 60 + "}", "x:1: too many nested subgraphs"),
        ("graph { {" + " ".join(f"a{n}" for n in range(1500)) + "} -- {"
         + " ".join(f"b{n}" for n in range(1500)) + "} }", "x:1: too many edges"),
    ],
)  # fmt: skip
def test_wrong_dot(text, message):
    with pytest.raises(InputError, match=message):
        parse_dot(text, "x")


def test_a_dot_file_without_cas_has_a_warning():
    with pytest.warns(InputWarning, match="x: no CA in this file"):
        assert parse_dot("graph { a -- b }", "x").switches == 2
