"""Check the parsing of faults by name."""

from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, ring_fabric

from routing.endports import similar_names
from routing.errors import OptionError, ParseError
from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.faults import (
    FaultKind,
    apply_faults,
    every_ca,
    every_link,
    every_switch,
    parse_fault,
    random_faults,
    read_faults,
)

RING = ring_fabric(4, cas=2)  # sw0 is cabled to sw1 at port 3, and to sw3 at port 4


@examples(40)
@given(fabrics(connected=False), st.integers(0, 1000))
def test_a_fault_is_read_back_from_its_name(fabric, seed):
    faults = [*every_link(fabric, cas=True), *every_switch(fabric), *every_ca(fabric)]
    faults += random_faults(fabric, seed=seed, rate=0.5, kinds=("degrade", "swap"))
    assert [parse_fault(fault.name, fabric) for fault in faults] == faults


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("sw0/3", FaultKind.LINK, "sw0/3 - sw1/3"),
        ("link sw1[3]", FaultKind.LINK, "sw0/3 - sw1/3"),
        ("sw1/3 - sw0/3", FaultKind.LINK, "sw0/3 - sw1/3"),
        ("sw1[3] -> sw0[3]", FaultKind.LINK, "sw0/3 - sw1/3"),
        ("0x200000/3 - 0x0000000000200001/3", FaultKind.LINK, "sw0/3 - sw1/3"),
        ("ca0/1", FaultKind.LINK, "sw0/1 - ca0/1"),
        ("port sw0/3", FaultKind.PORT, "port sw0/3"),
        ("sw2", FaultKind.SWITCH, "sw2"),
        ("switch sw2", FaultKind.SWITCH, "sw2"),
        ("0x200002", FaultKind.SWITCH, "sw2"),
        ("ca ca1", FaultKind.CA, "ca1"),
        ("degrade sw0/3 1x", FaultKind.DEGRADE, "degrade sw0/3 - sw1/3 1x"),
        ("degrade sw0/3 - sw1/3 SDR 1x", FaultKind.DEGRADE, "degrade sw0/3 - sw1/3 1x SDR"),
        ("swap sw0/1  sw2/2", FaultKind.SWAP, "swap sw0/1 sw2/2"),
        ("group sw0/3-4, ca0", FaultKind.GROUP, "group sw0/3-4, ca0"),
    ],
)
def test_notations(text, kind, name):
    fault = parse_fault(text, RING)
    assert (fault.kind, fault.name) == (kind, name)
    assert parse_fault(fault.name, RING) == fault
    apply_faults(RING, [fault])


def test_members_of_a_group():
    group = parse_fault("group card 1: sw[01]/3-4, ca*, sw3", RING)
    assert group.ports == ((0x200000, 3), (0x200000, 4), (0x200001, 3), (0x200001, 4))
    assert group.devices == (*RING.terminal_guid.tolist(), 0x200003)
    after = apply_faults(RING, [group])
    assert (after.switches, after.terminals, after.links) == (3, 0, 0)


