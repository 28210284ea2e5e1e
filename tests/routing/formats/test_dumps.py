"""Check fdbs, LID matrix, SL2VL tables and SLs: written and read back, against slow references, and with invalid
lines.
"""

import dataclasses
import re

import networkx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from in_one_test import cases_in_one_test
from routing_cases import tables
from strategies import fabrics, random_fabric, ring_fabric

from routing.errors import IbnueError, ParseError, TableError
from routing.formats import fdbs, guid_lists, lid_matrix, path_sl, sl2vl_dump
from routing.formats.lid_map import lid_owner
from routing.tables import SlToVl, identity_sl2vl

SMALL = examples(30)


@SMALL
@given(fabrics(max_switches=8, connected=False))
def test_fdbs_come_back(tmp_path_factory, fabric):
    path = tmp_path_factory.mktemp("f") / "fdbs"
    routing, proof = tables(fabric)
    fdbs.write(path, fabric, routing.lft, proof.hops)
    assert np.array_equal(fdbs.read(path, fabric), routing.lft)


def test_fdbs_text(tmp_path):
    fabric = ring_fabric(3, lmc=1)
    routing, proof = tables(fabric)
    best = proof.hops.copy()
    best[0, 2] = 0
    fdbs.write(tmp_path / "f", fabric, routing.lft, proof.hops, best)
    lines = (tmp_path / "f").read_text().splitlines()
    assert lines[:3] == [
        "dump_ucast_routes: Switch 0x0000000000200000",
        "LID    : Port : Hops : Optimal",
        "0x0001 : 000  : 00   : yes",
    ]
    assert lines[3].startswith(f"0x0002 : {routing.lft[0, 2]:03d}  : 01   : No")
    own = int(np.flatnonzero(fabric.lids.endport == np.flatnonzero(fabric.endport_switch == 0)[0])[0])
    assert lines[1 + own] == f"0x{own:04X} : {routing.lft[0, own]:03d}  : 01   : yes"


@SMALL
@given(fabrics(max_switches=8, connected=False), st.booleans())
def test_lid_matrix_comes_back(tmp_path_factory, fabric, made):
    path = tmp_path_factory.mktemp("m") / "matrix"
    routing, proof = tables(fabric)
    matrix = lid_matrix.of_routing(fabric, routing.lft, proof.hops) if made else lid_matrix.shortest(fabric)
    lid_matrix.write(path, fabric, matrix)
    found = lid_matrix.read(path, fabric)
    assert np.array_equal(found.lid, matrix.lid)
    for row, ports in enumerate(fabric.switch_ports.tolist()):
        there = matrix.hops[row, :, 0] != 255
        assert np.array_equal(found.hops[row, there, : ports + 1], matrix.hops[row, there, : ports + 1])
        assert (found.hops[row, ~there] == 255).all()


@SMALL
@given(fabrics(max_switches=8, connected=False))
def test_shortest_matrix_is_one_more_than_the_neighbour(fabric):
    graph = fabric.to_networkx().subgraph(range(fabric.switches))
    distance = dict(networkx.all_pairs_shortest_path_length(graph))
    matrix = lid_matrix.shortest(fabric)
    location = {int(lid): n for n, lid in enumerate(matrix.lid)}
    channels = fabric.channels
    for target, lid in enumerate(fabric.switch_lid.tolist()):
        for switch in range(fabric.switches):
            assert matrix.hops[switch, location[lid], 0] == distance[switch].get(target, 255)
        for channel in range(len(channels)):
            near = distance[int(channels.dst[channel])].get(target)
            found = matrix.hops[channels.src[channel], location[lid], channels.port[channel]]
            assert found == (255 if near is None else near + 1)


@SMALL
@given(fabrics(max_switches=6, connected=False), st.booleans(), st.booleans())
def test_sl2vl_tables_come_back(tmp_path_factory, fabric, per_port, packed):
    path = tmp_path_factory.mktemp("s") / "sl2vl"
    sl2vl = tables(fabric, per_port=per_port)[0].sl2vl
    if packed:
        sl2vl_dump.write_slvl(path, fabric, sl2vl)
    else:
        sl2vl_dump.write(path, fabric, sl2vl, identity_sl2vl(4))
    found = sl2vl_dump.read(path, fabric)
    if found.ndim == 1:
        found = np.broadcast_to(found, (fabric.switches, 256, 256, 16))
    cabled = sl2vl_dump.cabled_ports(fabric)
    for switch in range(fabric.switches):
        whole = SlToVl(sl2vl).of_switch(switch, int(fabric.switch_ports[switch]))
        used = np.flatnonzero(cabled[switch]).tolist()
        for in_port in [0, *used]:
            for out_port in used:
                if in_port != out_port:
                    assert np.array_equal(found[switch, in_port, out_port], whole[in_port, out_port])


