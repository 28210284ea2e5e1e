import pytest

from routing.reroute import choose
from routing.reroute.strategies.repair import keep_sls


@pytest.fixture
def may_change_sls(monkeypatch):
    """Let repairs change SLs although no safe rounds lead to the new tables."""
    others = tuple(step for step in choose.STEPS if step.strategy is not keep_sls)
    assert len(others) == len(choose.STEPS) - 1
    monkeypatch.setattr(choose, "STEPS", others)
