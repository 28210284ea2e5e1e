import contextlib
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from campaigns import some_of
from click.testing import CliRunner
from plugin_lab import children, comes_up, executes_worker, gone, logged, sweep_with_stopped_worker, worker_of
from shared_builds import built_once
from waiting import until

import osm_plugin
from osm_plugin.history import entries, history_folder
from osm_plugin.last_good import read_saved
from osm_plugin.state import read_state
from routing.cli.command import main

pytestmark = pytest.mark.lab


def routes_again(lab):
    """Wait until the engine of ibnue routes again.  A new worker may take longer to start than the deadline allows."""
    return until(lambda: (sweep := lab.opensm.resweep()).engine.startswith("ibnue-") and sweep.errors == ())


KILLED = "was killed by signal 9 (perhaps out of memory: see dmesg)"
LEFT = (
    r"0x01 -> ERR IBN1: ibnue-updn keeps what is left of the last proven tables .*; another sweep follows as soon as a "
    "worker can route, and routed nothing: (.*)"
)


@pytest.mark.parametrize(
    "engines",
    some_of(["ibnue-updn,minhop", "ibnue-updn,ibnue-nue,no_fallback"], ["ibnue-updn,ibnue-nue,no_fallback"]),
)
def test_a_worker_killed_at_a_fault_leaves_the_tables_to_its_engine(live, nets, engines):
    with live(nets("torus", "3x3", cas=1), engines) as lab:
        until((lab.opensm.folder / "ibnue-state.npz").exists)
        position, worker = sweep_with_stopped_worker(lab, "sw1.1", 2)
        os.kill(worker, signal.SIGKILL)
        sweep = lab.opensm.wait_for_subnet_up(after=position)
        assert sweep.engine == "ibnue-updn" and sweep.tried == ("ibnue-updn",)
        assert logged(lab, LEFT) == [f"the worker {KILLED}; another one is started"]
        assert gone(worker) and worker_of(lab) != worker
        # OpenSM sweeps again without a request of the test.
        until(lambda: logged(lab, "ibnue-updn: .*re-routed, repaired"))
        assert routes_again(lab)
        assert not logged(lab, "building routing with '(?:minhop|ibnue-nue)'")


@pytest.fixture
def preloaded(live, nets, tmp_path_factory):
    """Return a function that prepares a lab whose OpenSM starts with a library in LD_PRELOAD."""

    def prepare(name, toml=""):
        def build(folder):
            source = Path(__file__).with_name(f"{name}.c")
            subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "library.so", source], check=True)

        library = built_once(tmp_path_factory, name, build) / "library.so"
        lab = live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback", toml=toml)
        lab.opensm.plugin = replace(lab.opensm.plugin, environment={"LD_PRELOAD": str(library)})
        return lab

    return prepare


def test_the_engine_routes_again_although_the_clock_is_set_back(preloaded):
    """While the plugin waits, the clock is set back by an hour."""
    with preloaded("shift_clock") as lab:
        until((lab.opensm.folder / "ibnue-state.npz").exists)
        position, worker = sweep_with_stopped_worker(lab, "sw1.1", 2)
        os.kill(worker, signal.SIGKILL)
        lab.opensm.wait_for_subnet_up(after=position)
        # OpenSM sweeps again without a request of the test.
        until(lambda: logged(lab, "ibnue-updn: .*re-routed, repaired"))


def test_the_next_engine_routes_if_the_next_worker_stalls_at_its_start(live, nets):
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,minhop") as lab:
        until((lab.opensm.folder / "ibnue-state.npz").exists)
        live.configure("deadline = 5\nstart_deadline = 10")  # The first worker may take longer to start.
        _, worker = sweep_with_stopped_worker(lab, "sw1.1", 2)
        os.kill(worker, signal.SIGKILL)
        # OpenSM waits until its child executes Python.  A child that is stopped before that stops OpenSM as well.
        (stalled,) = until(lambda: [pid for pid in children(lab.opensm.pid) if pid != worker and executes_worker(pid)])
        os.kill(stalled, signal.SIGSTOP)
        until(lambda: logged(lab, "minhop tables configured"))
        assert logged(lab, LEFT) == [f"the worker {KILLED}; another one is started"]


