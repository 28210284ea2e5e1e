"""Compare the counters of the kernel with adaptive routing with those of its slow reference at every stop."""

import random
from itertools import zip_longest
from types import SimpleNamespace

import numpy as np
import pytest
from campaigns import some_of
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_adaptive import SlowAdaptive
from slow_simulate.mechanisms import KNOWN

from routing._kernels.simulate import CHANNEL_COUNTERS, VC_FIELDS
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.simulate.adaptive import Adaptive, AdaptiveSimulation, Scheme, adaptive_arrays
from routing.simulate.dimension_order import dimension_order
from routing.simulate.mechanisms.retransmission import Retransmission
from routing.simulate.network import Timing, build_network
from routing.simulate.options import Arbitration, Remedies, Remedy, Switching, option_arrays
from routing.simulate.traffic import Flow, Pattern, Process, Traffic, shift, traffic_arrays
from routing.topologies import generate

TOPOLOGIES = ("ring:3", "ring:5", "mesh:2x3", "torus:3x3", "torus:4x4", "kary-ntree:2,2", "hypercube:3")
TOTALS = ("injected", "delivered", "dropped", "hops", "escapes", "seized", "pings", "loops", "bubbles", "relayed",
    "diverted", "deflected")  # fmt: skip
LOST_COLUMNS = [
    CHANNEL_COUNTERS.index(name)
    for name in ("xmit_discards", "hoq_discards", "lifetime_discards", "link_down_discards")
]
FLOW_COLUMNS = (0, 1, 3, 4, 6, 7, 8)
VC_COLUMNS = [VC_FIELDS.index(name) for name in ("credits", "occupancy", "flying", "returning", "buffer")]
STOPS = (20, 21, 150, 500)


def both(network, traffic, adaptive, stops=STOPS, *, remedies=Remedies(), mechanisms=(), faults=()):  # noqa: B008
    """Run the kernel and its slow reference, and compare all that they report at every stop.

    After stop n, the link of channel faults[n] goes down, or comes up if it is down.
    """
    fast = AdaptiveSimulation(network, traffic, adaptive, remedies, mechanisms)
    by_arrival = adaptive.arbitration is Arbitration.ARRIVAL
    options = SimpleNamespace(**vars(adaptive_arrays(network, adaptive)), by_arrival=by_arrival, seed=adaptive.seed)
    limits = None if remedies == Remedies() else option_arrays(network, Switching(), remedies, traffic.mtu)
    slow_mechanisms = [(KNOWN[each.name], each.numbers(network, traffic)) for each in mechanisms]
    slow = SlowAdaptive(network.arrays, options, traffic_arrays(network, traffic), limits, slow_mechanisms)
    for stop, channel in zip_longest(stops, faults):
        fast.run(stop)
        slow.run(fast.now)  # all packets may be delivered before the stop
        handle = fast._handle
        rows = handle.channels()
        sent = np.column_stack([rows[:, :2], fast.saved(), rows[:, LOST_COLUMNS]])
        np.testing.assert_array_equal(sent, np.array(slow.channel_rows()))
        np.testing.assert_array_equal(
            handle.virtual_channels()[..., VC_COLUMNS].reshape(-1, 5), np.array(slow.vc_rows())
        )
        np.testing.assert_array_equal(handle.flows()[:, FLOW_COLUMNS], np.array(slow.flow_rows()))
        totals = fast.totals()
        assert {name: totals[name] for name in TOTALS} == slow.totals
        waiter, awaited, moves = handle.wait_graph()
        pairs, can_move = slow.wait_graph()
        assert set(zip(waiter.tolist(), awaited.tolist(), strict=True)) == pairs
        assert moves.tolist() == can_move
        for mechanism, twin in zip(mechanisms, slow.attached, strict=True):
            assert fast.results_of(mechanism)[0] == twin.resent
        if channel in slow.links_down:
            fast.restore_link(channel)
            slow.restore(channel)
        elif channel is not None:
            fast.fail_link(channel)
            slow.fail(channel)
    return fast


def any_network(rng, scheme, blocks):
    name, _, size = rng.choice(TOPOLOGIES).partition(":")
    fabric = generate(name, size.split(","), **({} if name == "kary-ntree" else {"cas": rng.choice([1, 1, 2])}))
    timing = Timing(
        1.0,
        rng.choice([1, 2, 9]),
        rng.choice([0, 1, 3]),
        rng.choice([1.0, 2.5, 0.7]),
        blocks * rng.choice([1, 1, 2, 4]),
    )
    if scheme is Scheme.GROUPS:
        routing, least = ENGINES["nue"].route(fabric, EngineOptions(vls=rng.choice([1, 2, 3]), threads=1)), 2
    elif name == "torus" and rng.random() < 0.7:
        routing, least = dimension_order(fabric), 3
    else:
        routing, least = ENGINES["updn"].route(fabric, EngineOptions(vls=1, threads=1, effort=0.05)), 2
    return build_network(fabric, routing, timing, vls=rng.randint(least if scheme is Scheme.ESCAPE else routing.vls, 4))


