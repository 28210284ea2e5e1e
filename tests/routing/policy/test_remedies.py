"""Check policies in the simulator: their effect on a deadlock, and that proposed lifetimes drop no packets in
congestion.
"""

import numpy as np
import pytest

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.faults import apply_faults, parse_fault
from routing.policy import apply_rules, hoq_code, loop_channels, port_facts, read_policy
from routing.policy.drain import drain_times
from routing.simulate.network import Timing, build_network
from routing.simulate.options import Breaker, Remedies, Remedy, lifetime_ticks
from routing.simulate.policy_remedies import remedies_of
from routing.simulate.run import simulate
from routing.simulate.state import StopReason
from routing.simulate.traffic import Flow, Traffic
from routing.topologies import generate

TICK = 1e-8
TIMING = Timing(tick=TICK, wire=1, switch=1, buffer=128)


@pytest.fixture(scope="module")
def ring():
    """Return a ring of five with two CAs at each switch, which send over two links in one direction for ever, and soon
    lock.
    """
    fabric = generate("ring", ["5"], cas=2)
    routing = ENGINES["minhop"].route(fabric, EngineOptions(vls=1))
    lids = fabric.endport_lid.tolist()
    traffic = Traffic(tuple(Flow(k, (lids[(k + 4) % 10],)) for k in range(10)))
    return fabric, routing, build_network(fabric, routing, TIMING), traffic


def simulated(ring, rules, milliseconds):
    fabric, routing, network, traffic = ring
    facts = port_facts(fabric, loop_channels(fabric, routing))
    remedies = remedies_of(apply_rules(read_policy(rules), fabric, facts), facts, fabric, tick=TICK)
    run = simulate(network, traffic, remedies=remedies)
    stop = run.run(round(milliseconds * 1e-3 / TICK))
    run.check()
    return run, stop


def delivered_since(run, milliseconds):
    """Return the packets of each flow that are delivered in the next milliseconds."""
    before = run.flows().packets.copy()
    run.run(run.now + round(milliseconds * 1e-3 / TICK))
    return run.flows().packets - before


def test_without_rules_the_ring_locks(ring, write):
    run, _ = simulated(ring, write("# none\n"), 20)
    assert run.wait_graph().verdict == "deadlocked"
    assert run.totals()["dropped"] == 0
    assert delivered_since(run, 20).tolist() == [0] * 10


def test_a_short_lifetime_on_loops_drops_and_goes_on(ring, write):
    rules = write("[[rule]]\nrole = 'loop'\nhoq_life = 5\n")
    run, _ = simulated(ring, rules, 20)
    assert run.totals()["dropped"] > 0
    # some flows may get nothing, if they drop packets at the same times as other flows
    assert delivered_since(run, 20).sum() > 0
    counters, arrays = run.counters(), ring[2].arrays
    dropped = np.flatnonzero(counters.port_sw_hoq_lifetime_limit_discards)
    assert (arrays.src[dropped] < 5).all() and (arrays.dst[dropped] < 5).all()


def test_deadlock_breakers_on_loops_go_on_without_a_drop(ring, write):
    times = "detect_time = '200us', check_period = '20us', release_period = '20us'"
    rules = write(f"[[rule]]\nrole = 'loop'\ndeadlock_breaker = {{ {times} }}\n")
    run, _ = simulated(ring, rules, 20)
    assert run.totals()["dropped"] == 0
    assert (delivered_since(run, 20) > 0).all()


def test_values_in_ticks(ring, write):
    fabric, routing, _, _ = ring
    rules = write(
        "[[rule]]\nswitch = 'sw1'\nports = 3\nhoq_life = 12\nvl_stall_count = 2\n"
        "deadlock_breaker = { detect_time = '1ms', check_period = '20us', release_period = '30us', extra_mtus = 3 }\n"
        "[[rule]]\nswitch = 'sw2'\nports = 1\nhoq_life = 'never'\nloop_breaker = true\n"
    )
    facts = port_facts(fabric, loop_channels(fabric, routing))
    found = remedies_of(apply_rules(read_policy(rules), fabric, facts), facts, fabric, tick=TICK, packet_bytes=4096)
    assert found.ports[1, 3] == Remedy(lifetime_ticks(12, TICK), 2, Breaker.DEADLOCK, 100_000, 2000, 3000, 12288)
    assert found.ports[2, 1] == Remedy(0, 7, Breaker.LOOP, 10_000, 1000, 1000, 4096)
    assert found.ports[0, 1].hoq == lifetime_ticks(16, TICK)
    assert found.ports[0, 3].hoq == lifetime_ticks(18, TICK)
    assert len(found.ports) == 20
    assert found.sample == 2500


@pytest.mark.parametrize(
    ("name", "args", "slow"),
    [
        ("mesh", ["5"], None),
        ("kary-ntree", ["2", "3"], None),
        ("mesh", ["3x3"], None),
        ("mesh", ["5"], "degrade sw0/3 1x"),
        ("mesh", ["5"], "degrade sw4/1 1x"),
        ("mesh", ["3x3"], "degrade sw0.1/1 1x"),
    ],
)
def test_no_congestion_outlasts_the_drain_time(name, args, slow):
    """All CAs send to one CA for ever.  With the drain time as lifetime no packet is dropped, with a much shorter
    lifetime some are.
    """
    fabric = generate(name, args)
    if slow is not None:
        fabric = apply_faults(fabric, [parse_fault(slow, fabric)])
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, effort=0.05))
    network = build_network(fabric, routing, TIMING)
    target = int(fabric.endport_lid[0])
    flows = tuple(Flow(row, (target,)) for row in range(1, fabric.endports))
    waits = drain_times(fabric, routing, packet_bytes=2048, burst_bytes=1 << 30)
    dropped = []
    for share in (1.0, 1 / 16):
        attempts = {
            (s, p): Remedy(hoq=lifetime_ticks(hoq_code(share * waits[s, p]), TICK), stall_count=0)
            for s, p in np.argwhere(waits > 0).tolist()
        }
        run = simulate(network, Traffic(flows), remedies=Remedies(ports=attempts))
        assert run.run(round(20e-3 / TICK)).reason is StopReason.TIME
        dropped.append(run.totals()["dropped"])
    assert dropped[0] == 0
    assert dropped[1] > 0