def test_the_next_engine_routes_if_the_next_worker_dies_as_well(live, nets):
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,minhop") as lab:
        _, worker = sweep_with_stopped_worker(lab, "sw1.1", 2)
        os.kill(worker, signal.SIGKILL)

        def kill_workers():
            for pid in children(lab.opensm.pid):
                with contextlib.suppress(ProcessLookupError):  # OpenSM may have collected the exit status.
                    os.kill(pid, signal.SIGKILL)
            return logged(lab, "minhop tables configured")

        until(kill_workers)
        assert len(logged(lab, LEFT)) == 1
        assert logged(lab, "ibnue-updn keeps no tables: .* so the next engine is tried")
        assert routes_again(lab)


@pytest.mark.parametrize("also", some_of(["", "ibnue-nue"], ["ibnue-nue"]))
def test_the_next_engine_starts_from_the_last_tables_if_the_worker_dies_twice(bad_plugin, live, nets, tmp_path, also):
    """If the worker dies for the next engine, too, the last tables may be the cause, so they are not used again."""
    lab = live(nets("torus", "4x4", cas=1), "ibnue-updn,ibnue-nue,no_fallback")
    real, deadly = str(Path(osm_plugin.__file__).parent), (tmp_path / "ibnue-updn", tmp_path / (also or "none"))
    environment = {"IBNUE_TEST_FAULT": "mortal", "IBNUE_TEST_REAL": real, "IBNUE_TEST_DEADLY": str(tmp_path)}
    lab.opensm.plugin = replace(lab.opensm.plugin, folder=bad_plugin, environment=environment)
    with lab:
        assert lab.sweep.engine == "ibnue-updn" and until((lab.opensm.folder / "ibnue-state.npz").exists)
        before = lab.switch_lfts()
        for path in deadly:
            path.touch()
        lab.ibsim.unlink("sw1.1", 2)
        lab.opensm.signal(signal.SIGHUP)
        if also:
            until(lambda: logged(lab, "ibnue-nue .*routed nothing: the worker was killed by signal 9"))
            deadly[1].unlink()
            assert until(lambda: logged(lab, "ibnue-nue: fabric .*; routed from scratch;"))
            return
        start = "the tables of updn, which has failed, are the starting point"
        assert until(lambda: logged(lab, f"ibnue-nue: fabric .*; re-routed, repaired .*; {start};"))
        until(lambda: lab.sweep.engine == "ibnue-nue")
        repaired = lab.switch_lfts()
        changed = sum(repaired[guid].get(lid) != port for guid in before for lid, port in before[guid].items())
        assert 0 < changed < 100  # From scratch, the engine changes half of the 512 entries.
        deadly[0].unlink()
        until(lambda: lab.opensm.resweep().engine == "ibnue-updn")
        assert lab.switch_lfts() == repaired and logged(lab, "ibnue-updn: fabric .*; tables unchanged;")
        lab.relink("sw1.1", 2)
        assert lab.switch_lfts() == before


@pytest.mark.parametrize("pinned", [False, True])
def test_tables_with_more_vls_than_opensm_sets_up_do_not_stop_other_engines(live, nets, tmp_path, pinned):
    state = tmp_path / "state.npz"
    toml = f"state_file = '{state}'\n"
    with live(
        nets("ring", "7", cas=1), "ibnue-dfsssp,no_fallback", toml=toml, config={"qos": True, "qos_max_vls": 8}
    ) as lab:
        assert lab.sweep.engine == "ibnue-dfsssp" and until(lambda: state.exists() and entries(history_folder(state)))
    assert read_state(state).routing.vls == 8
    engines = "ibnue-dfsssp,ibnue-nue,no_fallback"
    if pinned:
        assert CliRunner().invoke(main, ["plugin", "rollback", "1", "--config", str(live.config)]).exit_code == 0
        engines = "ibnue-nue,no_fallback"
    with live(nets("ring", "7", cas=1), engines, toml=toml) as lab:
        assert lab.sweep.engine == "ibnue-nue"
        why = "its tables use 8 VLs, and OpenSM sets up only 1"
        assert logged(lab, f"ibnue-nue: fabric .* 1 VL, .*routed from scratch; .*{why}")
        assert bool(logged(lab, f"pin ignored: {why}")) == pinned


