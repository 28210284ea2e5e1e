"""Check scenario cases with adaptive routing: their results, and the cases that are refused."""

import pytest
from sim_cases import ADAPTIVE as CASE

from routing.errors import InputError
from routing.simulate.case_runners import run_case
from routing.simulate.scenario import read_scenario

RING = """title = "a ring"
[fabric]
generator = "ring:6,cas=2"
[routing]
engine = "updn"
vls = 1
[traffic]
pattern = "uniform"
process = "bernoulli"
load = 1.0
[timing]
packet = 256
buffer = 4
[run]
seed = 3
until = 321
[[case]]
name = "full load"
adaptive = { schemes = [SCHEME, vls = 1 }
expect = {}
"""


def played(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    scenario = read_scenario(path)
    return run_case(scenario, scenario.cases[0])


def test_every_scheme_at_every_load(tmp_path):
    result = played(tmp_path, CASE)
    assert result.right
    assert set(result.found["curves"]) == {"tables", "escape", "bubble"}
    for name, curve in result.found["curves"].items():
        assert curve == pytest.approx({"0.2": 0.2, "0.4": 0.4}, rel=0.1)
        assert result.found["accepted"][name] == curve["0.4"] == result.found["peak"][name]
    assert result.found["bubble_over_escape"] == pytest.approx(1.0, rel=0.05)
    assert result.stated["vls"] == 3
    assert result.stated["tables"] == "dimension-order"


def test_lost_packets_are_figures_of_each_scheme(tmp_path):
    parts = """remedy = { hoq = 3 }
retransmission = { timeout = 20 }
injection_limit = { packets = 30 }
fault = [{ cable = ["sw0.0", "sw0.1"], at = 110, until = 150 }]
"""
    result = played(tmp_path, CASE.replace("[0.2, 0.4]", "[0.2, 1.0]").replace("adaptive = {", f"{parts}adaptive = {{"))
    schemes = {"tables", "escape", "bubble"}
    for figure in ("dropped", "resent", "not_resent", "injections_stopped"):
        assert set(result.found[figure]) == schemes
    for scheme in schemes:
        assert (
            result.found["dropped"][scheme] == result.found["resent"][scheme] + result.found["not_resent"][scheme] > 0
        )
    assert result.stated["remedy"] == {"hoq": 3}
    assert "dropped" not in played(tmp_path, CASE).found


def test_packets_of_one_scheme_have_the_figures_of_all_cases(tmp_path):
    """Without a list of schemes, a case has the throughput of the case that compares schemes, since all else is
    equal.
    """
    compared = played(tmp_path, CASE.replace("[0.2, 0.4]", "[0.4]").replace('"tables", "escape", "bubble"', '"bubble"'))
    text = CASE.replace('what = "adaptive"\nloads = [0.2, 0.4]', "load = 0.4").replace(
        '"tables", "escape", "bubble"', '"bubble"'
    )
    found = played(tmp_path, text.replace("expect = { deadlocked = [] }", "expect = { knot = [] }")).found
    assert found["mean"] == pytest.approx(compared.found["accepted"]["bubble"], abs=1e-4)
    assert found["outcome"] == "progress"
    assert found["delivered"] > 0 == found["dropped"] == found["escapes"]


@pytest.mark.parametrize(
    ("scheme", "outcome"),
    [('"none"]', "deadlock"), ('"token"], detect = 20', "progress"), ('"bubble"], detect = 20', "progress")],
)
def test_a_knot_that_the_scheme_resolves_is_not_a_deadlock(tmp_path, scheme, outcome):
    """On a ring under full load, some queues wait for one another at most ticks."""
    result = played(tmp_path, RING.replace("SCHEME", scheme))
    assert result.found["outcome"] == outcome


@pytest.mark.parametrize(
    ("remedy", "deadlocked"), [("", ["none"]), ("remedy = { hoq = 900 }", []), ("remedy = { lifetime = 900 }", [])]
)
def test_a_knot_that_a_lifetime_limit_ends_is_not_a_deadlock(tmp_path, remedy, deadlocked):
    """The limit is longer than the run, so that the queues still wait for one another at the last tick."""
    text = RING.replace("load = 1.0\n", "").replace("SCHEME", '"none"]')
    text = text.replace("adaptive =", f'what = "adaptive"\nloads = [1.0]\n{remedy}\nadaptive =')
    assert played(tmp_path, text).found["deadlocked"] == deadlocked


def test_a_workload_is_simulated_with_adaptive_switches(tmp_path):
    text = CASE.replace('what = "adaptive"\nloads = [0.2, 0.4]', 'what = "workload"').replace(
        '"tables", "escape", "bubble"', '"escape"'
    )
    text = text.replace('[traffic]\npattern = "uniform"\nprocess = "bernoulli"\n', "").replace("from = 100\n", "")
    text = text.replace("until = 400", "until = 4000").replace(
        "expect = { deadlocked = [] }",
        'workload = { collective = "ring-allreduce", bytes = 4096 }\nexpect = { unfinished = 0 }',
    )
    result = played(tmp_path, text)
    assert result.right, result.wrong
    assert result.found["messages"] == 9 * 16


def test_a_deadlock_is_reported(tmp_path):
    text = CASE.replace("torus:3x3,cas=1", "torus:4x4,cas=3").replace("[0.2, 0.4]", "[1.0]")
    text = text.replace('rule = "dimension-order"', 'engine = "updn"\nvls = 1')
    text = text.replace("[timing]", "[timing]\nbuffer = 1").replace(
        '["tables", "escape", "bubble"]', '["none"], vls = 1'
    )
    result = played(tmp_path, text.replace("deadlocked = []", 'deadlocked = ["none"], peak = { none = 0.0 }'))
    assert result.right, result.wrong


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"bubble"]', '"balloon"]', "'balloon' is not a valid scheme"),
        ('"bubble"]', '"bubble"], vls = 1', "1 VLs are too few for tables with 2"),
        ('"bubble"]', '"bubble"], vls = 2', "escape tables use 2 VLs of 2"),
        ('"bubble"]', '"bubble"], ca_vls = 9', "CAs cannot send on 9 VLs of 3"),
        ('"bubble"]', '"bubble"], size = 1', "there is no 'size'"),
        ("adaptive = {", "remedy = {}\npauses = {", "there is no 'schemes'"),
        ('adaptive = { schemes = ["tables", "escape", "bubble"] }', "", "has no table adaptive"),
        ("[0.2, 0.4]", "[0.2, 1.4]", "cannot be 1.4"),
        ("[0.2, 0.4]", "[]", "needs loads"),
        ("from = 100", "from = 400", "measures from tick 800 to tick 800"),
        ("torus:3x3,cas=1", "kary-ntree:2,2", "the switches have no coordinates"),
        ("deadlocked", "locked", "expects 'locked'"),
        ('what = "adaptive"\nloads = [0.2, 0.4]', "load = 0.4", "needs one scheme of adaptive switches"),
        ("adaptive = {", "congestion = {}\nadaptive = {", "congestion does nothing for adaptive"),
        (
            'adaptive = { schemes = ["tables", ',
            "remedy = { hoq = 9, stall_count = 3 }\nadaptive = { schemes = [",
            "stall_count",
        ),
        (
            "adaptive = {",
            'remedy = { breaker = "loop", detect = 2 }\nadaptive = {',
            "beside Loop Breaker, which writes",
        ),
        ("adaptive = {", 'remedy = { breaker = "deadlock", detect = 2 }\nadaptive = {', "which needs output queues"),
        (
            "adaptive = {",
            'fault = [{ cable = ["sw0.0", "sw0.1"], at = 110, reroute = [120] }]\nadaptive = {',
            "beside a re-route, which writes tables",
        ),
    ],
)
def test_a_case_that_cannot_be_is_refused(tmp_path, old, new, expected):
    assert old in CASE
    with pytest.raises(InputError, match=expected) as caught:
        played(tmp_path, CASE.replace(old, new))
    assert "\n" not in str(caught.value)
    assert caught.value.line is not None
