"""Check the comparison of all engines: the page and the pictures show its results, and missing results are measured."""

import json
import math

import pytest

from benchmarks import comparison as module
from benchmarks.comparison import (
    LARGE,
    LEDGER,
    PAGE,
    PICTURES,
    REFERENCE,
    cases,
    drawn_links,
    main,
    read_ledger,
    shortened,
    theirs,
    within_limit,
)  # fmt: skip
from benchmarks.comparison_page import (
    BEGIN,
    END,
    FIXTURE_PICTURE,
    REFERENCE_PICTURE,
    auto_table,
    better_than_auto,
    write_page,
    write_pictures,
)  # fmt: skip
from benchmarks.torus_conf import torus_conf
from routing.engines import ENGINES
from routing.topologies import generate


def test_page_and_pictures_are_those_of_the_results(tmp_path):
    ledger = read_ledger(LEDGER)
    page = tmp_path / PAGE.name
    page.write_text(PAGE.read_text())
    write_page(ledger, list(REFERENCE), list(LARGE), page)
    write_pictures(ledger, list(REFERENCE), list(LARGE), tmp_path)
    for path in (PAGE, PICTURES / REFERENCE_PICTURE, PICTURES / FIXTURE_PICTURE):
        assert (tmp_path / path.name).read_text() == path.read_text(), "run python -m benchmarks.comparison"
    assert {case.key for case in cases("")} == set(ledger)
    engines = set(ENGINES) - {"chain"}
    assert all(engines <= set(results) and len(results) == len(engines) + 10 for results in ledger.values())


def test_no_engine_has_better_tables_than_auto():
    assert not any(better_than_auto(results) for results in read_ledger(LEDGER).values())


def test_tables_are_better_than_those_of_auto_only_if_neither_figure_is_lower():
    def result(all_to_all, bisection, certified=True):
        return {"certified": certified, "all_to_all": all_to_all, "bisection": bisection}

    results = {
        "auto": result(1.0, 0.5), "more": result(1.1, 0.5), "trade": result(2.0, 0.49), "close": result(1.0, 0.501),
        "loop": result(3.0, 0.9, certified=False), "none": {"refused": "no"}, "pattern": result(1.0, 0.55),
    }  # fmt: skip
    found = better_than_auto(results)
    assert found == {"more": (1.1, 1.0), "pattern": (1.0, pytest.approx(1.1))}
    lines = list(auto_table({"ring - 0%": results}))
    assert {"| ring - 0% more | 1.100 | 1.000 |", "| ring - 0% trade | 2.000 | 0.980 |"} < set(lines)


def test_tables_of_auto_without_throughput_are_compared():
    none, some = ({"certified": True, "all_to_all": share, "bisection": share} for share in (0.0, 0.5))
    assert better_than_auto({"auto": none, "equal": none, "more": some}) == {"more": (math.inf, math.inf)}


def test_only_missing_results_are_measured(tmp_path):
    page, results = tmp_path / "page.md", tmp_path / "results.json"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n")
    words = ["--json", results, "--page", page, "--pictures", tmp_path, "--opensm", "", "--only", "ring-5"]
    assert main([*map(str, words), "--ours", "updn"]) == 0
    first = json.loads(results.read_text())
    assert {key: set(engines) for key, engines in first.items()} == {
        f"ring-5 - {share}": {"updn"} for share in ("0%", "1%", "5%", "10%")
    }
    assert first["ring-5 - 0%"]["updn"]["certified"] is True
    first["ring-5 - 0%"]["updn"]["hops"] = 99.0
    results.write_text(json.dumps(first))
    assert main([*map(str, words), "--ours", "updn,slimfly,ftree"]) == 0
    second = json.loads(results.read_text())["ring-5 - 0%"]
    assert second["updn"]["hops"] == 99.0 and "not a tree" in second["ftree"]["refused"]
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "| updn |" in text and "old" not in text


@pytest.mark.parametrize("missing", [0.0, 0.05, 0.2])
def test_lost_links_separate_no_switches(missing):
    fabric = generate("mesh", ["4x4"], cas=1)
    gone = drawn_links(fabric, missing)
    assert len(set(gone)) == len(gone) == round(missing * 24)
    assert fabric.without_links(gone).component.max() == 0
    assert drawn_links(generate("mesh", ["4"], cas=1), 0.5) == []


def test_torus_conf_names_the_links_of_a_switch():
    torus = generate("torus", ["5x4"], cas=1)
    guid = dict(zip(torus.switch_name, torus.switch_guid.tolist(), strict=True))
    lines = torus_conf(torus, torus).splitlines()
    assert lines[0] == "torus 5t 4t 1"
    assert f"xm_link {guid['sw0.0']:#x} {guid['sw4.0']:#x}" in lines and len(lines) == 5
    assert torus_conf(generate("mesh", ["3x2x2"]), generate("mesh", ["3x2x2"])).startswith("torus 3m 2m 2m\n")
    for name, size in (("hyperx", "5x4"), ("kary-ntree", "2,3"), ("ring", "8")):
        fabric = generate(name, [size])
        assert torus_conf(fabric, fabric) is None


def test_equal_reasons_are_equal_texts():
    assert (
        shortened("no routing engine could route this fabric: f: ERR AB2B: Found 3 roots, no more") == "Found N roots"
    )


def test_an_engine_that_reaches_the_limit_has_no_tables(monkeypatch):
    fabric = generate("ring", ["5"], cas=1)
    assert within_limit(fabric, "updn")["certified"] is True

    class Endless:
        def route(self, fabric, options):
            while True:
                pass

    monkeypatch.setattr(module, "ENGINES", {"updn": Endless()})
    monkeypatch.setattr(module, "LIMIT", 1)
    assert "CPU seconds" in within_limit(fabric, "updn")["refused"]


@pytest.mark.lab
def test_opensm_that_reaches_the_limit_has_no_tables(monkeypatch):
    monkeypatch.setattr(module, "TOO_SLOW", "no tables within 1 CPU seconds")
    slow, fast = generate("torus", ["10x10x5"], cas=1), generate("ring", ["5"], cas=1)
    assert theirs(slow, slow, "lash", 60.0, 1) == {"refused": module.TOO_SLOW}
    assert theirs(fast, fast, "minhop", 60.0, 1)["hops"] == 1.5


def test_an_engine_whose_process_dies_is_not_reported_as_slow(monkeypatch):
    class Broken:
        def route(self, fabric, options):
            raise ZeroDivisionError

    monkeypatch.setattr(module, "ENGINES", {"updn": Broken()})
    with pytest.raises(ChildProcessError, match="updn on ring-5: the process ended with exit status 1"):
        within_limit(generate("ring", ["5"], cas=1), "updn")
