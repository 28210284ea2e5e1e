"""Check events that are too distant for the timing wheel: they are handled like all others, also after link
failures.
"""

import numpy as np
import pytest

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.simulate import options
from routing.simulate.adaptive import Adaptive, Scheme, simulate_adaptive
from routing.simulate.mechanisms.retransmission import Retransmission
from routing.simulate.network import BLOCK, Timing, build_network
from routing.simulate.traffic import Process, uniform
from routing.topologies import from_words

AFTER = 1500
"""Ticks from the failure of the link to the end of the run."""


@pytest.mark.parametrize("at", [1757, 1786, 1815, 2076])
def test_a_small_timing_wheel_changes_nothing_when_a_link_fails(monkeypatch, at):
    """The loss of the packet that has the token schedules two distant events: the next token and the next attempt."""
    fabric = from_words("ring", ["6", "cas=2"])
    routing = ENGINES["updn"].route(fabric, EngineOptions(threads=1, vls=1, effort=0.01))
    network = build_network(fabric, routing, Timing(tick=1.0, wire=100, switch=1, block=1.0, buffer=4))
    traffic = uniform(network, 1.0, bytes=4 * BLOCK, mtu=4 * BLOCK, process=Process.BERNOULLI)
    adaptive, found = Adaptive(Scheme.TOKEN, detect=50, step=90), []
    channels = fabric.channels
    link = int(np.flatnonzero((channels.src == 3) & (channels.dst == 4))[0])
    for bits in (options.WHEEL_BITS, (6, 6)):
        monkeypatch.setattr(options, "WHEEL_BITS", bits)
        simulation = simulate_adaptive(network, traffic, adaptive, mechanisms=[Retransmission(300)])
        simulation.run(at)
        simulation.fail_link(link)
        simulation.run(at + AFTER)
        found.append(simulation.totals())
    assert found[0]["dropped"] > 0
    assert found[0] == found[1]
