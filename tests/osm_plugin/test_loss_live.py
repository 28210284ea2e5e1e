"""Compare the loss by a pulled cable in OpenSM's log with the loss computed from the tables in the switches."""

import pytest
from plugin_lab import logged

from routing.cli.lab_actions import last_sweep
from routing.cli.lab_report import inspect_lab
from routing.quality import all_to_all_share, bisection_share, channel_loads
from routing.reroute import CapacityKept, Published, capacity_kept

pytestmark = pytest.mark.lab

CONFIG = {"qos": True, "qos_max_vls": 8, "sweep_on_trap": True}


def share(state):
    return all_to_all_share(state.fabric, channel_loads(state.fabric, state.routing))


def bisection(state):
    return bisection_share(state.fabric, state.routing, bisections=32)


def test_the_log_says_what_the_tables_in_the_switches_lose(live, nets):
    with live(nets("torus", "3x3", cas=2), "ibnue-nue,no_fallback", config=CONFIG) as lab:
        fabric = lab.fabric()
        start = inspect_lab(lab, fabric, "start", last_sweep(lab), None)
        assert start.kept == CapacityKept()
        pulled = inspect_lab(lab, fabric, "unlink", lab.unlink_live("sw0.0", 3), start)
        assert pulled.fabric.links == start.fabric.links - 1
        wanted = r"re-routed, .* broken, all-to-all (\S+) % of the rate before.*, bisection (\S+) % of the rate before"
        (reported,) = logged(lab, wanted)
        kept = pulled.kept
        assert reported == (f"{100 * kept.all_to_all:.1f}", f"{100 * kept.bisection:.1f}")
        assert kept.all_to_all == pytest.approx(share(pulled) / share(start)) and kept.all_to_all < 1
        assert kept.bisection == pytest.approx(bisection(pulled) / bisection(start)) and kept.bisection < 1
        there = (Published(state.fabric, state.routing, state.proof) for state in (start, pulled))
        assert kept == capacity_kept(*there)


def test_the_log_says_what_a_lost_switch_costs_with_updn(live, nets):
    with live(nets("torus", "3x3", cas=2), "ibnue-updn,no_fallback", config=CONFIG) as lab:
        fabric = lab.fabric()
        start = inspect_lab(lab, fabric, "start", last_sweep(lab), None)
        lost = inspect_lab(lab, fabric, "unlink", lab.unlink_live("sw1.1"), start)
        assert lost.fabric.switches == start.fabric.switches - 1
        assert lost.proof.certified and lost.proof.complete
        assert not lab.ibdmchk(sls=lab.ca_sls()).credit_loop
        (reported,) = logged(lab, r"re-routed, .* broken, all-to-all (\S+) % of the rate before")
        assert reported == f"{100 * lost.kept.all_to_all:.1f}"
