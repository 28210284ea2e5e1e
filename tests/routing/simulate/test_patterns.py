"""Check traffic patterns at a load: the partners, the offered rates, and refused values."""

import pytest
from sim_cases import PACKET, cycles

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError
from routing.simulate.network import build_network
from routing.simulate.patterns import PATTERNS, PERMUTATIONS, offered_rate, pattern_traffic
from routing.simulate.run import simulate
from routing.simulate.traffic import Process
from routing.topologies import generate


def network_of(name, size, cas=1):
    fabric = generate(name, [size], cas=cas)
    return build_network(
        fabric, ENGINES["updn"].route(fabric, EngineOptions(threads=1, effort=0.05)), cycles(8 * PACKET)
    )


@pytest.mark.parametrize("name", PERMUTATIONS)
def test_partners_are_a_permutation(name):
    partner = PERMUTATIONS[name](16, 3)
    assert sorted(partner) == list(range(16))


def test_partners_are_those_of_the_definitions():
    assert PERMUTATIONS["neighbour"](4, 0) == [1, 2, 3, 0]
    assert PERMUTATIONS["tornado"](8, 0) == [3, 4, 5, 6, 7, 0, 1, 2]  # one less than half of the ring
    assert PERMUTATIONS["transpose"](9, 0) == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    assert PERMUTATIONS["bit-complement"](4, 0) == [3, 2, 1, 0]
    assert PERMUTATIONS["bit-reverse"](8, 0) == [0, 4, 2, 6, 1, 5, 3, 7]
    random = PERMUTATIONS["permutation"](50, 1)
    assert all(n != to for n, to in enumerate(random))
    assert random == PERMUTATIONS["permutation"](50, 1) != PERMUTATIONS["permutation"](50, 2)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("process", [Process.POISSON, Process.BERNOULLI, Process.BURSTY])
def test_a_network_that_keeps_up_delivers_what_is_offered(pattern, process):
    # A block takes a tick on each link, so a load of 0.2 is 12.8 bytes per tick and sender.  Incast has this load on
    # one link.
    network = network_of("mesh", "4x4")
    traffic = pattern_traffic(network, pattern, 0.2, process=process, seed=2)
    links = 1 if pattern == "incast" else len(traffic.flows)
    assert offered_rate(traffic) == pytest.approx(0.2 * 64 * links, rel=1e-3)
    simulation = simulate(network, traffic)
    ticks = 2_000_000 if links == 1 else 200_000
    simulation.run(ticks)
    assert simulation.totals()["delivered_bytes"] / ticks == pytest.approx(0.2 * 64 * links, rel=0.1)


def test_a_ca_that_is_its_own_partner_sends_nothing():
    assert len(pattern_traffic(network_of("mesh", "4x4"), "transpose", 0.5).flows) == 12


@pytest.mark.parametrize(
    ("size", "how", "expected"),
    [
        ("4x4", {"pattern": "storm"}, "'storm' is not a pattern .*[(]use uniform, permutation,"),
        ("3x2", {"pattern": "transpose"}, "6 CAs form no square"),
        ("3x2", {"pattern": "bit-reverse"}, "6 is not a power of two"),
        ("4x4", {"pattern": "uniform", "load": 0}, "0 is not a load"),
        ("4x4", {"pattern": "uniform", "load": 1.5}, "1.5 is not a load"),
        ("4x4", {"pattern": "uniform", "process": Process.PERSISTENT}, "has no load"),
        ("4x4", {"pattern": "uniform", "process": Process.BURSTY, "burst": 0}, "0 messages are not a valid burst"),
        ("1x1", {"pattern": "uniform"}, "a pattern needs two CAs"),
    ],
)
def test_patterns_that_cannot_be_are_refused(size, how, expected):
    how = {"load": 0.5, **how}
    with pytest.raises(OptionError, match=expected):
        pattern_traffic(network_of("mesh", size), how.pop("pattern"), how.pop("load"), **how)
