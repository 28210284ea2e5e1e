import json
import os
import re

import pytest
from json_contract import assert_valid
from prometheus_text import parsed
from waiting import until

from osm_plugin.status import SCHEMA, Status, metrics, parse_summary
from osm_plugin.status_writer import OutputFiles, StatusWriter


def facts(event, **text):
    errors = text.pop("errors", {})
    lines = [f"event {event}", *(f"{key} {value}" for key, value in text.items())]
    return "\n".join([*lines, *(f"error {code} {count}" for code, count in errors.items())])


def status():
    return Status({"version": "1.2", "pid": 7}, 100.0)


def test_facts_are_lines_of_a_key_and_a_value():
    found = parse_summary("event failed\nengine ibnue-updn\nerror IBN1 3\nlast_error ERR IBN1: a b\n")
    assert found == ({"event": "failed", "engine": "ibnue-updn", "last_error": "ERR IBN1: a b"}, {"IBN1": 3})


def test_a_report_belongs_to_the_tables_that_were_published():
    seen = status()
    seen.take_summary(facts("routed", engine="ibnue-updn", sequence=4, opensm="OpenSM 3.3.23"))
    seen.take_report({"sequence": 4, "vls": 2, "rounds_planned": 1})
    seen.take_report({"sequence": 5, "vls": 3})
    seen.take_summary(facts("up", in_force="ibnue-updn", ours=1), now=200.0)
    seen.take_report({"sequence": 4, "all_to_all": 0.5})
    shown = seen.as_object()
    assert shown["schema"] == SCHEMA and shown["opensm"] == {"version": "OpenSM 3.3.23", "pid": 7, "state": "up"}
    known = {key: value for key, value in shown["tables"].items() if value is not None}
    assert known == {"vls": 2, "rounds_planned": 1, "all_to_all": 0.5, "served_from_last": False}
    assert_valid(shown)
    assert (shown["time"], shown["last_subnet_up"]) == (200.0, 200.0)
    seen.take_rounds(1)
    assert seen.as_object()["tables"]["rounds_acknowledged"] == 1


def test_many_answers_that_were_not_published_push_out_none_that_was():
    seen = status()
    seen.take_summary(facts("routed", engine="ibnue-nue", sequence=1))
    for sequence in range(1, 40):
        seen.take_report({"sequence": sequence, "vls": sequence})
    seen.take_summary(facts("up", in_force="ibnue-nue", ours=1))
    assert seen.as_object()["tables"]["vls"] == 1


def test_answers_of_more_engines_than_are_remembered_stay():
    seen = status()
    for sequence in range(1, 11):
        seen.take_summary(facts("routed", engine=f"ibnue-{sequence}", sequence=sequence))
        seen.take_report({"sequence": sequence, "vls": sequence})
    seen.take_summary(facts("up", in_force="ibnue-3", ours=1))
    assert seen.as_object()["tables"]["vls"] == 3


def test_a_standby_has_no_tables_in_force():
    seen = status()
    seen.take_summary(facts("routed", engine="ibnue-updn", sequence=1))
    seen.take_summary(facts("up", in_force="ibnue-updn", ours=1))
    seen.take_summary(facts("standby"))
    shown = seen.as_object()
    assert (shown["opensm"]["state"], shown["in_force"]["engine"], shown["tables"]) == ("standby", "none", None)
    assert_valid(shown)


def test_a_verdict_does_not_count_for_later_tables_of_the_same_engine():
    seen = status()
    seen.take_summary(facts("up", in_force="minhop", ours=0))
    seen.take_report({"shadow": {"engine_in_force": "minhop", "engine": None, "verdict": "no loop"}})
    seen.take_summary(facts("up", in_force="minhop", ours=0))
    assert seen.as_object()["shadow"]["verdict"] == "no loop"
    seen.take_summary(facts("up", in_force="ibnue-updn", ours=1))
    seen.take_summary(facts("up", in_force="minhop", ours=0))
    assert seen.as_object()["shadow"] is None


def test_failure_and_recovery_show_and_are_counted():
    seen = status()
    seen.take_summary(facts("routed", engine="ibnue-updn", sequence=1))
    seen.take_summary(facts("served", engine="ibnue-updn", sequence=1, errors={"IBN1": 1}, last_error="ERR IBN1: late"))
    seen.take_summary(facts("failed", engine="ibnue-updn", sequence=1, errors={"IBN1": 2}, last_error="ERR IBN1: dead"))
    shown = seen.as_object()
    assert shown["opensm"]["state"] == "routing failed" and shown["errors"] == {"IBN1": 2}
    assert shown["engines"]["ibnue-updn"] == {
        "routed": 1, "served_from_last_count": 1, "failed": 1, "failing": True, "last_error": "ERR IBN1: dead",
    }  # fmt: skip
    seen.take_summary(facts("begin", sweep=9))
    seen.take_summary(facts("routed", engine="ibnue-updn", sequence=3, errors={"IBN1": 2}))
    seen.take_summary(facts("up", in_force="ibnue-updn", ours=1))
    shown = seen.as_object()
    assert shown["opensm"]["state"] == "up" and not shown["engines"]["ibnue-updn"]["failing"] and shown["sweeps"] == 9


