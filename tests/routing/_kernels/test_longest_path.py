import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_balance import NO_CHANNEL
from strategies import fabrics

from routing._kernels.balance import balance
from routing._kernels.longest_path import longest_path
from routing._kernels.order import build_order
from routing.engines.destinations import Destinations, inverse_capacity


def slow_longest(channels, trees):
    """Follow every path to its end, and return the largest number of channels."""
    most = 0
    for tree in trees.tolist():
        for start in range(len(tree)):
            at, hops = start, 0
            while tree[at] != NO_CHANNEL:
                at, hops = int(channels.dst[channels.first[at] + tree[at]]), hops + 1
            most = max(most, hops)
    return most


@examples(60)
@given(fabrics(connected=False, min_switches=0, max_switches=12, max_cas=2), st.integers(0, 100))
def test_longest_path_is_that_of_the_twin(fabric, seed):
    key = np.random.default_rng(seed).random(fabric.switches)
    trees = balance(
        fabric.channels,
        inverse_capacity(fabric),
        fabric.terminals_at.astype(np.float64),
        Destinations.of(fabric).targets(),
        position=build_order(fabric.channels, key, pull=1.0).reshape(1, -1),
        passes=0,
        seed=seed,
        threads=1,
    ).next_channel
    assert longest_path(fabric.channels, trees) == slow_longest(fabric.channels, trees)
