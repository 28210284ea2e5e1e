"""Check the moves of entries for better balance in quiet times, in a running OpenSM."""

import pytest
from plugin_lab import logged
from waiting import until

from routing.cli.lab_report import installed_routing
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.quality import all_to_all_share, channel_loads

pytestmark = pytest.mark.lab

QOS = {"qos": True, "qos_max_vls": 8}
PULLED = (("sw0.0", 6), ("sw1.2", 6), ("sw2.1", 8), ("sw3.3", 8))
STEP = (
    r"rebalanced \(entries moved off the most loaded channels\), all-to-all (\S+) % of the rate before[^;]*; "
    r"(\d+) entries change"
)
STABILITY = "stability = '{}'\nrebalance = {}\nrebalance_pause = {}\n"


def in_the_switches(lab, *, engine="ibnue-nue", ibdmchk=False):
    """Return the fabric, and the all-to-all share of the tables in the switches, after ibnue, and if requested ibdmchk,
    have proven the tables.
    """
    fabric = lab.fabric()
    routing, _ = installed_routing(lab, fabric, engine)
    assert prove(fabric, routing).certified
    if ibdmchk:
        verdict = lab.ibdmchk(sls=lab.ca_sls())
        assert verdict.errors == () and not verdict.credit_loop
    return fabric, all_to_all_share(fabric, channel_loads(fabric, routing))


# The next test checks the same steps in every run, and does not count them.
@pytest.mark.slow
def test_five_sweeps_restore_the_balance(live, nets):
    net = nets("torus", "4x4", cas=4)
    with live(net, "ibnue-nue,no_fallback", toml=STABILITY.format("full", 0, 3600), config=QOS) as lab:
        for cable in PULLED:
            lab.unlink(*cable)
        fabric, share = in_the_switches(lab)
        fresh = ENGINES["nue"].route(fabric, EngineOptions(vls=8))
        best = all_to_all_share(fabric, channel_loads(fabric, fresh))
        assert share < 0.8 * best
        assert not logged(lab, STEP)
        live.configure(STABILITY.format("balanced", 40, 3600))
        for step in range(5):
            assert lab.opensm.resweep().engine == "ibnue-nue"
            before, (_, share) = share, in_the_switches(lab)
            steps = logged(lab, STEP)
            assert len(steps) <= step + 1
            if len(steps) == step + 1:
                assert float(steps[-1][0]) == pytest.approx(100 * share / before, abs=0.06)
                assert int(steps[-1][1]) <= 40
            else:
                assert share == pytest.approx(before)
        assert in_the_switches(lab, ibdmchk=True)[1] > 0.9 * best


def test_the_plugin_asks_for_sweeps_until_nothing_is_gained(live, nets):
    net = nets("torus", "4x4", cas=4)
    with live(net, "ibnue-nue,no_fallback", toml=STABILITY.format("full", 0, 3600), config=QOS) as lab:
        for cable in PULLED:
            lab.unlink(*cable)
        _, share = in_the_switches(lab)
        live.configure(STABILITY.format("balanced", 20, 0.1))
        lab.opensm.resweep()
        # The test does not request another sweep.
        until(lambda: len(logged(lab, STEP)) >= 2)
        until(lambda: logged(lab, "rebalanced|tables unchanged")[-1] != "rebalanced")
        assert in_the_switches(lab, ibdmchk=True)[1] > 1.2 * share


def test_lfts_from_scratch_are_written_in_rounds_that_remove_entries(live, nets):
    """After the loss of this link, no smaller change gains.  Tables from scratch raise the all-to-all rate by 20 %."""
    with live(nets("mesh", "3x3", cas=1), "ibnue-updn,no_fallback", toml=STABILITY.format("balanced", 256, 0.1)) as lab:
        lab.unlink("sw1.1", 3)
        until(lambda: logged(lab, r"rebalanced \(the LFTs were computed from scratch\), all-to-all 120.0 %"))
        until(lambda: logged(lab, r"[1-9]\d* of them removed until their round"))
        until(lambda: logged(lab, "rebalanced|tables unchanged")[-1] != "rebalanced")
        # The dump of the sweep with the step lacks the removed entries.  So ibdmchk reads the dump of another sweep.
        lab.opensm.resweep()
        fabric, share = in_the_switches(lab, engine="ibnue-updn", ibdmchk=True)
        fresh = ENGINES["updn"].route(fabric, EngineOptions())
        assert share >= all_to_all_share(fabric, channel_loads(fabric, fresh))
