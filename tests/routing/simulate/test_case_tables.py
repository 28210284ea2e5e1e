"""Check scenario cases that read their own tables from files."""

import pytest
from sim_files import refusal

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.formats.fabric_files import write_fabric
from routing.formats.table_files import write_tables
from routing.publish import verify
from routing.simulate.case_runners import run_case
from routing.simulate.scenario import read_scenario
from routing.topologies import from_words

HEAD = """
title = "t"
[fabric]
file = "fabric.net"
[traffic]
pattern = "uniform"
[timing]
packet = 256
buffer = 2
[run]
until = 20000
"""
LOCKS = '[[case]]\nname = "locks"\nrouting = { tables = "minhop" }\nexpect = { outcome = "deadlock" }\n'
RUNS = '[[case]]\nname = "runs"\nrouting = { tables = "updn" }\nexpect = { outcome = "progress" }\n'
ENGINE = '[[case]]\nname = "made"\nengine = "updn"\nexpect = { outcome = "progress" }\n'
SHARED = '[[case]]\nname = "shared"\nexpect = { outcome = "progress" }\n'


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a ring and two sets of tables for it."""
    fabric = from_words("ring", ["4", "cas=2"])
    write_fabric(fabric, tmp_path / "fabric.net")
    for name in ("minhop", "updn"):
        routing = ENGINES[name].route(fabric, EngineOptions(threads=1, effort=0.05))
        write_tables(tmp_path / name, fabric, routing, verify(fabric, routing, ENGINES[name], threads=1).proof)
    return tmp_path


def played(folder, text):
    (folder / "mine.toml").write_text(text)
    scenario = read_scenario(folder / "mine.toml")
    return {case.name: run_case(scenario, case) for case in scenario.cases}


@pytest.mark.parametrize("shared", ["", '[routing]\ntables = "updn"\n', '[routing]\nengine = "updn"\n'])
def test_tables_of_a_case_replaces_all_others(folder, shared):
    results = played(folder, HEAD + shared + LOCKS + RUNS + (SHARED if shared else ""))
    assert all(result.right for result in results.values())
    assert [results[name].stated["tables"] for name in ("locks", "runs")] == ["minhop", "updn"]
    if shared:
        assert results["shared"].found == results["runs"].found


def test_tables_of_a_case_beside_an_engine_of_another(folder):
    results = played(folder, f"{HEAD}[routing]\nvls = 8\nseed = 2\n{LOCKS}{ENGINE}")
    assert all(result.right for result in results.values())


ALL_TO_ALL = 'what = "workload"\nworkload = { collective = "all-to-all-v", bytes = 20000 }'


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ('what = "packets"', "progress"),
        ('what = "detection"\ndetection = { timeouts = [50] }', "progress"),
        (ALL_TO_ALL, "starvation"),
    ],
)
def test_a_knot_that_hoqlife_will_end_is_not_a_deadlock(folder, kind, outcome):
    """The ring locks before the end of the run.  HOQLife drops the first packet after the end of the run."""
    head = HEAD.replace("until = 20000", "until = 2000")
    if kind == ALL_TO_ALL:
        head = head.replace('[traffic]\npattern = "uniform"\n', "")
    locks = LOCKS.replace("expect", f"{kind}\nexpect")
    ends = locks.replace('"locks"', '"ends"').replace("expect", "remedy = { hoq = 3000 }\nexpect")
    results = played(folder, head + locks + ends.replace("deadlock", outcome))
    assert [result.wrong for result in results.values()] == [(), ()]


@pytest.mark.parametrize("what", ["tables", "dependencies"])
def test_other_kinds_of_cases_take_them_too(folder, what):
    head = HEAD[: HEAD.index("[traffic]" if what == "tables" else "[timing]")]
    case = LOCKS.replace('outcome = "deadlock"', "credit_loop = true").replace("expect", f'what = "{what}"\nexpect')
    results = played(folder, head + case)
    assert results["locks"].right


@pytest.mark.parametrize(
    ("shared", "old", "new", "expected", "line"),
    [
        ("", '"minhop"', '"none"', "none: there is no such file or folder", 14),
        ("", "{ tables =", "{ table =", "routing of case 'locks': there is no 'table'; there are tables", 14),
        ("", '{ tables = "minhop" }', "{}", "routing of case 'locks': tables is missing", 14),
        ("", '{ tables = "minhop" }', '"minhop"', "routing has to be a table", 14),
        ("", "[[case]]", '[[case]]\nengine = "updn"', "routing does nothing beside engine", 15),
        ("", "[[case]]", "[[case]]\nvls = 2", "vls does nothing beside tables", 13),
        ("", "[[case]]", '[[case]]\nwhat = "graph"', "routing does nothing for graph", 15),
        ("[routing]\nvls = 2\n", "", "", "vls does nothing if every case has its own, or tables", 13),
        ('[routing]\nengine = "updn"\n', "", "", "engine does nothing if every case has .* tables of its own", 13),
        ('[routing]\ntables = "updn"\n', "", "", "tables does nothing if every case has .* tables of its own", 13),
        ("[routing]\nseed = 2\n", "", "", "seed does nothing without an engine", 13),
        ("", "expect", 'fault = [{ cable = ["sw0", "sw1"], at = 9, reroute = [10] }]\nexpect', "needs an engine", 15),
        (
            f'[routing]\nengine = "updn"\n{SHARED}', "expect",
            'fault = [{ cable = ["sw0", "sw1"], at = 9, reroute = [10] }]\nexpect', "needs an engine", 20,
        ),
    ],
)  # fmt: skip
def test_tables_of_a_case_that_cannot_be(folder, shared, old, new, expected, line):
    assert refusal(folder, HEAD + shared + LOCKS.replace(old, new, 1), expected).line == line


WAYS = """
title = "t"
[fabric]
switches = ["a", "b", "c"]
cables = [["a", "b"], ["b", "c"], ["a", "c"]]
cas = { x = "a", y = "b" }
[[flow]]
path = ["x", "a", "b", "y"]
then = ["x", "a", "c", "b", "y"]
[[case]]
name = "c"
routing = { tables = "none" }
"""


@pytest.mark.parametrize(
    ("case", "expected", "line"),
    [
        (
            'change = { how = "at once", at = 1 }\nexpect = { outcome = "progress" }',
            "but its tables are those of files",
            13,
        ),
        ('what = "dependencies"\ntables = "new"\nexpect = { credit_loop = true }', "beside tables, which reads no", 14),
        ('what = "tables"\nexpect = { credit_loop = true }', "flow does nothing for tables", 7),
    ],
)
def test_paths_of_flows_make_no_tables_beside_them(tmp_path, case, expected, line):
    assert refusal(tmp_path, f"{WAYS}{case}\n", expected).line == line
