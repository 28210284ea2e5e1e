"""Check the reader of OpenSM's list of links with a file that the real OpenSM wrote."""

import re
from pathlib import Path

import numpy as np
import pytest
from in_one_test import cases_in_one_test

from routing.errors import IbnueError, InputWarning
from routing.formats.fabric_files import read_fabric, write_fabric
from routing.formats.subnet_lst import parse_subnet_lst

DATA = Path(__file__).parent / "data"
TEXT = (DATA / "mixed-subnet.lst").read_text()


def read(text):
    return parse_subnet_lst(text, "x")


@pytest.mark.parametrize(("sample", "lmc"), [("mixed", 0), ("mixed_lmc2", 2)])
def test_same_fabric_as_ibnetdiscover_saw(sample, lmc):
    listed = read_fabric(DATA / f"{sample}-subnet.lst", lmc=lmc)
    found = read_fabric(DATA / f"{sample}.ibnetdiscover")
    assert listed.digest == found.digest
    assert (listed.switch_name, listed.terminal_name) == (found.switch_name, found.terminal_name)
    assert np.array_equal(listed.terminal_ports, found.terminal_ports)


@pytest.mark.parametrize("sample", ["mixed", "mixed_lmc2"])
def test_the_written_file_is_the_file_of_opensm_except_for_ids_of_vendors(tmp_path, sample):
    write_fabric(read_fabric(DATA / f"{sample}-subnet.lst"), tmp_path / "own.lst")
    assert plain_lines(tmp_path / "own.lst") == plain_lines(DATA / f"{sample}-subnet.lst")


def plain_lines(path):
    return sorted(re.sub(r"-SM|(SystemGUID|VenID|DevID|Rev):\w+ ", "", path.read_text()).upper().splitlines())


def test_devices_without_links_are_left_out_with_a_warning(tmp_path):
    fabric = read_fabric(DATA / "mixed.net")
    with pytest.warns(InputWarning, match="2 devices without links are not in"):
        write_fabric(fabric.without_links([6, 10]), tmp_path / "own.lst")


def test_without_lmc_the_base_lids_stay():
    fabric = read_fabric(DATA / "mixed_lmc2-subnet.lst")
    assert fabric.endport_lid.tolist() == [12, 4, 20, 24, 28, 36]
    assert not fabric.endport_lmc.any()


@cases_in_one_test("cut", range(TEXT.count("\n")))
def test_a_file_that_was_cut_is_never_half_a_fabric(cut):
    with pytest.raises(IbnueError):
        read("\n".join(TEXT.split("\n")[:cut]))


def test_names_may_hold_braces():
    fabric = read(TEXT.replace("{leaf 1}", "{leaf {1} }"))
    assert "leaf {1} " in fabric.switch_name


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SPD=14\n", "SPD=??\n", "x:2: .*line of opensm-subnet.lst"),
        ("SPD=14\n", "SPD=13\n", "x:2: unknown rate 4x at 13"),
        ("PHY=4x", "PHY=3x", r"x:1: unknown rate 3x at 2\.5"),
        ("SPD=14\n", "SPD=25\n", r"x:2: the link runs at .* in line 9"),
        ("{spine0} LID:0002", "{spine1} LID:0002", "x:3: node 0x400000 is 'spine0' .* 'spine1'"),
        ("LID:0004 PN", "LID:0044 PN", "x:16: 'router zero' port 1 has LID 4 here and LID 68 elsewhere"),
        (
            "PN:05 } PHY",
            "PN:04 } PHY",
            "x:2: port 1 of 0x400000 is cabled to port 4 of 0x500000, which does not state this cable",
        ),
    ],
)
def test_wrong_files_are_named_with_their_line(old, new, message):
    assert old in TEXT
    with pytest.raises(IbnueError, match=message) as caught:
        read(TEXT.replace(old, new, 1))
    assert "\n" not in str(caught.value)
