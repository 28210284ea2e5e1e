"""Check files that administrators have: each gives the fabric or the tables of ibnetdiscover and OpenSM.

Data that a format lacks are missing in the result.  Files of other kinds are named in the error.
"""

import io
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from in_one_test import cases_in_one_test

from routing.errors import IbnueError, InputWarning
from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.formats import lfts
from routing.formats.fabric_files import read_fabric
from routing.formats.lft_files import read_lft_file
from routing.formats.port_labels import Label, read_label
from routing.formats.table_files import read_tables
from routing.rates import SPEED_OF

DATA = Path(__file__).parent / "data"
FABRIC = read_fabric(DATA / "mixed.ibnetdiscover")
LISTS = ["mixed.ibnetdiscover_p", "mixed.iblinkinfo", "mixed.iblinkinfo_l"]


def cables(fabric, rename=None):
    """Return the rate of each cable by its two ends, which are pairs of name and port."""
    names = [(rename or {}).get(name, name) for name in (*fabric.switch_name, *fabric.terminal_name)]
    ends = zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True)
    rates = zip(fabric.link_width.tolist(), fabric.link_speed.tolist(), strict=True)
    return {
        frozenset(zip((names[a], names[b]), ports, strict=True)): rate
        for ((a, b), ports), rate in zip(ends, rates, strict=True)
    }


def read(tmp_path, text, name="file"):
    path = tmp_path / name
    path.write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fabric = read_fabric(path)
    return fabric, [str(each.message).removeprefix(f"{path}: ") for each in caught]


def refused(tmp_path, text, message):
    path = tmp_path / "file"
    path.write_text(text)
    with warnings.catch_warnings(), pytest.raises(IbnueError, match=message):
        warnings.simplefilter("ignore")
        read_fabric(path)


def test_the_database_of_ibdiagnet_has_everything():
    found = read_fabric(DATA / "mixed.db_csv")
    assert found.digest == FABRIC.digest
    assert (found.switch_name, found.terminal_name) == (FABRIC.switch_name, FABRIC.terminal_name)
    assert found.switch_ports.tolist() == FABRIC.switch_ports.tolist()
    assert found.terminal_ports.tolist() == FABRIC.terminal_ports.tolist()


def test_the_database_of_ibdiagnet_states_xdr_in_the_fourth_byte_of_the_speed(tmp_path):
    # ibdiagnet has a byte for each attribute: LinkSpeed, LinkSpeedExt, the speeds of its vendor, LinkSpeedExt2.
    text = (DATA / "mixed.db_csv").read_text()
    fabric, caught = read(tmp_path, text.replace(",1793,256,", f",1793,{1 << 24},"))
    before = cables(FABRIC)
    fdr = {cable for cable, (_, speed) in before.items() if speed == SPEED_OF["FDR"]}
    assert len(fdr) >= 1 and caught == []
    assert all(cables(fabric)[cable] == (before[cable][0], SPEED_OF["XDR"]) for cable in fdr)


def test_a_row_that_is_missing_in_the_database(tmp_path):
    text = (DATA / "mixed.db_csv").read_text()
    row = "0x0000000000400000,1,0x0000000000500000,5\n"
    fabric, caught = read(tmp_path, text.replace(row, ""))
    assert fabric.links == FABRIC.links - 1
    assert caught == ["2 ports are up without a row in LINKS, such as port 1 of 'spine0'"]


def test_the_list_of_ibdiagnet_is_that_of_opensm_in_other_letters(tmp_path):
    theirs = (DATA / "mixed-subnet.lst").read_text()
    text = "# ibdiagnet2.lst\n" + re.sub(r"(DevID|VenID|LID|PN|Rev):(\w+)", lambda m: m[0].swapcase(), theirs).replace(
        "Rt Ports", "RTR Ports"
    ).replace("dEVid", "DevID").replace("vENid", "VenID").replace("lid:", "LID:").replace("pn:", "PN:").replace(
        "rEV:", "Rev:"
    )  # fmt: skip
    assert read(tmp_path, text)[0].digest == FABRIC.digest


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_ports(name):
    found = read_fabric(DATA / name)
    assert cables(found) == cables(FABRIC)
    for field in ("switch_guid", "switch_lid", "switch_ports", "endport_guid", "endport_lid", "endport_port"):
        assert getattr(found, field).tolist() == getattr(FABRIC, field).tolist(), field
    by_name = dict(zip(found.terminal_name, found.terminal_kind.tolist(), strict=True))
    if name.endswith("_l"):
        assert by_name.pop("router zero") == NodeKind.CA
    expected = dict(zip(FABRIC.terminal_name, FABRIC.terminal_kind.tolist(), strict=True))
    assert by_name.items() <= expected.items()
    assert read_fabric(DATA / name).endport_lmc.tolist() == [0] * 6


