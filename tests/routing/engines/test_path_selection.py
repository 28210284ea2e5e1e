import numpy as np
import pytest

from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations
from routing.engines.path_selection import PathSelector
from routing.topologies import generate


def maker(name, *arguments, **options):
    fabric = generate(name, list(arguments), **options)
    return PathSelector(fabric, Destinations.of(fabric), EngineOptions(effort=0.1))


@pytest.mark.parametrize(
    ("name", "argument"), [("torus", "6x5x4"), ("random-regular", "20 5"), ("kautz", "3 3"), ("kary-ntree", "3 3")]
)
def test_no_shortest_paths_come_below_their_bound(name, argument):
    made = maker(name, *argument.split(), cas=2)
    everything = [made.any_shortest, made.symmetric, made.dimension_ordered()]
    for paths in filter(None, everything):
        for other in filter(None, everything):
            assert other.max_utilisation >= paths.bound * (1 - 1e-9)


def test_the_fullest_direction_bounds_a_torus():
    """Paths take 1.5 hops on average in a ring of 6, and 1.2 hops in a ring of 5.  Each link has a channel in both
    directions.
    """
    paths = maker("torus", "6x5", cas=1).dimension_ordered()
    assert paths.bound == pytest.approx(30 * 1.5 / 2)
    assert paths.bound <= paths.max_utilisation < paths.bound + 1
    assert paths.bound > float(np.mean(paths.load)) * 1.1