@SMALL
@given(fabrics(max_switches=6, connected=False), st.sampled_from(["lid", "switch", "pair"]), st.booleans())
def test_sls_come_back(tmp_path_factory, fabric, sl_form, records):
    path = tmp_path_factory.mktemp("p") / "sl"
    routing, proof = tables(fabric, sl_form=sl_form)
    if records:
        path_sl.write_path_records(path, fabric, routing.lft, proof.hops, routing.sl)
    else:
        path_sl.write_psl(path, fabric, routing.sl)
    found = path_sl.read(path, fabric)
    again = dataclasses.replace(routing, sl=found)
    again.check_shapes(fabric)
    owned = np.flatnonzero(lid_owner(fabric))
    first = set(np.unique(fabric.endport_terminal, return_index=True)[1].tolist())
    for source in range(fabric.switches + fabric.endports):
        end = source - fabric.switches
        switch = source if end < 0 else int(fabric.endport_switch[end])
        if switch < 0 or (not records and end >= 0 and end not in first):
            continue
        reached = owned[proof.hops[switch, owned] != 255] if records else owned
        if sl_form != "pair" and not records and end >= 0 and fabric.terminal_ports[fabric.endport_terminal[end]] > 1:
            continue
        wanted = path_sl.sl_from(fabric, routing.sl, source)[reached]
        assert np.array_equal(path_sl.sl_from(fabric, found, source)[reached], wanted)


def test_sl_forms_stay_small():
    fabric = random_fabric(3, switches=4)
    stated = np.full((fabric.switches + fabric.endports, len(fabric.lids)), 255, np.uint8)
    assert path_sl.smallest_form(fabric, stated).shape == (len(fabric.lids),)
    stated[:] = 3
    assert path_sl.smallest_form(fabric, stated).tolist() == [3] * len(fabric.lids)
    stated[1] = 2
    stated[fabric.switches + np.flatnonzero(fabric.endport_switch == 1)] = 2
    assert path_sl.smallest_form(fabric, stated).shape == (fabric.switches, len(fabric.lids))
    stated[-1] = 5
    assert path_sl.smallest_form(fabric, stated).shape == (len(fabric.lids), len(fabric.lids))


def test_rates_are_those_of_the_slowest_link(tmp_path):
    fabric = random_fabric(7, switches=6, mixed_speeds=True)
    routing, proof = tables(fabric)
    path_sl.write_path_records(tmp_path / "p", fabric, routing.lft, proof.hops, routing.sl)
    gbps = {2: 2.5, 5: 5, 3: 10, 6: 20, 4: 30, 7: 40, 8: 60, 9: 80, 10: 120}
    nominal = fabric.link_width * fabric.link_speed
    by_port = {}
    for (a, b), (p, q), rate in zip(
        fabric.link_device.tolist(), fabric.link_port.tolist(), nominal.tolist(), strict=True
    ):
        by_port[a, p], by_port[b, q] = rate, rate
    text, ends = (tmp_path / "p").read_text(), {int(g): n for n, g in enumerate(fabric.endport_guid)}
    for section in text.split("\n\n")[:-1]:
        head, _, *lines = section.splitlines()
        end = ends.get(int(re.search("0x([0-9a-f]+)", head)[1], 16))
        if end is None:
            continue
        for line in lines:
            lid, _, _, code = (field.strip() for field in line.split(":"))
            lid, switch = int(lid, 16), int(fabric.endport_switch[end])
            slowest = by_port[fabric.switches + int(fabric.endport_terminal[end]), int(fabric.endport_port[end])]
            while (port := int(routing.lft[switch, lid])) != 0:
                slowest = min(slowest, by_port[switch, port])
                channel = int(fabric.channels.at_port[switch, port])
                if channel < 0:
                    break
                switch = int(fabric.channels.dst[channel])
            assert gbps[int(code)] == slowest


