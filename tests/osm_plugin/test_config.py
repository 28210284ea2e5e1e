import os
import subprocess
import sys
import threading
from dataclasses import fields
from pathlib import Path

import pytest

from osm_plugin.config import ENGINE_KEYS, PluginConfig, config_path, read_config
from osm_plugin.silent_files import real_paths
from osm_plugin.worker_process import PRELUDE, clean_environment
from routing.engines.base import EngineOptions
from routing.errors import InputError, ParseErrors


def test_every_engine_option_can_be_configured_but_what_the_worker_knows():
    # A budget is converted to an effort, and is not a field of EngineOptions.
    assert set(ENGINE_KEYS) == {field.name for field in fields(EngineOptions)} - {
        "threads",
        "port_vls",
        "link_weights",
    } | {"budget"}


def test_a_full_file(tmp_path):
    path = tmp_path / "ibnue.toml"
    path.write_text(
        """
        deadline = 4
        start_deadline = 12.5
        threads = 3
        allow_credit_loops = true
        log_level = "debug"
        log_file = "/var/log/ibnue.log"
        bundle = "tables.npz"
        [engine]
        vls = 4
        passes = 2
        [engine.updn]
        vls = "min"
        roots = ["top", "0x10"]
        root_guid_file = "roots.guids"
        """
    )
    config = read_config(path)
    assert config == PluginConfig(
        deadline=4,
        start_deadline=12.5,
        threads=3,
        allow_credit_loops=True,
        log_level="debug",
        log_file="/var/log/ibnue.log",
        bundle=str(tmp_path / "tables.npz"),
        engine={
            "": {"vls": 4, "passes": 2},
            "updn": {"vls": "min", "roots": ["top", "0x10"], "root_guid_file": str(tmp_path / "roots.guids")},
        },
    )
    assert config.options_of("minhop") == {"vls": 4, "passes": 2}
    assert config.options_of("updn")["vls"] == "min"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("dead_line = 3", "unknown key 'dead_line' \\(did you mean deadline\\?\\)"),
        ("xyz = 3", "unknown key 'xyz' \\(known are deadline, "),
        ("[engine]\nvlz = 3", "unknown key 'engine.vlz' \\(did you mean vls\\?\\)"),
        ("rebalance = true", "'rebalance' is true, wanted an integer"),
        ("[engine.updn]\nthreads = 3", "unknown key 'engine.updn.threads'"),
        ("threads = true", "'threads' is true, wanted an integer"),
        ("deadline = 0", "'deadline' is 0, wanted seconds over 0"),
        ("deadline = nan", "'deadline' is nan, wanted seconds over 0"),
        ("round_wait = -0.1", "'round_wait' is -0.1, wanted seconds from 0 to 60"),
        ("transitions = 'twice'", "'transitions' is 'twice' \\(one of rounds, at once\\)"),
        ("threads = 1000", "'threads' is 1000"),
        ("worker_user = 'not a user'", "there is no user 'not a user'"),
        ("log_level = 'loud'", "'log_level' is 'loud' \\(one of error, info, debug\\)"),
        ("deadline = 1\ndeadline = 2", "is not TOML"),
        ("engine = 3", "'engine' is 3, wanted a table"),
    ],
)
def test_errors_are_reported_in_one_line_with_the_file(tmp_path, text, complaint):
    path = tmp_path / "ibnue.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint) as raised:
        read_config(path)
    assert str(raised.value).startswith(f"{path}:{text.count(chr(10)) + 1}: ") and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("status_file = 'ibnue.toml'", "2: status_file: {0}/ibnue.toml: is also this configuration file ("),
        ("log_file = 'new/../link'", "2: log_file: {0}/new/../link: is also this configuration file ("),
        ("state_file = 's'\nmetrics_file = './s'", "3: metrics_file: {0}/s: is also state_file (name another file)"),
        ("metrics_file = 's'\nlog_file = '{0}/s'", "2: metrics_file: {0}/s: is also log_file (name another file)"),
        ("state_file = 'ibnue-status.json'", "2: status_file: {0}/ibnue-status.json: is also state_file (name"),
        ("bundle = 'b'\nstate_file = 'b'", "3: state_file: {0}/b: is also bundle (name"),
        ("policies = 'b'\nlog_file = 'b'", "3: log_file: {0}/b: is also policies (name"),
        ("metrics_file = 'b'\n[engine]\nroot_guid_file = 'b'", "2: metrics_file: {0}/b: is also engine.root_guid_file"),
        ("log_file = 'b'\n[classes.storage]\nguid_file = 'b'", "2: log_file: {0}/b: is also classes.storage.guid_file"),
    ],
)
def test_a_file_that_the_plugin_writes_is_no_other_file(tmp_path, text, complaint):
    path = tmp_path / "ibnue.toml"
    path.write_text(f"\n{text.format(tmp_path)}")
    (tmp_path / "new").mkdir()
    (tmp_path / "link").symlink_to("ibnue.toml")
    with pytest.raises(InputError) as raised:
        read_config(path)
    assert str(raised.value).startswith(f"{path}:{complaint.format(tmp_path)}")


