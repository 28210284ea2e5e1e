"""Check that the scenarios of the package give their expected results, and that invalid files are refused."""

import pytest
from in_one_test import cases_in_one_test
from sim_files import TWO_SWITCHES, refusal

from routing.errors import NotEnoughVLs, ParseError
from routing.simulate.case_runners import compare_with_expected, run_case
from routing.simulate.scenario import find_scenario, read_scenario, scenarios
from routing.simulate.scenario_fabric import enough_vls, scenario_fabric
from routing.simulate.scenario_schema import ORIGINS

LONG = {
    ("request-grant-figures", None),
    # The case "reserved buffers without speedup, 8 hotspots" has the same bounds of delay and throughput at more load.
    ("request-grant", "delay with and without 8 hotspots, reserved buffers, no speedup"),
    # Other cases of these scenarios have fewer or more packets or VLs.
    ("adaptive-escape", "Up*/Down*, eleven packets of each CA under way"),
    ("adaptive-escape", "relays, eleven packets of each CA under way"),
    ("adaptive-escape", "Nue on one VL of four"),
    ("adaptive-torus", "CAs send on two VLs"),
    ("adaptive-two-cas", "any number under way"),
    ("adaptive-window", "11 packets under way"),
    ("recovery-paths", "CAs send on two VLs"),
    ("recovery-paths", "CAs send on all VLs"),
    ("recovery-paths", "eleven packets of each CA under way"),
    ("request-grant", "implicit rate regulation, links of 1.2 times the rate"),
    # The case "a deadlock that stays, by flow control" shows the same rule.
    ("detection", "tables without a credit loop, by flow control"),
    # The scenario "link-disjoint" compares the same tables on a smaller fabric.
    ("link-disjoint-slimfly", None),
    # test_remedies.py checks the masters of as many seeds.
    ("ring-remedies", "Loop Breaker, 1000 seeds"),
}
CASES = [
    pytest.param(name, case.name, marks=[pytest.mark.slow] * ((name, None) in LONG or (name, case.name) in LONG))
    for name in scenarios()
    for case in find_scenario(name).cases
]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_comes_out_as_it_says(name, case):
    scenario = find_scenario(name)
    (chosen,) = [one for one in scenario.cases if one.name == case]
    result = run_case(scenario, chosen)
    assert result.wrong == ()


@cases_in_one_test("name", scenarios())
def test_every_case_states_where_its_figures_come_from(name):
    cases = find_scenario(name).cases
    assert cases
    assert [case.name for case in cases if case.origin not in ORIGINS] == []


def test_another_outcome_is_reported():
    found = {"outcome": "progress", "dropped": 3, "total": 0.5, "throughput": {"a": 0.2, "b": 0.3}}
    assert compare_with_expected(found, {"outcome": "progress", "total": 0.51, "at_most_dropped": 3}) == ()
    wrong = compare_with_expected(
        found, {"outcome": "deadlock", "dropped": 2, "at_least_total": 0.6, "throughput": {"a": 0.2, "b": 0.4}}
    )
    assert wrong == (
        "outcome is progress, expected deadlock",
        "dropped is 3, expected 2",
        "total is 0.5, expected at least 0.6",
        "throughput of b is 0.3, expected 0.4",
    )


RING = (
    TWO_SWITCHES
    + """\
[[case]]
name = "c"
expect = { outcome = "progress" }
"""
)


