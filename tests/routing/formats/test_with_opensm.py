"""Compare ibnue's dumps with dumps of a real OpenSM, and let OpenSM and ibdmchk read ibnue's files."""

import dataclasses
import shutil

import numpy as np
import pytest
from routing_cases import FakeProof, shortest, tables
from strategies import random_fabric, ring_fabric

from ibsim_fixtures import ibdmchk
from ibsim_fixtures.fabrics import FIXTURES
from routing.formats import fdbs, lfts, lid_matrix, sl2vl_dump
from routing.formats.fabric_files import read_fabric, write_net
from routing.formats.lft_files import read_lft_file
from routing.formats.lid_map import lid_owner, old_columns
from routing.formats.table_files import read_tables, write_tables
from routing.tables import identity_sl2vl

pytestmark = pytest.mark.lab


def as_opensm_sees_it(net, folder):
    return read_fabric(net, guid2lid=folder / "guid2lid")


@pytest.mark.parametrize("name", ["ring-4", "tree-2-3-faults", "lmc-2", "parallel-uneven", "dual-port-two-switches"])
def test_dumps_are_written_byte_for_byte(lab, tmp_path, name):
    fixture = FIXTURES[name]
    running = lab(fixture.path, config={"qos": True, "lmc": 2 if name == "lmc-2" else 0})
    folder = running.opensm.folder
    fabric = as_opensm_sees_it(fixture.path, folder)
    lft = lfts.read(folder / "opensm-lfts.dump", fabric)
    sl2vl = sl2vl_dump.read(folder / "opensm-sl2vl.dump", fabric)
    matrix = lid_matrix.read(folder / "opensm-lid-matrix.dump", fabric)
    hops = np.full(lft.shape, 255, np.uint8)
    there = np.flatnonzero(fabric.lids.switch >= 0)
    hops[:, there] = lid_matrix.switch_distance(fabric)[:, fabric.lids.switch[there]]

    lfts.write(tmp_path / "opensm-lfts.dump", fabric, lft)
    fdbs.write(tmp_path / "opensm.fdbs", fabric, lft, hops)
    sl2vl_dump.write(tmp_path / "opensm-sl2vl.dump", fabric, sl2vl, sl2vl)
    lid_matrix.write(tmp_path / "opensm-lid-matrix.dump", fabric, lid_matrix.shortest(fabric))
    for file in ("opensm-lfts.dump", "opensm.fdbs", "opensm-sl2vl.dump", "opensm-lid-matrix.dump"):
        assert (tmp_path / file).read_bytes() == (folder / file).read_bytes(), file
    assert np.array_equal(matrix.hops, lid_matrix.shortest(fabric).hops)
    assert np.array_equal(fdbs.read(folder / "opensm.fdbs", fabric), lft)
    assert np.array_equal(read_tables(folder, fabric).lft, lft)

    (tmp_path / "dump_fts").write_text(running.ibsim.run("dump_fts"))
    from_switches = lfts.read(tmp_path / "dump_fts", fabric)
    left_out = from_switches != lft  # dump_fts stops too early if the last LID is the first LID of a block of 64
    assert np.array_equal(np.flatnonzero(left_out.any(axis=0)), np.flatnonzero(left_out.all(axis=0)))
    assert left_out.any(axis=0).sum() <= 1


@pytest.mark.parametrize("name", ["lmc-2", "dual-port-two-switches"])
def test_outputs_of_the_diagnostic_programs_are_read(lab, tmp_path, name):
    """Lists of ports give the fabric of ibnetdiscover.  LFTs from the switches and the SA equal the LFTs in the
    dump.
    """
    lmc = 2 if name == "lmc-2" else 0
    running = lab(FIXTURES[name].path, config={"lmc": lmc})
    fabric, path = running.fabric(), tmp_path / "printed"
    for command in (["ibnetdiscover", "-p"], ["iblinkinfo"], ["iblinkinfo", "-l"]):
        path.write_text(running.ibsim.run(*command))
        found = read_fabric(path, lmc=lmc)
        assert (found.links, found.terminals) == (fabric.links, fabric.terminals)
        for field in ("switch_guid", "switch_lid", "switch_ports", "endport_guid", "endport_lid", "endport_lmc",
                      "link_device", "link_port", "link_width", "link_speed"):  # fmt: skip
            assert np.array_equal(getattr(found, field), getattr(fabric, field)), (command, field)
    lft = lfts.read(running.opensm.folder / "opensm-lfts.dump", fabric)
    switches = fabric.switch_lid.tolist()
    for program, words in (("ibroute", switches), ("saquery LFTR", [f"{lid}/0" for lid in switches])):
        path.write_text("".join(running.ibsim.run(*program.split(), word) for word in words))
        assert np.array_equal(read_lft_file(path, fabric), lft), program


