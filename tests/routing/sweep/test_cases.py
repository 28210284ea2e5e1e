import pytest

from ibsim_fixtures.catalogue import FIXTURES
from routing.errors import OptionError
from routing.faults import every_ca, every_link, every_switch, random_faults
from routing.formats.fabric_files import read_fabric
from routing.sweep.cases import RandomFaults, faults_of, text_of
from routing.sweep.spec import some
from routing.topologies import generate
from routing.whatif.scenarios import draw_faults


@pytest.mark.parametrize("name", FIXTURES)
def test_written_faults_are_read_back(name):
    fabric = read_fabric(FIXTURES[name].path)
    faults = [*every_link(fabric, cas=True)[::3], *every_switch(fabric)[:5], *every_ca(fabric)[:2]]
    for kind in ("degrade", "swap"):
        faults += random_faults(fabric, seed=1, rate=1.0, kinds=[kind])[:2]
    for fault in faults:
        assert faults_of(text_of(fault), fabric) == [fault]


def test_random_cases_are_those_of_whatif():
    fabric = generate("torus", ["4x4"])
    for text, more in (("5:3", {"together": 3}), ("5:20%", {"rate": 0.2})):
        cases = list(RandomFaults.parse(text).texts(fabric))
        scenarios = draw_faults(fabric, 5, seed=1, **more)
        assert [tuple(faults_of(case, fabric)) for case in cases] == [scenario.faults for scenario in scenarios]
        assert len(set(cases)) == 5


def test_a_rate_breaks_something():
    ring = generate("ring", ["4"])
    (case,) = RandomFaults.parse("1:1%").texts(ring)
    assert len(faults_of(case, ring)) == 1
    assert list(RandomFaults.parse("9:1%").texts(generate("full-mesh", ["1"]))) == []


@pytest.mark.parametrize("text", ["", "x", "5:", "5:0.5", "5:101%", "-1", "5:3%%"])
def test_samples_that_are_none(text):
    with pytest.raises(OptionError, match="is not a sample"):
        RandomFaults.parse(text)


def test_some_chooses_evenly_spread_faults():
    faults = every_link(generate("ring", ["10"]))
    assert some(faults, "all", "links") == some(faults, 10, "links") == faults
    assert some(faults, 0, "links") == []
    assert [faults.index(fault) for fault in some(faults, 3, "links")] == [0, 3, 6]
    with pytest.raises(OptionError, match="11 links in a ring has 10"):
        some(faults, 11, "links in a ring")