def test_the_first_failure_of_the_engine_that_routes_counts_if_an_engine_before_it_always_fails(
    bad_plugin, live, nets, tmp_path
):
    lab = live(nets("torus", "3x3", cas=1), "ibnue-updn,ibnue-nue,minhop", config={"sweep_on_trap": False})
    real, deadly = str(Path(osm_plugin.__file__).parent), (tmp_path / "ibnue-updn", tmp_path / "ibnue-nue")
    environment = {"IBNUE_TEST_FAULT": "mortal", "IBNUE_TEST_REAL": real, "IBNUE_TEST_DEADLY": str(tmp_path)}
    lab.opensm.plugin = replace(lab.opensm.plugin, folder=bad_plugin, environment=environment)
    deadly[0].touch()
    with lab:
        assert lab.sweep.engine == "ibnue-nue"
        deadly[1].touch()
        lab.ibsim.unlink("sw1.1", 2)
        assert lab.opensm.resweep().engine == "ibnue-nue"
        assert logged(lab, "ibnue-nue keeps what is left of the last proven tables .*; another sweep follows as soon")


def test_a_worker_killed_between_sweeps_is_replaced_before_it_is_needed(live, nets):
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback") as lab:
        for _ in range(3):
            worker = worker_of(lab)
            os.kill(worker, signal.SIGKILL)
            assert gone(worker)  # not even a zombie is left
            assert lab.opensm.resweep().engine == "ibnue-updn"
            # OpenSM waits for the start of the next worker, which is not a part of reading the subnet.
            read, worked = map(float, logged(lab, r"subnet read in (\S+) ms, worker (\S+) ms")[-1])
            assert read < worked


HASTY = "deadline = 1.5"


def test_the_deadline_ends_the_wait_and_the_slow_worker(live, nets):
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,minhop") as lab:
        live.configure(HASTY)
        position, worker = sweep_with_stopped_worker(lab, "sw1.1", 2)
        sweep = lab.opensm.wait_for_subnet_up(after=position)
        live.configure("")
        assert sweep.engine == "ibnue-updn"
        assert sweep.routing_seconds > 1.4
        # Before the configuration changes, the deadline may expire for the next worker, too.
        assert logged(lab, LEFT)[0] == "no answer within 1.5 s; another worker is started"
        assert gone(worker)
        assert routes_again(lab)


KEPT = r"ibnue-dfsssp keeps its last tables, which are proven for exactly this subnet, and routed nothing: (.*)"


@pytest.mark.parametrize("failure", some_of(["killed", "slow"], ["slow"]))
def test_an_engine_that_fails_on_the_same_fabric_keeps_its_tables_and_sls(live, nets, failure):
    toml = "state_file = false"
    with live(nets("torus", "4x4", cas=1), "ibnue-dfsssp,no_fallback", toml=toml, config={"qos": True}) as lab:
        lfts, sls, rows = lab.switch_lfts(), lab.ca_sls(), lab.switch_sl2vl()
        assert len(set(sls.values())) > 1
        live.configure(f"{HASTY}\n{toml}" if failure == "slow" else toml)
        position, worker = sweep_with_stopped_worker(lab)
        if failure == "killed":
            os.kill(worker, signal.SIGKILL)
        lab.opensm.wait_for_subnet_up(after=position)
        why = {"killed": "killed by signal 9", "slow": "no answer within 1.5 s"}
        assert why[failure] in logged(lab, KEPT)[-1]
        assert lab.sweep.engine == "ibnue-dfsssp" and lab.sweep.tried == ("ibnue-dfsssp",)
        assert (lab.switch_lfts(), lab.ca_sls(), lab.switch_sl2vl()) == (lfts, sls, rows)
        live.configure(toml)
        assert routes_again(lab)
        assert (lab.switch_lfts(), lab.ca_sls()) == (lfts, sls)


def test_tables_with_loops_are_not_kept(live, nets):
    toml = "allow_credit_loops = true\nstate_file = false"
    with live(nets("torus", "4x4x4", cas=1), "ibnue-minhop,updn", toml=toml) as lab:
        assert lab.sweep.engine == "ibnue-minhop"
        live.configure("")
        assert lab.opensm.resweep().engine != "ibnue-minhop"
        assert not logged(lab, "keeps its last tables")


def test_opensm_ends_at_once_while_it_waits_for_a_worker(live, nets):
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback", toml="deadline = 3600") as lab:
        _, worker = sweep_with_stopped_worker(lab)
        lab.opensm.signal(signal.SIGTERM)
        assert lab.opensm.wait_for_exit() == 0
        assert gone(worker)


