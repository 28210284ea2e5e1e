import os
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from campaigns import some_of
from plugin_lab import ample_timeouts, children, comes_up, expected_lfts, gone, logged, sweep_options, worker_of
from waiting import until

from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm import OpenSM, Plugin
from ibsim_fixtures.opensm_log import EventKind
from ibsim_fixtures.readback import switch_lfts
from osm_plugin.route_or_reroute import options_key
from osm_plugin.state import SavedTables, read_state, write_state
from routing.deadlock.proof import prove
from routing.engines import ENGINES

pytestmark = pytest.mark.lab

ENGINE = "ibnue-updn,no_fallback"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.npz"


@pytest.fixture
def toml(path):
    return f"state_file = '{path}'"


def saved(path, digest):
    """Wait for the state of a fabric.  The plugin writes the state shortly after OpenSM has the tables."""
    return until(lambda: path.exists() and read_state(path).fabric.digest.startswith(digest))


def other_tables(fabric):
    """Return proven tables that differ from the tables that the engine computes."""
    routing = ENGINES["updn"].route(fabric, sweep_options(roots=(fabric.switch_name[5],)))
    return SavedTables(
        fabric, routing, prove(fabric, routing), "updn", options_key(sweep_options(vls="auto", port_vls=1))
    )


def test_a_restart_publishes_what_was_in_force(live, nets, path, toml):
    net = nets("torus", "4x4", cas=1)
    with live(net, ENGINE, toml=toml) as lab:
        assert logged(lab, "routed from scratch") and saved(path, "")
        kept = other_tables(lab.fabric())
        assert lab.switch_lfts() != expected_lfts(kept.fabric, kept.routing)
    write_state(path, kept)
    with live(net, ENGINE, toml=toml) as lab:
        assert lab.switch_lfts() == expected_lfts(kept.fabric, kept.routing)
        assert logged(lab, rf"; tables unchanged; \d+ entries change in the switches; .*state read from {path};")
        lab.opensm.resweep()
        assert lab.switch_lfts() == expected_lfts(kept.fabric, kept.routing)
        # Tables that another program writes into the file are used as well.
        routing = ENGINES["updn"].route(kept.fabric, sweep_options())
        write_state(path, replace(kept, routing=routing, proof=prove(kept.fabric, routing)))
        lab.opensm.resweep()
        assert lab.switch_lfts() == expected_lfts(kept.fabric, routing)


def test_a_cable_that_comes_back_brings_the_home_tables_back(live, nets, path, toml):
    with live(nets("torus", "4x4", cas=1), ENGINE, toml=toml) as lab:
        before = lab.switch_lfts()
        lab.unlink("sw1.1", 2)
        assert lab.switch_lfts() != before
        assert logged(lab, r"re-routed, repaired \(.*\): (\d+) entries were broken; \d+ entries change") != ["0"]
        log = lab.opensm.log_path.parent / "ibnue-worker.log"
        verdict = r"transition (any-order|in rounds|ordered|drained|unsafe): .*entries of \d+ LIDs"
        until(lambda: re.search(verdict, log.read_text()))
        lab.relink("sw1.1", 2)
        assert lab.switch_lfts() == before
        assert logged(lab, r"re-routed, baseline \(")
        assert comes_up(lab, f"ibnue: {verdict}")


def test_fresh_ignores_the_state_and_makes_a_new_home(live, nets, path, toml):
    net = nets("torus", "4x4", cas=1)
    with live(net, ENGINE, toml=toml) as lab:
        fabric, made = lab.fabric(), lab.switch_lfts()
        assert saved(path, "")
    write_state(path, other_tables(fabric))
    with live(net, ENGINE, toml=f"{toml}\nstability = 'fresh'") as lab:
        assert lab.switch_lfts() == made
        live.configure(toml)
        lab.opensm.resweep()
        assert lab.switch_lfts() == made
        assert logged(lab, "; (tables unchanged|routed from scratch);")[-1:] == ["tables unchanged"]


