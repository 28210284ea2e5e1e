from collections import Counter

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, random_fabric

from routing._kernels.order import build_order


def build_order_slowly(channels, key, pull):
    """Return the position of each switch.  For each position, all remaining switches are examined."""
    links = Counter(zip(channels.src.tolist(), channels.dst.tolist(), strict=True))
    sequence, left = [], set(range(len(key)))
    while left:
        links_to = {u: sum(links[v, u] for v in sequence) for u in left}
        near = [u for u in left if links_to[u]]
        # If no remaining switch has a neighbour in the sequence, the next connected part begins.
        u = min(near or left, key=lambda u: (key[u] - pull * links_to[u], u))
        sequence.append(u)
        left.remove(u)
    return [sequence.index(u) for u in range(len(key))]


KEYS = st.one_of(st.floats(-4, 4), st.integers(0, 3).map(float))  # the second strategy gives equal keys


@examples(150)
@given(fabrics(min_switches=0, max_switches=20, connected=False), st.sampled_from([0.0, 0.3, 1.0]), st.data())
def test_kernel_does_what_the_twin_does(fabric, pull, data):
    key = data.draw(st.lists(KEYS, min_size=fabric.switches, max_size=fabric.switches), label="keys")
    position = build_order(fabric.channels, np.array(key, np.float64), pull=pull)
    assert position.tolist() == build_order_slowly(fabric.channels, key, pull)


@examples(60)
@given(fabrics(max_switches=40, connected=False), st.sampled_from([0.0, 1.0]), st.integers(0, 1000))
def test_every_switch_but_the_first_of_its_part_has_an_earlier_neighbour(fabric, pull, seed):
    key = np.random.default_rng(seed).random(fabric.switches)
    position = build_order(fabric.channels, key, pull=pull)
    assert sorted(position.tolist()) == list(range(fabric.switches))
    earlier = {
        int(u) for u, v in zip(fabric.channels.src, fabric.channels.dst, strict=True) if position[v] < position[u]
    }
    firsts = set(range(fabric.switches)) - earlier
    assert len(firsts) == len(np.unique(fabric.component))
    for u in firsts:
        part = np.flatnonzero(fabric.component == fabric.component[u])
        assert position[u] == position[part].min()
        assert key[u] == key[part].min()


def test_a_pull_takes_the_switch_with_most_links_to_those_before():
    fabric = random_fabric(2, switches=30, degree=6, cas=0)
    links = Counter(zip(fabric.channels.src.tolist(), fabric.channels.dst.tolist(), strict=True))
    position = build_order(fabric.channels, np.random.default_rng(1).random(30), pull=1.0)
    sequence = np.argsort(position).tolist()
    for index in range(1, 30):
        links_to = {u: sum(links[v, u] for v in sequence[:index]) for u in sequence[index:]}
        assert links_to[sequence[index]] == max(links_to.values())
