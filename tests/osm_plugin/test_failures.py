import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from plugin_lab import children, gone, said, worker_of
from waiting import until

from ibsim_fixtures.opensm_log import EventKind

pytestmark = pytest.mark.lab


def sweep_with_stopped_worker(lab, *cable):
    """Begin a sweep whose worker does not answer; the place in the log, once OpenSM waits for it, and the worker.

    The fabric is as it was, unless a cable is named that is to be pulled.
    """
    worker, place = worker_of(lab), lab.opensm.mark()
    os.kill(worker, signal.SIGSTOP)
    if cable:
        lab.ibsim.unlink(*cable)
    lab.opensm.signal(signal.SIGHUP)
    lab.opensm.wait_for(
        lambda events: any(event.kind is EventKind.ROUTING for event in events), what="routing", after=place
    )
    return place, worker


def routes_again(lab):
    """Wait for the engine to come back; a new worker may take longer to start than the deadline is."""
    return until(lambda: (sweep := lab.opensm.resweep()).engine.startswith("ibnue-") and sweep.errors == ())


def test_a_worker_killed_in_a_sweep_leaves_the_next_engine_and_comes_back(live, nets):
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,minhop") as lab:
        place, worker = sweep_with_stopped_worker(lab, "sw1.1", 2)
        os.kill(worker, signal.SIGKILL)
        sweep = lab.opensm.wait_for_subnet_up(after=place)
        assert sweep.engine == "minhop" and sweep.tried[:2] == ("ibnue-updn", "minhop")
        assert said(lab, r"ibnue-updn routed nothing: (.*)") == [
            "the worker was killed by signal 9; another one is started"
        ]
        assert gone(worker) and worker_of(lab) != worker
        assert routes_again(lab)


def test_a_worker_killed_between_sweeps_is_replaced_before_it_is_needed(live, nets):
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback") as lab:
        for _ in range(3):
            worker = worker_of(lab)
            os.kill(worker, signal.SIGKILL)
            assert gone(worker)  # not even a zombie is left
            assert lab.opensm.resweep().engine == "ibnue-updn"


HASTY = "deadline = 1.5"


def test_the_deadline_ends_the_wait_and_the_slow_worker(live, nets):
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,minhop") as lab:
        live.configure(HASTY)
        place, worker = sweep_with_stopped_worker(lab, "sw1.1", 2)
        sweep = lab.opensm.wait_for_subnet_up(after=place)
        live.configure("")
        assert sweep.engine == "minhop"
        assert sweep.routing_seconds > 1.4
        # A trap may have made OpenSM sweep once more, before the next worker was ready.
        told = said(lab, r"ibnue-updn routed nothing: (.*)")
        assert told[0] == "no answer within 1.5 s; another worker is started"
        assert gone(worker)
        assert routes_again(lab)


def test_without_another_engine_the_old_tables_stay(live, nets):
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback") as lab:
        before = lab.switch_lfts()
        live.configure(HASTY)
        place, _ = sweep_with_stopped_worker(lab, "sw1.1", 2)
        lab.opensm.wait_for(
            lambda events: any(event.kind is EventKind.NO_ENGINE for event in events), what="its failure", after=place
        )
        with lab.opensm.paused():
            assert lab.switch_lfts() == before
        live.configure("")
        # OpenSM tries again by itself, and finds the new worker.
        lab.opensm.wait_for_subnet_up(after=place, fruitless=99)
        assert lab.switch_lfts() != before


KEPT = r"ibnue-dfsssp keeps its tables, proven for this very subnet, and routed nothing: (.*)"


@pytest.mark.parametrize("failure", ["killed", "slow", "misconfigured", "too many VLs"])
def test_an_engine_that_fails_on_the_same_fabric_keeps_its_tables_and_sls(live, nets, failure):
    toml = "state_file = false"
    with live(nets("torus", "4x4", cas=1), "ibnue-dfsssp,no_fallback", toml=toml, config={"qos": True}) as lab:
        lfts, sls, rows = lab.switch_lfts(), lab.ca_sls(), lab.switch_sl2vl()
        assert len(set(sls.values())) > 1
        if failure in ("killed", "slow"):
            live.configure(f"{HASTY}\n{toml}" if failure == "slow" else toml)
            place, worker = sweep_with_stopped_worker(lab)
            if failure == "killed":
                os.kill(worker, signal.SIGKILL)
            lab.opensm.wait_for_subnet_up(after=place)
        else:
            live.configure("nonsense = 3" if failure == "misconfigured" else "[engine]\nvls = 12")
            lab.opensm.resweep()
        why = {"killed": "killed by signal 9", "slow": "no answer within 1.5 s"}
        why |= {"misconfigured": "unknown key 'nonsense'", "too many VLs": "vls = 12, but OpenSM sets up 8"}
        assert why[failure] in said(lab, KEPT)[-1]
        assert lab.sweep.engine == "ibnue-dfsssp" and lab.sweep.tried == ("ibnue-dfsssp",)
        assert (lab.switch_lfts(), lab.ca_sls(), lab.switch_sl2vl()) == (lfts, sls, rows)
        live.configure(toml)
        assert routes_again(lab)
        assert (lab.switch_lfts(), lab.ca_sls()) == (lfts, sls)


