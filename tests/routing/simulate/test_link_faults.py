"""Check links that go down and come up while packets are in flight."""

import numpy as np
import pytest
from sim_cases import PACKET, cycles, fig4_simulation, flows_along
from sim_files import TWO_SWITCHES

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import InputError, OptionError
from routing.publish import verify
from routing.reroute import Published, reroute
from routing.simulate.case_runners import run_case
from routing.simulate.changes import plan_of
from routing.simulate.handmade import literal_fabric, tables_from_paths
from routing.simulate.network import build_network
from routing.simulate.run import simulate
from routing.simulate.scenario import read_scenario
from routing.simulate.state import Event, StopReason
from routing.simulate.traffic import all_to_all, base_lids
from routing.topologies import generate


def line(wire=1, messages=20, **how):
    """Return a simulation of two switches with a CA each, and the channel between the switches, whose cable is slow."""
    fabric = literal_fabric("line", ["x", "y"], [("x", "y")], {"a": "x", "b": "y"})
    path = ("a", "x", "y", "b")
    network = build_network(fabric, tables_from_paths(fabric, [path]), cycles(4 * PACKET, wire=wire))
    return simulate(network, flows_along(fabric, [path], messages=messages, **how)), network.channel_between("x", "y")


def test_packets_on_a_failed_link_and_packets_that_wait_for_it_are_lost():
    simulation, channel = line(wire=3 * PACKET)
    simulation.run(8 * PACKET)
    flying = int(simulation.virtual_channels().flying[channel].sum()) // PACKET
    waiting = int(simulation.virtual_channels().waiting[channel].sum())
    assert flying > 0
    assert simulation.fail_link(channel) == flying + waiting
    simulation.check()
    counters = simulation.counters()
    assert counters.link_down_discards[channel] == flying + waiting == simulation.totals()["dropped"]
    assert counters.port_xmit_discards[channel] == waiting
    assert not simulation.virtual_channels().flying[channel].any()
    stop = simulation.run(200 * PACKET)
    assert stop.reason is StopReason.FINISHED
    flow = simulation.flows()
    assert flow.packets[0] + flow.dropped[0] == flow.sent_packets[0] == 20
    assert simulation.counters().link_down_discards[channel] == flow.dropped[0]  # packets that came later are lost, too
    assert simulation.counters().port_rcv_switch_relay_errors.sum() == 0


def test_lost_packets_leave_the_window():
    """All packets in flight are lost.  A window that counted them for ever would never open again."""
    simulation, channel = line(wire=3 * PACKET, window=2)
    simulation.run(5 * PACKET)
    assert simulation.fail_link(channel) == 2
    simulation.restore_link(channel)
    assert simulation.run(200 * PACKET).reason is StopReason.FINISHED
    assert simulation.flows().packets[0] == 18


def test_a_link_that_comes_up_again_has_all_its_credits():
    simulation, channel = line()
    simulation.run(5 * PACKET)
    simulation.fail_link(channel)
    simulation.run(9 * PACKET)
    simulation.restore_link(channel)
    vcs = simulation.virtual_channels()
    assert (vcs.credits[channel] == vcs.buffer[channel]).all()
    assert simulation.run(100 * PACKET).reason is StopReason.FINISHED
    flow = simulation.flows()
    assert flow.dropped[0] > 0
    assert flow.packets[0] > 0
    assert flow.packets[0] + flow.dropped[0] == 20
    assert simulation.log()[:, 1].tolist() == [Event.FAILED, Event.RESTORED]


def test_a_ca_behind_a_lost_link_waits():
    simulation, _ = line()
    channel = simulation.network.endport_channel(0)
    simulation.run(5 * PACKET)
    simulation.fail_link(channel)
    assert simulation.run(100 * PACKET, stop_at_standstill=True).reason is StopReason.STANDSTILL
    sent = simulation.flows().sent_packets[0]
    simulation.restore_link(channel)
    assert simulation.run(200 * PACKET).reason is StopReason.FINISHED
    assert sent < simulation.flows().sent_packets[0] == 20


def test_a_fault_then_tables_computed_around_it_then_nothing_is_lost_any_more():
    fabric = generate("torus", ["4x4"], cas=1)
    engine, options = ENGINES["updn"], EngineOptions(threads=1)
    routing = engine.route(fabric, options)
    network = build_network(fabric, routing, cycles(4 * PACKET))
    simulation = simulate(network, all_to_all(fabric, rounds=8))
    link = int(np.flatnonzero((fabric.link_device < fabric.switches).all(axis=1))[0])
    channel = network.channel_between(*(fabric.device_name(int(end)) for end in fabric.link_device[link]))
    simulation.run(20 * PACKET)
    simulation.fail_link(channel)
    simulation.run(40 * PACKET)
    before = Published(fabric, routing, verify(fabric, routing, engine, threads=1).proof)
    simulation.set_lft(reroute(engine, options, before, fabric.without_links([link])).routing.lft)
    simulation.run(41 * PACKET)
    lost = simulation.totals()["dropped"]
    assert lost > 0
    assert simulation.run_to_end(limit=1_000_000).reason is StopReason.FINISHED
    totals = simulation.totals()
    assert totals["dropped"] == lost
    assert totals["injected"] == totals["delivered"] + totals["dropped"] == 16 * 15 * 8