def test_a_ports_report_without_width_and_speed(tmp_path):
    path = tmp_path / "ports"
    path.write_text((DATA / "mixed.ibnetdiscover_p").read_text().replace(" 4x EDR ", " ?? ??? "))
    with pytest.warns(InputWarning, match="1 link has an unknown rate"):
        assert read_fabric(path).links == FABRIC.links


def test_a_topology_file_of_ibdm():
    """The program ibdmsh made the file from opensm-subnet.lst.  The router, loops, speeds over QDR and most names are
    missing.
    """
    with pytest.warns(InputWarning, match="3 links have an unknown rate"):
        found = read_fabric(DATA / "mixed.topo")
    names = {
        "S0000000000400000": "spine0", "S0000000000400010": "spine1", "S0000000000500000": "leaf 0",
        "S0000000000500001": "leaf 1", "alpha": "alpha HCA-1", "beta": "beta HCA-1",
        "Sc0ffee0000001007": "gamma mlx5_0",
    }  # fmt: skip
    expected = {
        ends: rate if rate[1] <= SPEED_OF["QDR"] else (4, SPEED_OF["SDR"])
        for ends, rate in cables(FABRIC).items()
        if ("router zero", 1) not in ends and len({name for name, _ in ends}) == 2
    }
    assert cables(found, names) == expected
    assert found.switches == FABRIC.switches


def test_kinds_in_a_topology_file(tmp_path):
    """The type of a device decides, and the number of cables decides if a device has no device ID."""
    cable = " {} -> {} {} {}\n".format
    text = "A s1\n" + cable("P1", "A", "s2", "P1") + cable("P2", "B", "h", "mlx5_1/P1") + "A s2\n P3 -> B h U2/P1\n"
    fabric, caught = read(tmp_path, text)
    assert (fabric.switch_name, fabric.terminal_name, caught) == (("s1", "s2"), ("h HCA-2", "h mlx5_1"), [])
    ring = "".join(f"A s{n}\n P1 -> A s{(n + 1) % 3} P2\n" for n in range(3))
    assert read(tmp_path, ring)[0].switches == 3
    text = "DEV0 s\n U1/P9 -UNKNOWN-25G-> DEV0 a U1/P1\n U1/P8 -2x-25G-> DEV0 b U1/P1\n"
    fabric, caught = read(tmp_path, text)
    assert (fabric.switch_name, fabric.terminal_name) == (("s",), ("a", "b"))
    assert fabric.link_width.tolist() == [2, 2] and len(caught) == 2 and "type DEV0 have no device ID" in caught[0]


def test_a_cabling_plan():
    with pytest.warns(
        InputWarning, match=r"1 device uses ports 1 and 2 alone, such as 'spine1'; taken as|unknown rate"
    ):
        found = read_fabric(DATA / "mixed.ndt")
    expected = {ends: rate if rate[0] == 4 else (4, SPEED_OF["SDR"]) for ends, rate in cables(FABRIC).items()}
    assert cables(found) == expected
    assert set(found.switch_name) == set(FABRIC.switch_name)


PLAN = "StartDevice,StartPort,EndDevice,EndPort\n"


