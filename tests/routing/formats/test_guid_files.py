"""Check guid2lid, GUID lists and node name maps: ibnue reads them as OpenSM does, but strictly."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, ring_fabric

from routing.errors import FabricError, ParseError, ParseErrors
from routing.formats.fabric_files import read_fabric
from routing.formats.guid_files import (
    LidRange,
    apply_guid2lid,
    apply_node_names,
    read_guid2lid,
    read_guid_lines,
    read_guid_list,
    read_node_name_map,
    write_guid2lid,
)

DATA = Path(__file__).parent / "data"


def file(tmp_path, text):
    (tmp_path / "f").write_text(text)
    return tmp_path / "f"


def test_guid_list(tmp_path):
    path = file(tmp_path, "# roots\n\n0x10 # the first\n  16\n020 3#x\n\t0XfF word # and more words\n0x1\n")
    assert read_guid_list(path) == (16, 16, 16, 255, 1)
    assert [line.word for line in read_guid_lines(path)] == ["", "", "3", "word", ""]
    assert [line.line for line in read_guid_lines(path)] == [3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0x1\nspine0\n0x2\n", "f:2: no GUID at the start of the line"),
        ("0x1,0x2\n", "f:1: no GUID"),
        ("0x1#x\n", "f:1: no GUID"),
        ("09\n", "f:1: no GUID"),
        ("0x1\n0x2", "f:2: the last line has no newline"),
        ("0x1\n\n0x10000000000000000\n", "f:3: 0x10000000000000000 is not a 64-bit GUID"),
        ("0x0\n", "f:1: 0x0 is not a 64-bit GUID"),
        ("0x1 " + "x" * 300 + "\n", "f:1: no GUID"),
    ],
)
def test_one_bad_line_rejects_a_guid_list(tmp_path, text, message):
    with pytest.raises(ParseError, match=message):
        read_guid_list(file(tmp_path, text))


def test_the_first_errors_of_a_guid_list_are_reported_together(tmp_path):
    with pytest.raises(ParseErrors, match=r"2 errors: line 2: no GUID .*; line 3: 0x0 is not a 64-bit GUID") as found:
        read_guid_list(file(tmp_path, "0x1\nspine0\n0x0\n"))
    assert [error.line for error in found.value.errors] == [2, 3]
    with pytest.raises(ParseErrors, match=r"10 errors: .*line 10: ") as found:
        read_guid_list(file(tmp_path, "x\n" * 1000))
    assert len(found.value.errors) == 10


def test_node_names(tmp_path):
    fabric = ring_fabric(3)
    path = file(tmp_path, '# names\n0x200001 "north spine"\n0x100000\t"host # 1"\n')
    named = apply_node_names(fabric, read_node_name_map(path))
    assert named.switch_name == ("sw0", "north spine", "sw2")
    assert named.terminal_name[0] == "host "


@pytest.mark.parametrize("text", ['0x1 "a"\n0x2\n', '"a"\n', '0x1 "a"\n0x1 "b"\n', "0x1 a\n", '0x1 "a\n'])
def test_wrong_node_name_map(tmp_path, text):
    with pytest.raises(ParseError, match=r"f:\d: "):
        read_node_name_map(file(tmp_path, text))


@pytest.mark.parametrize("sample", ["mixed", "mixed_lmc2"])
def test_real_guid2lid_gives_the_lids_that_ibnetdiscover_saw(sample):
    found = read_fabric(DATA / f"{sample}.ibnetdiscover")
    bare = replace(
        found, switch_lid=found.switch_lid * 0, endport_lid=found.endport_lid * 0, endport_lmc=found.endport_lmc * 0
    )
    assert apply_guid2lid(bare, read_guid2lid(DATA / f"{sample}.guid2lid")).digest == found.digest


def test_guid2lid_wins_over_the_file_and_others_move():
    fabric = ring_fabric(3)
    assert fabric.switch_lid.tolist() == [1, 2, 3]
    moved = apply_guid2lid(fabric, {0x200000: LidRange(2, 0), 0x100001: LidRange(8, 2)}, lmc=1)
    assert moved.switch_lid.tolist() == [2, 1, 3]
    assert moved.endport_lid.tolist() == [8, 5, 6]
    assert moved.endport_lmc.tolist() == [2, 0, 0]
    assert len(moved.lids) == 12


def test_read_fabric_takes_a_guid2lid():
    fabric = read_fabric(DATA / "mixed.net", lmc=2, guid2lid=DATA / "mixed_lmc2.guid2lid")
    found = read_fabric(DATA / "mixed_lmc2.ibnetdiscover")
    lid = dict(zip(fabric.endport_guid.tolist(), fabric.endport_lid.tolist(), strict=True))
    for guid, base in zip(found.endport_guid.tolist(), found.endport_lid.tolist(), strict=True):
        assert lid[guid] == base
    assert fabric.switch_lid.tolist() == found.switch_lid.tolist()


@examples(40)
@given(fabrics(connected=False), st.randoms(use_true_random=False))
def test_written_guid2lid_restores_any_lids(tmp_path_factory, fabric, rng):
    path = tmp_path_factory.mktemp("lids") / "guid2lid"
    write_guid2lid(path, fabric)
    ranges = read_guid2lid(path)
    bare = replace(fabric, switch_lid=fabric.switch_lid * 0, endport_lid=fabric.endport_lid * 0)
    assert apply_guid2lid(bare, ranges).digest == fabric.digest
    some = {guid: lids for guid, lids in ranges.items() if rng.random() < 0.5}
    mixed = apply_guid2lid(bare, some, lmc=1)
    assert (mixed.switch_lid > 0).all()
    assert (mixed.endport_lid > 0).all()
    assert len(mixed.lids) > 0  # this raises an error if LIDs clash
    for guid, lid in zip(mixed.switch_guid.tolist(), mixed.switch_lid.tolist(), strict=True):
        assert guid not in some or some[guid].base == lid


def test_more_lids_than_there_are():
    fabric = ring_fabric(3, cas=2)
    bare = replace(fabric, endport_lid=np.zeros_like(fabric.endport_lid))
    full = {1000 + k: LidRange(128 * k, 7) for k in range(1, 384)}
    taken = {guid: full[1000 + k] for k, guid in enumerate(bare.endport_guid.tolist()[:3], 1)}
    assert len(apply_guid2lid(bare, taken, lmc=7).lids) == 7 * 128
    with pytest.raises(FabricError, match="more than the 49151"):
        apply_guid2lid(read_many(), {}, lmc=7)


def read_many():
    fabric = ring_fabric(3, cas=130)
    return replace(fabric, endport_lid=np.zeros_like(fabric.endport_lid))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0x1 0x5 0x5\n0x2 0x6 0x6\n", "f:2: there is no empty line before"),
        ("0x1 0x5\n", "f:1: the line has no GUID, lowest and highest LID"),
        ("0x1 0x5 0x5\n\n0x1 0x6 0x6\n", "f:3: GUID 0x1 occurs twice"),
        ("0x1 0x5 0x5\n\n0x2 0x5 0x5\n", "f:3: LID 5 belongs to 0x1 too"),
        ("0x1 0x4 0x6\n", "f:1: LIDs 4 to 6 cannot belong to one port"),
        ("0x1 0x5 0x6\n", "f:1: LIDs 5 to 6 cannot belong to one port"),
        ("0x1 0x100 0x1ff\n", "f:1: LIDs 256 to 511 cannot belong to one port"),
        ("0x1 0xbfff 0xc000\n", "f:1: LIDs 0xbfff to 0xc000 are not unicast LIDs"),
        ("0x1 0x0 0x0\n", "f:1: LIDs 0x0 to 0x0"),
        ("0x1 0x6 0x5\n", "f:1: LIDs 0x6 to 0x5"),
        ("0x1 0x1 0xfffffffffffff\n", "f:1: LIDs"),
    ],
)
def test_wrong_guid2lid(tmp_path, text, message):
    with pytest.raises(ParseError, match=message):
        read_guid2lid(file(tmp_path, text))
