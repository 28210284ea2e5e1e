"""Check ``ibnue draw``, and the options ``--html`` and ``--csv`` of other commands."""

import csv
import json
from pathlib import Path

import pytest
from command_runs import assert_refused, run

RACK = Path(__file__).parents[3] / "docs" / "examples" / "rack"


def test_draws_each_format(tmp_path):
    for suffix, begins in (("html", "<!DOCTYPE html>"), ("svg", "<svg xmlns"), ("dot", 'graph "ring-5"')):
        found = run("draw", "ring:5", "-o", tmp_path / f"x.{suffix}")
        assert found.exit_code == 0, found.output
        assert "layout  " in found.stdout
        assert (tmp_path / f"x.{suffix}").read_text().startswith(begins)


def test_draws_the_possible_loop_of_a_dump(tmp_path):
    found = run("draw", RACK / "ibnetdiscover.txt", RACK / "dump_fts.txt", "-o", tmp_path / "x.svg", "--json")
    assert json.loads(found.stdout)["credit_loop_channels"] == 4
    assert 'class="arrow"' in (tmp_path / "x.svg").read_text()


def test_draws_faults_with_the_tables_after_them(tmp_path):
    assert run("route", "torus:3x3", "-e", "updn", "--fail", "sw0.0/3", "-o", tmp_path / "t").exit_code == 0
    found = run("draw", "torus:3x3", tmp_path / "t", "--fail", "sw0.0/3", "-o", tmp_path / "x.svg", "--json")
    assert json.loads(found.stdout)["lost_cables"] == 1
    assert run("draw", "torus:3x3", tmp_path / "t", "-o", tmp_path / "y.svg").exit_code == 2


def test_refuses_what_it_cannot_draw(tmp_path):
    assert_refused(run("draw", "ring:5", "-o", tmp_path / "x.png"), ".png", "use .html, .svg, .dot")
    assert_refused(run("draw", "ring:5", "--sl", "f", "-o", tmp_path / "x.svg"), "have no effect without TABLES")
    assert_refused(run("advise", "ring:3", "--csv", tmp_path / "x.txt"), "ends in .csv")
    assert list(tmp_path.iterdir()) == []


COMMANDS = {
    "check": (["check", RACK / "ibnetdiscover.txt", RACK / "dump_fts.txt"], "switch", 4),
    "quality": (["quality", RACK / "ibnetdiscover.txt", RACK / "dump_fts.txt", "--patterns", 2], "switch", 48),
    "whatif": (["whatif", "ring:5", "-e", "updn", "--links", "all", "-j", 1], "fault", 5),
    "advise": (["advise", "ring:4", "--links", 0], "engine", 3),
    "simulate": (["simulate", "one-vl-ring", "--case", "dependencies"], "case", 1),
    "sweep": (["sweep", "ring:4", "-e", "updn", "--links", "all", "-j", 1], "fabric", 5),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_reports(name, tmp_path):
    """With ``--html`` and ``--csv``, a command writes the page and the CSV file, and its output does not change."""
    words, column, rows = COMMANDS[name]
    found = run(*words, "--html", tmp_path / "x.html", "--csv", tmp_path / "x.csv")
    assert found.exit_code in (0, 1, 3), found.output
    with (tmp_path / "x.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert next(iter(table[0])) == column
    assert len(table) >= rows if name == "advise" else len(table) == rows
    page = (tmp_path / "x.html").read_text()
    assert page.endswith("</html>\n")
    assert ('id="net"' in page) == (name not in ("simulate", "sweep"))
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
