"""Check a failing engine on a changed fabric: the tables in the switches, and the answers of the SA."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from campaigns import some_of
from loop_check import cables, has_loop, walk_layers
from plugin_lab import gone, logged, worker_of
from waiting import until

import osm_plugin
from osm_plugin.build_shim import compile_shim
from osm_plugin.install import LIBRARY, python_build

pytestmark = pytest.mark.lab

SERVED = r"keeps what is left of the last proven tables \(\S+\): (\d+) of (\d+) pairs .*?, (\d+) broken entr"


def cabled_cas(lab, cable):
    """Return the end ports of CAs that still have a cable."""
    return [owner for owner in lab.owners() if owner.kind == "CA" and (owner.guid, owner.port) in cable]


def whole_routes(lab, tables):
    """Return the pairs (CA GUID, LID of another CA) whose route in the tables uses only cables that exist."""
    cable, found = cables(lab), set()
    owners = cabled_cas(lab, cable)
    for source in owners:
        for target in owners:
            (device, _), seen = cable[source.guid, source.port], set()
            while device.kind == "Switch" and device.guid not in seen:
                seen.add(device.guid)
                leave = tables[device.guid].get(target.lid)
                if (device.guid, leave) not in cable:
                    break
                device, _ = cable[device.guid, leave]
            if device.guid == target.guid and source.guid != target.guid:
                found.add((source.guid, target.lid))
    return found


@pytest.fixture(scope="module")
def mortal_venv(tmp_path_factory):
    """Return two folders: a virtual environment without an interpreter, and the libibnue.so that embeds its Python."""
    folder = tmp_path_factory.mktemp("mortal")
    venv, python = folder / "venv", folder / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    (venv / "pyvenv.cfg").write_bytes(Path(sys.prefix, "pyvenv.cfg").read_bytes())
    (venv / "lib").symlink_to(Path(sys.prefix, "lib"))
    build = replace(python_build(), executable=python, paths=(str(Path(osm_plugin.__file__).parents[1]),))
    include, engines = (Path("/usr/include/infiniband"), Path("/usr/include")), ["ibnue-updn", "ibnue-dfsssp"]
    compile_shim(build, folder / LIBRARY, engines=engines, include=include, flags=("-O0", "-g0"))
    return venv, folder


@pytest.fixture
def mortal_python(mortal_venv):
    """Return the interpreter of a separate virtual environment, which the test may remove."""
    python = mortal_venv[0] / "bin" / "python"
    python.unlink(missing_ok=True)
    python.symlink_to(Path(sys.executable).resolve())
    return python


@pytest.fixture
def mortal_plugin(mortal_venv, mortal_python):
    """Return a folder with a libibnue.so that uses the interpreter ``mortal_python``."""
    return mortal_venv[1]


def is_served(lab, position, before, rows):
    """Pull two cables, and check that each pair with a whole route has a path record, and each whole entry is in the
    switches.
    """
    lab.ibsim.unlink("sw1.1", 2)
    lab.ibsim.unlink("sw2.3", 1)
    lab.opensm.signal(signal.SIGHUP)
    lab.opensm.wait_for_subnet_up(after=position)  # this fails if no engine routes in the first sweep
    whole = whole_routes(lab, before)
    assert 100 < len(whole) < 210
    served, pairs, dropped = map(int, logged(lab, SERVED)[-1])
    assert until(lambda: set(lab.ca_sls()) == whole)
    sls = lab.ca_sls()
    assert (served, pairs) == (len(whole), 15 * 14)
    after = lab.switch_lfts()
    lost = sum(len(before[guid]) - len(after[guid]) for guid in before)
    assert dropped == lost > 0
    assert all(after[guid].items() <= before[guid].items() for guid in before)
    assert not has_loop(walk_layers(lab, sls, rows))


TOML = "state_file = false\n"
# OpenSM sweeps only on request, so that one sweep notices both cables while the worker is stopped.
ASKED = {"qos": True, "sweep_interval": 0}


@pytest.mark.parametrize("engine", some_of(["ibnue-updn", "ibnue-dfsssp"], ["ibnue-updn"]))
def test_without_python_all_pairs_with_a_whole_route_are_served(mortal_plugin, mortal_python, live, nets, engine):
    lab = live(nets("torus", "4x4", cas=1), f"{engine},no_fallback", toml=TOML, config=ASKED)
    lab.opensm.plugin = replace(lab.opensm.plugin, folder=mortal_plugin)
    with lab:
        before, rows = lab.switch_lfts(), lab.switch_sl2vl()
        position, worker = lab.opensm.mark(), worker_of(lab)
        mortal_python.unlink()
        os.kill(worker, signal.SIGKILL)
        assert gone(worker)
        is_served(lab, position, before, rows)
        assert logged(lab, r"and routed nothing: the worker cannot be started: \S+/venv/bin/python: No such file")


@pytest.mark.parametrize("engine", some_of(["ibnue-updn", "ibnue-dfsssp"], ["ibnue-dfsssp"]))
def test_while_the_worker_is_stopped_all_pairs_with_a_whole_route_are_served(
    mortal_plugin, mortal_python, live, nets, engine
):
    lab = live(nets("torus", "4x4", cas=1), f"{engine},no_fallback", toml=TOML, config=ASKED)
    lab.opensm.plugin = replace(lab.opensm.plugin, folder=mortal_plugin)
    with lab:
        before, rows = lab.switch_lfts(), lab.switch_sl2vl()
        live.configure(f"deadline = 1.5\n{TOML}")
        position = lab.opensm.mark()
        os.kill(worker_of(lab), signal.SIGSTOP)
        mortal_python.unlink()  # another worker would route the fabric during the check
        is_served(lab, position, before, rows)


def test_a_mistake_in_the_configuration_costs_no_pair(live, nets):
    with live(nets("torus", "4x4", cas=1), "ibnue-updn,no_fallback", toml=TOML) as lab:
        live.configure("dead_line = 3")
        lab.unlink("sw1.1", 2)
        assert len(lab.ca_sls()) == 16 * 15


def test_the_next_engine_serves_the_tables_of_the_one_before(mortal_plugin, mortal_python, live, nets):
    lab = live(nets("torus", "4x4", cas=1), "ibnue-dfsssp,ibnue-updn,no_fallback", toml=TOML, config=ASKED)
    lab.opensm.plugin = replace(lab.opensm.plugin, folder=mortal_plugin)
    with lab:
        assert lab.sweep.engine == "ibnue-dfsssp"
        before, rows = lab.switch_lfts(), lab.switch_sl2vl()
        position, worker = lab.opensm.mark(), worker_of(lab)
        mortal_python.unlink()
        os.kill(worker, signal.SIGKILL)
        assert gone(worker)
        is_served(lab, position, before, rows)
        assert lab.sweep.engine == "ibnue-updn" and logged(lab, r"ibnue-updn keeps .* tables \(ibnue-dfsssp\)")
