"""Check verdicts on tables of OpenSM's layered engines: without SLs, with SLs from dumps, and with the SA's answers."""

import json
import re
from itertools import pairwise

import pytest
from campaigns import some_of
from command_runs import collect, run
from loop_check import cables, has_loop, walk_layers

from ibsim_fixtures.lab import Lab
from routing.formats.fabric_files import write_net
from routing.formats.table_files import LFTS, SL2VL
from routing.topologies import generate

pytestmark = pytest.mark.lab


def answers(lab, sls, path):
    """Write SLs by source and destination LID as ``ibdmchk`` reads them."""
    node = {owner.lid: owner.guid for owner in lab.owners()}
    path.write_text("".join(f"0x{node[source]:016x} {lid} {sl}\n" for (source, lid), sl in sorted(sls.items())))
    return path


def snapshot_sls(folder):
    """Return the SLs in the file of a snapshot, by source and destination LID."""
    found, source = {}, 0
    for line in (folder / "opensm-path-records.dump").read_text().splitlines():
        if head := re.search(r"base LID (\d+),", line):
            source = int(head[1])
        elif record := re.fullmatch(r"0x([0-9A-F]{4}) : (\d+)", line):
            found[source, int(record[1], 16)] = int(record[2])
    return found


def checked(*words):
    result = run("check", *words, "--json")
    return result.exit_code, json.loads(result.stdout)


class Packets:
    """Packets that follow the tables of ibsim and the switches, without any reader of ibnue."""

    def __init__(self, lab):
        self.cable, self.tables, self.vls = cables(lab), lab.switch_lfts(), lab.switch_sl2vl()
        self.owner = {owner.lid: owner for owner in lab.owners()}

    def walk(self, source, lid, sl):
        """Return (GUID, out-port, VL) of every hop between switches."""
        start, hops = self.owner[source], []
        here, entry = start.guid, 0
        if start.kind != "SW":
            device, entry = self.cable[start.guid, start.port]
            here = device.guid
        while (leave := self.tables[here][lid]) != 0:
            device, far = self.cable[here, leave]
            if device.kind != "Switch":
                break
            hops.append((here, leave, self.vls[here, entry, leave][sl]))
            here, entry = device.guid, far
        return hops

    def confirm(self, loop, sls):
        """Return whether the traffic that is named for each turn uses this turn, on its SL."""
        hops = [(int(turn["switch_guid"], 16), turn["port"], turn["vl"]) for turn in loop]
        for turn, step in zip(loop, zip(hops, [*hops[1:], hops[0]], strict=True), strict=True):
            pair = turn["traffic"]["source_lid"], turn["traffic"]["destination_lid"]
            path = self.walk(*pair, sls[pair])
            if turn["traffic"]["reply"] or step not in pairwise(path):
                return False
        return True


@pytest.mark.parametrize("engine", some_of(["nue", "dfsssp", "lash"], ["nue"]))
def test_the_sas_answers_decide_and_not_the_assumption(engine, tmp_path):
    """In OpenSM's nue and dfsssp, paths to switches are in no layer.  So even with the SA's answers, the tables may
    have a loop.
    """
    write_net(generate("torus", ["5x5"]), tmp_path / "net")
    config = {"qos": True, "nue_max_num_vls": 4}
    with Lab(tmp_path / "net", routing_engine=f"{engine},no_fallback", config=config) as lab:
        (tmp_path / "live").write_text(lab.ibsim.run("ibnetdiscover"))
        packets, sls = Packets(lab), lab.sls()
        zero = dict.fromkeys(sls, 0)
        given, wrong = answers(lab, sls, tmp_path / "sa"), answers(lab, zero, tmp_path / "zero")
        graph = walk_layers(lab, lab.ca_sls())
        tables, sl2vl = lab.opensm.folder / LFTS, lab.opensm.folder / SL2VL
        collect(lab.ibsim, tmp_path / "snapshot")
        collected = checked(tmp_path / "snapshot")
        alone = checked(tmp_path / "live", tables)
        real = checked(tmp_path / "live", tables, "--sl", given, "--sl2vl", sl2vl)
        false = checked(tmp_path / "live", tables, "--sl", wrong, "--sl2vl", sl2vl)
    assert max(sls.values()) > 0
    found = snapshot_sls(tmp_path / "snapshot")
    assert found.keys() == sls.keys()
    # OpenSM's dfsssp answers one of several SLs at random
    assert found == sls or engine == "dfsssp"
    assert (collected[0], collected[1]["verdict"]) in {(0, "none"), (1, "yes")}
    assert collected[1]["assumed"] == []
    assert collected[1]["verdict"] == real[1]["verdict"] or engine == "dfsssp"
    assert collected[1]["verdict"] == "none" or packets.confirm(collected[1]["credit_loop"], found)
    assert not has_loop(graph)
    assert (alone[0], alone[1]["verdict"], alone[1]["credit_loop"]) == (3, "unknown", None)
    assert not packets.confirm(alone[1]["possible_loop"], sls)
    assert (real[0], real[1]["verdict"]) in {(0, "none"), (1, "yes")}
    assert real[1]["verdict"] == "none" or packets.confirm(real[1]["credit_loop"], sls)
    assert real[1]["verdict"] == "none" or engine != "lash"
    assert real[1]["assumed"] == []
    assert (false[0], false[1]["verdict"]) == (1, "yes")
    assert packets.confirm(false[1]["credit_loop"], zero)