def test_each_file_that_would_overwrite_another_one_is_reported(tmp_path):
    path = tmp_path / "ibnue.toml"
    path.write_text("status_file = 'ibnue.toml'\nlog_file = 'ibnue.toml'\nstate_file = 's'\nmetrics_file = 's'\n")
    with pytest.raises(ParseErrors) as raised:
        read_config(path)
    assert [error.line for error in raised.value.errors] == [1, 2, 4]


def test_devices_can_have_several_uses(tmp_path):
    path = tmp_path / "ibnue.toml"
    path.write_text("log_file = '/dev/null'\nmetrics_file = '/dev/null'\n")
    assert read_config(path).metrics_file == "/dev/null"


def test_a_path_that_only_begins_like_a_device_is_checked(tmp_path):
    path = tmp_path / "ibnue.toml"
    path.write_text(f"log_file = '/dev/..{path}'\n")
    with pytest.raises(InputError, match="is also this configuration file"):
        read_config(path)


def test_an_error_of_a_default_path_names_the_line_of_the_other_use(tmp_path):
    path = tmp_path / "ibnue.toml"
    path.write_text("state_file = 'ibnue.toml'\nnumber = 1\n[engine]\nroot_guid_file = 'ibnue-status.json'\n")
    with pytest.raises(ParseErrors) as raised:
        read_config(path)
    assert "line 4: status_file: " in str(raised.value) and "None" not in str(raised.value)


def test_links_are_followed_beside_a_path_with_a_null_character(tmp_path):
    (tmp_path / "link").symlink_to("file")
    assert real_paths([Path("/a\0b"), tmp_path / "link"])[tmp_path / "link"] == os.path.realpath(tmp_path / "file")


def test_symbolic_links_on_a_silent_file_system_are_not_followed(tmp_path, monkeypatch):
    path, answers = tmp_path / "ibnue.toml", threading.Event()
    path.write_text("status_file = 's'\nmetrics_file = 'm'\n")
    monkeypatch.setattr("osm_plugin.silent_files.ANSWER_SECONDS", 0.05)
    monkeypatch.setattr("os.path.realpath", lambda name: (answers.wait(), name)[1])
    assert read_config(path).status_path == tmp_path / "s"
    path.write_text("status_file = 's'\nmetrics_file = 'x/../s'\n")
    with pytest.raises(InputError, match="is also status_file"):
        read_config(path)
    answers.set()


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"\xff\xfe\x00", 1),
        (b"deadline = 5\nlog_file = '/\xfc.log'\n", 2),
        ("deadline = 5\n".encode("utf-16"), 1),
        (b"\xef\xbb\xbfthreads = 1\n\xff", 2),
    ],
)
def test_bytes_that_are_no_text(tmp_path, data, line):
    path = tmp_path / "ibnue.toml"
    path.write_bytes(data)
    with pytest.raises(InputError, match="ibnue.toml:" + str(line) + ": is not UTF-8 text \\(save it as UTF-8\\)"):
        read_config(path)


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path):
    path = tmp_path / "ibnue.toml"
    path.write_bytes(b"\xef\xbb\xbfdeadline = 5\r\n")
    assert read_config(path).deadline == 5


