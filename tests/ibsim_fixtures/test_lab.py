import pytest
from campaigns import some_of
from lab_nets import ring
from waiting import until

from ibsim_fixtures.catalogue import FIXTURES
from ibsim_fixtures.ibdmchk import read_sl2vl
from ibsim_fixtures.lab import Lab
from ibsim_fixtures.mad_client import ask
from ibsim_fixtures.processes import LabError
from ibsim_fixtures.readback import path_record, switch_lfts

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("engine", ["minhop", "dfsssp", "lash", "sssp", "dor"])
def test_tables_of_dump_and_switches_agree(ring4, engine):
    with Lab(ring4, routing_engine=f"{engine},no_fallback", config={"qos": True}) as lab:
        assert lab.sweep.engine == engine
        assert lab.sweep.errors == ()
        assert lab.sweep.routing_seconds < lab.sweep.seconds
        tables = lab.switch_lfts()
        assert sorted(tables) == [0x200000 + s for s in range(4)]
        assert all(sorted(table) == list(range(1, 9)) for table in tables.values())
        assert lab.dumped_lfts() == tables == lab.switch_lfts(lab.fabric())
        assert lab.ibsim.warnings == []


def test_unlink_reroutes_and_relink_brings_back(ring4):
    with Lab(ring4) as lab:
        before = lab.switch_lfts()
        sweep = lab.unlink_live("sw0", 2)
        assert sweep.engine == "minhop"
        cut = lab.switch_lfts()
        # The trap of the other end of the cable may cause another sweep, which writes the dump again.
        until(lambda: lab.dumped_lfts() == cut)
        assert 2 not in cut[0x200000].values()
        lab.relink_live("sw0", 2)
        after = lab.switch_lfts()
        until(lambda: lab.dumped_lfts() == after)
        assert sorted(after[0x200000]) == sorted(before[0x200000])
        assert 2 in after[0x200000].values()


def test_switches_and_cas_are_lost_and_found(ring4):
    with Lab(ring4, sm_host="h0", config={"sweep_on_trap": False}) as lab:
        lids = {owner.guid: owner.lid for owner in lab.owners()}
        lab.unlink("h2")
        tables = lab.switch_lfts()
        assert tables == lab.dumped_lfts()
        assert all(lids[lab.ibsim.device("h2").guid] not in table for table in tables.values())
        assert lab.fabric().terminal_name == ("h0", "h1", "h3")
        lab.unlink("sw2")
        tables = lab.switch_lfts()
        assert tables == lab.dumped_lfts()
        assert sorted(tables) == [0x200000, 0x200001, 0x200003]
        lab.relink("h2")  # the switch of h2 is still disconnected
        lab.relink("sw2")
        tables = lab.switch_lfts()
        assert tables == lab.dumped_lfts()
        assert len(tables) == 4
        assert {owner.guid: owner.lid for owner in lab.owners()} == lids


@pytest.mark.parametrize("switches", some_of([32, 33], [32]))
def test_the_last_lid_of_a_full_block_is_read(net, switches):
    # With 64 LIDs, the highest LID is the first LID of a block, which dump_fts omits.
    with Lab(net(switches, [(i, i + 1) for i in range(switches - 1)])) as lab:
        assert max(owner.lid for owner in lab.owners()) == 2 * switches
        tables = lab.switch_lfts()
        assert tables == lab.dumped_lfts() == lab.switch_lfts(lab.fabric())
        assert all(2 * switches in table for table in tables.values())


def test_switches_that_cannot_be_asked_by_lid_are_read_by_discovery(ring4):
    with Lab(ring4) as lab:
        expected, fabric = lab.switch_lfts(), lab.fabric()
        lids = dict(zip(fabric.switch_guid.tolist(), fabric.switch_lid.tolist(), strict=True))
        assert switch_lfts(lab.ibsim, lids) == expected
        swapped = {**lids, 0x200000: lids[0x200001], 0x200001: lids[0x200000]}
        assert switch_lfts(lab.ibsim, swapped) == expected
        assert switch_lfts(lab.ibsim, {**lids, 0x200000: int(fabric.endport_lid[0])}) == expected


def test_the_live_fabric(ring4):
    with Lab(ring4, config={"lmc": 1}) as lab:
        fabric = lab.fabric()
        assert fabric.switch_name == ("sw0", "sw1", "sw2", "sw3")
        assert fabric.endport_lmc.tolist() == [1] * 4
        owned = {owner.guid: owner.lid for owner in lab.owners()}
        guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
        lids = [*fabric.switch_lid.tolist(), *fabric.endport_lid.tolist()]
        assert dict(zip(guids, lids, strict=True)) == owned
        routing = lab.routing(fabric)
        read = {
            guid: {lid: port for lid, port in enumerate(row) if port != 255}
            for guid, row in zip(fabric.switch_guid.tolist(), routing.lft.tolist(), strict=True)
        }
        assert read == lab.switch_lfts()


