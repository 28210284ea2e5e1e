import numpy as np
import pytest
from attached_switches import attached
from strategies import random_fabric

from routing.engines.torus_dimensions import directions, resembles_grid
from routing.faults.choose import between_switches
from routing.topologies import generate


def count(*arguments, **options):
    found = directions(generate(*arguments, **options))
    return None if found is None else int(found.max()) + 1


@pytest.mark.parametrize(
    ("size", "expected"),
    [("5x6", 2), ("6x5x5", 3), ("3x3x3", 3), ("4x4x4", 6), ("4x5", 3), ("7x3", 2), ("5x5x5x5", 4), ("9", None)],
)
def test_a_torus_has_its_dimensions_and_rings_of_four_two(size, expected):
    assert count("torus", [size], cas=1) == expected


def test_links_to_attached_switches_have_a_direction_of_their_own():
    torus = generate("torus", ["6x5x5"], cas=1)
    fabric = attached(torus, [[3], [40], [77]])
    found, plain = directions(fabric), directions(torus)
    ends = np.maximum(fabric.channels.src, fabric.channels.dst) >= torus.switches
    assert set(found[ends].tolist()) == {3} and np.array_equal(found[~ends], plain)
    assert count("mesh", ["6"], cas=1) is None  # both ends of a line have one neighbour only


def test_fabrics_without_squares_have_no_directions():
    assert count("kautz", ["3", "3"], cas=1) is None
    assert count("dragonfly", ["4", "2", "2"], cas=1) is None
    assert directions(random_fabric(1, switches=30, degree=4)) is None
    assert directions(random_fabric(1, switches=0, cas=0)) is None
    assert directions(random_fabric(1, switches=1, cas=0)) is None


@pytest.mark.parametrize("missing", [0, 1, 10])
@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("torus", "8x8"),
        ("torus", "6x5x5"),
        ("mesh", "12x12"),
        ("hyperx", "12x8"),
        ("hyperx", "6x6"),
        ("hypercube", "6"),
    ],
)
def test_grids_that_lack_links_resemble_grids(name, size, missing):
    fabric = generate(name, [size], cas=1)
    links = between_switches(fabric)
    gone = np.random.default_rng(1).permutation(links)[: -(-missing * len(links) // 100)]
    assert resembles_grid(fabric.without_links(gone.tolist()))


@pytest.mark.parametrize("missing", [0, 1, 2])
@pytest.mark.parametrize(("name", "size"), [("torus", "2x20"), ("mesh", "20x2"), ("hyperx", "2x12")])
def test_grids_with_a_dimension_of_two_resemble_grids(name, size, missing):
    fabric = generate(name, [size], cas=1)
    gone = np.random.default_rng(1).permutation(between_switches(fabric))[:missing]
    assert resembles_grid(fabric.without_links(gone.tolist()))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("random-regular", ["60", "16"]),
        ("random-regular", ["60", "4"]),
        ("kautz", ["3", "3"]),
        ("dragonfly", ["4", "2", "2"]),
        ("dragonfly", ["8", "2", "4"]),
        ("slimfly", ["5"]),
        ("kary-ntree", ["4", "3"]),
        ("ring", ["9"]),
    ],
)
def test_networks_without_opposite_links_resemble_no_grid(name, size):
    assert not resembles_grid(generate(name, size, cas=1))


def test_fabrics_with_few_switches_resemble_no_grid():
    assert not resembles_grid(random_fabric(1, switches=0, cas=0))
    assert not resembles_grid(random_fabric(1, switches=1, cas=0))


def test_parallel_and_opposite_channels_share_a_direction():
    fabric = generate("torus", ["5x6"], cas=1, redundancy=2)
    found, channels = directions(fabric), fabric.channels
    assert (found == found[channels.reverse]).all()
    for a in range(len(channels)):
        same = (channels.src == channels.src[a]) & (channels.dst == channels.dst[a])
        assert len(np.unique(found[same])) == 1
