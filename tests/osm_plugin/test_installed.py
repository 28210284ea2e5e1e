"""Check which files are installed, which programs run, and who may change the files."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from plugin_lab import worker_of

from osm_plugin.install import LIBRARY, InstalledPlugin, install
from osm_plugin.installed import RunningOpensm, debian_package, remove, running, writable_by_others
from osm_plugin.status import Status
from routing.cli.plugin import plugin
from routing.errors import EnvironmentProblem, InputWarning


def call(*arguments):
    done = CliRunner().invoke(plugin, [str(argument) for argument in arguments], standalone_mode=False)
    if isinstance(done.exception, EnvironmentProblem):
        raise done.exception
    return done


@pytest.mark.lab
def test_status_and_remove_beside_a_running_opensm(live, nets, plugin_folder, tmp_path):
    with live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback") as lab:
        (opensm,) = [process for process in running(LIBRARY) if process.pid == lab.opensm.pid]
        assert opensm.library == str(plugin_folder / LIBRARY) and not opensm.outdated
        assert opensm.workers == (worker_of(lab),)
        done = call("status", "--libdir", plugin_folder, "--json")
        reported = json.loads(done.stdout)
        assert done.return_value == 0 and reported["problems"] == []
        assert lab.opensm.pid in [process["pid"] for process in reported["running"]]
        with pytest.raises(EnvironmentProblem, match=f"OpenSM \\(process .*{lab.opensm.pid}.*has .* loaded"):
            call("remove", "--libdir", plugin_folder)
        shutil.copy(plugin_folder / LIBRARY, tmp_path)
        assert "event_plugin_name ibnue" in call("remove", "--libdir", tmp_path).stdout
        assert not (tmp_path / LIBRARY).exists() and (plugin_folder / LIBRARY).exists()
    assert lab.opensm.pid not in [process.pid for process in running(LIBRARY)]


def test_a_process_that_ends_while_its_files_are_read_is_left_out(tmp_path):
    (tmp_path / "1234").mkdir()
    (tmp_path / "1234" / "comm").write_text("opensm\n")
    (tmp_path / "1234" / "maps").write_text(f"7f0-7f1 r-xp 00000000 08:01 42 /usr/lib/{LIBRARY}\n")
    assert running(LIBRARY, tmp_path) == []  # Its folder of threads is gone.
    (tmp_path / "1234" / "task" / "1234").mkdir(parents=True)
    (tmp_path / "1234" / "task" / "1234" / "children").write_text("77 78")
    assert running(LIBRARY, tmp_path) == [RunningOpensm(1234, f"/usr/lib/{LIBRARY}", False, (77, 78))]


def test_an_opensm_that_runs_the_previous_library_is_named(tmp_path, monkeypatch):
    library = tmp_path / LIBRARY
    processes = [
        RunningOpensm(12, str(library), True, ()), RunningOpensm(13, str(library), False, ()),
        RunningOpensm(14, "/elsewhere/libibnue.so", True, ()),
    ]  # fmt: skip
    monkeypatch.setattr("osm_plugin.installed.running", lambda _: processes)
    monkeypatch.setattr("osm_plugin.install.install", lambda *_, **__: InstalledPlugin(library, "OpenSM 1", (), {}))
    lines = call("install", "--libdir", tmp_path).stdout.splitlines()
    assert [line for line in lines if "previous" in line] == [
        "OpenSM 12 still runs the previous library. Restart OpenSM."
    ]
    with pytest.raises(EnvironmentProblem, match=rf"{library} does not exist; OpenSM 12 runs {library}; OpenSM 13"):
        call("status", "--libdir", tmp_path)


@pytest.mark.lab
def test_status_names_the_files_that_do_not_exist(plugin_folder, tmp_path):
    config = tmp_path / "ibnue.toml"
    config.write_text(f"state_file = '{tmp_path}/s.npz'\nstatus_file = false\n")
    found = dict(
        re.findall("^(.*?)  +(.*)$", call("status", "--libdir", plugin_folder, "--config", config).stdout, re.M)
    )
    assert found["state file"] == f"{tmp_path}/s.npz does not exist" and found["status file"] == "turned off"


@pytest.mark.lab
@pytest.mark.parametrize(
    ("in_force", "ours", "verdict", "shown"),
    [
        ("minhop", 0, "loop", "minhop, an engine of OpenSM; its tables have a credit loop"),
        ("minhop", 0, "unknown", "minhop, an engine of OpenSM; its tables are not proven"),
        ("ibnue-updn", 1, None, "ibnue-updn, proven free of credit loops"),
        ("ibnue-nue", 1, None, "ibnue-nue, whose worker has not reported a proof yet"),
        ("none", 0, None, None),
    ],
)
def test_status_names_the_engine_that_routes(plugin_folder, tmp_path, monkeypatch, in_force, ours, verdict, shown):
    config, file, status = tmp_path / "ibnue.toml", tmp_path / "status.json", Status({"pid": 12}, 0.0)
    processes = {12}
    monkeypatch.setattr("osm_plugin.installed.is_opensm", lambda pid, *_: pid in processes)
    config.write_text(f"status_file = '{file}'\n")
    status.take_summary("event routed\nengine ibnue-updn\nsequence 1")
    status.take_report({"sequence": 1, "certified": True})
    status.take_summary("event routed\nengine ibnue-nue\nsequence 2")
    status.take_summary(f"event up\nin_force {in_force}\nours {ours}")
    status.take_report({"shadow": {"engine_in_force": "minhop", "verdict": verdict}})
    file.write_text(json.dumps(status.as_object()))
    shows = (("status", "--libdir", plugin_folder, "--config", config), "^(.*?)  +(.*)$")
    assert dict(re.findall(shows[1], call(*shows[0]).stdout, re.M)).get("in force") == shown
    processes.clear()  # OpenSM was killed, so its status file is outdated.
    assert "in force" not in dict(re.findall(shows[1], call(*shows[0]).stdout, re.M))


@pytest.mark.lab
def test_status_is_shown_although_the_named_configuration_has_an_error(plugin_folder, tmp_path, monkeypatch):
    config = tmp_path / "ibnue.toml"
    config.write_text("deadlin = 5.0\n")
    monkeypatch.setattr("osm_plugin.check_conf.named_configuration", lambda _: config)
    with pytest.warns(InputWarning, match=f"{config}:1: .*deadlin"):
        done = call("status", "--libdir", plugin_folder)
    assert done.return_value == 0 and "state file" in done.stdout


@pytest.mark.lab
def test_a_library_of_another_protocol_is_a_problem(plugin_folder, monkeypatch):
    monkeypatch.setattr("osm_plugin.installed.protocol", lambda: "another")
    done = call("status", "--libdir", plugin_folder)
    assert done.return_value == 1 and "but this package has another (run 'ibnue plugin install' again)" in done.stdout


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="not a Debian")
def test_a_file_of_a_debian_package_is_known(tmp_path):
    assert debian_package(Path("/usr/bin/dpkg")) == "dpkg"
    assert debian_package(tmp_path) is None and debian_package(tmp_path / "nowhere") is None


@pytest.mark.lab
def test_a_packaged_library_is_left_alone(plugin_folder, tmp_path, monkeypatch):
    shutil.copy(plugin_folder / LIBRARY, tmp_path)
    before = (tmp_path / LIBRARY).stat().st_mtime_ns
    for module in ("install", "installed"):
        monkeypatch.setattr(f"osm_plugin.{module}.debian_package", lambda _: "ibnue-opensm-plugin")
    done = call("install", "--libdir", tmp_path)
    assert "belongs to the Debian package ibnue-opensm-plugin, so nothing is built" in done.stdout
    assert "event_plugin_name ibnue\n" in done.stdout
    with pytest.raises(EnvironmentProblem, match=r"belongs to the Debian package .*apt remove ibnue-opensm-plugin"):
        call("remove", "--libdir", tmp_path)
    assert (tmp_path / LIBRARY).stat().st_mtime_ns == before
    monkeypatch.setattr("osm_plugin.installed.protocol", lambda: "another")
    with pytest.raises(EnvironmentProblem, match=r"and it has protocol .* but this package has another .upgrade"):
        call("install", "--libdir", tmp_path)


def test_other_libraries_are_not_removed(tmp_path):
    with pytest.raises(EnvironmentProblem, match="does not exist"):
        remove(tmp_path / LIBRARY)
    (tmp_path / LIBRARY).write_bytes(b"something")
    with pytest.raises(EnvironmentProblem, match="has no record of what it was built from"):
        remove(tmp_path / LIBRARY)
    assert (tmp_path / LIBRARY).exists()
    remove(tmp_path / LIBRARY, force=True)
    assert not (tmp_path / LIBRARY).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_that_other_users_may_write_are_found(tmp_path):
    tmp_path.chmod(0o700)
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    path.write_text("")
    path.chmod(0o644)
    path.parent.chmod(0o755)
    assert writable_by_others([path]) == []
    path.chmod(0o666)
    assert writable_by_others([path]) == [f"{path} may be written by every user"]
    path.chmod(0o664)
    os.chown(path, 0, 1234)
    assert writable_by_others([path]) == [f"{path} may be written by group 1234"]
    os.chown(path, 4321, 0)
    assert writable_by_others([path]) == [f"{path} belongs to user 4321"]
    os.chown(path, 0, 0)
    path.parent.chmod(0o777)
    assert writable_by_others([path]) == [f"{path.parent} may be written by every user"]
    path.parent.chmod(0o1777)
    assert writable_by_others([path]) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="the check is for root")
def test_the_system_s_opensm_does_not_get_what_others_may_change(tmp_path, monkeypatch):
    monkeypatch.setattr("osm_plugin.install._system_libdir", lambda root: tmp_path)
    monkeypatch.setattr("osm_plugin.install._version", lambda root, include: "OpenSM 1.2.3")
    monkeypatch.setattr("osm_plugin.install._include", lambda root: tmp_path)
    monkeypatch.setattr("osm_plugin.install.compile_shim", lambda *arguments, **options: None)
    tmp_path.chmod(0o777)
    with pytest.raises(EnvironmentProblem, match=f"{tmp_path} may be written by every user.*--allow-writable"):
        install()
    line = f"{tmp_path} may be written by every user"
    assert line in install(allow_writable=True).warnings and line in install(libdir=tmp_path).warnings
