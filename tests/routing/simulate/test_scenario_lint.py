"""Check that a key of a scenario is an error if it would do nothing in a case, also because of other keys."""

import pytest
from in_one_test import cases_in_one_test
from sim_files import refusal

from routing.simulate.case_runners import CASE_RUNNERS, run_case
from routing.simulate.scenario import read_scenario
from routing.simulate.scenario_lint import READ_BY
from routing.simulate.scenario_schema import TABLES

FILE = """
title = "t"
[fabric]
switches = ["a", "b", "c"]
cables = [["a", "b"], ["b", "c"], ["a", "c"]]
cas = { x = "a", y = "b" }
[[flow]]
path = ["x", "a", "b", "y"]
[routing]
[run]
until = 300
[[case]]
name = "c"
expect = { outcome = "progress" }
"""
VALUES = {
    "buffers": "[4, 8]", "loads": "[0.5]", "seeds": "3", "tables": '"new"', "graph": '{ dependencies = ["a > b"] }',
    "chain": "{ channels = 3, escape = [1] }", "adaptive": '{ schemes = ["none"] }', "load": "0.5", "seed": "2",
    "from": "1", "until": "9", "remedy": "{ hoq = 100 }", "change": '{ how = "at once", at = 10 }', "wire": "2",
    "fault": '[{ cable = ["a", "b"], at = 10 }]', "arbitration": '"random"', "inputs": '"fifo"', "buffer": "9",
    "congestion": "{ threshold = 2 }", "qcn": "{ sample = 2 }", "recn": "{ set_aside = 1 }", "bubble": "{ }",
    "port_choice": "{ shortest = true }",
    "injection_limit": "{ packets = 2 }", "replies": "{ input = 2 }",
    "retransmission": "{ timeout = 9 }", "request_grant": '{ scheme = "implicit" }',
    "workload": '{ collective = "ring-allreduce", bytes = 64 }',
    "pauses": "{ xoff = 4, xon = 2 }", "without": '["f0"]', "engine": '"updn"', "vls": "2", "window": "7",
    "speedup": "2", "watch": "{ every = 100 }", "detection": "{ timeouts = [5] }",
    "routing": '{ tables = "none" }',
}  # fmt: skip


def test_every_kind_of_case_and_every_key_is_reported():
    assert set(READ_BY) == set(CASE_RUNNERS)
    assert (
        set().union(*READ_BY.values())
        == set(TABLES["case"])
        == set(VALUES) | {"name", "what", "expect", "origin", "chosen"}
    )


@cases_in_one_test(("what", "key"), [(what, key) for what in READ_BY for key in VALUES if key not in READ_BY[what]])
def test_keys_of_other_kinds_of_cases(tmp_path, what, key):
    text = FILE.replace('name = "c"', f'name = "c"\nwhat = "{what}"\n{key} = {VALUES[key]}')
    error = refusal(tmp_path, text, f"{key} does nothing for {what}")
    assert error.line == text.split("\n").index(f"{key} = {VALUES[key]}") + 1
    assert error.remedy.startswith("leave it out, or use what = ")


WRITTEN = '["a", "b", "c"]\ncables = [["a", "b"], ["b", "c"], ["a", "c"]]\ncas = { x = "a", y = "b" }'
FLOW = 'path = ["x", "a", "b", "y"]'


GRAPH = 'name = "c"\nwhat = "graph"\ngraph = { waits = ["a > b"] }'


@pytest.mark.parametrize(
    ("old", "text", "new"),
    [
        (FLOW, FLOW.replace("path", "way"), "'way' has the name 'path' now"),
        ("[routing]", "[routing]\nways = []", "'ways' has the name 'paths' now"),
        ('name = "c"', GRAPH, "'waits' has the name 'dependencies' now"),
    ],
)
def test_keys_of_earlier_versions_are_named_with_their_new_names(tmp_path, old, text, new):
    refusal(tmp_path, FILE.replace(old, text), new)


