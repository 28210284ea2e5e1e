import pytest

from osm_plugin.config import read_config
from osm_plugin.options import SWEEP_EFFORT, options_of
from osm_plugin.snapshot import Snapshot
from routing.engines.budget import effort_within
from routing.errors import OptionError
from routing.topologies import generate


def effort(tmp_path, engine_table):
    position = tmp_path / "ibnue.toml"
    position.write_text(f"[engine]\n{engine_table}\n")
    fabric = generate("torus", ["4x4"], cas=1)
    snapshot = Snapshot(sequence=1, fabric=fabric, data_vls=8, qos=True, answer_at=0)
    return options_of("nue", read_config(position), snapshot).effort, fabric


def test_effort_is_stated_or_paid_for_or_that_of_a_sweep(tmp_path):
    assert effort(tmp_path, "")[0] == SWEEP_EFFORT
    assert effort(tmp_path, "effort = 2")[0] == 2
    paid, fabric = effort(tmp_path, "budget = 1.5")
    assert paid == effort_within(fabric, 1.5)


def test_effort_and_budget_exclude_each_other(tmp_path):
    with pytest.raises(OptionError, match="effort and budget"):
        effort(tmp_path, "effort = 2\nbudget = 1")
