"""Check recovery paths: their spare buffers are ordered, and the paths are the shortest ones that the order allows."""

from collections import deque

import numpy as np
import pytest
from strategies import random_fabric

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.simulate.network import build_network
from routing.simulate.recovery_paths import recovery_channels, switch_ranks


def network_of(seed):
    fabric = random_fabric(seed, 4 + seed % 9)
    return build_network(fabric, ENGINES["updn"].route(fabric, EngineOptions(vls=1, threads=1, effort=0.05)))


def spare_buffers(network, ranks, channels, start, end):
    """Follow a recovery path, and list the spare buffers (number, switch) through which it leads."""
    found, buffer, switch = [], 0, start
    while switch != end:
        channel = channels[buffer, switch, end]
        switch_after = int(network.arrays.dst[channel])
        assert int(network.arrays.src[channel]) == switch
        buffer, switch = int(ranks[switch_after] > ranks[switch]), switch_after
        found.append((buffer, switch))
    return found


def least_hops(network, ranks, start, end):
    """Search breadth first for the fewest hops to earlier switches, and then to later ones."""
    arrays = network.arrays
    queue, seen = deque([(0, start, 0)]), set()
    while queue:
        buffer, switch, hops = queue.popleft()
        if switch == end:
            return hops
        for c in np.flatnonzero((arrays.src == switch) & (arrays.dst < arrays.switches)):
            later = int(ranks[arrays.dst[c]] > ranks[switch])
            state = (later, int(arrays.dst[c]))
            if later >= buffer and state not in seen:
                seen.add(state)
                queue.append((*state, hops + 1))
    raise AssertionError("no path")


@pytest.mark.parametrize("seed", range(20))
def test_paths_are_shortest_and_their_buffers_have_an_order(seed):
    network = network_of(seed)
    ranks, channels = switch_ranks(network), recovery_channels(network)
    count = network.arrays.switches
    assert sorted(ranks.tolist()) == list(range(count))
    for start in range(count):
        for end in range(count):
            path = spare_buffers(network, ranks, channels, start, end)
            place = [(buffer, ranks[switch] if buffer else -ranks[switch]) for buffer, switch in path]
            assert place == sorted(set(place))
            assert len(path) == least_hops(network, ranks, start, end)
