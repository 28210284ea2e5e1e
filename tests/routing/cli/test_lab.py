"""Check ``ibnue lab`` and ``ibnue plugin`` with the installed OpenSM."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from command_runs import run
from json_contract import assert_fits
from shared_builds import copied_library, copied_plugin

from ibsim_fixtures.processes import LabError
from osm_plugin.config import read_config
from osm_plugin.options import port_classes
from routing.class_settings import PortClass, Weight
from routing.cli.command import Complaint, explain
from routing.cli.lab_actions import parse, read_actions, resolve
from routing.cli.lab_setup import class_tables
from routing.errors import OptionError, ParseError
from routing.port_classes import DEFAULT_WEIGHTS, PortClasses
from routing.topologies import generate


@pytest.fixture
def compiled(tmp_path_factory, monkeypatch):
    """Let labs copy a plugin that was compiled before.  The labs of ``test_endings.py`` compile their own."""
    monkeypatch.setattr("routing.cli.lab_setup.install", copied_plugin(tmp_path_factory))


@pytest.mark.parametrize("action", ["frobnicate", "unlink", "unlink sw0 one", "unlink sw0 1 2", "show me", "", " "])
def test_actions_are_read_before_anything_starts(action):
    result = run("lab", "ring:4", "--do", "unlink sw0 2", "--do", action)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert repr(action) in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        ("unlink sw9", "there is no device 'sw9' (did you mean sw"),
        ("unlink sw0/2", "there is no device 'sw0/2' (did you mean sw"),
        ("unlink sw0/2 - sw1/3", "there is no device 'sw0/2 - sw1/3'"),
        ("unlink sw0 99", "sw0 has no port 99 (its ports are 1 to"),
    ],
)
def test_an_action_for_a_missing_device_ends_before_anything_starts(action, problem):
    result = run("lab", "ring:4", "--do", action)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{action!r}: {problem}" in result.stderr
    assert result.stderr.endswith("(unlink DEVICE [PORT], relink DEVICE [PORT], show, quit)\n")


def test_an_action_names_a_device_by_anything_but_a_lid():
    """Actions cannot use LIDs, because OpenSM assigns new LIDs in the lab.  ibsim knows neither port GUIDs nor
    labels.
    """
    fabric = generate("ring", ["4"])
    (guid, port_guid) = int(fabric.terminal_guid[1]), int(fabric.endport_guid[1])
    assert guid != port_guid
    for word in (fabric.terminal_name[1], hex(guid), hex(port_guid), f"{fabric.terminal_name[1]} ({hex(guid)})"):
        assert resolve(f"unlink {word} 1", fabric) == ("unlink", guid, 1)
    for action in ("unlink 3", "relink 3 1"):
        with pytest.raises(
            OptionError, match=rf"'{action}': 3 is not a device \(name it by name or GUID, not by LID\)"
        ):
            resolve(action, fabric)


def test_the_error_of_a_piped_action_names_its_line(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("unlink sw0 2\n\nunlink sw9\n"))
    actions = read_actions(generate("ring", ["4"]))
    assert next(actions) == "unlink sw0 2"
    with pytest.raises(ParseError, match=r"^standard input:3: 'unlink sw9': there is no device 'sw9'"):
        next(actions)


def test_a_closed_standard_input_has_no_actions(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert list(read_actions(generate("ring", ["4"]))) == []


@pytest.mark.parametrize(
    ("action", "parts"),
    [
        ("unlink node01 HCA-2", ("unlink", "node01 HCA-2", None)),
        ("relink  node01 HCA-2\t1 ", ("relink", "node01 HCA-2", 1)),
        ("unlink 0x2c90200423a10", ("unlink", "0x2c90200423a10", None)),
    ],
)
def test_the_name_of_a_device_may_have_spaces(action, parts):
    assert parse(action) == parts


def test_a_wrong_action_on_a_terminal_is_reported_and_the_next_one_is_read(monkeypatch, capsys):
    typed = io.StringIO("frobnicate\nunlink sw9\n\nunlink sw0 2\nquit\nshow\n")
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", typed)
    assert list(read_actions(generate("ring", ["4"]))) == ["unlink sw0 2"]
    reported = capsys.readouterr().err
    assert "ibnue: 'frobnicate' is not an action" in reported and "ibnue: 'unlink sw9': there is no" in reported


@pytest.mark.parametrize("args", [[], ["ring:2"], ["nowhere.net"], ["ring:4", "-e", "nope"]])
def test_wrong_use(args):
    result = run("lab", *args)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


def test_the_log_at_the_end_of_an_error_is_left_out():
    assert explain(LabError("OpenSM died\nopensm.log:\nsecret of line 2")) == (Complaint("OpenSM died"), 2)


def test_the_plugin_gets_the_classes_of_end_ports(tmp_path):
    """The plugin's configuration has the patterns, port GUIDs and weights of the command line."""
    fabric = generate("rails", ["2x3x4", "3"], speed="EDR", aggregation=1)
    rules = PortClasses(
        guids=((int(fabric.terminal_guid[0]), PortClass.IO),),
        patterns=(("storage*", PortClass.STORAGE), ("*Aggregation*", PortClass.COMPUTE)),
        weights=(Weight(), Weight(1, 4), *DEFAULT_WEIGHTS[2:]),
    )
    fabric = replace(fabric, port_classes=rules)
    config = tmp_path / "ibnue.toml"
    config.write_text(class_tables(fabric, tmp_path))
    received = replace(fabric, port_classes=port_classes(read_config(config)))
    assert len(np.unique(fabric.endport_class)) > 2
    assert np.array_equal(received.endport_class, fabric.endport_class)
    assert np.array_equal(received.endport_weight, fabric.endport_weight)
    assert class_tables(generate("ring", ["4"]), tmp_path) == ""