def test_tables_for_another_fabric_and_tables_with_loops_are_not_kept(live, nets):
    toml = "allow_credit_loops = true\nstate_file = false"
    with live(nets("torus", "4x4x4", cas=1), "ibnue-minhop,updn", toml=toml) as lab:
        assert lab.sweep.engine == "ibnue-minhop"
        live.configure("")
        assert lab.opensm.resweep().engine != "ibnue-minhop"
        assert not said(lab, "keeps its tables")
    with live(nets("torus", "4x4", cas=1), "ibnue-updn,minhop") as lab:
        live.configure("nonsense = 3")
        assert lab.unlink("sw1.1", 2).engine == "minhop"
        assert not said(lab, "keeps its tables")
        assert lab.relink("sw1.1", 2).engine == "ibnue-updn"
        assert said(lab, "keeps its tables")  # once a sweep, and a trap may have brought one more


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
        ("dead_line = 3", "unknown key 'dead_line'"),
        ("deadline = 'soon'", "'deadline' is 'soon', wanted int or float"),
        ("deadline = ", "is no TOML"),
        ("[engine]\nvls = 3", r"vls = 3, but OpenSM sets up 1 data VL on this fabric \(set 'qos TRUE' in opensm.conf"),
        ("[engine.updn]\nobjective = 'peace'", "unknown objective 'peace'"),
    ],
)
def test_a_wrong_configuration_fails_the_engine_until_it_is_mended(live, nets, toml, reason):
    with live(nets("ring", "4", cas=1), "ibnue-updn,minhop", toml=toml) as lab:
        assert lab.sweep.engine == "minhop"
        assert said(lab, rf"ibnue-updn routed nothing: .*{reason}")
        live.configure("")
        assert lab.opensm.resweep().engine == "ibnue-updn"


def test_a_missing_configuration_file_is_named(live, nets):
    start = live(nets("ring", "4", cas=1), "ibnue-updn,minhop")
    live.config.unlink()
    with start as lab:
        assert lab.sweep.engine == "minhop"
        assert said(lab, rf"ibnue-updn routed nothing: {live.config}: cannot be read: No such file")


def test_the_worker_dies_with_an_opensm_that_is_killed(live, nets):
    with live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback") as lab:
        worker = worker_of(lab)
        os.kill(worker, signal.SIGSTOP)  # it cannot even notice that the socket is closed
        lab.opensm.signal(signal.SIGKILL)
        lab.opensm.wait_for_exit()
        assert gone(worker)


def test_a_clean_end_leaves_nothing(live, nets):
    with live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback") as lab:
        worker = worker_of(lab)
        lab.opensm.signal(signal.SIGTERM)
        assert lab.opensm.wait_for_exit() == 0
        assert gone(worker)
        out = (lab.opensm.folder / "opensm.out").read_text()
        assert "Exiting SM" in out and "Traceback" not in out


def test_the_worker_is_alone_and_without_the_simulator(live, nets):
    with live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback") as lab:
        worker = worker_of(lab)
        environment = Path(f"/proc/{worker}/environ").read_bytes()
        assert b"umad2sim" not in environment and b"umad2sim" not in Path(f"/proc/{worker}/maps").read_bytes()
        assert children(worker) == []
        assert os.getsid(worker) != os.getsid(lab.opensm.pid)
        loaded = Path(f"/proc/{worker}/maps").read_text()
        assert "click" not in loaded and "numpy" in loaded


def test_an_environment_that_misleads_python_misleads_neither_host_nor_worker(live, nets):
    misleading = {"PYTHONHOME": "/nowhere", "PYTHONPATH": "/nowhere", "PYTHONSTARTUP": "/nowhere", "PATH": "/nowhere"}
    lab = live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback")
    lab.opensm.plugin = replace(lab.opensm.plugin, environment=misleading)
    with lab:
        assert lab.sweep.engine == "ibnue-updn"


def test_a_plugin_that_is_named_twice_is_loaded_once(live, nets):
    config = {"event_plugin_name": "ibnue ibnue"}
    with live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback", config=config) as lab:
        assert lab.sweep.engine == "ibnue-updn"
        assert said(lab, "ERR IBN5: ibnue is loaded already")
        assert len(children(lab.opensm.pid)) == 1
        lab.opensm.signal(signal.SIGTERM)
        assert lab.opensm.wait_for_exit() == 0