def test_guid2lid(tmp_path):
    fabric = ring_fabric(2, lmc=1)
    guid_lists.write_guid2lid(tmp_path / "g", fabric)
    assert (tmp_path / "g").read_text().startswith("0x0000000000100001 0x0004 0x0005\n\n")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder, fabric = tmp_path_factory.mktemp("w"), ring_fabric(3)
    routing, proof = tables(fabric, per_port=True, sl_form="pair")
    fdbs.write(folder / "fdbs", fabric, routing.lft, proof.hops)
    lid_matrix.write(folder / "matrix", fabric, lid_matrix.shortest(fabric))
    sl2vl_dump.write(folder / "sl2vl", fabric, routing.sl2vl, identity_sl2vl(4))
    sl2vl_dump.write_slvl(folder / "slvl", fabric, routing.sl2vl)
    path_sl.write_psl(folder / "psl", fabric, routing.sl)
    path_sl.write_path_records(folder / "records", fabric, routing.lft, proof.hops, routing.sl)
    return folder, fabric


READERS = {
    "fdbs": fdbs.read,
    "matrix": lid_matrix.read,
    "sl2vl": sl2vl_dump.read,
    "slvl": sl2vl_dump.read,
    "psl": path_sl.read,
    "records": path_sl.read,
}

BAD = [
    ("fdbs", "0x0002 : ", "0x0002 ; ", "not a line of a dump"),
    ("fdbs", "0x0002 : 00", "0x0002 : 09", "no such port"),
    ("fdbs", "0x0003", "0x0002", "already"),
    ("fdbs", "0x0006 :.*\n", "", "another LID"),
    ("fdbs", "Switch 0x0000000000200001", "Switch 0x0000000000200009", "not in the fabric"),
    ("matrix", "0x0001:", "0x0001", "not a line of a LID matrix"),
    ("matrix", "0x0001: 00", "0x0001: 00 00", "ports"),
    ("matrix", "0x0002: (.*)0x0000000000200001", r"0x0001: \1 0x0000000000200000", "already"),
    ("matrix", "Switch: guid 0x0000000000200001", "Switch: guid 0x0000000000200009", "not in the fabric"),
    ("matrix", "Switch: guid 0x0000000000200001", "Switch: guid 0x0000000000200000", "second section"),
    ("sl2vl", "\n0   1   :.*\n", "\n", "the file has no table"),
    ("sl2vl", "\n0   1   : ([0-9]+)", "\n0   1   : 16", "over 15"),
    ("sl2vl", "\n0   1   : ([0-9]+)", "\n0   9   : 1 ", "no port 9"),
    ("sl2vl", "\n0   1   :", "\n0   1   ", "not a line of SL2VL"),
    ("sl2vl", "Switch 0x0000000000200001", "Switch 0x0000000000200009", "not in the fabric"),
    ("slvl", "0x0000000000200000 0 1.*\n", "", "the file has no table"),
    ("slvl", "0x0000000000200000 0 1", "0x0000000000200009 0 1", "not in the fabric"),
    ("psl", " 1 [0-9]+\n", " 1 16\n", "over 15"),
    ("psl", " 1 ([0-9]+)\n", " 65000 1\n", "not a unicast LID"),
    ("psl", "0x0000000000200000 1 ", "0x0000000000200009 1 ", "not in the fabric"),
    ("psl", " 1 ([0-9]+)\n", " one two\n", "not a line of service levels"),
    ("records", "0x0001 : [0-9]+", "0x0001 : 16", "over 15"),
    ("records", "0x0001 : [0-9 :]+", "0x0001 : 17", "over 15"),
    ("records", "0x0001 : [0-9]+", "0xC001 : 1", "not a unicast LID"),
    ("records", "Switch .*\n", "", "before the first source"),
]


@cases_in_one_test(("name", "old", "new", "why"), BAD)
def test_bad_lines_are_refused_with_their_location(tmp_path, written, name, old, new, why):
    folder, fabric = written
    text = (folder / name).read_text()
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    (tmp_path / name).write_text(changed)
    with pytest.raises((ParseError, TableError), match=why) as caught:
        READERS[name](tmp_path / name, fabric)
    assert "\n" not in str(caught.value) and str(tmp_path / name) in str(caught.value)


