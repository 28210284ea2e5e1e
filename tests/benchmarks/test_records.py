"""Records of benchmarks: figures that differ are marked, times are told apart, and every page exists."""

from dataclasses import replace
from pathlib import Path

import benchmarks.__main__ as program
from benchmarks.records import Record, differences, read, run, write

ROOT = Path(program.__file__).parents[1]
BEFORE = Record("python -m x", "docs/x.md", "2026-01-01", "here", "abc", 1.0, 0,
                ["| fabric | a2a | ms |", "|---|---|---|", "| t4 | 0.50 | 10 |", "| k2 | 0.70 | 12 |"])  # fmt: skip


def test_differences_beyond_the_tolerance_are_marked():
    after = replace(BEFORE, output=[*BEFORE.output[:2], "| t4 | 0.60 | 11 |", "| new | 1.0 | 3 |"])
    assert list(differences(BEFORE, BEFORE, 0.0)) == []
    assert list(differences(BEFORE, after, 0.05)) == [
        "figure  0.50 -> 0.60: | t4 | 0.60 | 11 |",
        "time    10 -> 11: | t4 | 0.60 | 11 |",
        "gone    | k2 | 0.70 | 12 |",
        "new     | new | 1.0 | 3 |",
    ]
    line = replace(BEFORE, output=["ring: 4 switches"])
    assert list(differences(line, replace(line, output=["ring: 5 switches"]), 0.05)) == [
        "figure  4 -> 5: ring: 5 switches"
    ]


def test_a_run_is_recorded(tmp_path, capsys):
    record = run(["-c", "print('a 1'); raise SystemExit(3)"], "docs/x.md", ROOT)
    assert (record.output, record.exit_status) == (["a 1"], 3)
    write(tmp_path / "x.json", {"x": record})
    assert read(tmp_path / "x.json") == {"x": record}
    assert capsys.readouterr().out == "a 1\n"


def test_every_benchmark_is_listed_and_has_its_page(capsys):
    assert program.main(["--list"]) == 0
    assert all((ROOT / "docs" / benchmark.page).exists() for benchmark in program.BENCHMARKS.values())
    listed = capsys.readouterr().out
    assert all(f"| {name} |" in listed for name in program.BENCHMARKS)
    if program.STORED.exists():
        assert read(program.STORED).keys() <= program.BENCHMARKS.keys()
