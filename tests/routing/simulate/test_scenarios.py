"""The scenarios that come with the package come out as they say; files that cannot be are refused."""

import pytest

from routing.errors import InputError
from routing.simulate.play import judge, play
from routing.simulate.scenario import find_scenario, read_scenario, scenarios

CASES = [(name, case.name) for name in scenarios() for case in find_scenario(name).cases]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_comes_out_as_it_says(name, case):
    scenario = find_scenario(name)
    (chosen,) = [one for one in scenario.cases if one.name == case]
    result = play(scenario, chosen)
    assert result.wrong == ()


def test_another_outcome_is_told():
    found = {"outcome": "progress", "dropped": 3, "total": 0.5, "throughput": {"a": 0.2, "b": 0.3}}
    assert judge(found, {"outcome": "progress", "total": 0.51, "at_most_dropped": 3}) == ()
    wrong = judge(
        found, {"outcome": "deadlock", "dropped": 2, "at_least_total": 0.6, "throughput": {"a": 0.2, "b": 0.4}}
    )
    assert wrong == (
        "outcome is progress, expected deadlock",
        "dropped is 3, expected 2",
        "total is 0.5, expected at least 0.6",
        "throughput of b is 0.3, expected 0.4",
    )


RING = """
title = "t"
[fabric]
switches = ["a", "b"]
cables = [["a", "b"]]
cas = { x = "a", y = "b" }
[[flow]]
way = ["x", "a", "b", "y"]
[[case]]
name = "c"
expect = { outcome = "progress" }
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("title", "titel", "there is no 'titel'"),
        ('title = "t"', "title = 1", "title has to be str"),
        ("[[case]]", "[[case", "no TOML"),
        ('["a", "b"]]', '["a", "z"]]', "there is no device 'z'"),
        ('"b", "y"]', '"y"]', "there is no cable between a and y"),
        ('way = ["x", "a", "b", "y"]', 'from = "x"', "needs a way, or from and to"),
        ('way = ["x", "a", "b", "y"]', 'from = "x"\nto = "x"', "sends to nobody"),
        ("[[case]]", "[timing]\nbuffer = 0.5\n[[case]]", "does not fit a buffer"),
        ("[[case]]", "[timing]\nbuffer = 100\n[[case]]", "number of blocks of a buffer"),
        ("[[case]]", '[routing]\nengine = "best"\n[[case]]', "there is no engine 'best'"),
        ('name = "c"', 'name = "c"\narbitration = "fair"', "'fair' is no arbitration"),
        ('name = "c"', 'name = "c"\nwithout = ["q"]', "there is no such flow"),
        ("outcome", "luck", "expects 'luck'"),
    ],
)
def test_a_scenario_that_cannot_be_is_refused(tmp_path, old, new, told):
    assert old in RING
    path = tmp_path / "mine.toml"
    path.write_text(RING.replace(old, new))
    with pytest.raises(InputError, match=told) as caught:
        scenario = read_scenario(path)
        for case in scenario.cases:
            play(scenario, case)
    assert "\n" not in str(caught.value)
    assert caught.value.path == str(path)
