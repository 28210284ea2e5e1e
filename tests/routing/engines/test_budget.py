import math

import pytest

from routing.engines.budget import effort_within
from routing.errors import OptionError
from routing.topologies import generate


def test_effort_grows_with_the_budget_and_shrinks_with_the_fabric():
    small, large = generate("torus", ["3x3"], cas=1), generate("torus", ["6x6x6"], cas=4)
    efforts = [effort_within(small, seconds) for seconds in (0.1, 1, 10, 100)]
    assert efforts == sorted(efforts)
    assert efforts[-1] == pytest.approx(100 / 4, rel=1e-3)
    assert effort_within(large, 1) < effort_within(small, 1)
    assert effort_within(small, 1e9) == 1000


def test_too_little_is_an_error_whose_remedy_suffices():
    fabric = generate("torus", ["6x6x6"], cas=4)
    with pytest.raises(OptionError, match=r"first paths take 0\.0") as problem:
        effort_within(fabric, 0.01)
    enough = float(problem.value.remedy.split("at least ")[1].split(",")[0])
    assert effort_within(fabric, enough) > 0
    assert enough < 1
    with pytest.raises(OptionError):
        effort_within(fabric, math.nan)
