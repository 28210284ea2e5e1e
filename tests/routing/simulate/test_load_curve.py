"""Check the warm-up, confidence intervals, and a load curve that queueing theory gives."""

import numpy as np
import pytest
from sim_cases import PACKET, cycles, star

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError
from routing.simulate.adaptive import Scheme
from routing.simulate.load_curve import mean_and_error, measure, simulation_of, truncation_point
from routing.simulate.network import build_network
from routing.simulate.patterns import pattern_traffic


def test_the_warm_up_is_what_differs_from_the_rest():
    values = np.array([9.0, 7.0, 5.0] + [1.0, 1.1] * 10)
    assert truncation_point(values) == 3
    assert truncation_point(np.ones(20)) == 0
    assert truncation_point(np.arange(20.0)) == 10  # not stationary: the largest allowed result


def test_confidence_intervals_are_those_of_student():
    # Five values with mean 3 and standard deviation sqrt(2.5); the quantile for 4 degrees of freedom is 2.776.
    assert mean_and_error([1, 2, 3, 4, 5]) == (3, pytest.approx(2.776 * (2.5 / 5) ** 0.5))
    assert mean_and_error([7.0]) == (7.0, None)
    with pytest.raises(OptionError, match="no value"):
        mean_and_error([])


def incast(load, buffer=8):
    fabric, _, _ = star(16)
    network = build_network(fabric, ENGINES["minhop"].route(fabric, EngineOptions(threads=1)), cycles(buffer * PACKET))
    return network, pattern_traffic(network, "incast", load, seed=1)


def test_latency_of_many_senders_is_that_of_a_queue_with_random_arrivals():
    # M/D/1: a packet waits for load / (2 (1 - load)) packet times on average.  Its latency adds its length and two
    # wires.
    network, traffic = incast(0.6)
    found = measure(simulation_of(network, traffic, None), traffic, 0.6)
    assert found.settled
    assert not found.deadlock
    assert found.accepted == pytest.approx(0.6, rel=0.05)
    assert found.latency == pytest.approx(PACKET * 0.6 / (2 * 0.4) + PACKET + 2, rel=0.1)
    assert found.packet_p50 < found.latency < found.packet_p99


def test_a_link_that_cannot_keep_up_is_saturated():
    network, _ = incast(0.5)
    alone = pattern_traffic(network, "neighbour", 0.8)
    assert measure(simulation_of(network, alone, None), alone, 0.8).settled
    hot = pattern_traffic(network, "hotspot", 0.9)
    found = measure(simulation_of(network, hot, None), hot, 0.9)  # the load at the first CA is 0.2 x 15 x 0.9 links
    assert not found.settled
    assert found.accepted < 0.5


@pytest.mark.parametrize("scheme", [None, *Scheme])
def test_every_scheme_has_a_curve(scheme):
    fabric, _, _ = star(4)
    routing = ENGINES["minhop"].route(fabric, EngineOptions(vls=1, threads=1))
    network = build_network(fabric, routing, cycles(8 * PACKET), vls=3)
    traffic = pattern_traffic(network, "uniform", 0.3)
    found = measure(simulation_of(network, traffic, scheme), traffic, 0.3)
    assert found.settled
    assert found.accepted == pytest.approx(0.3, rel=0.15)