@pytest.mark.parametrize(
    "text", ['classes = "x"', "[[engine]]\nvls = 1", '[classes.storage]\nnames = "a"', "state_file = 3"]
)
def test_types_have_the_names_of_toml(tmp_path, text):
    path = tmp_path / "ibnue.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"wanted (a table|an array|a string or true or false)$"):
        read_config(path)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ("", None),
        ("--other thing", None),
        ("--config /etc/ibnue.toml", "/etc/ibnue.toml"),
        ("-x --config=/a --config /b", "/a"),
        ("--config '/with space/a.toml'", "/with space/a.toml"),
    ],
)
def test_the_file_in_the_options(options, path):
    assert config_path(options) == (None if path is None else Path(path))


@pytest.mark.parametrize("options", ["--config", "--config 'x"])
def test_options_that_do_not_end(options):
    with pytest.raises(InputError, match="event_plugin_options"):
        config_path(options)


def test_only_the_simulator_is_taken_out_of_the_environment(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libumad2sim.so:/usr/lib/libasan.so /usr/lib/libjemalloc.so")
    assert clean_environment()["LD_PRELOAD"] == "/usr/lib/libasan.so:/usr/lib/libjemalloc.so"
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libumad2sim.so")
    assert "LD_PRELOAD" not in clean_environment()
    assert "LD_PRELOAD" in os.environ


def test_the_worker_has_no_variables_that_it_does_not_need(monkeypatch):
    monkeypatch.setenv("SECRET_OF_ANOTHER_PROGRAM", "x")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("OSM_CACHE_DIR", "/var/cache/opensm")
    environment = clean_environment()
    assert "SECRET_OF_ANOTHER_PROGRAM" not in environment and "PYTHONPATH" not in environment
    assert environment["OSM_CACHE_DIR"] == "/var/cache/opensm" and environment["OPENBLAS_NUM_THREADS"] == "1"


@pytest.mark.parametrize("module", ["osm_plugin.callbacks", "osm_plugin.worker"])
def test_modules_in_opensm_load_no_command_line(module):
    banned = ["click", "rich", "routing.cli", "matplotlib", "igraph", "pymetis"]
    banned += ["numpy"] * (module == "osm_plugin.callbacks")
    code = f"{PRELUDE}; import {module}; sys.exit(', '.join(m for m in {banned} if sys.modules.get(m)) or None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


SWEEPS = """
from osm_plugin.worker import load_code
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError, RoutingError
from routing.publish import verify
from routing.topologies import generate

fabrics = [generate("torus", ["3x3"], cas=1), generate("xgft", ["2x2", "1x2"]), generate("dragonfly", ["1", "2", "1"])]
assert list(load_code(ENGINES)) == list(ENGINES)
loaded = set(sys.modules)
for fabric in fabrics:
    for engine in ENGINES.values():
        try:
            verify(fabric, engine.route(fabric, EngineOptions(vls=8, effort=0.0)), engine)
        except (OptionError, RoutingError):
            pass
sys.exit(" ".join(sorted(set(sys.modules) - loaded)) or None)
"""


def test_no_sweep_loads_a_module_after_all_code_is_loaded():
    done = subprocess.run([sys.executable, "-c", PRELUDE + SWEEPS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pipe_is_no_configuration(tmp_path):
    """OpenSM would wait for a program that writes to the pipe."""
    os.mkfifo(tmp_path / "ibnue.toml")
    with pytest.raises(InputError, match="is a pipe"):
        read_config(tmp_path / "ibnue.toml")