@pytest.mark.parametrize(
    "header",
    [
        "#StartDevice,StartPort,EndDevice,EndPort",
        "#Fields:StartDevice,Start Port,EndDevice,End Port",
        "Source Device;Source Port;Destination Device;Destination Port",
        "A-Node Name\tA-Port\tZ-Node Name\tZ-Port",
    ],
)
def test_headers_of_plans(tmp_path, header):
    delimiter = next(each for each in ",;\t" if each in header)
    rows = ["s1,Port 3,h,mlx5_0", "S1,1/2/2,s2,sw4p1", "h,Port 1,s1,P1"]
    text = "\n".join([header, *(row.replace(",", delimiter) for row in rows)])
    fabric, caught = read(tmp_path, text)
    assert cables(fabric).keys() == {
        frozenset({("s1", 3), ("h mlx5_0", 1)}), frozenset({("s1", 4), ("s2", 7)}), frozenset({("s1", 1), ("h", 1)}),
    }  # fmt: skip
    assert (fabric.switch_name, fabric.terminal_name, caught) == (("s1", "s2"), ("h", "h mlx5_0"), [])


def test_boards_of_a_chassis_are_switches_of_their_own(tmp_path):
    text = "CS7500 big\n   L1/P3 -4x-25G-> MQM8700 s P9\n   L2/U2/P4 -4x-25G-> MQM8700 s P10\n"
    fabric, caught = read(tmp_path, text)
    ends = [frozenset({("s", 9), ("big/L1/U1", 3)}), frozenset({("s", 10), ("big/L2/U2", 4)})]
    assert list(cables(fabric)) == ends
    assert caught == ["2 switches are inside of a chassis; the file lacks the links between these"]


def test_a_plan_with_a_chassis_and_other_links(tmp_path):
    text = "StartDevice,StartPort,EndDevice,EndPort,LinkType,Speed\ns,Port 9,big,Blade 16_Port 2/20,Data,200G\n"
    fabric, caught = read(tmp_path, text + "s,Port 9,m,Port 1,Management,\ns,Port 8,,,Data,\n")
    assert cables(fabric) == {frozenset({("s", 9), ("big/L16/U2", 20)}): (4, SPEED_OF["HDR"])}
    assert caught == [
        "1 switch is inside of a chassis; the plan lacks the links between these",
        "1 row has a link type other than Data, and no part in the fabric",
    ]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("IB Port 7", Label(7)), ("1/33", Label(33)), ("2/1", Label(3)), ("Port 1/16/1", Label(31)),
        ("1/16/1/2", Label(62)), ("sw72p2", Label(144)), ("host mlx5_3/P2", Label(2, "mlx5_3", is_hca=True)),
        ("2/3", None), ("2/1/1", None), ("1/1/3", None), ("uplink", None), ("Blade 1", None), ("", None),
    ],
)  # fmt: skip
def test_port_labels(text, label):
    assert read_label(text) == label


