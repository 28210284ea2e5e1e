"""Check the shadow mode with OpenSM's own engines: its reports on their tables, and that the tables do not change."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from campaigns import some_of
from plugin_lab import children, comes_up, logged, sweep_options
from waiting import until

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.formats.table_files import read_tables
from routing.quality import all_to_all_share, channel_loads

pytestmark = pytest.mark.lab

FABRICS = {
    "a torus, with a loop": ("torus", ["5x5"], {"cas": 1}, "minhop", True),
    "a tree, without": ("kary-ntree", ["4", "2"], {}, "minhop", False),
    "a tree, by updn": ("kary-ntree", ["4", "2"], {}, "updn", False),
}


@pytest.fixture
def toml(tmp_path):
    return f"shadow = 'nue'\nstate_file = '{tmp_path}/state.npz'\n"


def inspections(tmp_path):
    path = tmp_path / "ibnue-status.json"
    return json.loads(path.read_text()).get("shadow") if path.exists() else None


@pytest.mark.parametrize("case", some_of(list(FABRICS), ["a torus, with a loop"]))
def test_the_verdict_is_that_on_the_dumps_and_nothing_is_written(live, nets, toml, tmp_path, case):
    name, args, options, engine, loop = FABRICS[case]
    net = nets(name, *args, **options)
    with live(net, f"{engine},no_fallback") as lab:
        without = lab.switch_lfts()
    with live(net, f"{engine},no_fallback", toml=toml) as lab:
        found = until(lambda: inspections(tmp_path))
        fabric = lab.fabric()
        in_force = read_tables(lab.opensm.folder, fabric)
        proof = prove(fabric, in_force)
        assert (found["verdict"] == "loop") == loop == (proof.credit_loop is not None)
        assert (found["engine_in_force"], found["engine"], found["fabric_digest"]) == (engine, "nue", fabric.digest)
        assert found["certified"] and found["problem"] is None
        share = all_to_all_share(fabric, channel_loads(fabric, in_force))
        assert found["all_to_all_in_force"] == pytest.approx(share)
        # All entries of the switches equal the entries without the plugin's engines.
        assert lab.switch_lfts() == without
        assert comes_up(lab, f"ibnue: shadow: fabric {fabric.digest[:12]}; in force {engine}: .*; nue: proven free")
        reported = logged(
            lab, rf"in force {engine}: (no credit loop|credit loop of {len(proof.credit_loop) if loop else 0} )"
        )
        assert reported and all(line.startswith("credit") == loop for line in reported)
        before = lab.opensm.mark()
        lab.opensm.resweep()
        assert lab.opensm.mark() > before and lab.switch_lfts() == without
        assert lab.opensm.errors == []


def test_the_figures_are_those_of_the_two_tables(live, nets, toml, tmp_path):
    with live(nets("torus", "4x4", cas=1), "minhop,no_fallback", toml=toml) as lab:
        found = until(lambda: inspections(tmp_path))
        fabric = lab.fabric()
        in_force = read_tables(lab.opensm.folder, fabric)
        own = ENGINES["nue"].route(fabric, sweep_options(vls="auto", port_vls=1))
        assert found["entries_differing"] == np.count_nonzero(in_force.lft != own.lft) > 0
        assert found["all_to_all"] == pytest.approx(all_to_all_share(fabric, channel_loads(fabric, own)))
        assert found["vls"] == own.vls == 1
        lab.unlink("sw1.1", 2)
        assert until(lambda: (now := inspections(tmp_path))["fabric_digest"] != fabric.digest and now)["certified"]


def test_the_engine_itself_needs_no_shadow_and_another_of_ours_does(live, nets, toml, tmp_path):
    with live(nets("torus", "4x4", cas=1), "ibnue-nue,no_fallback", toml=toml) as lab:
        lab.opensm.resweep()
        assert len(children(lab.opensm.pid)) == 1 and inspections(tmp_path) is None
    with live(nets("torus", "4x4", cas=1), "ibnue-updn,no_fallback", toml=toml):
        assert until(lambda: inspections(tmp_path))["verdict"] == "no loop"


def test_sls_that_are_not_known_leave_the_verdict_open(live, nets, toml, tmp_path):
    """The tables of OpenSM's dfsssp have no loop on their VLs, but would have a loop if all paths were on one VL."""
    config = {"qos": True}
    with live(nets("torus", "5x5", cas=1), "dfsssp,no_fallback", toml=toml, config=config):
        found = until(lambda: inspections(tmp_path))
        assert found["verdict"] == "unknown" and found["vls"] > 1


def test_a_shadow_worker_that_stops_or_dies_delays_and_breaks_nothing(live, nets, toml, tmp_path):
    with live(nets("torus", "4x4", cas=1), "minhop,no_fallback", toml=toml) as lab:
        until(lambda: inspections(tmp_path))
        worker = until(lambda: [pid for pid in children(lab.opensm.pid) if shadow(pid)])[0]
        os.kill(worker, signal.SIGSTOP)
        for _ in range(3):
            assert lab.opensm.resweep().engine == "minhop"
        os.kill(worker, signal.SIGKILL)
        comes_up(lab, "the worker that checks tables was killed by signal 9")
        assert lab.opensm.errors == []


def test_a_credit_loop_after_a_fallback_is_named_at_once(live, nets, tmp_path):
    state = f"state_file = '{tmp_path}/state.npz'\n"
    with live(nets("torus", "5x5", cas=1), "ibnue-updn", toml=f"{state}[engine]\nvls = 15\n") as lab:
        assert lab.sweep.engine == "minhop"
        found = until(lambda: inspections(tmp_path))
        assert (found["engine_in_force"], found["engine"], found["verdict"]) == ("minhop", None, "loop")
        text = "OpenSM's engine minhop routes fabric .*; tables of minhop: credit loop of [0-9]+ channels"
        assert until(lambda: logged(lab, f"ERR IBN32: {text}"))
        live.configure(state)
        assert lab.opensm.resweep().engine == "ibnue-updn"
        assert until(lambda: inspections(tmp_path) is None)
        until(lambda: len(children(lab.opensm.pid)) == 1)


def test_an_engine_that_does_not_exist_is_named(live, nets, toml, tmp_path):
    with live(nets("ring", "4", cas=1), "minhop,no_fallback", toml=toml.replace("nue'", "new'", 1)):
        assert "unknown engine 'new'" in until(lambda: inspections(tmp_path))["problem"]


def shadow(pid):
    return b"osm_plugin.shadow" in Path(f"/proc/{pid}/cmdline").read_bytes()