@cases_in_one_test(
    ("old", "new", "expected"),
    [
        ("switches =", 'generator = "torus:3x3,cas=1"\nswitches =', "switches does nothing beside a generator"),
        (f"switches = {WRITTEN}", 'generator = "torus:3x3,cas=1"\nlmc = 1', "lmc does nothing beside a generator"),
        (f"switches = {WRITTEN}", 'generator = "torus:3x3,cas=1"\ncas = {}', "cas does nothing beside a generator"),
        ("[routing]", '[routing]\nengine = "updn"\nrule = "d-mod-k"', "rule does nothing beside engine"),
        ("[routing]", '[routing]\nengine = "updn"\nfill = true', "fill does nothing beside engine"),
        ("[routing]", '[routing]\nrule = "d-mod-k"\npaths = []', "paths does nothing beside rule"),
        ("[routing]", '[routing]\nrule = "d-mod-k"\nvls = 2', "vls does nothing beside rule"),
        ("[routing]", "[routing]\nseed = 2", "seed does nothing without an engine"),
        (FLOW, f"{FLOW}\nload = 0.5", "load does nothing if all traffic is sent as fast as possible"),
        (FLOW, f"{FLOW}\nburst = 3", "burst does nothing for this process"),
        (FLOW, f'{FLOW}\nfrom = "x"', "from does nothing beside path"),
        (FLOW, 'from = "x"\nto = "y"\nsl = 1', "sl does nothing without a path"),
        (FLOW, 'from = "x"\nto = "y"\nthen = ["x", "a", "b", "y"]', "then does nothing without a path"),
        (
            "[routing]",
            '[routing]\nengine = "updn"\n[[flow]]\npath = ["y", "b", "a", "x"]\nsl = 1',
            "sl does nothing be",
        ),
        ("[run]", '[traffic]\npattern = "uniform"\nload = 0.5\n[run]', "load does nothing if all traffic is sent"),
        ("[run]", '[traffic]\npattern = "shift"\nrounds = 2\n[run]', "rounds does nothing for shift"),
        ("[run]", '[traffic]\npattern = "all-to-all"\nload = 0.5\n[run]', "load does nothing for all-to-all"),
        ("[run]", '[traffic]\npattern = "uniform"\nhot = ["x"]\n[run]', "hot does nothing for uniform"),
        (FLOW, f'{FLOW}\nwindow = 9\n[traffic]\npattern = "shift"', "window does nothing beside .traffic."),
        (FLOW, f'{FLOW}\nmessage = 9\n[traffic]\npattern = "shift"', "message does nothing beside .traffic."),
        ('name = "c"', 'name = "c"\nload = 0.5', "load does nothing if all traffic is sent"),
        ('name = "c"', 'name = "c"\nremedy = { stall_count = 3 }', "stall_count does nothing without hoq"),
        ('name = "c"', 'name = "c"\nremedy = { detect = 3 }', "detect does nothing for none"),
        (
            'name = "c"',
            'name = "c"\nremedy = { breaker = "loop", detect = 9, extra = 64 }',
            "extra does nothing",
        ),
        ('name = "c"', 'name = "c"\nchange = { how = "at once", at = 9, every = 3 }', "every does nothing for at once"),
        ('name = "c"', 'name = "c"\nchange = { how = "drained", at = 9, order = ["a"] }', "order does nothing for dra"),
        (
            'name = "c"',
            'name = "c"\nwhat = "adaptive"\nadaptive = { schemes = ["none"] }\ninputs = "fifo"',
            "inputs",
        ),
        ('name = "c"', 'name = "c"\nwhat = "adaptive"\nadaptive = { schemes = ["token"], hold = 9 }', "hold does noth"),
        (
            'name = "c"',
            'name = "c"\nwhat = "graph"\ngraph = { dependencies = ["a > b"], around = true }',
            "around does",
        ),
    ],
)
def test_keys_that_another_key_replaces(tmp_path, old, new, expected):
    assert old in FILE
    assert refusal(tmp_path, FILE.replace(old, new), expected).remedy


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ('["x", "a", "c"]', "then from x to c"),
        ('["y", "b", "a", "x"]', "then from y to x"),
        ("[]", "then nowhere"),
    ],
)
def test_the_path_after_a_change_has_the_same_ends(tmp_path, then, expected):
    text = FILE.replace(FLOW, f"{FLOW}\nthen = {then}")
    error = refusal(tmp_path, text, f"path goes from x to y, {expected}")
    assert error.line == text.split("\n").index(f"then = {then}") + 1


@pytest.mark.parametrize(
    ("path", "expected"),
    [('["y", "a", "b", "y"]', "no cable between y and a"), ('["x", "a", "x", "a", "b", "y"]', "passes through 'x'")],
)
def test_paths_begin_at_the_switch_of_their_ca_and_pass_no_other(tmp_path, path, expected):
    refusal(tmp_path, FILE.replace(FLOW, f"path = {path}"), expected)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("at = 300", "at 300 is not within a run until 300"),
        ("at = 10, until = 301", "until 301 is not within a run until 300"),
        ("at = 10, reroute = [20, 400]", "reroute 400 is not within a run until 300"),
    ],
)
def test_times_of_a_fault_after_the_end_of_the_run_are_errors(tmp_path, fault, expected):
    text = FILE.replace('name = "c"', f'name = "c"\nfault = [{{ cable = ["a", "b"], {fault} }}]')
    assert refusal(tmp_path, text, expected).remedy


CHANGED = FILE.replace(FLOW, f'{FLOW}\nthen = ["x", "a", "c", "b", "y"]')


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ('how = "at once", at = 300', "changes tables until 300, and runs until 300"),
        ('how = "drained", at = 200, every = 150', "changes tables until 350"),
        ('how = "one by one", at = 200, every = 60', "changes tables until 320"),
    ],
)
def test_a_change_of_tables_after_the_end(tmp_path, change, expected):
    assert refusal(tmp_path, CHANGED.replace('name = "c"', f'name = "c"\nchange = {{ {change} }}'), expected).remedy


def test_a_change_of_tables_that_changes_none(tmp_path):
    change = 'name = "c"\nchange = { how = "at once", at = 10 }'
    refusal(tmp_path, FILE.replace('name = "c"', change), "changes tables to equal tables")
    refusal(tmp_path, CHANGED.replace('name = "c"', f'{change}\nengine = "updn"'), "those of the engine")
    (tmp_path / "right.toml").write_text(CHANGED.replace('name = "c"', change))
    scenario = read_scenario(tmp_path / "right.toml")
    assert run_case(scenario, scenario.cases[0]).right


def test_a_load_of_a_case_is_for_any_flow_that_goes_by_it(tmp_path):
    other = 'process = "poisson"\n[[flow]]\nname = "back"\npath = ["y", "b", "a", "x"]'
    text = FILE.replace(FLOW, f"{FLOW}\n{other}").replace('name = "c"', 'name = "c"\nload = 0.5')
    (tmp_path / "right.toml").write_text(text)
    scenario = read_scenario(tmp_path / "right.toml")
    found = run_case(scenario, scenario.cases[0]).found["throughput"]
    assert found["back"] > 0.9
    assert found["f0"] < 0.7
    refusal(tmp_path, text.replace("load = 0.5", 'load = 0.5\nwithout = ["f0"]'), "load does nothing")
