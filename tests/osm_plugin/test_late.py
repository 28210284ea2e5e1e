"""Check answers of the worker that arrive after the deadline."""

import os
import signal
from pathlib import Path

import pytest
from campaigns import some_of
from plugin_lab import logged, worker_of
from waiting import AMPLE, until

import osm_plugin
from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm import Plugin

pytestmark = pytest.mark.lab

LATE = r"ibnue-updn: .* \(a late answer, for the unchanged subnet\)"
ANY = 1000
"""Number of sweeps that no engine routes, until a late answer comes: more of them on a busy machine."""
STILL = r"no answer within \S+ s; the worker still computes, and its tables will be used later"


@pytest.fixture
def slow(bad_plugin, nets, tmp_path):
    """A lab with a deadline, whose worker computes tables for three seconds, except tables of the engine ``fast``."""
    config = tmp_path / "ibnue.toml"

    def set_deadline(seconds, more):
        config.write_text(f"deadline = {seconds}\nstart_deadline = {AMPLE}\nstate_file = false\n{more}")

    def start(deadline, stability="full", seconds=3, engines="ibnue-updn,no_fallback", more="", fast=""):
        more = f"stability = '{stability}'\n{more}"
        # Until a test makes a worker late, the worker must be in time, even on a busy machine.  Workers that always
        # compute for some seconds are late from the beginning.
        set_deadline(deadline if seconds else AMPLE, more)

        def make_late():
            set_deadline(deadline, more)
            start.endless.touch()

        start.make_late = make_late
        real = str(Path(osm_plugin.__file__).parent)
        environment = {"IBNUE_TEST_REAL": real, "IBNUE_TEST_FAULT": "slow", "IBNUE_TEST_SECONDS": str(seconds)}
        environment |= {"IBNUE_TEST_ENDLESS": str(start.endless), "IBNUE_TEST_FAST": fast}
        plugin = Plugin("ibnue", options=f"--config {config}", folder=bad_plugin, environment=environment)
        # A sweep because of the trap, beside the requested one, would wait for the late worker as well.
        asked = {"sweep_on_trap": False}
        return Lab(nets("torus", "3x3", cas=1), routing_engine=engines, plugin=plugin, config=asked)

    start.endless = tmp_path / "endless"  # While this file exists, the worker computes and does not answer.
    return start


@pytest.mark.parametrize("stability", some_of(["full", "fresh"], ["full"]))
def test_a_late_answer_brings_the_subnet_up_and_the_next_fault_is_served_and_repaired(slow, stability):
    lab = slow(2, stability)
    lab.opensm.wait = False
    with lab:
        lab.opensm.wait_for_subnet_up(after=0, fruitless=ANY)
        worker = worker_of(lab)
        assert lab.sweep.engine == "ibnue-updn" and logged(lab, STILL) and logged(lab, LATE)
        late = len(logged(lab, LATE))

        position = lab.opensm.mark()
        lab.ibsim.unlink("sw1.1", 2)
        lab.opensm.signal(signal.SIGHUP)
        lab.opensm.wait_for_subnet_up(after=position)
        assert logged(lab, "keeps what is left of the last proven tables")
        # The test does not request another sweep.
        until(lambda: len(logged(lab, LATE)) > late)
        until(lambda: lab.sweep.errors == ())
        assert len(lab.ca_sls()) == 9 * 8
        assert worker_of(lab) == worker


def test_the_next_engine_leaves_a_late_answer_to_the_first_one(slow):
    lab = slow(2, engines="ibnue-updn,ibnue-nue,no_fallback")
    lab.opensm.wait = False
    with lab:
        lab.opensm.wait_for_subnet_up(after=0, fruitless=ANY)
        assert logged(lab, "ibnue-nue routed nothing: the worker was still computing tables for ibnue-updn")
        late = until(lambda: len(logged(lab, LATE)))
        lab.ibsim.unlink("sw1.1", 2)
        lab.opensm.signal(signal.SIGHUP)
        until(lambda: len(logged(lab, LATE)) > late)
        assert not logged(lab, "ibnue-nue: fabric")


def test_the_first_engines_leave_a_late_answer_to_the_last_one(slow):
    options = "[engine.updn]\nvls = 12\n[engine.dfsssp]\nvls = 12"
    lab = slow(2, engines="ibnue-updn,ibnue-dfsssp,ibnue-nue,no_fallback", more=options)
    lab.opensm.wait = False
    with lab:
        lab.opensm.wait_for_subnet_up(after=0, fruitless=ANY)
        for engine in ("updn", "dfsssp"):
            assert logged(lab, f"ibnue-{engine} routed nothing: the worker was still computing tables for ibnue-nue")
        assert logged(lab, LATE.replace("updn", "nue"))