@pytest.fixture
def loaded(lab, tmp_path):
    """Return a fabric with other LIDs than OpenSM assigns, its tables, and an OpenSM that loads the tables."""
    fabric = random_fabric(11, switches=9, cas=2, shuffled_guids=True, lmc=1)
    write_net(fabric, tmp_path / "f.net")
    fabric = dataclasses.replace(fabric, endport_lid=fabric.endport_lid[::-1].copy(), switch_lid=fabric.switch_lid + 64)
    routing, proof = tables(fabric, seed=3)
    written = tmp_path / "tables"
    write_tables(written, fabric, routing, proof)
    config = {
        "lfts_file": str(tmp_path / "lfts"),
        "lid_matrix_dump_file": str(tmp_path / "matrix"),
        "lmc": 1,
    }
    shutil.copy(written / "opensm-lfts.dump", tmp_path / "lfts")
    shutil.copy(written / "opensm-lid-matrix.dump", tmp_path / "matrix")
    running = lab(tmp_path / "f.net", routing_engine="file,no_fallback", config=config)
    return fabric, routing, running, as_opensm_sees_it(tmp_path / "f.net", running.opensm.folder)


def test_opensm_loads_our_lfts_and_follows_the_guids(loaded):
    fabric, routing, running, seen = loaded
    assert not np.array_equal(lid_owner(fabric), lid_owner(seen))
    found = lfts.read(running.opensm.folder / "opensm-lfts.dump", seen)
    column = old_columns(lid_owner(fabric), lid_owner(seen))
    owned = np.flatnonzero(lid_owner(seen))
    assert np.array_equal(found[:, owned], routing.lft[:, column[owned]])


def test_opensm_loads_the_short_form_and_our_lid_matrix(loaded, tmp_path):
    _, __, running, seen = loaded
    lft, hops = shortest(seen, seed=8)
    lfts.write(tmp_path / "lfts", seen, lft, named=False)
    matrix = lid_matrix.of_routing(seen, lft, hops)
    lid_matrix.write(tmp_path / "matrix", seen, matrix)
    running.opensm.resweep()
    folder = running.opensm.folder
    assert np.array_equal(lfts.read(folder / "opensm-lfts.dump", seen), lft)
    assert (folder / "opensm-lid-matrix.dump").read_bytes() == (tmp_path / "matrix").read_bytes()
    fdbs.write(tmp_path / "fdbs", seen, lft, hops)
    assert (folder / "opensm.fdbs").read_bytes() == (tmp_path / "fdbs").read_bytes()


def dateline(fabric, lft):
    """Return uint8[S, L]: 1 if the path from a switch to a LID uses the link between the last switch of a ring and the
    first.
    """
    sl = np.zeros(lft.shape, np.uint8)
    for switch in range(fabric.switches):
        for lid in np.flatnonzero(lid_owner(fabric)).tolist():
            here = switch
            while (channel := int(fabric.channels.at_port[here, lft[here, lid]])) >= 0:
                following = int(fabric.channels.dst[channel])
                if {here, following} == {0, fabric.switches - 1}:
                    sl[switch, lid] = 1
                here = following
    return sl


def test_ibdmchk_reads_what_we_write(lab, tmp_path):
    net = tmp_path / "f.net"
    write_net(ring_fabric(5), net)
    running = lab(net)
    fabric = as_opensm_sees_it(net, running.opensm.folder)
    lft, hops = shortest(fabric)
    routing, proof = tables(fabric)
    routing = dataclasses.replace(routing, lft=lft, sl=dateline(fabric, lft), sl2vl=identity_sl2vl(2), vls=2)
    write_tables(tmp_path / "t", fabric, routing, FakeProof(hops, proof.certificate))
    files = {"-s": running.opensm.folder / "opensm-subnet.lst", "-f": tmp_path / "t" / "opensm.fdbs"}
    files["-m"] = tmp_path / "t" / "opensm.mcfdbs"
    for sls in (False, True):
        if sls:
            files |= {"-c": tmp_path / "t" / "ibdmchk.psl", "-d": tmp_path / "t" / "ibdmchk.slvl"}
        command = [str(part) for pair in files.items() for part in pair]
        verdict = ibdmchk._parse(ibdmchk._run(["ibdmchk", *command], tmp_path, 60))
        # All shortest paths of a ring of five close a cycle.  Two VLs and a dateline avoid the loop.
        assert verdict.credit_loop is not sls
        assert verdict.sls == (2 if sls else 1) and verdict.paths > 0
        assert not [line for line in verdict.errors if "fail" in line.lower()]