def test_a_standby_with_the_same_state_changes_no_route(plugin_folder, nets, path, tmp_path):
    config = tmp_path / "ibnue.toml"
    config.write_text(ample_timeouts(f"state_file = '{path}'"))
    plugin = Plugin("ibnue", options=f"--config {config}", folder=plugin_folder)
    hasty = {"sminfo_polling_timeout": 200, "polling_retry_number": 10}
    # On a busy machine, a master answers late.  The standby takes over after two seconds without an answer.
    # Queries never time out on ibsim, so an OpenSM whose query is never answered waits for ever.  So each OpenSM is
    # paused while the other one starts or ends.
    with (
        Ibsim(nets("torus", "4x4", cas=1)) as ibsim,
        OpenSM(ibsim, routing_engine=ENGINE, plugin=plugin, config=hasty) as master,
        OpenSM(ibsim, routing_engine=ENGINE, plugin=plugin, config=hasty, host="ca3.3.0", wait=False) as standby,
    ):
        with master.paused():
            standby.wait_for(lambda events: any(e.kind is EventKind.HEAVY_SWEEP for e in events), what="a sweep")
        standby.wait_for(lambda events: any("Entering STANDBY" in e.text for e in events), what="STANDBY")
        assert saved(path, "")
        # These tables differ from the tables of every engine, and are newer than the tables that the standby knows.
        kept = other_tables(read_state(path).fabric)
        expected = expected_lfts(kept.fabric, kept.routing)

        def taken_by_master() -> bool:
            """Return whether the switches have the tables ``kept``.  A sweep that was in progress overwrites the state
            file with its own state.
            """
            write_state(path, kept)
            master.resweep()
            return bool(switch_lfts(ibsim) == expected)

        until(taken_by_master)
        position = standby.mark()
        with standby.paused():
            ibsim.run("sminfo")  # the master answers in order, so it has answered the standby, too
            master.stop()
        standby.wait_for_subnet_up(after=position)
        assert switch_lfts(ibsim) == expected


@pytest.mark.parametrize("damage", some_of(["cut", "text", "other fabric", "other engine"], ["cut"]))
def test_a_state_that_is_no_good_is_named_and_replaced(live, nets, path, toml, damage):
    net = nets("torus", "4x4", cas=1)
    with live(nets("ring", "5", cas=1) if damage == "other fabric" else net, ENGINE, toml=toml) as lab:
        assert saved(path, "")
        kept = read_state(path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-99])
    elif damage == "text":
        path.write_text("no state at all\n")
    elif damage == "other engine":
        write_state(path, replace(kept, engine="nue"))
    else:
        fabric = replace(kept.fabric, switch_guid=kept.fabric.switch_guid + (1 << 40))
        write_state(path, replace(kept, fabric=fabric))
    with live(net, ENGINE, toml=toml) as lab:
        assert lab.sweep.engine == "ibnue-updn"
        why = {"other fabric": "it is for another fabric", "other engine": "it is from engine nue"}
        assert logged(
            lab, f"routed from scratch; .*state ignored: {why.get(damage, f'{path}: this is not a whole bundle')}"
        )
        fabric = lab.fabric()
        assert lab.switch_lfts() == expected_lfts(fabric, ENGINES["updn"].route(fabric, sweep_options()))
        assert saved(path, fabric.digest)
        assert lab.opensm.errors == []


def test_the_state_lies_beside_opensms_cache_unless_it_is_turned_off(live, nets):
    with live(nets("ring", "4", cas=1), ENGINE) as lab:
        until((lab.opensm.folder / "ibnue-state.npz").exists)
    with live(nets("ring", "4", cas=1), ENGINE, toml="state_file = false") as lab:
        lab.opensm.resweep()
        lab.opensm.resweep()
        assert logged(lab, "tables unchanged") and not list(lab.opensm.folder.glob("ibnue-state*"))


