import pytest
from campaigns import some_of
from plugin_lab import expected_lfts, logged, sweep_options

from ibsim_fixtures.catalogue import FIXTURES
from routing.engines import ENGINES

pytestmark = pytest.mark.lab

# These fixtures have properties that OpenSM or the plugin has to discover: several planes or parts, ports of other
# speeds, LIDs that are given, routers, and switches without CAs.  In the campaign, all fixtures run.
SAMPLE = ("back-to-back", "dual-plane", "mixed-speeds", "own-lids", "routers", "split-lone-switch", "switches-only")


def have_the_tables_of_the_engine(lab):
    fabric = lab.fabric()
    assert logged(lab, r"fabric ([0-9a-f]{12})\b")[-1] == fabric.digest[:12]
    assert lab.switch_lfts() == expected_lfts(fabric, ENGINES["updn"].route(fabric, sweep_options()))


@pytest.mark.parametrize("name", some_of(sorted(FIXTURES), SAMPLE))
def test_every_fixture_comes_up_with_the_tables_of_the_engine(live, name):
    with live(FIXTURES[name].path, "ibnue-updn,no_fallback") as lab:
        assert lab.opensm.errors == []
        if lab.switch_lfts():  # OpenSM calls no engine if there is no switch
            have_the_tables_of_the_engine(lab)


@pytest.mark.parametrize("lmc", some_of(range(8), (3,)))
def test_every_lmc(live, nets, lmc):
    with live(nets("ring", "3", cas=2), "ibnue-updn,no_fallback", config={"lmc": lmc}) as lab:
        have_the_tables_of_the_engine(lab)


def test_faults_that_split_the_fabric_and_their_repair(live, nets):
    with live(nets("ring", "6", cas=1), "ibnue-updn,no_fallback") as lab:
        whole = lab.switch_lfts()
        first = lab.fabric()
        switches = [first.switch_name[row] for row in range(first.switches)]
        ends = first.link_device.tolist()
        for cable in [k for k, (a, b) in enumerate(ends) if b < first.switches][:2]:
            lab.unlink(switches[ends[cable][0]], int(first.link_port[cable, 0]))
            have_the_tables_of_the_engine(lab)
        for cable in [k for k, (a, b) in enumerate(ends) if b < first.switches][:2]:
            lab.relink(switches[ends[cable][0]], int(first.link_port[cable, 0]))
        have_the_tables_of_the_engine(lab)
        assert lab.switch_lfts() == whole


def test_the_unicast_cache_may_skip_the_engine(live, nets):
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback", config={"use_ucast_cache": True}) as lab:
        before, sweeps = lab.switch_lfts(), len(logged(lab, r"tables configured"))
        leaf = next(device.id for device in lab.ibsim.devices if device.kind == "Ca" and device.id != lab.ibsim.sm_host)
        lab.unlink(leaf, 1)
        lab.relink(leaf, 1)
        assert lab.switch_lfts() == before
        assert len(logged(lab, r"tables configured")) >= sweeps
        assert lab.opensm.resweep() is not None
