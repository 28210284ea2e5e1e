"""Check that the benchmark of an exchange refuses wrong arguments before its first simulation."""

from types import SimpleNamespace

import pytest

from benchmarks import throughput
from routing.topologies import generate


@pytest.fixture
def _small(monkeypatch):
    monkeypatch.setattr(throughput, "PUBLISHED", {"ring": lambda: generate("ring", ["4"], speed="QDR")})
    monkeypatch.setattr(throughput, "results", results_here)


def results_here(arguments):
    """Compute the results in this process, because only this process has the small fabric."""
    return (throughput.ours(name, engine, arguments.speedup) for engine in arguments.ours for name in arguments.fabrics)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("nowhere", "there is no fabric 'nowhere'; there are ring"),
        ("--ours nue/8,new", "'new' is not an engine; there are auto, "),
        ("--ours nue/x", "'nue/x' has no number of VLs from 1 to 15"),
        ("--ours nue/0", "'nue/0' has no number of VLs from 1 to 15"),
        ("--ours nue/16", "'nue/16' has no number of VLs from 1 to 15"),
        ("--jobs 0", "'0' is not a number of processes"),
        ("--speedup x", "'x' is not a list of numbers"),
        ("--plot nowhere/chart.svg", "nowhere is not a folder"),
        ("--ours , --opensm ,", "no engine is left to run"),
    ],
)
def test_impossible_runs_are_refused_at_once(words, expected, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        throughput.main(words.split())
    assert end.value.code == 2
    output = capsys.readouterr()
    assert expected in output.err
    assert not output.out


@pytest.mark.usefixtures("_small")
def test_a_table_of_shares(capsys):
    """In an exchange on a ring of four, a CA gets at most the rate of a link, and only minhop has a credit loop."""
    assert throughput.main(["--ours", "updn,minhop/1", "--opensm", ","]) == 0
    head, _, updn, minhop = capsys.readouterr().out.splitlines()
    assert head == "| engine | ring |"
    assert updn.startswith("| ibnue updn | 0.")
    assert "*" not in updn
    assert minhop.endswith("* |")


@pytest.mark.usefixtures("_small")
def test_a_cell_has_a_figure_for_each_speedup(capsys):
    assert throughput.main(["--ours", "updn", "--opensm", ",", "--speedup", "1,0"]) == 0
    row = capsys.readouterr().out.splitlines()[2]
    one, unlimited = row.removeprefix("| ibnue updn | ").removesuffix(" |").split(" / ")
    assert 0 < float(one) <= float(unlimited) < 1


@pytest.mark.usefixtures("_small")
def test_an_engine_that_gives_up_says_why_beside_the_table(capsys, monkeypatch):
    monkeypatch.setattr(throughput, "PUBLISHED", {"ring": lambda: generate("ring", ["5"], speed="QDR")})
    assert throughput.main(["--ours", "dfsssp/1", "--opensm", ","]) == 0
    output = capsys.readouterr()
    assert output.out.endswith("| ibnue dfsssp/1 | gave up |\n")
    assert "ring: ibnue dfsssp/1: gave up: the search needed 2 VLs, 1 may be used" in output.err


def test_a_line_of_the_table_comes_as_soon_as_its_last_figure():
    figures = (throughput.Result(name, engine, (0.5,), ("",), engine == "a") for engine in "ab" for name in "xy")
    lines = throughput.table(figures, ["x", "y"])
    assert [next(lines), next(lines)] == ["| engine | x | y |", "| --- | --- | --- |"]
    assert next(lines) == "| a | 0.500 | 0.500 |"
    assert next(figures) == throughput.Result("x", "b", (0.5,), ("",))  # this figure was not taken yet
    assert list(lines) == ["| b | 0.500* |"]


@pytest.mark.usefixtures("_small")
def test_lines_are_written_as_they_come(monkeypatch):
    written = []
    output = SimpleNamespace(write=written.append, flush=lambda: written.append(None))
    monkeypatch.setattr("sys.stdout", output)
    assert throughput.main(["--ours", "updn", "--opensm", ","]) == 0
    assert "".join(filter(None, written)).count("\n") == written.count(None) == 3
