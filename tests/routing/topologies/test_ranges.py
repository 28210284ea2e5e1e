"""Check ranges in the arguments of generators, which sweeps accept."""

import pytest

from routing.cli.fabric_argument import read
from routing.errors import OptionError
from routing.sweep.spec import Block, expand
from routing.topologies.ranges import expand_ranges


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torus:{4,5}x{2..3}", ["torus:4x2", "torus:4x3", "torus:5x2", "torus:5x3"]),
        ("ring:{8..16..4},cas={1,1}", ["ring:8,cas=1", "ring:12,cas=1", "ring:16,cas=1"]),
        ("ring:5,speed={EDR,HDR}", ["ring:5,speed=EDR", "ring:5,speed=HDR"]),
        ("ring:5", ["ring:5"]),
        ("nets/{a,b}.net", ["nets/{a,b}.net"]),
    ],
)
def test_braces_stand_for_every_value(text, expected):
    assert list(expand_ranges(text)) == expected


@pytest.mark.parametrize(
    "text", ["ring:{4", "ring:4}", "ring:{{4}}", "ring:{}", "ring:{5..4}", "ring:{4..}", "ring:{4..8..0}",
             "ring:{1..99999}", "torus:{1..200}x{1..200}"],
)  # fmt: skip
def test_invalid_ranges_are_refused(text):
    with pytest.raises(OptionError):
        list(expand_ranges(text))


def test_a_file_of_that_name_takes_precedence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ring:{4,5}").touch()
    assert list(expand_ranges("ring:{4,5}")) == ["ring:{4,5}"]


def test_a_sweep_runs_each_fabric_of_a_range():
    plan = expand([Block(fabrics=("ring:{3..5}", "ring:4"), engines=("updn",))], read)
    assert [task.fabric for task in plan.tasks] == ["ring-3", "ring-4", "ring-5"]
