"""Check ``ibnue collect`` from files, and snapshots as FABRIC and TABLES of every command."""

import json
import shutil
from pathlib import Path

import pytest
from command_runs import assert_refused, collect, parts_of, run
from json_contract import assert_valid

from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm import OpenSM
from ibsim_fixtures.processes import missing_packages
from routing.formats.fabric_files import read_fabric, write_net
from routing.formats.snapshot import MANIFEST
from routing.topologies import generate

DATA = Path(__file__).parents[1] / "formats" / "data"


@pytest.fixture
def dumps(tmp_path):
    """Return a folder with dumps of OpenSM, without SLs and SL2VL tables."""
    folder = tmp_path / "dumps"
    folder.mkdir()
    shutil.copy(DATA / "mixed-subnet.lst", folder / "opensm-subnet.lst")
    shutil.copy(DATA / "mixed-lfts.dump", folder / "opensm-lfts.dump")
    (folder / "opensm.log").write_text("not a part of it\n")
    return folder


@pytest.fixture
def snapshot(dumps, tmp_path):
    result = run("collect", "--from", dumps, "-o", tmp_path / "deep" / "snapshot")
    assert result.exit_code == 0, result.output
    return tmp_path / "deep" / "snapshot"


def edited(snapshot, part, **values):
    """Change a part in the manifest of a snapshot, and return the snapshot."""
    manifest = json.loads((snapshot / MANIFEST).read_text())
    next(each for each in manifest["collected"] if each["part"] == part).update(values)
    (snapshot / MANIFEST).write_text(json.dumps(manifest))
    return snapshot


def test_a_snapshot_keeps_a_node_name_map(dumps, tmp_path):
    guid = int(read_fabric(dumps).switch_guid[0])
    (tmp_path / "names").write_text(f'{guid:#x} "the first"\n')
    result = run("collect", "--from", dumps, "-o", tmp_path / "snapshot", "--node-name-map", tmp_path / "names")
    assert result.exit_code == 0, result.output
    assert "the first" in read_fabric(tmp_path / "snapshot").switch_name
    result = run("collect", "--from", tmp_path / "snapshot", "-o", tmp_path / "again")
    assert result.exit_code == 0, result.output
    assert "the first" in read_fabric(tmp_path / "again").switch_name
    (tmp_path / "names").write_text("spine\n")
    refused = run("collect", "--from", dumps, "-o", tmp_path / "none", "--node-name-map", tmp_path / "names")
    assert_refused(refused, "names:1: ")
    assert not (tmp_path / "none").exists()


def test_the_missing_parts_are_named_with_their_origin(dumps, tmp_path):
    result = run("collect", "--from", dumps, "-o", tmp_path / "snapshot")
    assert result.exit_code == 0
    assert "SL              NOT collected\n" in result.stdout
    assert f"unknown: SL: {dumps} has no opensm-path-records.dump" in result.stdout
    assert "unknown: counters: no file of OpenSM has them\n" in result.stdout
    found = json.loads(run("collect", "--from", dumps, "-o", tmp_path / "snapshot", "--json").stdout)
    assert (parts_of(found)["LFT"]["state"], parts_of(found)["SL2VL"]["state"]) == ("collected", "missing")
    assert sorted(entry.name for entry in (tmp_path / "snapshot").iterdir()) == [
        MANIFEST, "opensm-lfts.dump", "opensm-subnet.lst"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [("check",), ("quality",), ("fabric",), ("policy", "suggest"), ("pause", "--shift", 1), ("slurm",)],
)
def test_commands_take_a_snapshot_as_fabric_and_tables(snapshot, dumps, words):
    alone = run(*words, snapshot)
    files = [dumps / "opensm-subnet.lst", dumps / "opensm-lfts.dump"]
    both = run(*words, *files[: 1 if words[0] in ("fabric", "slurm") else 2])
    assert alone.exit_code == both.exit_code
    assert alone.stdout.replace("snapshot", "opensm-subnet").splitlines()[2:] == both.stdout.splitlines()[2:]


def test_two_snapshots_are_compared_without_naming_their_fabrics(snapshot):
    assert run("diff", snapshot, snapshot).exit_code == 0
    assert run("compare", snapshot, snapshot).exit_code == 0
    assert run("transition", snapshot, snapshot, snapshot).exit_code == 0


def test_without_a_folder_tables_have_to_be_named(dumps):
    assert_refused(run("check", dumps / "opensm-subnet.lst"), "TABLES is missing", "ibnue collect")
    assert_refused(run("check", dumps / "none"), "none: no such file or generator")


def test_the_manifest_fits_its_schema(snapshot):
    pytest.importorskip("jsonschema")
    assert_valid(json.loads((snapshot / MANIFEST).read_text()))


@pytest.mark.parametrize("part", ["LFT", "topology"])
def test_missing_parts_of_a_snapshot_leave_the_verdict_open(snapshot, part):
    edited(snapshot, part, reason="S3 did not answer")
    result = run("check", snapshot)
    assert result.exit_code == 3
    assert "not decidable" in result.stderr
    assert "S3 did not answer" in result.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{", "not JSON"), ('{"schema": "ibnue-snapshot/9"}', "/9"), ('{"schema": "ibnue-snapshot/1"}', "damaged")],
)
def test_a_damaged_manifest_is_refused(snapshot, text, problem):
    (snapshot / MANIFEST).write_text(text)
    assert_refused(run("check", snapshot), MANIFEST, problem)


def test_folders_that_are_no_source_are_refused(dumps, tmp_path):
    (tmp_path / "empty").mkdir()
    output = tmp_path / "output"
    assert_refused(run("collect", "--from", tmp_path / "empty", "-o", output), "no fabric file")
    assert_refused(run("collect", "--from", tmp_path / "none", "-o", output), "not a folder")
    assert_refused(run("collect", "--from", dumps, "-o", output, "-C", "mlx5_0"), "-C")
    assert_refused(run("collect", "--from", dumps, "-o", dumps), "this command does not write")
    assert_refused(run("fabric", tmp_path / "empty"), "no fabric file")
    with (dumps / "opensm-lfts.dump").open("a") as file:
        file.write("nonsense\n")
    assert_refused(run("collect", "--from", dumps, "-o", output), f"{dumps}/opensm-lfts.dump:", "nonsense")
    assert not output.exists()


@pytest.mark.lab
def test_unanswered_queries_are_reported(tmp_path):
    if missing := missing_packages():
        pytest.skip(f"apt install {' '.join(missing)}")
    write_net(generate("ring", ["5"]), tmp_path / "net")
    with Ibsim(tmp_path / "net") as ibsim, OpenSM(ibsim):
        few = collect(ibsim, tmp_path / "few", "--paths", "5", "--without", "counters")
        ibsim.error("sw1", 100, attribute=18)
        ibsim.error("sw2", 100, attribute=23)
        silent = collect(ibsim, tmp_path / "silent", "--timeout", "50")
    assert parts_of(few)["SL"]["reason"].endswith("(--paths 90 asks for them)")
    assert parts_of(few)["counters"]["reason"] == "left out, as was asked for"
    assert parts_of(few)["LFT"]["state"] == parts_of(few)["SL2VL"]["state"] == "collected"
    assert run("check", tmp_path / "few").exit_code == 3
    assert parts_of(silent)["LFT"]["reason"] == "1 switch (sw1) did not answer"
    assert "tables of switches were not answered, such as of sw2 from" in parts_of(silent)["SL2VL"]["reason"]
    assert run("check", tmp_path / "silent").exit_code == 3