def any_traffic(rng, network, packet):
    fabric = network.fabric
    lids = tuple(int(lid) for lid in fabric.endport_lid)
    flows = [
        Flow(
            source, lids, Pattern.UNIFORM, rng.choice([Process.PERSISTENT, Process.PERSISTENT, Process.POISSON]),
            bytes=rng.randint(1, 3 * packet), interval=rng.uniform(1, 30), messages=rng.choice([None, None, 20]),
            window=rng.choice([None, None, 1, 3, 9]),
        )
        for source in [*range(fabric.endports), rng.randrange(fabric.endports)]
    ]  # fmt: skip
    return Traffic(tuple(flows), packet)


def any_behaviour(rng, scheme, network):
    return Adaptive(
        scheme, rng.choice([Arbitration.ROUND_ROBIN, Arbitration.ARRIVAL]), rng.randint(1, network.vls),
        stay=scheme is Scheme.ESCAPE and network.routing.provenance.engine != "dimension-order",
        detect=rng.choice([1, 4, 16]), repeat=rng.choice([1, 8, 40]), lasts=rng.choice([20, 60, 300]),
        hold=rng.choice([50, 500]), sample=rng.choice([1, 3]), step=rng.choice([1, 4]), seed=rng.randrange(1000),
    )  # fmt: skip


# In every run, each scheme has one of the next two tests.
@pytest.mark.parametrize("scheme", some_of(list(Scheme), list(Scheme)[::2]))
@examples(10)
@given(st.integers(0, 1 << 30))
def test_small_random_networks(scheme, seed):
    rng = random.Random(seed)
    packet = rng.choice([64, 100, 256])
    network = any_network(rng, scheme, -(-packet // 64))
    both(network, any_traffic(rng, network, packet), any_behaviour(rng, scheme, network))


def any_limits(rng, network):
    """Draw a head-of-queue lifetime for all ports, another one for some ports, and a switch lifetime."""
    arrays = network.arrays
    inside = [c for c in range(network.channels) if arrays.src[c] < arrays.switches]
    ports = {
        (int(arrays.src[c]), int(arrays.src_port[c])): Remedy(hoq=rng.choice([0, 7, 90]))
        for c in rng.sample(inside, rng.choice([0, 2]))
    }
    return Remedies(Remedy(hoq=rng.choice([0, 3, 40, 200])), ports=ports, lifetime=rng.choice([0, 0, 30, 200]))


@pytest.mark.parametrize("scheme", some_of(list(Scheme), list(Scheme)[1::2]))
@examples(10)
@given(st.integers(0, 1 << 30))
def test_packets_are_lost(scheme, seed):
    """Packets are too old, links go down and come up, and CAs send lost packets again."""
    rng = random.Random(seed)
    packet = rng.choice([64, 100, 256])
    network = any_network(rng, scheme, -(-packet // 64))
    links = [rng.randrange(network.channels) for _ in range(2)]
    both(
        network, any_traffic(rng, network, packet), any_behaviour(rng, scheme, network),
        [*range(40, 400, 40)], remedies=any_limits(rng, network),
        mechanisms=rng.choice([(), (Retransmission(rng.choice([1, 30])),)]),
        faults=[rng.choice([None, *links]) for _ in range(8)],
    )  # fmt: skip


@pytest.mark.parametrize("size", [40, 128])
def test_loops_are_found_and_resolved(size):
    """Unlike the cases above, this ring locks again and again, and the token or the bubbles release it each time.

    The packets of 40 bytes are shorter than a tick, which must not matter.
    """
    fabric = generate("ring", ["5"], cas=1)
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, threads=1, effort=0.05))
    network = build_network(fabric, routing, Timing(1.0, 1, 1, 1.0, -(-size // 64)), vls=1)
    traffic = shift(fabric, 2, bytes=size, mtu=size)
    found = {
        scheme: both(
            network, traffic, Adaptive(scheme, Arbitration.ARRIVAL, detect=20, repeat=20, lasts=60, hold=200),
            stops=(100, 1000),
        )
        for scheme in (Scheme.NONE, Scheme.TOKEN, Scheme.BUBBLE, Scheme.RELAY, Scheme.CONCURRENT, Scheme.DEFLECT)
    }  # fmt: skip
    assert found[Scheme.NONE].wait_graph().verdict == "deadlocked"
    assert found[Scheme.TOKEN].totals()["seized"] > 50
    assert found[Scheme.BUBBLE].totals()["bubbles"] >= 4
    assert found[Scheme.RELAY].totals()["relayed"] > 20
    assert found[Scheme.RELAY].totals()["delivered"] > 20
    assert found[Scheme.CONCURRENT].totals()["diverted"] > 20
    assert found[Scheme.CONCURRENT].totals()["delivered"] > 20
    assert found[Scheme.NONE].totals()["delivered"] == 0 < found[Scheme.BUBBLE].totals()["delivered"]


def test_two_switches_that_want_one_spare_buffer():
    """In this network, two switches find in one tick that a spare buffer of a common neighbour is free."""
    rng, scheme, packet = random.Random(110), Scheme.CONCURRENT, 100
    rng.choice([64, 100, 256])  # the packet size is the first draw of this seed
    network = any_network(rng, scheme, -(-packet // 64))
    both(network, any_traffic(rng, network, packet), any_behaviour(rng, scheme, network), stops=(3000,))