def test_a_lost_link_of_a_locked_ring_ends_the_deadlock():
    simulation = fig4_simulation(True, 8)
    simulation.run(200 * PACKET)
    assert simulation.wait_graph().deadlocks
    simulation.fail_link(simulation.network.channel_between("11", "23"))
    simulation.run(400 * PACKET)
    assert not simulation.wait_graph().deadlocks
    assert simulation.totals()["last_move"] > 390 * PACKET


def test_links_that_cannot_fail_or_come_up_are_refused():
    simulation, channel = line()
    with pytest.raises(OptionError, match="no channel 99"):
        simulation.fail_link(99)
    with pytest.raises(OptionError, match="is not down"):
        simulation.restore_link(channel)
    simulation.fail_link(channel)
    with pytest.raises(OptionError, match="down already"):
        simulation.fail_link(int(simulation.network.arrays.reverse[channel]))


SCENARIO = (
    TWO_SWITCHES
    + """\
[[case]]
name = "c"
fault = [{ cable = ["a", "b"], at = 10, until = 20 }]
expect = { outcome = "progress", at_least_link_down_discards = 5 }
"""
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('["a", "b"], at', '["a", "z"], at', "there is no device 'z'"),
        ("until = 20", "until = 5", "is down from"),
        ("until = 20", "reroute = [15]", "needs an engine"),
        ("until = 20", "til = 20", "there is no 'til'"),
        ("expect = {", 'change = { how = "at once", at = 1 }\nexpect = {', "changes tables to equal tables"),
    ],
)
def test_faults_of_a_scenario(tmp_path, old, new, expected):
    path = tmp_path / "mine.toml"
    path.write_text(SCENARIO)
    scenario = read_scenario(path)
    assert run_case(scenario, scenario.cases[0]).wrong == ()
    assert old in SCENARIO
    path.write_text(SCENARIO.replace(old, new))
    with pytest.raises(InputError, match=expected):
        run_case(read_scenario(path), read_scenario(path).cases[0])


def test_a_link_goes_down_once_where_figures_begin(tmp_path):
    (tmp_path / "mine.toml").write_text(SCENARIO.replace('name = "c"', 'name = "c"\nfrom = 10'))
    scenario = read_scenario(tmp_path / "mine.toml")
    assert run_case(scenario, scenario.cases[0]).right


def test_tables_around_a_fault_may_have_sls_by_source(tmp_path):
    """The earlier tables have SLs by destination alone.  The simulation then uses the number of VLs that the new tables
    state.
    """
    (tmp_path / "mine.toml").write_text(
        """
title = "t"
fabric = { generator = "torus:3x3,cas=1" }
routing = { engine = "segment", vls = 2 }
traffic = { pattern = "all-to-all" }
[[case]]
name = "c"
fault = [{ cable = ["sw2.0", "sw2.2"], at = 0, reroute = [0] }]
expect = { finished = true, dropped = 0 }
"""
    )
    scenario = read_scenario(tmp_path / "mine.toml")
    assert run_case(scenario, scenario.cases[0]).right
    plan = plan_of(scenario, scenario.cases[0])
    fabric, engine, options = plan.network.fabric, ENGINES["segment"], EngineOptions(vls=2, threads=1)
    before = engine.route(fabric, options)
    lost = {fabric.switch_name.index("sw2.0"), fabric.switch_name.index("sw2.2")}
    link = [set(ends) for ends in fabric.link_device.tolist()].index(lost)
    published = Published(fabric, before, verify(fabric, before, engine, threads=1).proof)
    after = reroute(engine, options, published, fabric.without_links([link])).routing
    assert (before.sl.ndim, after.sl.ndim) == (1, 2)
    network = build_network(fabric, after, vls=2)
    lids = base_lids(fabric).tolist()
    pairs = ((row, lid) for row in range(fabric.endports) for lid in lids if lid != fabric.endport_lid[row])
    wanted = {vc for row, lid in pairs for vc in network.vcs_of_path(row, lid)}
    simulation = simulate(plan.network, plan.traffic)
    for action in plan.actions:
        action.do(simulation)
    simulation.run_to_end(limit=1_000_000)
    sent = simulation.virtual_channels().fctbs > 0
    inside = (network.arrays.src < fabric.switches) & (network.arrays.dst < fabric.switches)
    assert set(np.flatnonzero(sent & inside[:, None])) == wanted