def test_queries(ring4):
    # The engine is not dfsssp, because dfsssp draws the SL of each query at random.
    with Lab(ring4, routing_engine="lash", config={"qos": True, "qos_max_vls": 4}) as lab:
        lids = {lab.ibsim.device(f"{kind}{i}").guid: (kind, i) for kind in ("sw", "h") for i in range(4)}
        lid = {lids[owner.guid]: owner.lid for owner in lab.owners()}
        assert lab.portinfo(lid["sw", 0], 2)["LinkState"] == "Active"
        assert lab.portinfo(lid["sw", 0], 9)["LinkState"] == "Down"
        assert lab.portinfo(lid["h", 1], 1)["Lid"] == str(lid["h", 1])
        rows = lab.sl2vl(lid["sw", 0], [2, 3])
        assert {leave for _, leave in rows} == {2, 3}
        assert {entry for entry, _ in rows} == set(range(13))
        assert lab.sl2vl(lid["h", 1], [1]).keys() == {(0, 1)}
        assert all(len(row) == 16 and max(row) < 8 for row in rows.values())
        record = path_record(lab.ibsim, lid["h", 0], lid["h", 2])
        assert (record.source, record.destination, record.reversible) == (lid["h", 0], lid["h", 2], True)
        assert lab.sl(lid["h", 0], lid["h", 2]) == record.sl
        with pytest.raises(LabError, match=r"no path|exit status"):
            lab.sl(lid["h", 0], 4000)


def test_bulk_answers_equal_single_ones(net):
    config = {"qos": True, "qos_max_vls": 8, "qos_sl2vl": "0,0,1,1,2,2,3,3,4,4,5,5,6,6,7,7"}
    with Lab(net(6, ring(6), 2), routing_engine="lash,no_fallback", config=config) as lab:
        lid = {owner.guid: owner.lid for owner in lab.owners()}
        sls = lab.ca_sls()
        assert len(sls) == 12 * 11
        assert set(sls.values()) == {0, 1}
        host = lab.ibsim.device("h0").guid
        assert {key: lab.sl(lid[key[0]], key[1]) for key in sls if key[0] == host}.items() <= sls.items()
        rows = lab.switch_sl2vl()
        assert len(rows) == 6 * 13 * 12
        single = lab.sl2vl(lid[0x200003], [1, 3, 12])
        assert {(entry, leave): rows[0x200003, entry, leave] for entry, leave in single} == single
        assert rows[0x200003, 1, 3][:4] == (0, 0, 1, 1)
        dumped = read_sl2vl(lab.opensm.folder / "opensm-sl2vl.dump")
        shared = dumped.keys() & rows.keys()
        assert len(shared) >= 6 * 4 * 3
        assert {key: dumped[key] for key in shared} == {key: rows[key] for key in shared}


def test_bulk_questions_without_an_answer(ring4):
    with Lab(ring4) as lab:
        lids = [owner.lid for owner in lab.owners()]
        host = next(owner.lid for owner in lab.owners() if owner.guid == lab.ibsim.device("h0").guid)
        paths, rows = ask(lab.ibsim, sm_lid=host, paths=[(host, 4000), (host, lids[-1])], sl2vl=[(4000, 1, 1)])
        assert paths == [None, 0]
        assert rows == [None]


def test_a_fabric_without_switches():
    with Lab(FIXTURES["back-to-back"].path) as lab:
        assert lab.sweep.engine is None  # OpenSM has nothing to route
        assert lab.fabric().switches == 0
        assert len(lab.owners()) == 2


def test_opensm_on_a_switch(tmp_path):
    path = tmp_path / "switches.net"
    path.write_text('Switch 4 "a"\n[1] "b"[1]\n\nSwitch 4 "b"\n[1] "a"[1]\n')
    with Lab(path) as lab:
        assert lab.ibsim.sm_host == "a"
        assert lab.switch_lfts() == lab.dumped_lfts() == {0x200000: {1: 0, 2: 1}, 0x200001: {1: 1, 2: 0}}


def test_first_record_a_switch_but_opensm_on_a_ca(ring4):
    with Lab(ring4) as lab:
        assert ring4.read_text().startswith("Switch")
        assert lab.ibsim.clients()[0].device == "h0"