@pytest.mark.parametrize("state_file", some_of(["false", "'/proc/s.npz'"], ["false"]))
def test_a_new_worker_takes_over_the_tables_without_a_state_file(live, nets, state_file):
    with live(nets("torus", "4x4", cas=1), ENGINE, toml=f"state_file = {state_file}") as lab:
        home = lab.switch_lfts()
        lab.unlink("sw1.1", 2)
        before, worker = lab.switch_lfts(), worker_of(lab)
        os.kill(worker, signal.SIGKILL)
        assert gone(worker)
        lab.opensm.resweep()
        assert lab.switch_lfts() == before
        # OpenSM may begin the sweep before it notices the end of the worker.  Then it keeps the tables in this sweep.
        assert comes_up(lab, "; tables unchanged; .*state read from the memory of the worker that has ended")
        lab.relink("sw1.1", 2)
        assert lab.switch_lfts() == home and len(logged(lab, "routed from scratch")) == 1


def test_a_state_that_cannot_be_written_is_named_and_no_obstacle(live, nets, tmp_path):
    with live(nets("ring", "4", cas=1), ENGINE, toml=f"state_file = '{tmp_path}/none/s.npz'") as lab:
        assert lab.opensm.resweep().engine == "ibnue-updn"
        why = f"state not saved: {tmp_path}/none/s.npz: cannot be written: no such file"
        assert comes_up(lab, why)
        lab.opensm.resweep()
        assert len(logged(lab, why)) == 1
        (tmp_path / "none").mkdir()
        comes_up(lab, f"state saved again: {tmp_path}/none/s.npz")


def test_a_failed_write_is_reported_without_another_sweep(live, nets):
    with live(nets("ring", "4", cas=1), ENGINE, toml="state_file = '/proc/s.npz'") as lab:
        log, why = (
            lab.opensm.folder / "ibnue-worker.log",
            "state not saved: /proc/s.npz: cannot be written: no such file",
        )
        assert until(lambda: why in log.read_text())
        assert len(logged(lab, "; routed from scratch;")) == 1 and not logged(lab, "; tables unchanged;")


def keepers(worker):
    """Return the processes that keep files for a worker."""
    return [pid for pid in children(worker) if b"file_keeper" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_a_file_system_that_hangs_stops_no_sweep(live, nets, path, toml):
    with live(nets("torus", "4x4", cas=1), ENGINE, toml=toml) as lab:
        assert saved(path, "")
        (keeper,) = keepers(worker := worker_of(lab))
        os.kill(keeper, signal.SIGSTOP)  # the keeper never gets what it waits for
        path.unlink(missing_ok=True)
        overdue = f"state not (?:read|written) yet: {path} has not answered for 1 s"
        assert until(lambda: lab.opensm.resweep() and logged(lab, overdue))
        lab.unlink("sw1.1", 2)
        lab.relink("sw1.1", 2)
        assert len(logged(lab, overdue)) == 1 and not path.exists() and lab.opensm.errors == []
        os.kill(keeper, signal.SIGCONT)
        until(lambda: lab.opensm.resweep() and path.exists())
        os.kill(keeper, signal.SIGSTOP)
        os.kill(worker, signal.SIGKILL)
        assert gone(worker) and gone(keeper)
        lab.opensm.resweep()


def test_a_state_that_never_answers_does_not_keep_opensm_from_starting(live, nets, path, toml):
    os.mkfifo(path)  # opening the pipe for reading blocks until it is opened for writing
    with live(nets("torus", "4x4", cas=1), ENGINE, toml=toml) as lab:
        assert logged(lab, f"routed from scratch; .*state not read yet: {path} has not answered for 1 s")
        lab.unlink("sw1.1", 2)
        lab.relink("sw1.1", 2)
        assert lab.opensm.errors == []