def test_classes_have_no_effect_on_engines_of_opensm():
    result = run("lab", "ring:4", "--opensm-engine", "minhop", "--class", "storage=sw*")
    assert result.exit_code == 2
    assert "classes" in result.stderr


@pytest.mark.lab
@pytest.mark.usefixtures("compiled")
def test_a_cable_is_pulled_and_the_tables_are_proven():
    result = run("lab", "torus:3x3", "--do", "unlink sw0.0 2", "--do", "relink sw0.0 2", "--json")
    assert result.exit_code == 0, result.output
    start, pulled, back = json.loads(result.stdout)["states"]
    assert [state["fabric"]["links"] for state in (start, pulled, back)] == [27, 26, 27]
    for state in (start, pulled, back):
        assert state["engine"] == "ibnue-updn"
        assert state["certified"]
        assert state["as_dumped"]
    assert 0 < pulled["entries_broken"] <= pulled["entries_changed"] < 3 * pulled["entries_broken"]
    assert not pulled["returned"]
    assert back["entries_broken"] == 0
    assert back["entries_changed"] == pulled["entries_changed"]
    assert back["returned"]
    assert start["all_to_all_kept"] is None
    assert 0 < pulled["all_to_all_kept"] < 1
    assert back["all_to_all_kept"] == pytest.approx(1 / pulled["all_to_all_kept"])
    assert back["bisection_kept"] == pytest.approx(1 / pulled["bisection_kept"])
    for kept in ("all_to_all_kept", "bisection_kept"):
        # The tables of the start are tables from scratch on the whole fabric.
        assert back[f"{kept}_from_scratch"] == back[kept]
        assert pulled[f"{kept}_from_scratch"] > 0


@pytest.mark.lab
def test_the_credit_loop_of_opensm_itself_is_found():
    result = run("lab", "ring:5", "--opensm-engine", "minhop", "--do", "show")
    assert result.exit_code == 1
    assert "credit loop of 5 channels on VL 0" in result.stdout


@pytest.mark.lab
@pytest.mark.parametrize(("bound", "lines"), [(0, ["building the plugin", "OpenSM is up: reading"]), (1 << 18, [])])
def test_the_steps_on_a_large_fabric_are_shown_without_a_terminal(monkeypatch, bound, lines):
    monkeypatch.setattr("routing.reroute.budget.LARGEST_SMALL_TABLE", bound)
    result = run("lab", "ring:4", "--opensm-engine", "dfsssp", "--do", "quit")
    assert result.exit_code == 0, result.output
    shown = result.stderr.splitlines()
    assert len(shown) == len(lines) and all(map(str.startswith, shown, lines))


@pytest.mark.lab
@pytest.mark.usefixtures("compiled")
def test_a_list_of_actions_ends_with_quit():
    result = run("lab", "ring:4", "--do", "show", "--do", "quit", "--do", "unlink sw0 2", "--json")
    assert result.exit_code == 0, result.output
    assert [state["action"] for state in json.loads(result.stdout)["states"]] == ["start", "show"]


@pytest.mark.lab
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(
    ("action", "problem"), [("unlink nobody", "nobody"), ("unlink sw0 1", "would cut off ca0.0, on which OpenSM runs")]
)
def test_actions_from_standard_input(action, problem):
    result = run("lab", "ring:4", input=f"show\n{action}\n")
    assert result.exit_code == 2
    assert result.stdout.count("ring-4: 4 switches") == 2
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.lab
def test_plugin_install(tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setattr("osm_plugin.install.compile_shim", copied_library(tmp_path_factory))
    result = run("plugin", "install", "--libdir", tmp_path, "--config", tmp_path / "ibnue.toml")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "libibnue.so").exists()
    assert "event_plugin_name ibnue\n" in result.stdout
    assert "routing_engine ibnue-updn,ibnue-nue,no_fallback\n" in result.stdout
    assert f"event_plugin_options --config {tmp_path / 'ibnue.toml'}\n" in result.stdout
    assert f"There is no {tmp_path / 'ibnue.toml'}: create it" in " ".join(result.stdout.split())
    (tmp_path / "ibnue.toml").touch()
    again = run("plugin", "install", "--libdir", tmp_path, "--config", tmp_path / "ibnue.toml")
    assert "create it before" not in " ".join(again.stdout.split())
    refused = run("plugin", "install", "--libdir", tmp_path / "nowhere")
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1


