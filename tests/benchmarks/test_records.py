"""Check the records of benchmarks: different figures are marked, times are distinguished, and every named page
exists.
"""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import benchmarks.__main__ as program
from benchmarks import measured_page
from benchmarks.plots import plot
from benchmarks.records import Record, differences, read, run, write

ROOT = Path(program.__file__).parents[1]
BEFORE = Record("python -m x", "docs/x.md", "2026-01-01", "here", "abc", 1.0, 0,
                ["| fabric | a2a | ms |", "|---|---|---|", "| t4 | 0.50 | 10 |", "| k2 | 0.70 | 12 |"])  # fmt: skip


def test_differences_beyond_the_tolerance_are_marked():
    after = replace(BEFORE, output=[*BEFORE.output[:2], "| t4 | 0.60 | 11 |", "| new | 1.0 | 3 |"])
    assert list(differences(BEFORE, BEFORE, 0.0)) == []
    assert list(differences(BEFORE, after, 0.05)) == [
        "figure  0.50 -> 0.60: | t4 | 0.60 | 11 |",
        "noise   10 -> 11: | t4 | 0.60 | 11 |",
        "gone    | k2 | 0.70 | 12 |",
        "new     | new | 1.0 | 3 |",
    ]
    slow = replace(BEFORE, output=[*BEFORE.output[:2], "| t4 | 0.50 | 30 |", BEFORE.output[3]])
    assert list(differences(BEFORE, slow, 0.05)) == ["time    10 -> 30: | t4 | 0.50 | 30 |"]
    line = replace(BEFORE, output=["ring: 4 switches"])
    assert list(differences(line, replace(line, output=["ring: 5 switches"]), 0.05)) == [
        "figure  4 -> 5: ring: 5 switches"
    ]


def test_ranges_of_several_runs_tell_times_from_noise():
    def runs(*times):
        first, *others = [[*BEFORE.output[:2], f"| t4 | 0.50 | {time} |"] for time in times]
        return replace(BEFORE, output=first, again=others)

    assert list(differences(runs(10, 16), runs(15, 19), 0.05)) == ["noise   10 -> 15: | t4 | 0.50 | 15 |"]
    assert list(differences(runs(10, 11), runs(15, 19), 0.05)) == ["time    10 -> 15: | t4 | 0.50 | 15 |"]


def test_repeated_runs_are_kept(capsys):
    record = run(["-c", "print('a 1')"], "docs/x.md", ROOT, repeat=3)
    assert (record.output, record.again) == (["a 1"], [["a 1"], ["a 1"]])
    assert capsys.readouterr().out == "a 1\n"
    assert run(["-c", "raise SystemExit(3)"], "docs/x.md", ROOT, repeat=3).again == []


def test_a_plot_has_a_bar_for_each_figure_and_a_mark_for_each_stored_one():
    after = replace(BEFORE, output=[*BEFORE.output[:2], "| t4 | 0.60 | 11 |", "| <new> | 1.0 | 3 |"])
    picture = plot(after, BEFORE)
    ElementTree.fromstring(picture)
    assert picture.count('class="b"') == 4 and picture.count('class="s"') == 2
    assert "&lt;new&gt;" in picture and plot(replace(BEFORE, output=["nothing"]), None) is None


def test_the_page_of_all_figures_is_up_to_date():
    stored = read(program.STORED)
    drawn = [name for name, record in sorted(stored.items()) if plot(record, None) is not None]
    assert measured_page.PAGE.read_text() == measured_page.page(program.places(), stored, drawn)
    assert {path.stem for path in measured_page.PLOTS.glob("*.svg")} == set(drawn)
    for name in drawn:
        assert (measured_page.PLOTS / f"{name}.svg").read_text() == plot(stored[name], None)


def test_a_run_is_recorded(tmp_path, capsys):
    record = run(["-c", "print('a 1'); raise SystemExit(3)"], "docs/x.md", ROOT)
    assert (record.output, record.exit_status) == (["a 1"], 3)
    write(tmp_path / "x.json", {"x": record})
    assert read(tmp_path / "x.json") == {"x": record}
    assert capsys.readouterr().out == "a 1\n"


def test_every_benchmark_is_listed_and_has_its_page(capsys):
    assert program.main(["--list"]) == 0
    assert all((ROOT / "docs" / benchmark.page.partition("#")[0]).exists() for benchmark in program.BENCHMARKS.values())
    listed = capsys.readouterr().out
    assert all(f"| {name} |" in listed for name in program.BENCHMARKS)
    if program.STORED.exists():
        assert read(program.STORED).keys() <= program.BENCHMARKS.keys()