@cases_in_one_test(
    ("old", "new", "expected"),
    [
        ("title", "titel", "there is no 'titel'"),
        ('title = "t"', "title = 1", "title has to be a text, it is 1"),
        ('title = "t"', 'title = "t"\norigin = "hearsay"', "'hearsay' is not an origin of figures .*[(]use paper, "),
        ('name = "c"', 'name = "c"\norigin = "hearsay"', "'hearsay' is not an origin of figures"),
        ("[[case]]", "[[case", "not TOML"),
        ('["a", "b"]]', '["a", "z"]]', "there is no device 'z'"),
        ('"b", "y"]', '"y"]', "there is no cable between a and y .*[(]name devices"),
        ('path = ["x", "a", "b", "y"]', 'from = "x"', "needs a path, or from and to"),
        ('path = ["x", "a", "b", "y"]', 'from = "x"\nto = "x"', "it has no destination"),
        ("[[case]]", "[timing]\nbuffer = 0.5\n[[case]]", "cannot hold 0.5 packets .*[(]use 1 to 64"),
        ("[[case]]", "[timing]\nbuffer = 100\n[[case]]", "cannot hold 100 packets .*[(]use 1 to 64"),
        ("[[case]]", "[timing]\npacket = 65535\n[[case]]", "cannot hold 8 packets of 65535 bytes .*[(]use 1 to 2"),
        ("[[case]]", "[timing]\nwire = 0\n[[case]]", "wire cannot be 0"),
        ("[[case]]", '[routing]\nengine = "best"\n[[case]]', "there is no engine 'best'"),
        ('name = "c"', 'name = "c"\narbitration = "fair"', "'fair' is not a valid arbitration"),
        ('name = "c"', 'name = "c"\nwithout = ["q"]', "there is no such flow"),
        ("outcome", "luck", "expects 'luck'"),
        ('name = "c"', 'name = "c"\nwhat = "lock-times"\nbuffers = [4]', "two sizes of buffers"),
        ('name = "c"', 'name = "c"\nwhat = "lock-times"\nbuffers = [4, 4]', "two sizes of buffers"),
        (
            'name = "c"',
            'name = "c"\nchange = { how = "soon", at = 1 }',
            "'soon' is not a valid method to change tables",
        ),
        ('name = "c"', 'name = "c"\nchange = { how = "at once" }', "at is missing"),
        ('name = "c"', 'name = "c"\nchange = { how = "one by one", at = 1, order = ["a"] }', "name every switch once"),
        ('name = "c"', 'name = "c"\nwhat = "dependencies"\ntables = "newer"', "'newer' is not a valid set of tables"),
        ("[[case]]", '[routing]\nrule = "none"\n[[case]]', "'none' is not a valid rule for tables"),
        ('cas = { x = "a", y = "b" }', 'cas = { x = "a", y = "b" }\nfaults = ["swap q/1 a/1"]', "q"),
        ('[fabric]\nswitches = ["a", "b"]', "[fabric]", "needs a file, a generator, or switches"),
        ('switches = ["a", "b"]', 'switches = ["a", "a", "b"]', "two devices are called 'a' [(]rename"),
        ('switches = ["a", "b"]', 'switches = ["a", "b", "x"]', "two devices are called 'x' [(]rename"),
        ('switches = ["a", "b"]', 'switches = ["a", 3, "b"]', "3 is not a name of a switch [(]write a text"),
        ('y = "b" }', 'y = ["b"] }', "of CA 'y' is not a switch [(]name a switch"),
        ("[[case]]", '[[flow]]\nname = "f0"\npath = ["y", "b", "a", "x"]\n[[case]]', "called 'f0' [(]rename"),
        ("[[case]]", '[[case]]\nname = "c"\nexpect = {}\n[[case]]', "two cases are called 'c' [(]rename"),
        ("[[case]]", "[routing]\nvls = 'x'\n[[case]]", "'x' is not a number of VLs for paths [(]use 1 to 15"),
        ('name = "c"', 'name = "c"\nuntil = -3', "until cannot be -3"),
        ('name = "c"', 'name = "c"\nuntil = 1e300', "until cannot be 1e[+]300"),
        ('name = "c"', 'name = "c"\nfrom = 9000', "a run until 4000 cannot be measured from 9000 on"),
        ('name = "c"', 'name = "c"\nbuffer = inf', "buffer has to be a number, it is inf"),
        ('name = "c"', 'name = "c"\nload = nan', "load has to be a number, it is nan"),
        ("[[case]]", "[run]\nsample = 0\n[[case]]", "cannot be 0 packet times apart"),
        ('"progress"', '"progres"', "'progres' is not an outcome"),
        ('outcome = "progress"', 'at_least_total = "x"', "at_least_total of case 'c' has to be a number"),
        ('outcome = "progress"', 'tolerance = "x"', "tolerance of case 'c' has to be a number"),
        ('name = "c"', 'name = "c"\nwhat = "seeds"\nseeds = 0', "0 is not a number of seeds"),
    ],
)
def test_a_scenario_that_cannot_be_is_refused(tmp_path, old, new, expected):
    assert old in RING
    refusal(tmp_path, RING.replace(old, new), expected)