KEEPS = rf"ibnue-updn keeps what is left of the last proven tables .*, and routed nothing: {STILL}"


def sweep_with_late_worker(lab, slow):
    """Pull a cable while the worker does not answer, and return the sweep that follows."""
    slow.make_late()
    position = lab.opensm.mark()
    lab.ibsim.unlink("sw1.1", 2)
    lab.opensm.signal(signal.SIGHUP)
    return lab.opensm.wait_for_subnet_up(after=position)


def test_an_engine_of_opensm_does_not_route_in_the_sweep_in_which_the_worker_is_late_first(slow):
    with slow(2, engines="ibnue-updn,minhop", seconds=0) as lab:
        assert lab.sweep.engine == "ibnue-updn"
        sweep = sweep_with_late_worker(lab, slow)
        slow.endless.unlink()
        assert sweep.engine == "ibnue-updn" and logged(lab, KEEPS)
        # OpenSM sweeps again without a request of the test.
        until(lambda: logged(lab, LATE))
        assert not logged(lab, "minhop tables configured")


def test_an_engine_of_opensm_routes_if_the_worker_stays_late(slow):
    with slow(2, engines="ibnue-updn,ibnue-nue,minhop", seconds=0) as lab:
        assert lab.sweep.engine == "ibnue-updn"
        slow.make_late()
        lab.ibsim.unlink("sw1.1", 2)
        lab.opensm.signal(signal.SIGHUP)
        # OpenSM sweeps again without a request of the test.
        until(lambda: logged(lab, "minhop tables configured"))
        until_then = "; another sweep follows as soon as a worker can route, at the latest after [2-9][.][0-9] s, and"
        assert logged(lab, KEEPS) and logged(lab, until_then) and logged(lab, f"ibnue-updn routed nothing: {STILL}")
        slow.endless.unlink()
        # The verdict in the worker's answer does not apply to a change from the tables of minhop.
        until(lambda: logged(lab, "ibnue-updn: tables of a late answer replace .* the transition is not judged"))
        assert not logged(lab, LATE)


def test_the_last_tables_stay_also_if_an_engine_before_the_late_one_refuses_to_route(slow):
    refused, more = r"ibnue-nue routed nothing: \S+:\d+: vls = 12", "[engine.nue]\nvls = 12\n"
    with slow(2, engines="ibnue-nue,ibnue-updn,minhop", seconds=0, more=more, fast="nue") as lab:
        assert lab.sweep.engine == "ibnue-updn" and logged(lab, refused)
        sweep = sweep_with_late_worker(lab, slow)
        slow.endless.unlink()
        assert sweep.engine == "ibnue-updn" and logged(lab, KEEPS)


def test_a_sweep_during_the_pause_for_a_late_worker_replaces_the_sweep_after_the_pause(slow):
    with slow(2, engines="ibnue-updn,minhop", seconds=0) as lab:
        assert sweep_with_late_worker(lab, slow).engine == "ibnue-updn"
        position = lab.opensm.mark()
        lab.opensm.signal(signal.SIGHUP)
        sweep = lab.opensm.wait_for_subnet_up(after=position)
        assert sweep.engine == "minhop"
        slow.endless.unlink()
        until(lambda: logged(lab, "tables of a late answer replace"))
        assert len(logged(lab, f"ibnue-updn routed nothing: {STILL}")) == 1


def test_a_late_answer_replaces_no_tables_if_the_next_engine_only_keeps_those_of_the_late_one(slow):
    with slow(2, engines="ibnue-updn,ibnue-nue,no_fallback", seconds=0) as lab:
        assert sweep_with_late_worker(lab, slow).engine == "ibnue-updn"
        assert lab.opensm.resweep().engine == "ibnue-nue"
        slow.endless.unlink()
        until(lambda: logged(lab, LATE))
        assert not logged(lab, "tables of a late answer replace")


def test_a_worker_that_falls_silent_after_the_deadline_is_replaced(slow):
    lab = slow(2, seconds=5)
    lab.opensm.wait = False
    with lab:
        until(lambda: lab.opensm.log_path.exists() and logged(lab, STILL))
        worker = worker_of(lab)
        os.kill(worker, signal.SIGSTOP)
        lost = "the late answer is lost, and the engine is asked again: no answer within 2 s; another worker is started"
        until(lambda: logged(lab, lost))
        until(lambda: logged(lab, LATE))
        assert worker_of(lab) != worker