def test_credit_loops_are_refused_until_they_are_allowed(live, nets):
    with live(nets("torus", "4x4x4", cas=1), "ibnue-minhop,updn") as lab:
        assert lab.sweep.tried[0] == "ibnue-minhop" and lab.sweep.engine != "ibnue-minhop"
        assert "the tables have a credit loop, and allow_credit_loops is not set" in lab.opensm.errors[0]
        live.configure("allow_credit_loops = true")
        assert lab.opensm.resweep().engine == "ibnue-minhop"
        assert "NOT free of credit loops, as allowed: credit loop of" in lab.opensm.log_path.read_text()


@pytest.mark.parametrize(
    ("toml", "reason"),
    [
        pytest.param("dead_line = 3", "unknown key 'dead_line'", marks=pytest.mark.slow),
        pytest.param("deadline = 'soon'", "'deadline' is 'soon', wanted a number", marks=pytest.mark.slow),
        pytest.param("deadline = ", "is not TOML", marks=pytest.mark.slow),
        ("[engine]\nvls = 3", r"vls = 3, but OpenSM sets up 1 data VL on this fabric \(set 'qos TRUE' in opensm.conf"),
        pytest.param("[engine.updn]\nobjective = 'peace'", "unknown objective 'peace'", marks=pytest.mark.slow),
    ],
)
def test_a_missing_or_wrong_configuration_fails_the_engine_until_it_is_repaired(live, nets, toml, reason):
    start = live(nets("ring", "4", cas=1), "ibnue-updn,minhop")
    live.config.unlink()
    with start as lab:
        assert lab.sweep.engine == "minhop"
        assert logged(lab, rf"ibnue-updn routed nothing: {live.config}: cannot be read: No such file")
        live.configure(toml)
        assert lab.opensm.resweep().engine == "minhop"
        assert logged(lab, rf"ibnue-updn routed nothing: .*{reason}")
        live.configure("")
        assert lab.opensm.resweep().engine == "ibnue-updn"


IN_FORCE = r"ERR IBN20: (.*)"


@pytest.mark.parametrize(
    ("toml", "reason"),
    [
        pytest.param(
            "dead_line = 3",
            r"ibnue.toml:\d: unknown key 'dead_line' \(did you mean deadline\?\)",
            marks=pytest.mark.slow,
        ),
        pytest.param("[engine]\nvls = 12", r"vls = 12, but OpenSM sets up 8 data VLs .*", marks=pytest.mark.slow),
        ("[engine]\nroot_guid_file = 'nowhere'", r"/nowhere: cannot be read: No such file or directory"),
        pytest.param(None, r"ibnue.toml: cannot be read: No such file or directory .*", marks=pytest.mark.slow),
    ],
)
def test_a_configuration_that_becomes_wrong_leaves_the_last_good_one_in_force(live, nets, toml, reason):
    good = "[engine]\nseed = 3"
    with live(nets("torus", "4x4", cas=1), "ibnue-nue,no_fallback", toml=good, config={"qos": True}) as lab:
        live.config.unlink() if toml is None else live.configure(toml)
        for sweep in (lab.unlink("sw1.1", 2), lab.unlink("sw2.2", 2), lab.opensm.resweep()):
            assert sweep.engine == "ibnue-nue" and sweep.tried == ("ibnue-nue",)
        (line,) = until(lambda: logged(lab, IN_FORCE))
        assert re.search(reason + r"; the last good configuration (stays|is) in use", line)
        live.configure(good)
        assert comes_up(lab, r"ibnue.toml: can be read again|is valid again, and in use")
        assert len(logged(lab, IN_FORCE)) == 1  # The end of the problem is not an error.
        assert not logged(lab, "routed nothing")


def test_an_opensm_that_starts_with_a_wrong_file_takes_what_was_saved(live, nets, tmp_path, monkeypatch):
    monkeypatch.setenv("OSM_CACHE_DIR", str(tmp_path))

    def started(toml):
        lab = live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback", toml=toml)
        lab.opensm.plugin = replace(lab.opensm.plugin, environment={"OSM_CACHE_DIR": str(tmp_path)})
        return lab

    with started("[engine]\nseed = 3"):
        until(lambda: read_saved(live.config))
    with started("[engine]\nsead = 3") as lab:
        assert lab.sweep.engine == "ibnue-updn"
        (line,) = until(lambda: logged(lab, IN_FORCE))
        assert "unknown key 'engine.sead'" in line and "started with the last good configuration" in line


