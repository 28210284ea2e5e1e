import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import Sketch, fabrics, random_fabric

from routing.fabric import NodeKind
from routing.partition import regions
from routing.topologies import generate


def cut(fabric, part):
    """Return the number of cables between different regions."""
    return int((part[fabric.channels.src] != part[fabric.channels.dst]).sum()) // 2


@examples(80)
@given(fabrics(min_switches=0, max_switches=30, connected=False), st.integers(1, 15), st.integers(0, 2**31 - 1))
def test_every_switch_is_in_one_of_the_regions(fabric, count, seed):
    part = regions(fabric, count, seed=seed)
    assert part.dtype == np.int32 and part.shape == (fabric.switches,)
    assert part.min(initial=0) >= 0 and part.max(initial=0) < count
    assert np.array_equal(part, regions(fabric, count, seed=seed))


def test_one_region_and_more_regions_than_switches():
    fabric = random_fabric(1, switches=5)
    assert regions(fabric, 1, seed=1).tolist() == [0] * 5
    assert sorted(regions(fabric, 5, seed=1).tolist()) == list(range(5))
    assert len(set(regions(fabric, 9, seed=1).tolist())) == 5


@pytest.mark.parametrize("count", [2, 4, 8])
def test_regions_of_a_torus_have_about_the_same_end_ports_and_few_links_between(count):
    fabric = generate("torus", ["6x6x4"], cas=3)
    part = regions(fabric, count, seed=1)
    ends = np.bincount(part, weights=fabric.terminals_at, minlength=count)
    assert ends.max() <= 1.1 * ends.mean()
    at_random = np.random.default_rng(1).permutation(part)
    assert cut(fabric, part) < 0.7 * cut(fabric, at_random)


def test_only_switches_with_end_ports_weigh():
    """Regions share the leaves of a tree evenly, while the spines have no weight."""
    fabric = generate("kary-ntree", ["6", "3"])
    ends = np.bincount(regions(fabric, 4, seed=1), weights=fabric.terminals_at, minlength=4)
    assert ends.sum() == 216 and ends.max() <= 66


def test_parallel_links_hold_switches_together():
    """Two cuts halve the ring, and METIS takes the one through the fewest parallel links."""
    sketch = Sketch("thin and thick")
    rows = [sketch.add(NodeKind.SWITCH) for _ in range(8)]
    for row in rows:
        sketch.cable(sketch.add(NodeKind.CA), row)
        for _ in range(1 if row % 4 == 3 else 5):
            sketch.cable(rows[row], rows[(row + 1) % 8])
    part = regions(sketch.build(), 2, seed=1)
    assert sorted([part[:4].tolist(), part[4:].tolist()]) == [[0] * 4, [1] * 4]