@cases_in_one_test(
    ("name", "old", "new", "message"),
    [
        ("mixed.ibnetdiscover_p", "4x HDR - SW", "4x XDR - SW", r"file:9: the link runs at .* in line 2 "),
        ("mixed.ibnetdiscover_p", "SW     2  3 ", "SW     2 30 ", "file:7: .* to port 30 .*does not state this"),
        ("mixed.ibnetdiscover_p", "CA    10  1 0x", "CA    10  1 ", "file:2: .*a line that ibnetdiscover -p prints"),
        ("mixed.ibnetdiscover_p", "4x HDR - SW", "5x HDR - SW", "file:2: unknown rate '5xHDR'"),
        ("mixed.ibnetdiscover_p", "'leaf 1' - 'spine1'", "'x' - 'spine1'", "file:6: .*on 'x', and that of line 4 on"),
        ("mixed.iblinkinfo", "Switch: 0x0000000000400010", "Switch: 0x0000000000400000", "GUID 0x400000 of 'spine0'"),
        ("mixed.iblinkinfo", "     10    1[", "      0    1[", "file:10: .*cabled to LID 10, which is not in the list"),
        ("mixed.iblinkinfo", "==>      10  ", "==>       0  ", "file:10: LID 0 does not identify .*iblinkinfo -l"),
        ("mixed.iblinkinfo", "53.125 Gbps", "54.5 Gbps", "file:4: unknown rate '4X 54.5'"),
        ("mixed.iblinkinfo", "CA: gamma mlx5_0:\n", "", "file:3: port 1 of 'router zero' is listed in line 2"),
        ("mixed.iblinkinfo", "CA: alpha HCA-2:\n", "", "file:30: .*is not a line that iblinkinfo prints"),
        ("mixed.iblinkinfo_l", "0x0000000000300001 ", "0x000000000030000g ", "file:1: .*line that iblinkinfo prints"),
        ("mixed.db_csv", "END_LINKS", "", r"file:\d+: 'START_WARNINGS_DISCOVERY' is inside of section LINKS"),
        ("mixed.db_csv", "START_LINKS", "START_OTHER", r"file:\d+: 'END_LINKS' is inside of section OTHER"),
        ("mixed.db_csv", "NodeDesc,", "Desc,", "file:6: NODES has no column NodeDesc"),
        ("mixed.db_csv", ',2,1,1,', ',5,1,1,', "file:7: node type '5' is unknown"),
        ("mixed.db_csv", '"spine0",6', '"spine0",six', "file:7: NumPorts is 'six', not a number"),
        ("mixed.db_csv", '"spine0",6', '"spine0,6', "file:7: not a row of comma-separated cells"),
        ("mixed.db_csv", "400010,1,0x0000000000500", "400011,1,0x0000000000500", "node 0x400011 is not in the section"),
        ("mixed.db_csv", ",2,31,31,1,1793,1024,", ",2,31,31,1,1793,512,", "both ends of a cable must agree"),
        ("mixed.topo", "DEV48438 S0000000000400010\n", "", "file:8: this cable belongs to no system"),
        ("mixed.topo", "SYS1002 alpha P1", "SYS1003 alpha P1", "'alpha' is of type SYS1002 .*type SYS1003 in line 13"),
        ("mixed.topo", "SYS1002 alpha P1", "SYS1002 alpha P", "file:13: port 'P' is not understood"),
        ("mixed.topo", "-12x-10G->", "-12x-11G->", "file:6: unknown rate 12x-11G"),
        ("mixed.ndt", "StartPort", "Start", "file:1: there is no column StartPort"),
        ("mixed.ndt", "spine0,Port 1,", "spine0,abra,", "file:2: port 'abra' of 'spine0' is not understood"),
        ("mixed.ndt", "56000", "57000", "file:2: unknown speed '57000'"),
        ("mixed.ndt", "spine0,Port 2,", "spine0,Port 1,", "file:3: port 1 of 'spine0' .*, and in line 2 to port 5 of"),
        ("mixed.ndt", ",R1,leaf 0,Port 5,R1,U2,Data,56000,cable,5", "", "file:2: this row has 5 cells, and needs 8"),
    ],
)  # fmt: skip
def test_errors_name_line_and_remedy(tmp_path, name, old, new, message):
    text = (DATA / name).read_text()
    assert old in text
    refused(tmp_path, text.replace(old, new, 1), message)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_without_a_line_is_refused(tmp_path, name):
    lines = (DATA / name).read_text().splitlines(keepends=True)
    for missing in (number for number, line in enumerate(lines) if re.search(r" - \w|LinkUp", line)):
        refused(
            tmp_path,
            "".join(lines[:missing] + lines[missing + 1 :]),
            "not in the list|does not state this cable|GUID|LID",
        )


def test_rates_that_iblinkinfo_does_not_know(tmp_path):
    text = (DATA / "mixed.iblinkinfo_l").read_text()
    fdr10 = text.replace("12X          10.0 Gbps", "12X  10.0 Gbps (FDR10)")
    assert cables(read(tmp_path, fdr10)[0])[frozenset({("leaf 1", 5), ("spine0", 3)})] == (12, SPEED_OF["FDR10"])
    unknown, caught = read(tmp_path, text.replace("4X        53.125 Gbps", "4X undefined (9)"))
    assert cables(unknown)[frozenset({("leaf 1", 3), ("gamma mlx5_0", 1)})] == (4, SPEED_OF["SDR"])
    assert caught == ["1 link has an unknown rate (?); ibnue assumes 4xSDR, the most frequent one"]