def test_an_outcome_that_cannot_be_is_refused_before_a_case_runs(tmp_path):
    (tmp_path / "mine.toml").write_text(RING.replace('"progress"', '"progres"'))
    with pytest.raises(
        ParseError, match=r"'progres' is not an outcome \(use deadlock, progress, starvation\)"
    ) as found:
        read_scenario(tmp_path / "mine.toml")
    assert found.value.line == 1 + RING.splitlines().index('expect = { outcome = "progress" }')


@pytest.mark.parametrize(("old", "new"), [("[[case]]", "[timing]\n@\n[[case]]"), ('name = "c"', 'name = "c"\n@')])
def test_a_buffer_that_cannot_be_is_reported_where_it_stands(tmp_path, old, new):
    text = RING.replace(old, new.replace("@", "buffer = 65"))
    assert refusal(tmp_path, text).line == 1 + text.splitlines().index("buffer = 65")


@pytest.mark.parametrize("name", ["hoq", "lifetime"])
def test_a_lifetime_of_less_than_a_tick_is_not_for_ever(tmp_path, name):
    text = RING.replace('x = "a"', 'x = "a", z = "a"').replace(
        "[[case]]", '[[flow]]\npath = ["z", "a", "b", "y"]\n[[case]]'
    )
    text = text.replace('name = "c"', f'name = "c"\nremedy = {{ {name} = 0.001 }}')
    (tmp_path / "mine.toml").write_text(text.replace('outcome = "progress"', "at_least_dropped = 1"))
    scenario = read_scenario(tmp_path / "mine.toml")
    assert run_case(scenario, scenario.cases[0]).wrong == ()


NO_FABRIC = """
title = "t"
[[case]]
name = "c"
@case
expect = { edges = 1 }
"""


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ('what = "graph"', "needs a graph"),
        ('what = "graph"\ngraph = { dependencies = ["a"] }', "is not a chain of dependencies"),
        (
            'what = "graph"\ngraph = { dependencies = ["a > b"], movable = ["c"] }',
            "needs a graph that contains the vertices",
        ),
        ('what = "graph"\ngraph = { grid = [3] }', "is not a grid"),
        ('what = "graph"\ngraph = { grid = [3, 3], turns = ["NN"] }', "is not a turn"),
        ('what = "graph"\ngraph = { grids = [3, 3] }', "there is no 'grids'"),
        ('what = "message-types"', "needs a chain"),
        ('what = "message-types"\nchain = { channels = 3 }', "escape is missing"),
        ('what = "message-types"\nchain = { channels = 3, escape = [0] }', "not escape channels"),
        ('what = "message-types"\nchain = { channels = 3, escape = [1.5] }', "whole numbers"),
    ],
)
def test_a_case_without_a_fabric_that_cannot_be_is_refused(tmp_path, case, expected):
    refusal(tmp_path, NO_FABRIC.replace("@case", case), expected)


PATTERNS = """
title = "patterns"
[fabric]
generator = "kary-ntree:2,2"
[routing]
engine = "updn"
[run]
until = 500
[traffic]
%s
[[case]]
name = "c"
expect = { outcome = "progress" }
"""


