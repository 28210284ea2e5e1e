"""Scenario files that are refused."""

import re

import pytest

from routing.errors import InputError
from routing.simulate.case_runners import run_case
from routing.simulate.scenario import read_scenario

TWO_SWITCHES = """
title = "t"
[fabric]
switches = ["a", "b"]
cables = [["a", "b"]]
cas = { x = "a", y = "b" }
[[flow]]
path = ["x", "a", "b", "y"]
"""
"""A scenario up to its cases: one flow over one cable; keys put behind it are the flow's."""


def refusal(folder, text, expected=""):
    """The error that reading and playing a scenario ends with: one line that names the file and a line of it."""
    path = folder / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        scenario = read_scenario(path)
        for case in scenario.cases:
            run_case(scenario, case)
    error = caught.value
    assert "\n" not in str(error)
    assert error.path == str(path)
    assert error.line is not None
    assert re.search(expected, str(error)), str(error)
    return error
