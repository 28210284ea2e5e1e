"""Check that no packet stays at the head of a queue after the end of its lifetime in the switch."""

import numpy as np
import pytest

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.simulate.network import BLOCK, Timing, build_network
from routing.simulate.options import Inputs, Remedies, Remedy, Switching
from routing.simulate.run import simulate
from routing.simulate.traffic import Process, uniform
from routing.topologies import from_words

READY, HEADED = 5, 6
"""Columns of ``Simulation.packets``."""


@pytest.mark.parametrize("inputs", list(Inputs))
@pytest.mark.parametrize("hoq", [0, 25])
def test_heads_of_queues_are_dropped_at_the_end_of_their_lifetime(inputs, hoq):
    """A packet of a single FIFO becomes the head of a queue late, so its lifetime can end before that of others."""
    lifetime = 30
    fabric = from_words("torus", ["3x3", "cas=2"])
    routing = ENGINES["updn"].route(fabric, EngineOptions(threads=1, vls=1, effort=0.01))
    network = build_network(fabric, routing, Timing(tick=1.0, wire=1, switch=1, block=1.0, buffer=8))
    traffic = uniform(network, 1.0, bytes=BLOCK, mtu=BLOCK, process=Process.BERNOULLI)
    remedies = Remedies(Remedy(hoq=hoq), lifetime=lifetime)
    simulation = simulate(network, traffic, switching=Switching(inputs=inputs), remedies=remedies)
    for now in range(400):
        simulation.run(now)
        heads = simulation.packets()
        heads = heads[heads[:, HEADED] >= 0]
        # A packet that becomes the head after its lifetime is dropped in the next tick.
        assert (np.maximum(heads[:, READY] + lifetime, heads[:, HEADED] + 1) > now).all()
    assert simulation.totals()["dropped"] > 0
