"""Check that a table of a scenario, or a key of a table, is an error if no case reads it."""

import pytest
from sim_files import refusal

from routing.simulate.case_runners import CASE_RUNNERS, run_case
from routing.simulate.scenario import read_scenario
from routing.simulate.scenario_schema import TABLES
from routing.simulate.scenario_table_lint import BARE, READ_OF

WAY = 'path = ["x", "a", "b", "y"]'
THEN = 'then = ["x", "a", "c", "b", "y"]'
FABRIC = """[fabric]
switches = ["a", "b", "c"]
cables = [["a", "b"], ["b", "c"], ["a", "c"]]
cas = { x = "a", y = "b" }
"""
FLOW = f"[[flow]]\n{WAY}\n"
CASES = {
    "packets": 'what = "packets"\nexpect = { outcome = "progress" }',
    "lock-times": 'what = "lock-times"\nbuffers = [4, 8]\nexpect = { locked = 0 }',
    "seeds": 'what = "seeds"\nseeds = 2\nexpect = { runs = 2 }',
    "shifts": 'what = "shifts"\nengine = "updn"\nexpect = { shifts = 1 }',
    "detection": 'what = "detection"\ndetection = { timeouts = [5] }\nexpect = { stuck = 0 }',
    "adaptive": 'what = "adaptive"\nadaptive = { schemes = ["none"] }\nexpect = { deadlocked = [] }',
    "workload": 'what = "workload"\nengine = "updn"\nworkload = { collective = "ring-allreduce", bytes = 64 }'
    "\nexpect = { unfinished = 0 }",
    "request-grant": 'what = "request-grant"\nrequest_grant = { scheme = "implicit", adapters = 4, radix = 2 }'
    "\nexpect = { at_least_least = 0.0 }",
    "pauses": 'what = "pauses"\nexpect = { verdict = "free" }',
    "dependencies": 'what = "dependencies"\nexpect = { credit_loop = false }',
    "tables": 'what = "tables"\nexpect = { credit_loop = false }',
    "graph": 'what = "graph"\ngraph = { dependencies = ["a > b"] }\nexpect = { edges = 1 }',
    "message-types": 'what = "message-types"\nchain = { channels = 3, escape = [1] }\nexpect = { enough = true }',
}
VALUES = {
    "timing": {"packet": "512", "wire": "2", "switch": "1", "buffer": "9"},
    "run": {"until": "300", "from": "10", "sample": "5", "seed": "2", "speedup": "2"},
    "flow": {"pattern": '"cycle"', "message": "128", "messages": "9", "start": "1", "window": "2"},
}  # fmt: skip


def scenario_text(*parts):
    return "\n".join(('title = "t"', *parts)) + "\n"


def case(what, name="c", more=""):
    return f'[[case]]\nname = "{name}"\n{CASES[what]}\n{more}'


def refused_at(folder, text, expected, line):
    error = refusal(folder, text, expected)
    assert text.split("\n")[error.line - 1] == line
    assert error.remedy.startswith("leave ")


def accepted(folder, text):
    (folder / "right.toml").write_text(text)
    scenario = read_scenario(folder / "right.toml")
    assert all(run_case(scenario, one).right for one in scenario.cases)


def test_every_kind_of_case_and_every_key_is_reported():
    assert set(READ_OF) == set(CASE_RUNNERS) == set(CASES)
    for name in ("timing", "run"):
        assert set(VALUES[name]) == set(TABLES[name])
    for tables in READ_OF.values():
        assert all(set(keys) <= set(TABLES[name]) for name, keys in tables.items())


@pytest.mark.parametrize("name", ["timing", "run"])
@pytest.mark.parametrize("what", CASES)
def test_keys_that_a_kind_of_case_reads_or_not(tmp_path, what, name):
    """One scenario has all keys that the case reads, and each other key is refused in a scenario of its own."""
    beside = "" if what in BARE else FABRIC + ("" if what in {"shifts", "workload"} else FLOW)
    lines = {key: f"{key} = {value}" for key, value in VALUES[name].items()}
    read = [key for key in lines if key in READ_OF[what].get(name, ())]
    if read:
        accepted(tmp_path, scenario_text(beside, f"[{name}]", *(lines[key] for key in read), case(what)))
    for key in lines.keys() - read:
        text = scenario_text(beside, f"[{name}]\n{lines[key]}", case(what))
        if name in READ_OF[what]:
            refused_at(tmp_path, text, f"{key} does nothing for {what}", lines[key])
        else:
            refused_at(tmp_path, text, f"{name} does nothing for {what}", f"[{name}]")


@pytest.mark.parametrize("what", sorted(BARE))
def test_cases_without_a_fabric(tmp_path, what):
    accepted(tmp_path, scenario_text(case(what)))
    refused_at(tmp_path, scenario_text(FABRIC, case(what)), f"fabric does nothing for {what}", "[fabric]")
    routing = '[routing]\nengine = "updn"\n'
    refused_at(tmp_path, scenario_text(routing, case(what)), f"routing does nothing for {what}", "[routing]")
    refused_at(tmp_path, scenario_text(FLOW, case(what)), f"flow does nothing for {what}", "[[flow]]")
    traffic = '[traffic]\npattern = "shift"\n'
    refused_at(tmp_path, scenario_text(traffic, case(what)), f"traffic does nothing for {what}", "[traffic]")
    beside = case("packets", name="other")
    accepted(tmp_path, scenario_text(FABRIC, FLOW, case(what), beside))


