"""Check the campaigns that ibnue provides."""

from pathlib import Path

import pytest

import ibsim_fixtures
from ibsim_fixtures.catalogue import FIXTURES
from routing.cli.fabric_argument import read
from routing.sweep.cases import RandomFaults
from routing.sweep.spec import expand, read_spec
from routing.sweep.tasks import Shard, Target

FOLDER = Path(ibsim_fixtures.__file__).parent / "campaigns"
SPECS = sorted(FOLDER.glob("*.toml"))
FOUR = {"nue", "dfsssp", "lash", "updn"}


def test_the_campaign_is_as_large_as_it_says():
    blocks = read_spec(FOLDER / "faults.toml")
    drawn = 0
    for block in blocks:
        assert {Target.parse(text).engine for text in block.engines} == FOUR
        if "fresh" in block.modes:
            samples = [RandomFaults.parse(text) for text in block.random]
            drawn += len(block.fabrics) * sum(sample.cases for sample in samples)
            assert all(sample.percent or sample.together >= 2 for sample in samples)
    assert drawn == 10_000
    (fixtures,) = (block for block in blocks if block.links == block.switches == "all")
    assert {Path(path).stem for path in fixtures.fabrics} == set(FIXTURES)


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_every_fabric_and_fault_of_a_campaign_is_there(spec):
    assert expand(read_spec(spec), read, Shard(1, 1000)).fabrics