def test_names_with_anything_in_them():
    builder = FabricBuilder("odd")
    names = ["rack 1 - leaf/3", "port 7", "MF0;sw-1:SX/U1", "swap"]
    handles = [builder.add_device(NodeKind.SWITCH, 0x10 + row, name, 8) for row, name in enumerate(names)]
    for row in range(4):
        builder.connect(handles[row], 1, handles[(row + 1) % 4], 2)
    fabric = builder.build()
    for fault in [*every_link(fabric), *every_switch(fabric)]:
        assert parse_fault(fault.name, fabric) == fault
    assert parse_fault("MF0;sw-1:SX/U1/1", fabric).ports[0] == (0x12, 1)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("sw9/3", r"ring-4 has no device 'sw9' \(did you mean sw"),
        ("leaf", r"ring-4 has no device 'leaf' \(write NAME/PORT"),
        ("0x20000a", r"no device '0x20000a'"),
        ("sw0/9", r"sw0 has no port 9 \(its ports are 1 to 4\)"),
        ("sw0/3 - sw2/3", r"there is no link 'sw0/3 - sw2/3' \(sw0/3 is cabled to sw1/3\)"),
        ("switch ca0", "'ca0' is not a switch"),
        ("ca sw0", "'sw0' is not a CA"),
        ("port sw0", "'sw0' names no port"),
        ("degrade sw0/3", "says no width or speed"),
        ("degrade sw0/3 3x", "says no width or speed"),
        ("degrade sw0/3 4x", "makes the link no slower"),
        ("degrade sw0/3 1x XDR", "makes the link no slower"),
        ("swap sw0/3", "names no two ports"),
        ("swap sw0/3 sw1/3", "two plugs of one cable"),
        ("swap sw0/3 sw7/3", "no device 'sw7'"),
        ("group sw0,, sw1", "empty member"),
        ("group sw0, spine*", r"no device 'spine\*'"),
        ("group spine/3", "no device 'spine'"),
        ("group sw0/40-50", "no port of 'sw0/40-50' has a cable"),
        ("", "no device ''"),
    ],
)
def test_faults_without_a_device_or_link_are_refused(text, output):
    with pytest.raises(OptionError, match=output):
        parse_fault(text, RING)


WORDS = st.sampled_from(
    ["sw0", "sw1", "ca0", "sw9", "0x200000", "/1", "/3", "[3]", "/99", " - ", " -> ", " ", ",", ":", "*", "[", "1x",
     "SDR", "link ", "port ", "switch ", "ca ", "group ", "degrade ", "swap ", "-", "0x", "\u0663", "\\", "(", "/1-2"]
)  # fmt: skip


@examples(300)
@given(st.lists(WORDS, max_size=7).map("".join) | st.text(max_size=20))
def test_any_text_is_a_fault_or_refused_in_one_line(text):
    try:
        fault = parse_fault(text, RING)
    except OptionError as error:
        assert "\n" not in str(error)
    else:
        assert parse_fault(fault.name, RING) == fault
        apply_faults(RING, [fault])


def test_similar_names_with_spaces_are_quoted_as_they_are():
    fabric = replace(RING, switch_name=("rack 1  sw0", "rack 1  sw1", "sw2", "sw3"))
    with pytest.raises(OptionError) as refusal:
        parse_fault("rack 1 sw0/3", fabric)
    assert "no device 'rack 1 sw0' (did you mean 'rack 1  sw0' or 'rack 1  sw1'" in str(refusal.value)


def test_names_that_contain_the_unknown_name_are_proposed_first():
    names = [f"MF0;A09-LEAF-0{number}:MQM9701/U1" for number in (1, 2, 3, 4)]
    for word in ("MF0;A09-LEAF-01", "a09-leaf-01"):
        assert similar_names(word, [*reversed(names)]) == [names[0]]
    assert similar_names("", names) == []


def test_an_empty_port():
    fabric = RING.without_links([int(RING.channels.link[0])])
    with pytest.raises(OptionError, match=r"sw0 has no cable at port 3 \(cabled are 1, 2, 4\)"):
        parse_fault("sw0/3", fabric)


def test_a_list_file(tmp_path):
    path = tmp_path / "faults.txt"
    path.write_text("# last night\nsw0/3\n\nswitch sw2  # the old one\ngroup card: sw1/1-2\n")
    assert [fault.name for fault in read_faults(path, RING)] == ["sw0/3 - sw1/3", "sw2", "group card: sw1/1-2"]


@pytest.mark.parametrize("text", ["", "\n \n", "# nothing tonight\n"])
def test_a_list_file_that_names_nothing_is_refused(text, tmp_path):
    path = tmp_path / "faults.txt"
    path.write_text(text)
    with pytest.raises(ParseError, match=r"faults.txt: names no fault \(write one a line"):
        read_faults(path, RING)


def test_a_list_file_names_the_line(tmp_path):
    path = tmp_path / "faults.txt"
    path.write_text("sw0/3\nsw00/3\n")
    with pytest.raises(ParseError, match=r"faults.txt:2: ring-4 has no device 'sw00' \(did you mean sw0"):
        read_faults(path, RING)