@pytest.mark.parametrize(
    "name", ["mixed-lfts.dump", "mixed.fdbs", "mixed.ibroute", "mixed.saquery_lftr", "mixed.ibdiagnet"]
)
def test_tables_in_every_format(tmp_path, name):
    expected = lfts.read(DATA / "mixed-lfts.dump", FABRIC)
    path = DATA / name
    if name == "mixed.ibdiagnet":
        path = tmp_path / "ibdiagnet2.fdbs"
        path.write_text((DATA / "mixed.fdbs").read_text().replace("dump_ucast", "osm_ucast_mgr_dump_ucast"))
        assert np.array_equal(read_tables(tmp_path, FABRIC).lft, expected)
    assert np.array_equal(read_lft_file(path, FABRIC), expected)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\t\tLID........................3", "\t\tLID........................4", r"file:141: LID 4 is not a switch"),
        ("\t\t1\t1\n", "\t\t1\t9\n", "file:1: 'spine0' has no such port, it has 6"),
        ("\t\t1\t1\n", "", "file:1: this is not a record of 64 LFT entries"),
        ("\t\t1\t1\n", "\t\t2\t1\n", "file:1: block 0 has LIDs 0 to 63, in ascending order"),
        ("Block......................0", "Block......................1", "file:1: block 1 has LIDs 64 to 127"),
    ],
)
def test_errors_of_saquery(tmp_path, old, new, message):
    text = (DATA / "mixed.saquery_lftr").read_text()
    assert old in text
    (tmp_path / "file").write_text(text.replace(old, new, 1))
    with pytest.raises(IbnueError, match=message):
        read_lft_file(tmp_path / "file", FABRIC)


def test_saquery_that_was_cut_short(tmp_path):
    text = (DATA / "mixed.saquery_lftr").read_text()
    head = "LFT Record dump:"
    first, *_ = text.split(head)[1:]
    for cut, message in [
        (head + first, r"3 of 4 switches of the fabric are missing in the file, such as 'spine1'"),
        (text + head + first, "a second block 0 of LID 2"),
        (text + head + first.replace("Block......................0", "Block......................1").replace(
            first[first.index("Port Number") + 11 :], "".join(f"\n\t\t{lid}\t255" for lid in range(64, 128)) + "\n"
        ), "has 1 of 2 blocks"),
    ]:  # fmt: skip
        (tmp_path / "file").write_text(cut)
        with pytest.raises(IbnueError, match=message):
            read_lft_file(tmp_path / "file", FABRIC)


def test_ibroute_of_one_switch(tmp_path):
    one = "Unicast lids" + (DATA / "mixed.ibroute").read_text().split("Unicast lids")[1]
    (tmp_path / "file").write_text(one)
    with pytest.raises(IbnueError, match=r"3 of 4 switches .*ibroute prints one switch: put the outputs"):
        read_lft_file(tmp_path / "file", FABRIC)


@pytest.mark.parametrize(
    ("text", "as_fabric", "as_tables"),
    [
        (
            (DATA / "mixed.ibnetdiscover_l").read_text(),
            r"this is `ibnetdiscover -l`, a list of nodes without links \(run `ibnetdiscover`\)",
            "a list of nodes without links, not a file of LFTs",
        ),
        ('Ca\t: 0xc0ffee0000009999 ports 1 "gamma"\n', "`ibhosts` or `ibswitches`", "not a file of LFTs"),
        ("+\udc83\udce7\udc8f\x01\x00", "a cache of `ibnetdiscover`", "a cache"),
        ((DATA / "mixed.fdbs").read_text(), r"forwarding tables \(name it as TABLES", None),
        ((DATA / "mixed.saquery_lftr").read_text(), r"`saquery LFTR`.*\(name it as TABLES", None),
        ((DATA / "mixed.ibroute").read_text(), r"forwarding tables \(name it as TABLES", None),
        ("Multicast mlids [0xc000-0xc3ff] of", "multicast tables", "multicast tables"),
        ("PathRecord dump:\n\t\tdlid", r"path records \(name it with --sl", "name it with --sl"),
        ("NodeRecord dump:\n\t\tlid....4", "output of `saquery`", "output of `saquery`"),
        ("PK\x03\x04" + "\x00" * 26 + "fabric.txt", r"a zip file \(unpack it\)", "a zip file, not a file of LFTs"),
        ("PK\x03\x04" + "\x00" * 26 + "format.npy", r"a bundle of ibnue \(name it as TABLES", None),
        ((DATA / "mixed.guid2lid").read_text(), "name it with --guid2lid", "guid2lid"),
        ((DATA / "mixed.ibnetdiscover").read_text(), None, r"this is a fabric, .*\(name it as FABRIC"),
        ((DATA / "mixed-subnet.lst").read_text(), None, r"this is a fabric, .*\(name it as FABRIC"),
        ((DATA / "mixed.db_csv").read_text(), None, "the tables are in ibdiagnet2.fdbs"),
    ],
)
def test_known_kinds_are_named(tmp_path, text, as_fabric, as_tables):
    path = tmp_path / "file"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    if as_fabric is not None:
        with pytest.raises(IbnueError, match=as_fabric):
            read_fabric(path)
    if as_tables is not None:
        with pytest.raises(IbnueError, match=as_tables):
            read_lft_file(path, FABRIC)


