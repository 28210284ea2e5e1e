import dataclasses
import re

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from routing_cases import tables
from strategies import Sketch, fabrics, random_fabric, ring_fabric

from routing.errors import IbnueError, InputError, ParseError, TableError
from routing.fabric import NodeKind
from routing.formats import lfts
from routing.formats.dump_lines import read_pieces


def slow_read(text):
    """Read an LFT file slowly, line by line."""
    table, guid = {}, None
    for line in text.splitlines():
        if match := re.match(r"Unicast lids .* guid 0x([0-9a-f]+)", line):
            guid = int(match[1], 16)
        elif match := re.match(r"0x([0-9a-f]{4}) (\d{3})", line):
            table[guid, int(match[1], 16)] = int(match[2])
    return table


@examples(40)
@given(fabrics(max_switches=8, connected=False), st.booleans())
def test_written_lfts_are_read_back(tmp_path_factory, fabric, named):
    path = tmp_path_factory.mktemp("l") / "lfts"
    lft = tables(fabric)[0].lft
    lfts.write(path, fabric, lft, named=named)
    assert np.array_equal(lfts.read(path, fabric), lft)
    twin = {
        (int(fabric.switch_guid[s]), lid): int(lft[s, lid])
        for s in range(fabric.switches)
        for lid in range(lft.shape[1])
        if lft[s, lid] != 255
    }
    assert slow_read(path.read_text()) == twin


def test_the_text_is_that_of_opensm(tmp_path):
    fabric = ring_fabric(3)
    lft = tables(fabric)[0].lft
    lfts.write(tmp_path / "l", fabric, lft)
    lines = (tmp_path / "l").read_text().splitlines()
    assert lines[0] == "Unicast lids [0-6] of switch Lid 1 guid 0x0000000000200000 ('sw0'):"
    assert lines[1] == "0x0001 000 # Switch portguid 0x0000000000200000: 'sw0'"
    assert lines[4] == f"0x0004 {lft[0, 4]:03d} # Channel Adapter portguid 0x0000000000100001: 'ca0'"
    assert lines[7] == "6 lids dumped"


def test_pieces_join_at_any_size(tmp_path):
    fabric = random_fabric(1, switches=4)
    lfts.write(tmp_path / "l", fabric, tables(fabric)[0].lft)
    whole = (tmp_path / "l").read_text().splitlines()
    for size in (1, 7, 100, 5000):
        lines = {}
        for piece in read_pieces(tmp_path / "l", size):
            lines.update({piece.first + k: piece.text(k) for k in range(len(piece.start))})
        assert [lines[k + 1] for k in range(len(lines))] == whole


DUMP_FTS = """Unicast lids [0x0-0x4] of switch DR path slid 0; dlid 0; 0,1,7,7 guid 0x0000000000200000 (sw0):
  Lid  Out   Destination
       Port     Info{sp}
0x0001 000 : (Switch portguid 0x0000000000200000: 'sw0')
0x0002 001 : (Switch portguid 0x0000000000200001: 'sw1')
0x0003 002 : (Channel Adapter portguid 0x0000000000100001: 'ca0')
3 valid lids dumped{sp}
Unicast lids [0x0-0x4] of switch Lid 2 guid 0x0000000000200001 (sw1):
  Lid  Out   Destination
       Port     Info{sp}
0x0001 001 : (Switch portguid 0x0000000000200000: 'sw0')
0x0002 000 : (Switch portguid 0x0000000000200001: 'sw1')
0x0004 002 : (Channel Adapter portguid 0x0000000000100003: 'ca1')
3 valid lids dumped{sp}
""".replace("{sp}", " ")


@pytest.fixture
def pair():
    sketch = Sketch()
    a, b = sketch.add(NodeKind.SWITCH), sketch.add(NodeKind.SWITCH)
    sketch.cable(a, b)
    for switch in (a, b):
        sketch.cable(sketch.add(NodeKind.CA), switch)
    return sketch.build()


def test_output_of_dump_fts(tmp_path, pair):
    (tmp_path / "d").write_text(DUMP_FTS)
    expected = [[255, 0, 1, 2, 255], [255, 1, 0, 255, 2]]
    assert lfts.read(tmp_path / "d", pair).tolist() == expected
    (tmp_path / "d").write_text(DUMP_FTS.replace("\n", "\r\n"))
    assert lfts.read(tmp_path / "d", pair).tolist() == expected


def test_ports_are_followed_to_their_new_lids(tmp_path, pair):
    moved = dataclasses.replace(pair, switch_lid=np.array([4, 3], np.uint16), endport_lid=np.array([2, 7], np.uint16))
    (tmp_path / "d").write_text(DUMP_FTS)
    found = lfts.read(tmp_path / "d", moved)
    assert found[:, [4, 3, 2, 7]].tolist() == [[0, 1, 2, 255], [1, 0, 255, 2]]
    assert (found[:, [0, 1, 5, 6]] == 255).all()


BAD = {
    "port beyond the switch": ("0x0003 002", "0x0003 009", ":6: .*no such port"),
    "LID twice": ("0x0003 002", "0x0002 002", ":6: .*already"),
    "LID of multicast": ("0x0003 002", "0xc003 002", ":6: .*not a unicast LID"),
    "garbage": ("0x0003 002", "hello", ":6: .*not a line of a dump"),
    "number too long": ("0x0003 002", "0x00031 0024", ":6:"),
    "unknown switch": (" 2 guid 0x0000000000200001", " 2 guid 0x0000000000200009", ":8: .*not in the fabric"),
    "switch twice": (" 2 guid 0x0000000000200001", " 2 guid 0x0000000000200000", ":8: .*second section"),
    "entry outside": ("Unicast lids [0x0-0x4] of switch DR", "#", ":4: .*outside"),
    "no end": ("3 valid lids dumped \nU", "U", ":1: .*no last line"),
    "a switch is missing": (DUMP_FTS[DUMP_FTS.index("Unicast", 9) :], "", "1 of 2 switches of the fabric are missing"),
    "empty": (DUMP_FTS, "", "2 of 2 switches of the fabric are missing"),
}


@pytest.mark.parametrize("why", BAD)
def test_bad_dumps_name_the_line(tmp_path, pair, why):
    old, new, message = BAD[why]
    (tmp_path / "d").write_text(DUMP_FTS.replace(old, new, 1))
    with pytest.raises((ParseError, TableError), match=message) as caught:
        lfts.read(tmp_path / "d", pair)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there(tmp_path, pair):
    for path in (tmp_path / "none", tmp_path, tmp_path / "none" / "deeper"):
        with pytest.raises(InputError):
            lfts.read(path, pair)


LINES = st.one_of(
    st.sampled_from(DUMP_FTS.splitlines()),
    st.from_regex(r"0x[0-9a-fA-F]{1,5} [0-9]{1,4}( .{0,8})?", fullmatch=True),
    st.text(max_size=30),
)


@examples(300)
@given(st.lists(LINES, max_size=20), st.binary(max_size=20))
def test_any_text_is_read_or_refused(tmp_path_factory, lines, tail):
    path = tmp_path_factory.getbasetemp() / "fuzz"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass") + tail)
    fabric = random_fabric(0, switches=2, cas=1)
    try:
        found = lfts.read(path, fabric)
    except IbnueError as error:
        assert "\n" not in str(error)
    else:
        assert found.shape == (2, len(fabric.lids))
