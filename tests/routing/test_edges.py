import numpy as np
import pytest
from examples import examples
from hypothesis import given
from strategies import fabrics

from routing.edges import NO_EDGES, Edges
from routing.errors import TableError


@examples(60)
@given(fabrics(connected=False, min_switches=0, max_switches=9))
def test_every_pair_of_consecutive_channels_has_a_number_of_its_own(fabric):
    channels, edges = fabric.channels, fabric.channels.edges
    pairs = [(c, n) for c in range(len(channels)) for n in range(len(channels)) if channels.dst[c] == channels.src[n]]
    before, after = edges.channels()
    assert list(zip(before.tolist(), after.tolist(), strict=True)) == pairs
    numbers = edges.numbers()
    assert len(edges) == len(numbers) == len(pairs)
    assert (numbers == edges.first[before] + after - edges.after[before]).all()
    assert (np.diff(numbers) > 0).all()
    assert ((numbers >= NO_EDGES) & (numbers < edges.count)).all()


def test_more_edges_than_can_be_numbered_are_refused():
    with pytest.raises(TableError, match="dependencies between channels are too many"):
        Edges.of(np.array([0, 50_000], np.int32), np.zeros(50_000, np.int32))