def standard_input(monkeypatch, path):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes() if path else b"")))


def test_standard_input(monkeypatch):
    standard_input(monkeypatch, DATA / "mixed.iblinkinfo_l")
    fabric = read_fabric("-")
    assert cables(fabric) == cables(FABRIC) and fabric.name == "standard input"
    standard_input(monkeypatch, DATA / "mixed.fdbs")
    routing = read_tables("-", FABRIC)
    assert np.array_equal(routing.lft, lfts.read(DATA / "mixed-lfts.dump", FABRIC))
    assert routing.provenance.options["file"] == "-"
    standard_input(monkeypatch, DATA / "mixed.iblinkinfo")
    with pytest.raises(IbnueError, match=r"^standard input:1: this is not a line"):
        read_tables("-", FABRIC)
    standard_input(monkeypatch, None)
    with pytest.raises(IbnueError, match="standard input is empty"):
        read_tables("-", FABRIC)
    with pytest.raises(IbnueError, match=r"^standard input: an empty file"):
        read_fabric("-")
    monkeypatch.setattr(sys, "stdin", None)
    for attempt in (lambda: read_fabric("-"), lambda: read_tables("-", FABRIC)):
        with pytest.raises(IbnueError, match="standard input is closed"):
            attempt()


@pytest.mark.parametrize("name", LISTS)
def test_a_terminal_log(tmp_path, name):
    data = b"=~=~=~= PuTTY log =~=~=~=\nibwarn: [7] sim_connect: attached\nDR path slid 0; dlid 0; 0,1 -> new Switch\n"
    data += (DATA / name).read_bytes()
    (tmp_path / "file").write_bytes(data.replace(b"\n", b"\r\r\n"))
    assert cables(read_fabric(tmp_path / "file")) == cables(FABRIC)


def test_ports_of_two_adapters_of_a_host(tmp_path):
    """Two CAs with one name are two CAs, unless their GUIDs are numbered like the ports of one CA."""
    lines = [
        "CA 2 1 0x{} 4x NDR - SW 1 1 0x9 ( 'h' - 's' )", "CA 3 {} 0x{} 4x NDR - SW 1 2 0x9 ( 'h' - 's' )",
        "SW 1 1 0x9 4x NDR - CA 2 1 0x{} ( 's' - 'h' )", "SW 1 2 0x9 4x NDR - CA 3 {} 0x{} ( 's' - 'h' )",
    ]  # fmt: skip
    for guid, port, other, count in (("21", 2, "22", 1), ("21", 1, "22", 2), ("21", 2, "31", 2)):
        values = ((guid,), (port, other), (guid,), (port, other))
        text = "\n".join(line.format(*value) for line, value in zip(lines, values, strict=True))
        fabric = read(tmp_path, text)[0]
        assert (len(fabric.terminal_name), fabric.endports) == (count, 2)


def test_builders_of_named_cables_follow_ibsim(tmp_path):
    """Devices of a plan get the GUIDs that ibsim would assign, and the ports of a CA get the GUIDs after their
    device.
    """
    fabric = read(tmp_path, PLAN + "s,Port 3,h,Port 1\n")[0]
    builder = FabricBuilder(name="file")
    switch = builder.add_device(NodeKind.SWITCH, 0x200000, "s", 3)
    builder.connect(switch, 3, builder.add_device(NodeKind.CA, 0x100000, "h", 1), 1)
    assert fabric.digest == builder.build().digest