@examples(300)
@given(st.sampled_from(sorted(READERS)), st.data())
def test_any_damage_is_read_or_refused(tmp_path_factory, written, name, data):
    folder, fabric = written
    lines = (folder / name).read_bytes().splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        location = data.draw(st.integers(0, len(lines) - 1))
        line = bytearray(lines[location])
        kind = data.draw(st.sampled_from(["cut", "byte", "drop", "copy", "junk"]))
        if kind == "cut":
            lines[location] = bytes(line[: data.draw(st.integers(0, len(line)))])
        elif kind == "byte" and line:
            line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
            lines[location] = bytes(line)
        elif kind == "junk":
            lines[location] = data.draw(st.binary(max_size=40))
        else:
            lines[location] *= 0 if kind == "drop" else 2
    path = tmp_path_factory.getbasetemp() / f"damaged-{name}"
    path.write_bytes(b"".join(lines))
    try:
        READERS[name](path, fabric)
    except IbnueError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("name", sorted(READERS))
def test_lines_that_are_decoded_at_once_mean_the_same_as_one_by_one(tmp_path, written, name):
    folder, fabric = written
    slow = (folder / name).read_bytes().replace(b"\n", b"\r\n")
    if name == "fdbs":
        slow = slow.replace(b"\n0x", b"\n 0x")
    (tmp_path / name).write_bytes(slow)
    found, wanted = (READERS[name](where / name, fabric) for where in (tmp_path, folder))
    if name == "matrix":
        found, wanted = found.hops, wanted.hops
    assert np.array_equal(found, wanted)


def test_sls_for_moved_lids_are_refused(tmp_path, written):
    folder, fabric = written
    moved = dataclasses.replace(fabric, switch_lid=fabric.switch_lid + np.uint16(40))
    with pytest.raises(TableError, match="has LID 1 here and LID 41 in the fabric"):
        path_sl.read(folder / "records", moved)


def test_path_records_may_leave_mtu_and_rate_out(tmp_path):
    fabric = ring_fabric(4)
    sl = np.arange(len(fabric.lids), dtype=np.uint8) * 3 % 16
    lids = np.flatnonzero(lid_owner(fabric)).tolist()
    sources = [(guid, fabric.switch_lid[row], "Switch") for row, guid in enumerate(fabric.switch_guid.tolist())]
    ends = zip(fabric.endport_guid.tolist(), fabric.endport_lid.tolist(), strict=True)
    sources += [(guid, lid, "Channel Adapter") for guid, lid in ends]
    text = "".join(
        f'{kind} 0x{guid:016x}, base LID {base}, "x", port 1\n# LID  : SL\n'
        + "".join(f"0x{lid:04X} : {sl[lid]}\n" for lid in lids)
        for guid, base, kind in sources
    )
    path = tmp_path / "records"
    path.write_text(text)
    found = path_sl.read(path, fabric)
    assert found.shape == sl.shape
    assert (found[lids] == sl[lids]).all()


@pytest.mark.parametrize("name", ["psl", "records"])
def test_sls_that_end_between_two_sources_are_refused(tmp_path, written, name):
    """An SL of 0 for the remaining paths would be wrong."""
    folder, fabric = written
    lines = (folder / name).read_text().splitlines(keepends=True)
    guid = {"psl": fabric.terminal_guid[fabric.endport_terminal[-1]], "records": fabric.endport_guid[-1]}[name]
    last = next(number for number, line in enumerate(lines) if f"0x{guid:016x}" in line)
    for kept in (0, last):
        (tmp_path / "d").write_text("".join(lines[:kept]))
        with pytest.raises(TableError, match="the file has no paths from 'ca") as reported:
            path_sl.read(tmp_path / "d", fabric)
        assert "cut short" in reported.value.remedy


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_byte_order_mark_is_no_text(tmp_path, written, name):
    folder, fabric = written
    (tmp_path / "d").write_bytes(b"\xef\xbb\xbf" + (folder / name).read_bytes())
    found, plain = (READERS[name](path, fabric) for path in (tmp_path / "d", folder / name))
    assert np.array_equal(*(what.hops if name == "matrix" else what for what in (found, plain)))
