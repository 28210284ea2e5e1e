"""Check the return to earlier tables in a running OpenSM."""

import json

import pytest
from click.testing import CliRunner
from plugin_lab import expected_lfts, logged
from waiting import until

from osm_plugin.history import entries, history_folder
from osm_plugin.state import read_state
from routing.cli.command import main
from routing.deadlock.proof import prove
from routing.formats.table_files import read_tables

pytestmark = pytest.mark.lab


def run(*arguments):
    done = CliRunner().invoke(main, ["plugin", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_back_to_earlier_tables_and_on_again(live, nets, tmp_path):
    state = tmp_path / "state.npz"
    folder, toml = history_folder(state), f"state_file = '{state}'\n"
    with live(nets("torus", "4x4", cas=1), "ibnue-updn,no_fallback", toml=f"{toml}[engine]\nroots = ['sw0.0']") as lab:
        until(lambda: len(entries(folder)) == 1)
        first = lab.switch_lfts()
        live.configure(f"{toml}[engine]\nroots = ['sw2.2']")
        lab.opensm.resweep()
        until(lambda: len(entries(folder)) == 2)
        second = lab.switch_lfts()
        assert second != first
        for _ in range(2):  # equal tables are not stored again
            lab.opensm.resweep()
        listed = json.loads(run("history", "--config", str(live.config), "--json"))["stored_tables"]
        assert [(row["number"], row["engine"], row["pinned"]) for row in listed] == [
            (1, "updn", False), (2, "updn", False),
        ]  # fmt: skip
        kept = read_state(entries(folder)[0].path)
        assert first == expected_lfts(kept.fabric, kept.routing)

        assert "tables 1 of" in run("rollback", "1", "--config", str(live.config))
        lab.opensm.resweep()
        assert lab.switch_lfts() == first
        assert logged(lab, rf"pinned to {entries(folder)[0].path.name}; tables unchanged")
        path = tmp_path / "ibnue-status.json"
        until(lambda: json.loads(path.read_text())["pinned"] == entries(folder)[0].path.name)
        assert "* " in run("history", "--config", str(live.config))

        # A broken route of pinned tables is repaired, and the result is proven.  Unbroken routes stay.
        lab.unlink("sw1.1", 2)
        fabric = lab.fabric()
        assert prove(fabric, read_tables(lab.opensm.folder, fabric)).certified
        assert logged(lab, r"pinned to .*; re-routed, repaired")
        lab.relink("sw1.1", 2)
        assert lab.switch_lfts() == first

        run("rollback", "--off", "--config", str(live.config))
        lab.opensm.resweep()
        after = lab.switch_lfts()
        lab.opensm.resweep()
        assert lab.switch_lfts() == after
        assert until(lambda: json.loads(path.read_text())["pinned"] is None)
        assert lab.opensm.errors == []


def test_a_pin_outlives_opensm(live, nets, tmp_path):
    state = tmp_path / "state.npz"
    folder, toml = history_folder(state), f"state_file = '{state}'\nstability = 'fresh'\n"
    net = nets("torus", "4x4", cas=1)
    with live(net, "ibnue-updn,no_fallback", toml=f"{toml}[engine]\nroots = ['sw0.0']") as lab:
        until(lambda: len(entries(folder)) == 1)
        first = lab.switch_lfts()
    run("rollback", "1", "--config", str(live.config))
    # The pinned tables are used although the options, and even the engine, have changed.
    with live(net, "ibnue-nue,no_fallback", toml=toml) as lab:
        assert lab.switch_lfts() == first
