"""Check the coordinates of switches: the kind of each fabric is recognised, and no two switches share a point."""

import math

import numpy as np
import pytest
from hypothesis import given
from strategies import fabrics

from routing.draw.layout import place
from routing.topologies import generate

KINDS = {
    ("kary-ntree", "4", "3"): "levels",
    ("cluster", "4x4x4", "4x2"): "levels",
    ("torus", "5x4x3"): "grid",
    ("mesh", "4x3"): "grid",
    ("hypercube", "5"): "grid",
    ("hyperx", "4x4"): "grid",
    ("hyperx", "6x5"): "grid",
    ("dragonfly", "4", "2", "2"): "groups",
    ("random-regular", "16", "3"): "graph",
    ("slimfly", "5"): "graph",
}


@pytest.mark.parametrize(
    ("words", "kind"), KINDS.items(), ids=lambda value: "-".join(value) if isinstance(value, tuple) else value
)
def test_the_kind_of_a_fabric(words, kind):
    fabric = generate(words[0], words[1:])
    layout = place(fabric)
    assert layout.kind == kind
    assert len(np.unique(layout.xy, axis=0)) == fabric.switches


@given(fabrics())
def test_every_switch_has_its_own_point(fabric):
    layout = place(fabric)
    assert len(np.unique(layout.xy, axis=0)) == fabric.switches
    assert np.array_equal(place(fabric).xy, layout.xy)


def test_leaves_of_a_tree_are_below_their_spines():
    fabric = generate("kary-ntree", ["3", "3"])
    layout = place(fabric)
    up = layout.level[fabric.channels.src] < layout.level[fabric.channels.dst]
    y = layout.xy[:, 1]
    assert up.any()
    assert (y[fabric.channels.src[up]] > y[fabric.channels.dst[up]]).all()


def test_cells_of_a_torus_are_its_coordinates():
    """Neighbours differ by one in one coordinate, where the last switch of a ring precedes the first."""
    sizes = (6, 5, 3)
    fabric = generate("torus", ["6x5x3"])
    cells = place(fabric).cells
    away = np.abs(cells[fabric.channels.src] - cells[fabric.channels.dst])
    assert ((away == 0) | (away == 1) | (away == np.array(sizes) - 1)).all()
    assert (np.count_nonzero(away, axis=1) == 1).all()


def test_rings_of_four_become_one_coordinate():
    assert sorted(place(generate("torus", ["4x4x4"])).cells.max(axis=0).tolist()) == [3, 3, 3]


def test_groups_of_a_dragonfly_stand_together():
    fabric = generate("dragonfly", ["4", "2", "2"])
    xy = place(fabric).xy.astype(float)
    group = [int(name.removeprefix("sw").split(".")[0]) for name in fabric.switch_name]
    for a in range(0, fabric.switches, 4):
        far = [math.dist(xy[a], xy[b]) for b in range(fabric.switches)]
        nearest = sorted(range(fabric.switches), key=far.__getitem__)[:4]
        assert {group[b] for b in nearest} == {group[a]}


def test_the_generator_of_random_numbers_is_left_alone():
    import random  # noqa: PLC0415

    random.seed(5)
    wanted = random.random()
    random.seed(5)
    place(generate("random-regular", ["16", "3"]))
    assert random.random() == wanted
