"""Check the status file and the system log of a running OpenSM."""

import json
import os
import re
import signal

import pytest
from plugin_lab import logged, sweep_options, worker_of
from prometheus_text import parsed
from waiting import until

from osm_plugin.build_info import read_build_info
from osm_plugin.install import LIBRARY
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.quality import all_to_all_share, channel_loads

pytestmark = pytest.mark.lab

SYSTEM_LOG = r"0x80 -> .*ibnue: engine ibnue-updn (fails|works again)"


@pytest.fixture
def files(tmp_path):
    """Return functions that read the status file and the metrics file."""
    toml = f"state_file = '{tmp_path}/state.npz'\nmetrics_file = '{tmp_path}/ibnue.prom'\n"

    class Files:
        def __init__(self):
            self.toml = toml

        def status(self):
            return json.loads((tmp_path / "ibnue-status.json").read_text())

        def metrics(self):
            return parsed((tmp_path / "ibnue.prom").read_text())

        def after(self, state, good=lambda status: True):
            """Wait for the given state of OpenSM, and return the status."""
            path = tmp_path / "ibnue-status.json"
            until(lambda: path.exists() and self.status()["opensm"]["state"] == state and good(self.status()))
            return self.status()

    return Files()


def test_the_files_say_what_is_in_force(live, nets, files, plugin_folder):
    with live(nets("torus", "4x4", cas=1), "ibnue-updn,no_fallback", toml=files.toml) as lab:
        reported = files.after("up", lambda status: status["tables"]["all_to_all"] is not None)
        fabric, tables = lab.fabric(), reported["tables"]
        routing = ENGINES["updn"].route(fabric, sweep_options())
        proof = prove(fabric, routing)
        share = all_to_all_share(fabric, channel_loads(fabric, routing))
        assert (tables["fabric_digest"], tables["engine"], tables["vls"]) == (fabric.digest, "updn", 1)
        assert (tables["certified"], tables["strength"], tables["scope"]) == (True, proof.strength, proof.scope)
        assert (tables["all_to_all"], tables["description"]) == (pytest.approx(share), "routed from scratch")
        assert reported["in_force"] == {"engine": "ibnue-updn", "ours": True}
        assert reported["opensm"]["version"].startswith("OpenSM ") and reported["opensm"]["pid"] == lab.opensm.pid
        assert reported["plugin"]["worker"]["pid"] == worker_of(lab) and reported["errors"] == {}
        assert reported["plugin"]["build"] == read_build_info(plugin_folder / LIBRARY).layout
        lab.unlink("sw1.1", 2)
        reported = files.after("up", lambda status: status["tables"]["fabric_digest"] != fabric.digest)
        logged_lines = r": (\d+) entr(?:y was|ies were) broken.*; (\d+) entr(?:y changes|ies change) in the switches"
        broken, changed = logged(lab, logged_lines)[-1]
        kept = logged(lab, r"all-to-all (\S+) % of the rate before")[-1]
        tables = reported["tables"]
        assert (tables["entries_broken"], tables["entries_changed"]) == (int(broken), int(changed))
        assert tables["all_to_all_kept"] == pytest.approx(float(kept) / 100, abs=0.0006)
        until(lambda: files.metrics().get(("ibnue_changed", "")) == files.status()["tables"]["entries_changed"])
        # The end of the lab would kill an OpenSM that takes seconds to end.
        lab.opensm.signal(signal.SIGTERM)
        lab.opensm.wait_for_exit()
    assert files.status()["opensm"]["state"] == "ended"
    assert files.metrics()["ibnue_running", ""] == 0


def test_failure_and_recovery_are_reported_once_and_shown(live, nets, files):
    wrong = f"{files.toml}[engine]\nvls = 3\n"
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,minhop", toml=wrong) as lab:
        for _ in range(2):
            lab.opensm.resweep()
        reported = files.after("up", lambda status: status["errors"].get("IBN1", 0) >= 3)
        assert reported["in_force"] == {"engine": "minhop", "ours": False} and reported["tables"] is None
        assert reported["engines"]["ibnue-updn"]["failing"] and reported["engines"]["ibnue-updn"]["failed"] >= 3
        assert "vls = 3, but OpenSM sets up 1" in reported["engines"]["ibnue-updn"]["last_error"]
        until(lambda: files.metrics()["ibnue_engine_failing", 'engine="ibnue-updn"'] == 1)
        live.configure(files.toml)
        lab.opensm.resweep()
        reported = files.after("up", lambda status: not status["engines"]["ibnue-updn"]["failing"])
        assert reported["in_force"] == {"engine": "ibnue-updn", "ours": True}
        assert not reported["tables"]["served_from_last"]
        assert logged(lab, SYSTEM_LOG) == ["fails", "works again"]
        # OpenSM also prints the messages that go to the system log.
        out = (lab.opensm.folder / "opensm.out").read_text()
        assert re.findall("ibnue: engine ibnue-updn (fails|works again)", out) == ["fails", "works again"]


def test_the_file_shows_a_failure_while_the_worker_is_dead(live, nets, files):
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback", toml=files.toml) as lab:
        files.after("up")
        live.configure(f"deadline = 1.5\n{files.toml}")
        worker = worker_of(lab)
        os.kill(worker, signal.SIGSTOP)
        lab.ibsim.unlink("sw1.1", 2)
        lab.opensm.signal(signal.SIGHUP)
        reported = until(lambda: (now := files.status())["engines"]["ibnue-updn"]["failing"] and now)
        assert "no answer within 1.5 s" in reported["engines"]["ibnue-updn"]["last_error"]
        live.configure(files.toml)
        until(lambda: lab.opensm.resweep().engine == "ibnue-updn" and logged(lab, SYSTEM_LOG)[-1] == "works again")
        assert files.after("up")["plugin"]["worker"]["pid"] not in (None, worker)


def test_minhop_in_force_is_shown_as_not_ours(live, nets, files):
    with live(nets("ring", "4", cas=1), "minhop,no_fallback", toml=files.toml):
        reported = files.after("up")
        assert reported["in_force"] == {"engine": "minhop", "ours": False} and reported["tables"] is None