def test_a_configuration_file_that_does_not_answer_stops_no_sweep(live, preloaded):
    with preloaded("silent_file") as lab:
        silent = live.config.with_name(f"{live.config.name}.silent")
        silent.touch()
        lab.unlink("sw1.1", 2)
        lab.relink("sw1.1", 2)
        why = r"ERR IBN20: \S+/ibnue.toml: has not answered for 1 s; the last good configuration stays in use"
        assert len(logged(lab, why)) == len(lab.opensm.errors) == 1
        silent.unlink()
        comes_up(lab, f"{live.config}: can be read again")


def test_a_file_of_the_configuration_that_does_not_answer_is_replaced_by_its_copy(preloaded, tmp_path):
    roots = tmp_path / "roots"
    roots.write_text("0x200000\n")
    with preloaded("silent_file", f"[engine.updn]\nroot_guid_file = '{roots}'") as lab:
        until(lambda: list(lab.opensm.folder.glob("ibnue-last-good-*/engine-updn-root_guid_file-*")))
        silent = roots.with_name("roots.silent")
        silent.touch()
        lab.unlink("sw1.1", 2)
        comes_up(lab, f"ERR IBN20: {roots}: has not answered for 1 s; the last good configuration is in use")
        assert logged(lab, "ibnue-updn: .*re-routed, repaired") and len(lab.opensm.errors) == 1
        silent.unlink()
        comes_up(lab, "the configuration is valid again, and in use")


def test_the_worker_dies_with_an_opensm_that_is_killed(live, nets):
    with live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback") as lab:
        worker = worker_of(lab)
        os.kill(worker, signal.SIGSTOP)  # a stopped worker cannot notice that the socket is closed
        lab.opensm.signal(signal.SIGKILL)
        lab.opensm.wait_for_exit()
        assert gone(worker)


def test_the_worker_is_alone_without_the_simulator_and_a_clean_end_leaves_nothing(live, nets):
    """The environment of OpenSM has variables that would mislead the Python of the host and of the worker."""
    misleading = {"PYTHONHOME": "/nowhere", "PYTHONPATH": "/nowhere", "PYTHONSTARTUP": "/nowhere", "PATH": "/nowhere"}
    lab = live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback")
    lab.opensm.plugin = replace(lab.opensm.plugin, environment=misleading)
    with lab:
        assert lab.sweep.engine == "ibnue-updn"
        worker = worker_of(lab)
        environment = Path(f"/proc/{worker}/environ").read_bytes()
        assert b"umad2sim" not in environment and b"umad2sim" not in Path(f"/proc/{worker}/maps").read_bytes()
        # a child can only be the process that keeps the state file
        assert [children(child) for child in children(worker)] in ([], [[]])
        limits = Path(f"/proc/{worker}/limits").read_text()
        assert re.search(r"Max core file size +0 +0 ", limits) and re.search(r"Max open files +256 +256 ", limits)
        assert os.getsid(worker) != os.getsid(lab.opensm.pid)
        lab.opensm.signal(signal.SIGTERM)
        assert lab.opensm.wait_for_exit() == 0
        assert gone(worker)
        out = (lab.opensm.folder / "opensm.out").read_text()
        assert "Exiting SM" in out and "Traceback" not in out


def nobody_runs_this_python():
    try:
        return not subprocess.run([sys.executable, "-c", ""], user="nobody", check=False).returncode
    except OSError:
        return False


@pytest.mark.skipif(not nobody_runs_this_python(), reason="only root can, with a Python that others may run")
def test_a_worker_without_root_routes(live, nets, tmp_path):
    toml = f"worker_user = 'nobody'\nstate_file = '{tmp_path}/state.npz'"
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback", toml=toml) as lab:
        status = Path(f"/proc/{worker_of(lab)}/status").read_text()
        ids = re.findall(r"^(?:Uid|Gid|Groups):(.*)$", status, re.M)
        assert len(ids) == 3 and "0" not in " ".join(ids).split()
        assert lab.unlink("sw1.1", 2).engine == "ibnue-updn"


def test_a_plugin_that_is_named_twice_is_loaded_once(live, nets):
    config = {"event_plugin_name": "ibnue ibnue"}
    with live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback", config=config) as lab:
        assert lab.sweep.engine == "ibnue-updn"
        assert logged(lab, "ERR IBN5: ibnue is loaded already")
        assert len(children(lab.opensm.pid)) == 1
        lab.opensm.signal(signal.SIGTERM)
        assert lab.opensm.wait_for_exit() == 0