def test_nothing_that_opensm_loads_imports_the_command(python):
    code = "import sys, osm_plugin.worker, osm_plugin.host; print(*(name.partition('.')[0] for name in sys.modules))"
    out, err = python("-c", code).communicate()
    assert "osm_plugin" in out.split(), err
    assert {"click", "rich"}.isdisjoint(out.split())


@pytest.mark.parametrize("length", ["x", "0", "5 days", "-3"])
def test_a_soak_of_no_length_is_refused_before_anything_starts(length):
    result = run("lab", "ring:4", "--soak", length)
    assert result.exit_code == 2 and result.stdout == ""
    assert "a number of events or a time" in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "args",
    [
        ["--ledger", "x"],
        ["--soak", "3", "--do", "show"],
        ["--soak", "3", "--policies", "x"],
        ["--soak", "3", "--demo"],
        ["--demo"],
        ["--seed", "3"],
        ["-e", "updn", "--opensm-engine", "minhop"],
    ],
)
def test_no_option_is_passed_over(args):
    assert run("lab", "ring:4", *args).exit_code == 2


def test_a_ledger_is_not_overwritten(tmp_path):
    ledger = tmp_path / "ledger"
    ledger.write_text("of old\n")
    result = run("lab", "ring:4", "--soak", "3", "--ledger", ledger)
    assert result.exit_code == 2 and f"{ledger} exists already" in result.stderr
    assert ledger.read_text() == "of old\n"
    assert run("lab", "ring:4", "--soak", "3", "--ledger", tmp_path / "no" / "ledger").exit_code == 2


@pytest.mark.lab
@pytest.mark.usefixtures("compiled")
def test_a_soak_has_a_line_and_an_entry_in_the_ledger_for_each_event(tmp_path):
    ledger = tmp_path / "ledger"
    result = run("lab", "torus:3x3", "-e", "nue", "--soak", "3", "--ledger", ledger)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("proven (") == result.stdout.count(", as planned") == 4
    assert "events   3, 3 of them without a problem" in result.stdout
    head, *events, end = map(json.loads, ledger.read_text().splitlines())
    for record in (head, *events, end):
        assert_fits("soak-ledger", record)
    assert (head["fabric"]["name"], head["engine"], head["seed"], head["length"]) == ("torus-3x3", "nue", 1, "3")
    assert [event["number"] for event in events] == [0, 1, 2, 3] and all(event["ok"] for event in events)
    assert end["summary"]["events_ok"] == 3
    assert events[0]["all_to_all_kept"] is None
    lines = result.stdout.splitlines()
    for event in events[1:]:
        (line,) = (line for line in lines if line.lstrip().startswith(f"{event['number']}  "))
        for name, key in (("all-to-all", "all_to_all_kept"), ("bisection", "bisection_kept")):
            fresh = f"({100 * event[f'{key}_from_scratch']:.1f} % with tables from scratch)"
            assert f"{name} {100 * event[key]:.1f} % of the rate before {fresh}" in line


@pytest.mark.lab
def test_a_soak_of_opensms_own_engine_finds_its_loops():
    result = run("lab", "ring:5", "--opensm-engine", "minhop", "--soak", "1", "--json")
    assert result.exit_code == 1
    start = json.loads(result.stdout)["events"][0]
    assert start["complete"] and not start["certified"] and start["as_planned"] is None


@pytest.mark.lab
@pytest.mark.usefixtures("compiled")
def test_rules_for_ports_are_set_after_every_sweep(tmp_path):
    (tmp_path / "rules.toml").write_text("[[rule]]\nrole = 'switch-facing'\nhoq_life = 9\n")
    rules = ["--policies", tmp_path / "rules.toml"]
    result = run("lab", "ring:4", "--opensm-engine", "minhop", *rules, "--do", "unlink sw0 2", "--json")
    start, pulled = json.loads(result.stdout)["states"]
    assert start["ports_report"].startswith(
        "8 ports covered by rules: 0 already correct, 8 updated (8 verified), 0 skipped;"
    )
    assert pulled["ports_report"].startswith(
        "6 ports covered by rules: 0 already correct, 6 updated (6 verified), 0 skipped;"
    )


def test_wrong_rules_for_ports_are_reported_before_anything_starts(tmp_path):
    (tmp_path / "rules.toml").write_text("[[rule]]\nhoq_life = 99\n")
    for more in ([], ["--soak", "3"]):
        result = run("lab", "ring:4", "--policies", tmp_path / "rules.toml", "--do", "show", *more)
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
