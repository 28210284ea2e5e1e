import os
import re
import signal

import numpy as np
import pytest
from campaigns import some_of
from plugin_lab import logged, sweep_with_stopped_worker

from routing.deadlock.proof import prove
from routing.fabric import NO_PORT

pytestmark = pytest.mark.lab


def hop_rows(lab):
    """Return the hops in OpenSM's dump by switch GUID and LID: the smallest number first, then the number by each
    port.
    """
    rows, guid = {}, 0
    for line in (lab.opensm.folder / "opensm-lid-matrix.dump").read_text().splitlines():
        if head := re.match(r"Switch: guid 0x([0-9a-f]+)", line):
            guid = int(head[1], 16)
        else:
            lid, hops = line.split("#")[0].split(":")
            rows[guid, int(lid, 16)] = [int(number, 16) for number in hops.split()]
    return rows


def walked(lab):
    """Return the hops of the tables in the switches in the form of :func:`hop_rows`, by following each path."""
    fabric = lab.fabric()
    routing = lab.routing(fabric)
    hops, rows = prove(fabric, routing).hops, {}
    for row, guid in enumerate(fabric.switch_guid.tolist()):
        for lid in fabric.switch_lid.tolist():
            reported = np.full(int(fabric.switch_ports[row]) + 1, 255)
            if routing.lft[row, lid] != NO_PORT:
                reported[routing.lft[row, lid]] = reported[0] = hops[row, lid]
            rows[guid, lid] = reported.tolist()
    return rows


# OpenSM's lash fills the hops of all ports before it finds that it has too few VLs, and does not clear these hops.
@pytest.mark.parametrize(
    "engines",
    some_of(["ibnue-updn,no_fallback", "lash,ibnue-updn,no_fallback"], ["lash,ibnue-updn,no_fallback"]),
)
def test_opensm_has_the_hops_of_the_walked_paths_and_no_others(live, nets, engines):
    with live(nets("torus", "4x4", cas=1), engines, config={"lash_start_vl": 7}) as lab:
        assert lab.sweep.engine == "ibnue-updn" and ("lash" in lab.sweep.tried) == ("lash" in engines)
        own_switch = hop_rows(lab)
        assert own_switch == walked(lab)
        lab.unlink("sw1.1", 2)
        assert hop_rows(lab) == walked(lab) != own_switch
        lab.relink("sw1.1", 2)
        assert hop_rows(lab) == own_switch


def test_tables_that_are_kept_bring_their_hops(live, nets):
    with live(nets("torus", "4x4", cas=1), "ibnue-updn,no_fallback") as lab:
        own_switch = hop_rows(lab)
        position, worker = sweep_with_stopped_worker(lab)
        os.kill(worker, signal.SIGKILL)
        lab.opensm.wait_for_subnet_up(after=position)
        assert hop_rows(lab) == own_switch
        assert logged(lab, "keeps its last tables, which are proven for exactly this subnet")

        lab.opensm.resweep()  # The next worker is ready when it has answered.
        position, worker = sweep_with_stopped_worker(lab, "sw1.1", 2)
        os.kill(worker, signal.SIGKILL)
        lab.opensm.wait_for_subnet_up(after=position)
        left = {
            position: hops for position, hops in walked(lab).items() if min(hops) < 255
        }  # OpenSM dumps no row without a path
        assert hop_rows(lab) == left != own_switch
        assert logged(lab, "keeps what is left of the last proven tables")
