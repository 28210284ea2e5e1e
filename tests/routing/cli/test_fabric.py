import json
import re

import pytest
from command_runs import run

from routing.topologies import TOPOLOGIES


def test_a_generator_is_described():
    result = run("fabric", "torus", "4x4x4", "--cas", 2, "--json")
    assert result.exit_code == 0
    reported = json.loads(result.stdout)
    assert (reported["fabric"]["switches"], reported["fabric"]["cas"], reported["switch_links"]) == (64, 128, 192)


def test_one_word_means_the_same_as_words_and_options():
    words = json.loads(run("fabric", "kary-ntree", 4, 2, "--redundancy", 2, "--speed", "EDR", "--json").stdout)
    assert json.loads(run("fabric", "kary-ntree:4,2,redundancy=2,speed=EDR", "--json").stdout) == words
    assert json.loads(run("fabric", "kary-ntree:4", 2, "redundancy=2", "--speed", "EDR", "--json").stdout) == words


@pytest.mark.parametrize("name", ["a b", "7", "1e3", "a=b", 'quoted "so"', "\u00fc#x"])
def test_names_are_as_they_are_given(name):
    for words in (["torus", "4x4", "--name", name], [f"torus:4x4,name={name}"]):
        assert json.loads(run("fabric", *words, "--json").stdout)["fabric"]["name"] == name


def test_written_and_read_again(tmp_path):
    written = json.loads(run("fabric", "random-regular", 12, 3, "--seed", 7, "-o", tmp_path / "f.net", "--json").stdout)
    read = json.loads(run("fabric", tmp_path / "f.net", "--json").stdout)
    assert read["fabric"]["links"] == written["fabric"]["links"] == 12 * 3 // 2 + 12


@pytest.mark.parametrize(
    ("words", "one"),
    [
        ("torus 4x4x4", "torus:4x4x4"),
        ("kary-ntree 4 2", "kary-ntree:4,2"),
        ("torus:4x4 cas=2", "torus:4x4,cas=2"),
        ("xgft: 4x4x8 1x4x4", "xgft:4x4x8,1x4x4"),
    ],
)
@pytest.mark.parametrize("command", ["route", "whatif"])
def test_other_commands_name_the_form_that_they_take(command, words, one):
    result = run(command, *words.split())
    assert result.exit_code == 2
    assert result.stderr == (
        f"ibnue: write a generator and its arguments as one word here: {one} (see ibnue {command} --help)\n"
    )
    made = [run("fabric", *form, "--json") for form in (words.split(), [one])]
    assert made[0].stdout == made[1].stdout != ""


def test_a_further_word_after_a_file_is_still_a_further_word(tmp_path):
    (tmp_path / "torus.net").touch()
    assert "unexpected extra argument (4x4x4)" in run("route", tmp_path / "torus.net", "4x4x4").stderr


def test_a_generator_without_arguments_names_the_form_for_every_command():
    assert "(write kary-ntree:K,N, such as kary-ntree:4,3)" in run("route", "kary-ntree").stderr
    assert "(write dragonfly:A,P,H[,G], such as dragonfly:4,2,2)" in run("fabric", "dragonfly").stderr


def test_facts_without_a_value_are_left_out():
    shown = run("fabric", "torus:4x4,cas=0").stdout.splitlines()
    assert shown and all(re.search(r"\S  +\S", line) for line in shown)


def test_a_file_is_preferred_to_a_generator(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("fabric", "ring", 5, "-o", "x.net")
    (tmp_path / "x.net").rename(tmp_path / "torus")
    assert json.loads(run("fabric", "torus", "--json").stdout)["fabric"]["switches"] == 5


@pytest.mark.parametrize("topology", TOPOLOGIES.values(), ids=lambda t: t.name)
def test_listed_examples_work(topology):
    assert f"ibnue fabric {topology.example_word}" in run("fabric", "--list").stdout
    words = run("fabric", topology.name, *topology.example, "--json")
    assert words.exit_code == 0
    assert words.stdout == run("fabric", topology.example_word, "--json").stdout


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["nothing.net"], "no such file or generator"),
        (["tours:4x4"], "did you mean torus"),
        (["torus:4x4,cas=many"], "cas"),
        (["torus:4x4,colour=red"], "colour"),
        (["torus"], "torus:4x4x4"),
        (["torus", "4xfour"], "whole numbers"),
        (["torus", "4x4", "--lmc", "9"], "--lmc"),
        (["torus", "300x300"], "LIDs"),
        (["torus:4x4,cas=3", "--cas", "3"], "cas is given twice"),
        (["torus", "4x4", "cas=3", "--cas", "0"], "cas is given twice"),
        (["torus:4x4,lmc=1", "--lmc", "2"], "lmc is given twice"),
        (["torus:4x4,cas=1_0"], "cas is '1_0'"),
        (
            ["torus", "4x4", "--seed", "2"],
            "a torus is never random (leave the seed out; topologies with a seed: random-regular)",
        ),
        ([], "SOURCE"),
    ],
)
def test_bad_input_is_one_line_and_status_2(args, expected, tmp_path):
    result = run("fabric", *args, "-o", tmp_path / "out.net")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("ibnue: ")
    assert result.stderr.count("\n") == 1
    assert expected in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", ["f.pdf", "dir.net"])
def test_a_target_that_cannot_be_written(target, tmp_path):
    (tmp_path / "dir.net").mkdir()
    result = run("fabric", "ring", 5, "-o", tmp_path / target)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["dir.net"]


def test_an_lmc_without_effect_is_a_warning(tmp_path):
    stated, without = tmp_path / "stated.json", tmp_path / "without.net"
    for path in (stated, without):
        assert run("fabric", "torus:3x3,cas=2", "-o", path).exit_code == 0
    warning = f"ibnue: warning: {stated} states the LIDs of all end ports, so --lmc has no effect\n"
    assert run("fabric", stated, "--lmc", "2").stderr == warning
    assert run("fabric", stated, "--lmc", "0").stderr == run("fabric", without, "--lmc", "2").stderr == ""