def test_the_tables_of_another_engine_are_not_ours():
    seen = status()
    seen.take_summary(facts("routed", engine="ibnue-updn", sequence=1))
    seen.take_report({"sequence": 1, "vls": 2})
    seen.take_summary(facts("up", in_force="minhop", ours=0))
    assert seen.as_object()["tables"] is None and seen.as_object()["in_force"] == {"engine": "minhop", "ours": False}


def test_metrics_are_valid_and_say_what_the_status_says():
    seen = status()
    seen.take_worker(12)
    seen.take_summary(facts("routed", engine='a"b\\c', sequence=1, errors={"IBN1": 2, "IBN10": 1}, sweep=3))
    seen.take_report({
        "sequence": 1, "vls": 2, "certified": True, "all_to_all": 0.25, "all_to_all_kept": 0.875, "entries_broken": 3,
        "entries_changed": 8, "phase_seconds": {"route": 0.002, "write": 1e-6},
    })  # fmt: skip
    seen.take_summary(facts("up", in_force='a"b\\c', ours=1, errors={"IBN1": 2, "IBN10": 1}, sweep=3), now=1e9)
    found = parsed(metrics(seen.as_object()))
    wanted = {
        ("ibnue_certified", ""): 1, ("ibnue_vls", ""): 2, ("ibnue_all_to_all", ""): 0.25, ("ibnue_changed", ""): 8,
        ("ibnue_kept", ""): 0.875, ("ibnue_broken", ""): 3, ("ibnue_phase_seconds", 'phase="route"'): 0.002,
        ("ibnue_phase_seconds", 'phase="write"'): 1e-6, ("ibnue_errors_total", 'code="IBN1"'): 2,
        ("ibnue_errors_total", 'code="IBN10"'): 1, ("ibnue_sweeps_total", ""): 3, ("ibnue_worker_running", ""): 1,
        ("ibnue_last_subnet_up_timestamp_seconds", ""): 1e9, ("ibnue_engine_failing", r'engine="a\"b\\c"'): 0,
    }  # fmt: skip
    assert wanted.items() <= found.items()
    parsed(metrics(status().as_object()))


def test_metrics_of_a_shadow():
    seen = status()
    seen.take_summary(facts("up", in_force="minhop", ours=0))
    seen.take_report({"shadow": {"engine_in_force": "minhop", "engine": "nue", "verdict": "loop", "all_to_all": None}})
    found = parsed(metrics(seen.as_object()))
    assert found["ibnue_shadow_loop_in_force", 'in_force="minhop",engine="nue"'] == 1
    assert not any(name == "ibnue_shadow_all_to_all" for name, _ in found)
    seen.take_summary(facts("up", in_force="ibnue-updn", ours=1))
    assert seen.as_object()["shadow"] is None


def test_the_help_text_of_each_metric_names_what_it_measures():
    seen = status()
    seen.take_summary(facts("routed", engine="updn"))
    seen.take_summary(facts("up", in_force="updn", ours=1))
    shadow = {"engine_in_force": "updn", "engine": "nue", "verdict": "proven", "entries_differing": 3}
    seen.take_report({"shadow": shadow})
    helps = [line for line in metrics(seen.as_object()).splitlines() if line.startswith("# HELP")]
    assert any("shadow_differing" in line for line in helps) and any("served_from_last" in line for line in helps)
    # Prometheus shows each text alone, so a pronoun without its noun has no meaning there.
    assert not [line for line in helps if re.search(r"\b(it|its|these|they) ", line)]


@pytest.fixture
def writer():
    lines = []
    writer = StatusWriter({"version": "1", "pid": 1}, lines.append, int)
    writer.lines = lines
    yield writer
    writer.end()


def test_the_files_appear_and_name_the_end(writer, tmp_path):
    positions = OutputFiles(tmp_path / "s.json", tmp_path / "m.prom")
    writer.put(positions, lambda status: status.take_summary(facts("begin", sweep=1)))
    until(positions.status.exists)
    writer.reports.send(json.dumps({"pinned": "x"}).encode())
    until(lambda: json.loads(positions.status.read_text()).get("pinned") == "x")
    writer.reports.send(b"no json")
    writer.end()
    assert json.loads(positions.status.read_text())["opensm"]["state"] == "ended"
    assert parsed(positions.metrics.read_text())["ibnue_running", ""] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.prom", "s.json"]


def test_a_folder_that_is_not_there_is_named_once(writer, tmp_path):
    positions = OutputFiles(tmp_path / "none" / "s.json")
    for _ in range(3):
        writer.put(positions)
    until(lambda: writer.lines)
    (tmp_path / "none").mkdir()
    writer.put(positions)
    until(positions.status.exists)
    first, again = until(lambda: writer.lines[1:] and writer.lines)
    assert "none/s.json" in first and again == f"status written again: {positions.status}"


def test_nothing_waits_for_a_file_that_does_not_answer(tmp_path):
    """A program that opens a pipe without a reader blocks.  In this test, the thread that performs the chore would
    block.
    """
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = StatusWriter({"version": "1", "pid": 1}, print, lambda: pipe.open("wb").close())
    for _ in range(1000):  # these are more messages than the socket buffers
        writer.put(OutputFiles(tmp_path / "s.json"))
    writer.end()
    with pipe.open("rb"):
        pass
