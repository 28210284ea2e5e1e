"""Check the errors for scenario files that the simulator refuses."""

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
"""Text of a scenario with one flow over one cable, without cases.  Keys appended to the text are keys of the flow."""


def refusal(folder, text, expected=""):
    """Read a scenario and run its cases, and return the error, which must occur.

    The error must be one line that names the file and a line in it, and matches the pattern ``expected``.
    """
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