@pytest.mark.parametrize("what", ["pauses", "dependencies"])
@pytest.mark.parametrize("key", ["message", "messages", "start", "pattern"])
def test_keys_about_messages_are_errors_if_no_case_sends(tmp_path, what, key):
    line = f"{key} = {VALUES['flow'][key]}"
    text = scenario_text(FABRIC, FLOW + line, case(what))
    refused_at(tmp_path, text, f"{key} does nothing for {what}", line)
    accepted(tmp_path, text + case("packets", name="other"))


@pytest.mark.parametrize("what", ["tables", "shifts"])
def test_flows_where_they_are_neither_sent_nor_in_the_tables(tmp_path, what):
    text = scenario_text(FABRIC, FLOW, case(what).replace('engine = "updn"\n', ""), '[routing]\nengine = "updn"')
    refused_at(tmp_path, text, f"flow does nothing for {what}", "[[flow]]")
    accepted(tmp_path, text.replace("[[flow]]\n" + WAY, ""))
    accepted(tmp_path, scenario_text(FABRIC, FLOW, case("tables")))  # the tables follow the path of the flow


def test_flows_that_every_case_goes_without(tmp_path):
    other = 'name = "back"\npath = ["y", "b", "a", "x"]'
    text = scenario_text(FABRIC, FLOW, f"[[flow]]\n{other}", case("packets", more='without = ["back"]'))
    error = refusal(tmp_path, text, "flow does nothing if every case leaves it out")
    assert text.split("\n")[error.line : error.line + 2] == other.split("\n")
    accepted(tmp_path, text + case("tables", name="other"))


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("timing", "buffer", "4"),
        ("timing", "wire", "4"),
        ("run", "until", "99"),
        ("run", "from", "9"),
        ("run", "seed", "3"),
        ("flow", "window", "3"),
    ],
)
def test_common_keys_that_every_case_replaces_are_errors(tmp_path, table, key, value):
    own = f"{key} = {value}"
    line = f"{key} = {VALUES[table][key]}"
    beside = (FLOW + line,) if table == "flow" else (FLOW, f"[{table}]\n{line}")
    text = scenario_text(FABRIC, *beside, case("packets", more=own))
    refused_at(tmp_path, text, f"{key} does nothing if every case has its own", line)
    accepted(tmp_path, text + case("packets", name="other"))


@pytest.mark.parametrize("key", ["engine", "rule", "fill"])
def test_tables_where_every_case_has_an_engine(tmp_path, key):
    line = {"engine": 'engine = "minhop"', "rule": 'rule = "d-mod-k"', "fill": "fill = true"}[key]
    text = scenario_text(FABRIC, FLOW, f"[routing]\n{line}", case("packets", more='engine = "updn"'))
    refused_at(tmp_path, text, f"{key} does nothing if every case has an engine of its own", line)
    accepted(tmp_path, scenario_text(FABRIC, FLOW, "[routing]\nvls = 2", case("packets", more='engine = "updn"')))
    text = scenario_text(FABRIC, FLOW, "[routing]\nvls = 2", case("packets", more="vls = 1"))
    refused_at(tmp_path, text, "vls does nothing if every case has its own", "vls = 2")


def test_a_load_where_adaptive_cases_have_theirs(tmp_path):
    traffic = '[traffic]\npattern = "uniform"\nprocess = "poisson"\nload = 0.5'
    text = scenario_text(FABRIC, '[routing]\nengine = "updn"', traffic, case("adaptive"))
    refused_at(tmp_path, text, "load does nothing for adaptive", "load = 0.5")
    accepted(tmp_path, text.replace("\nload = 0.5", ""))


@pytest.mark.parametrize(
    ("more", "idle"),
    [
        ("", True),
        ('change = { how = "at once", at = 10 }', False),
        ('change = { how = "at once", at = 10 }\nwithout = ["f0"]', True),
    ],
)
def test_another_path_without_a_change(tmp_path, more, idle):
    other = '[[flow]]\nname = "back"\npath = ["y", "b", "a", "x"]\n'
    text = scenario_text(FABRIC, FLOW + THEN, other, case("packets", more=more))
    if idle and "without" not in more:
        refused_at(tmp_path, text, "then does nothing without a change", THEN)
        accepted(tmp_path, text + case("dependencies", name="other", more='tables = "new"'))
    elif idle:
        refusal(tmp_path, text, "flow does nothing if every case leaves it out")
    else:
        accepted(tmp_path, text)


@pytest.mark.parametrize(
    ("flow", "routing", "expected"),
    [
        (FLOW, "", "tables does nothing if no flow has another path"),
        (FLOW + THEN, '[routing]\nengine = "updn"', "tables does nothing beside engine"),
    ],
)
def test_new_tables_that_are_the_old_ones(tmp_path, flow, routing, expected):
    line = 'tables = "new"'
    text = scenario_text(FABRIC, flow, routing, case("dependencies", more=line))
    error = refusal(tmp_path, text, expected)
    assert text.split("\n")[error.line - 1] == line
