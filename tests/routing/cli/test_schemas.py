"""Check the rules for all JSON: names, envelope, errors, and a schema for each document."""

import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from command_runs import run
from in_one_test import cases_in_one_test
from json_contract import schema_name

import routing
from routing.cli import json_schemas
from routing.cli.json_schemas import load_schema, schema_names

jsonschema = pytest.importorskip("jsonschema")
FOLDER = files("routing.cli") / "schemas"
SOURCES = [path.read_text() for path in FOLDER.parent.rglob("*.py")]
FILES = {"error", "plan", "snapshot", "soak-ledger", "status", "switch-policy"}
"""Schemas of documents that no command prints with ``print_json``."""
ONLY_WHAT_IS_SET = {"switch-policy"}
"""Schemas of documents with keys that may be left out."""


def parts(schema):
    """Yield each schema inside a schema."""
    yield schema
    for key in ("properties", "$defs"):
        for part in schema.get(key, {}).values():
            yield from parts(part)
    for part in (schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ())):
        if isinstance(part, dict):
            yield from parts(part)


def test_every_document_has_a_schema_and_every_schema_a_document():
    printed = {name for text in SOURCES for name in re.findall(r'print_json\(\s*"(ibnue-[^"]+)"', text)}
    assert len(printed) > 20
    assert {schema_name(name) for name in printed} | FILES == set(schema_names())
    for name in printed:
        assert load_schema(schema_name(name))["properties"]["schema"]["const"] == name


@cases_in_one_test("name", [*schema_names(), json_schemas.COMMON])
def test_schemas_are_strict_and_described(name):
    schema = json.loads((FOLDER / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"]
    for part in parts(schema):
        for key, value in part.get("properties", {}).items():
            assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", key)
            assert value.get("description", "").endswith("."), key
        if "properties" in part:
            assert part["additionalProperties"] is False
            assert name in ONLY_WHAT_IS_SET or set(part["required"]) == set(part["properties"])


def test_one_key_means_one_thing():
    """A key has one type in all schemas, apart from null and from numbers that may be whole."""
    types = {}
    for name in schema_names():
        for part in parts(load_schema(name)):
            for key, value in part.get("properties", {}).items():
                kinds = value.get("type", "ref")
                kinds = {kinds} if isinstance(kinds, str) else set(kinds)
                types.setdefault(key, set()).update(kinds - {"null", "ref"})
    several = {key: kinds for key, kinds in types.items() if len(kinds) > 1 and kinds != {"integer", "number"}}
    assert several == {}


def test_the_page_is_written_from_the_schemas():
    page = Path(routing.__file__).parents[1] / "docs" / "json_page.py"
    assert subprocess.run([sys.executable, page, "--check"], check=False).returncode == 0, (
        "run python docs/json_page.py"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["check", "torus:3x3", "/nowhere"], {"file": "/nowhere", "line": None, "exit_status": 2}),
        (["check"], {"file": None, "remedy": "see ibnue check --help", "exit_status": 2}),
        (["chekc"], {"message": "there is no command 'chekc' (did you mean check?)", "exit_status": 2}),
        (["route", "tours:3x3"], {"file": "tours:3x3", "remedy": "did you mean torus:...?", "exit_status": 2}),
        (["route", "torus:5x5", "-e", "lash", "--vls", 1], {"file": None, "exit_status": 1}),
        (["slurm", "ring:4"], {"file": None, "exit_status": 2}),
    ],
)
def test_errors_are_json_and_one_line(words, expected):
    result = run(*words, "--json")
    reported = json.loads(result.stdout)
    assert reported["schema"] == "ibnue-error/1" and expected.items() <= reported.items()
    assert result.exit_code == reported["exit_status"]
    assert result.stderr.startswith("ibnue: ") and result.stderr.count("\n") == 1


def test_an_error_names_the_line_of_its_file(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text("[[rule]]\nname = 'x'\nhoq_life = 99\n")
    reported = json.loads(run("policy", "check", path, "ring:4", "--json").stdout)
    assert (reported["file"], reported["exit_status"]) == (str(path), 2)
    assert isinstance(reported["line"], int)


def test_a_bug_is_json_too(monkeypatch):
    def fail(*_, **__):
        raise ValueError("of its own")

    monkeypatch.setattr("routing.cli.fabric_argument.read", fail)
    result = run("quality", "ring:4", "tables", "--json")
    assert (result.exit_code, json.loads(result.stdout)["exit_status"]) == (70, 70)
    assert "Traceback" in result.stderr


def test_schemas_are_printed_whole():
    listed = run("schema").stdout.splitlines()
    assert [line.split()[0] for line in listed] == schema_names()
    printed = json.loads(run("schema", "check").stdout)
    assert printed["$defs"].keys() == {"credit_loop", "fabric", "loop_channel", "pair", "traffic", "unreachable"}
    assert "common.json" not in json.dumps(printed)
    assert "did you mean check?" in run("schema", "chck").stderr
