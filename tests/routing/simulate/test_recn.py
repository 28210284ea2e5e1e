"""Compare RECN-like set-aside queues with their slow reference, and check their effect on packets to other
destinations.
"""

import random
from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sim_cases import incast
from sim_random import any_behaviour, any_flow, any_network
from slow_compare import assert_equal, slow_twin

from routing.errors import OptionError
from routing.simulate.mechanisms.recn import Recn
from routing.simulate.mechanisms.replies import Replies
from routing.simulate.mechanisms.retransmission import Retransmission
from routing.simulate.network import build_network, data_vls
from routing.simulate.options import Remedies, Remedy, Switching
from routing.simulate.run import Simulation, simulate
from routing.simulate.traffic import Process, Traffic


def any_recn(rng):
    return Recn(
        set_aside=rng.randint(1, 3), threshold=rng.randint(1, 3), spread=rng.randint(1, 3), notice=rng.choice([1, 7]),
        release=rng.choice([3, 20]),
    )  # fmt: skip


def with_set_aside_vls(network, recn):
    vls = data_vls(network.routing) + recn.set_aside
    return build_network(network.fabric, network.routing, network.timing, vls=vls)


@examples(15)
@given(st.integers(0, 1 << 30))
def test_any_settings_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    blocks, recn = rng.choice([1, 2, 4]), any_recn(rng)
    network = with_set_aside_vls(any_network(rng, blocks), recn)
    traffic = Traffic(tuple(any_flow(rng, network.fabric) for _ in range(rng.randint(3, 8))), 64 * blocks)
    switching, remedies = any_behaviour(rng, blocks)
    behaviour = replace(switching, vlarb=switching.vlarb if network.vls <= 4 else None), remedies
    fast = Simulation(network, traffic, *behaviour, [recn])
    slow = slow_twin(network, traffic, *behaviour, [recn])
    for stop in (60, 150, 250):
        fast.run(stop)
        slow.run(fast.now)
        assert_equal(fast, slow)
        twin = slow.attached[0]
        assert fast.results_of(recn).tolist() == [twin.assigned, twin.refused, len(twin.root), twin.most, twin.packets]


@examples(8)
@given(st.integers(0, 1 << 30))
def test_replies_on_set_aside_vls_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    blocks, recn = rng.choice([1, 2]), any_recn(rng)
    network = any_network(rng, blocks)
    used = max(data_vls(network.routing), network.routing.vls)
    network = build_network(network.fabric, network.routing, network.timing, vls=used + recn.set_aside)
    replies = Replies(
        sl=rng.randrange(network.routing.vls), input=rng.randint(1, 3), output=rng.randint(1, 3), bytes=64 * blocks
    )
    flows = [any_flow(rng, network.fabric) for _ in range(rng.randint(3, 8))]
    flows = [flow for flow in flows if flow.process is not Process.TRACE and flow.bytes <= 64 * blocks]
    traffic = replies.extended_traffic(network, Traffic(tuple(flows), 64 * blocks))
    if len(traffic.flows) == len(flows):
        return
    mechanisms = [replies, recn, Retransmission(20)][: rng.randint(2, 3)]
    remedies = Remedies(Remedy(hoq=rng.choice([0, 4]), stall_count=0))
    switching = Switching(seed=seed)
    fast = Simulation(network, traffic, switching, remedies, mechanisms)
    slow = slow_twin(network, traffic, switching, remedies, mechanisms)
    for stop in (60, 150, 250):
        fast.run(stop)
        slow.run(fast.now)
        assert_equal(fast, slow)
        assert fast.results_of(recn)[4] == slow.attached[1].packets


def congested(senders, recn, **how):
    """Return a simulation of CAs that all send to one CA over one switch."""
    network, traffic = incast(senders, **how)
    return simulate(with_set_aside_vls(network, recn), traffic, mechanisms=[recn])


def test_one_sender_uses_no_set_aside_vl():
    recn = Recn(threshold=2)
    simulation = congested(1, recn)
    simulation.run(4000)
    assert simulation.results_of(recn).tolist() == [0, 0, 0, 0, 0]


def test_each_sender_of_one_tree_uses_one_set_aside_vl():
    recn = Recn()
    simulation = congested(4, recn)
    simulation.run(20_000)
    assigned, refused, in_use, most, packets = simulation.results_of(recn).tolist()
    assert (assigned, refused, in_use, most) == (4, 0, 4, 4)
    sent = simulation.totals()["injected"]
    assert 0.9 * sent < packets <= sent + 4


def test_set_aside_vls_are_released_when_the_tree_is_gone():
    recn = Recn(release=50)
    simulation = congested(4, recn, messages=100)
    simulation.run(1000)
    assert simulation.results_of(recn)[2] == 4
    simulation.run(100_000)
    assert simulation.totals()["delivered"] == 400
    simulation.run(200_000)
    assert simulation.results_of(recn)[2] == 0


@pytest.mark.parametrize("key", ["set_aside", "threshold", "spread", "notice", "release"])
def test_settings_out_of_range_are_refused(key):
    network, traffic = incast(1)
    with pytest.raises(OptionError, match=key):
        simulate(with_set_aside_vls(network, Recn()), traffic, mechanisms=[replace(Recn(), **{key: 0})])


def test_vls_of_sls_are_not_set_aside():
    network, traffic = incast(1)
    with pytest.raises(OptionError, match="cannot be set aside"):
        simulate(network, traffic, mechanisms=[Recn()])
