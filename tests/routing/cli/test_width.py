"""Check that on a terminal of 80 columns every line fits, and no word or number is cut."""

import shlex

import pytest
from command_runs import run
from in_one_test import cases_in_one_test

from routing.cli.text_layout import fit, table_lines

TERMINAL = {"FORCE_COLOR": "1", "COLUMNS": "80"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    run("route", "ring:5", "-e", "minhop", "-o", folder / "loop")
    run("fabric", "torus:4x4", "-o", folder / "torus.net")
    for name, root in (("one", "sw0.0"), ("two", "sw2.2")):
        run("route", folder / "torus.net", "-e", "updn", "--vls", 1, "--root", root, "-o", folder / name)
    run("policy", "suggest", "ring:5", folder / "loop", "-o", folder / "rules.toml")
    return folder


@cases_in_one_test(
    "words",
    [
        "route torus:3x3,cas=2 --fail sw0.0/3",
        "route ring:5 -e minhop",
        "check ring:5 {0}/loop",
        "quality {0}/torus.net {0}/one",
        "whatif torus:3x3,cas=2 -e updn --links 2 --switches 1 --beside-fresh -j 1",
        "whatif {0}/torus.net --tables {0}/one --links 1 -j 1",
        "advise torus:3x3,cas=2 --links 1",
        "compare-designs torus:3x3,cas=2 mesh:3x3,cas=2 --links 1 -e updn",
        "designs 72 --ports 12",
        "compare torus:3x3 torus:3x4",
        "diff {0}/one {0}/two",
        "transition {0}/torus.net {0}/one {0}/two",
        "fabric cluster:4x4x4,4x2",
        "fabric --list",
        "simulate --list",
        "simulate dateline-ring",
        "simulate ring:4 --sweep --loads 0.2 --seeds 2 -e updn -j 1",
        "sweep ring:5 -e updn -e nue --links 1 --by-fabric -j 1",
        "pause ring:5 {0}/loop --shift 2 --trace",
        "policy check {0}/rules.toml ring:5 --tables {0}/loop",
        "policy explain {0}/rules.toml ring:5 sw1 1 --tables {0}/loop",
        "plugin check",
        "schema",
    ],
)
def test_lines_fit(site, words):
    words = shlex.split(words.format(site))
    narrow, wide = (run(*words, env={**TERMINAL, **more}).stdout for more in ({}, {"COLUMNS": "200"}))
    for line in narrow.splitlines():
        assert len(line) <= 80 or len(line.split()) == 1, line
    missing = {*words_of(wide)} - {*words_of(narrow)}
    assert not [word for word in missing if not is_time(word)]


def words_of(text):
    """Return the words of a text without commas at their ends."""
    return [word.rstrip(",") for word in text.split()]


def is_time(word):
    """Return whether a word may differ from run to run: a number, or a horizontal line."""
    return word.strip("();─").replace(".", "", 1).isdigit() or not word.strip("─")


def test_a_table_that_is_too_wide_has_two_lines_a_row():
    rows = [["x" * 70, "y", "1", "23"], ["z", "", "4 %", "5"]]
    head = ["", "name, kind", "        b", "    a   c", "  ───────"]
    wanted = [*head, f"{'x' * 70}, y", "    1  23", "z", "  4 %   5", ""]
    assert list(table_lines(["name", "kind", "a", "b c"], rows, 2, 80)) == wanted


def test_lines_are_broken_between_words_and_only_on_a_terminal():
    assert fit("one two  three", 2, 8) == ["one two", "  three"]
    assert fit("x" * 20, 2, 8) == ["x" * 20]
    assert fit("one two", 2, None) == ["one two"]
