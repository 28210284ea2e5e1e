"""Check orders of the switches in which no turn in use leads down and then up."""

import itertools

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics

from routing._kernels.up_down import is_increasing, up_down
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.topologies import generate


def turns(channels, slot, dependencies):
    """Yield (channel, next channel) of the turns in use."""
    for c, s in enumerate(channels.dst.tolist()):
        for k, n in enumerate(range(channels.first[s], channels.first[s + 1])):
            if dependencies[slot[c] + k]:
                yield c, n


def leads_down_and_up(channels, position, c, n):
    s = channels.dst[c]
    return position[s] > position[channels.src[c]] and position[s] > position[channels.dst[n]]


def slow_up_down(fabric, slot, dependencies):
    """Remove switches that are not in the middle of a turn in use, and return whether all switches are removed."""
    channels, left = fabric.channels, set(range(fabric.switches))
    used = [
        (int(channels.src[c]), int(channels.dst[c]), int(channels.dst[n]))
        for c, n in turns(channels, slot, dependencies)
    ]
    while True:
        busy = {s for a, s, b in used if a in left and b in left}
        if not left - busy:
            return not left
        left &= busy


@examples(80)
@given(fabrics(connected=False, min_switches=0, max_switches=9), st.integers(0, 1000), st.floats(0.0, 0.4))
def test_an_order_is_found_wherever_there_is_one(fabric, seed, share):
    slot, count = fabric.channels.edges.first, fabric.channels.edges.count
    dependencies = (np.random.default_rng(seed).random(count) < share).astype(np.uint16)
    position = up_down(fabric.channels, dependencies)
    assert (position is not None) == slow_up_down(fabric, slot, dependencies)
    if position is not None:
        assert sorted(position.tolist()) == list(range(fabric.switches))
        assert not any(
            leads_down_and_up(fabric.channels, position, c, n) for c, n in turns(fabric.channels, slot, dependencies)
        )


@examples(30)
@given(fabrics(connected=False, min_switches=1, max_switches=9), st.integers(0, 1000))
def test_turns_increase_that_lead_up_then_down(fabric, seed):
    channels = fabric.channels
    position = np.random.default_rng(seed).permutation(fabric.switches).astype(np.int32)
    index = is_increasing(channels, position)
    assert sorted(index.tolist()) == list(range(len(channels)))
    for c, n in itertools.product(range(len(channels)), repeat=2):
        if channels.dst[c] == channels.src[n] and channels.reverse[c] != n:
            assert leads_down_and_up(channels, position, c, n) or index[c] < index[n]


def test_up_down_tables_have_one():
    fabric = generate("kary-ntree", ["4", "3"])
    proof = prove(fabric, ENGINES["updn"].route(fabric, EngineOptions(threads=1, effort=0.1)))
    assert up_down(fabric.channels, proof.cdg.masks) is not None