@pytest.mark.parametrize(
    ("traffic", "finished"),
    [
        ('pattern = "all-to-all"\nrounds = 3\nmessage = 3000', True),
        ('pattern = "shift"\nby = 2', False),
        ('pattern = "uniform"\nprocess = "poisson"\nload = 0.3', False),
        ('pattern = "uniform"\nprocess = "bernoulli"\nload = 0.3', False),
        ('pattern = "hotspot"\nhot = ["ca 0"]\nhot_share = 0.9\nload = 0.2\nprocess = "poisson"', False),
    ],
)
def test_patterns_of_traffic(tmp_path, traffic, finished):
    path = tmp_path / "mine.toml"
    fabric = scenario_fabric(read_scenario(_write(path, PATTERNS % 'pattern = "shift"')))
    text = (PATTERNS % traffic).replace("ca 0", fabric.endport_name[0])
    scenario = read_scenario(_write(path, text))
    result = run_case(scenario, scenario.cases[0])
    assert result.right, result.wrong
    assert (result.found["finished"] is True) >= finished
    assert set(result.found["throughput"]) == set(fabric.endport_name)


def _write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"shift"', '"sideways"', "not a valid pattern of traffic"),
        ('"shift"', '"uniform"\nload = 2.0', "load cannot be 2.0"),
        ('engine = "updn"', 'engine = "updn"\nvls = 99', "99"),
        ("kary-ntree:2,2", "klein-bottle:2,2", "no topology"),
        ('name = "c"', 'name = "c"\nwhat = "wonder"', "not a valid thing to do"),
        ('name = "c"', 'name = "c"\n[case.remedy]\nbreaker = "deadlock"', "breaker needs the time"),
        ('name = "c"', 'name = "c"\n[case.remedy]\nhoq = -3', "hoq cannot be -3"),
    ],
)
def test_patterns_that_cannot_be_are_refused(tmp_path, old, new, expected):
    text = PATTERNS % 'pattern = "shift"'
    assert old in text
    lines = text.replace(old, new)
    if "[case.remedy]" in new:  # the key `expect` has to be in front of the table
        lines = lines.replace('expect = { outcome = "progress" }\n', "").replace(
            'name = "c"', 'name = "c"\nexpect = { outcome = "progress" }'
        )
    refusal(tmp_path, lines, expected)


VLS = """
title = "t"
[fabric]
generator = "ring:5"
[routing]
engine = "lash"
@vls
[traffic]
pattern = "uniform"
[[case]]
name = "c"
what = "@what"
@case
expect = { credit_loop = false }
"""


@pytest.mark.parametrize("what", ["tables", "packets", "adaptive", "pauses", "dependencies", "shifts", "seeds"])
@pytest.mark.parametrize(
    ("vls", "case", "line"),
    [("vls = 1", "", "vls = 1"), ("", "vls = 1", "vls = 1"), ("vls = 2", "vls = 1", "vls = 1")],
)
def test_an_engine_that_needs_more_vls(tmp_path, what, vls, case, line):
    text = VLS.replace("@vls", vls).replace("@what", what).replace("@case", case)
    beside = '[[case]]\nname = "other"\nwhat = "packets"\nexpect = { outcome = "progress" }\n'
    if what == "adaptive":
        text = text.replace("expect", 'adaptive = { schemes = ["none"] }\nexpect')
    text += beside  # this case reads the traffic, and the VLs of [routing]
    if what == "pauses":
        text = text.replace("[traffic]", '[[flow]]\npath = ["ca0.0", "sw0", "sw1", "ca1.0"]\n[traffic]')
    error = refusal(
        tmp_path, text, "the search needed 2 VLs, 1 may be used .set vls to 2, or use an engine that needs fewer."
    )
    lines = text.split("\n")
    assert error.line == 1 + (lines.index(line, lines.index("[[case]]")) if case else lines.index(line))


def test_an_engine_that_needs_more_vls_than_there_are(tmp_path):
    text = VLS.replace("@vls", "").replace("@what", "packets").replace("@case", "")
    scenario = read_scenario(_write(tmp_path / "mine.toml", text))
    with (
        pytest.raises(ParseError, match=r":6: 16 VLs are needed, 8 may be used .use an engine that needs fewer.$"),
        enough_vls(scenario, "routing", "engine"),
    ):
        raise NotEnoughVLs(16, 8)
    with (
        pytest.raises(ParseError, match=r":6: the search found no tables .*use an engine that needs fewer.$"),
        enough_vls(scenario, "routing", "engine"),
    ):
        raise NotEnoughVLs(None, 8)
