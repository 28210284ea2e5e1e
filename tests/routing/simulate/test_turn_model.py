"""Check west-first tables of meshes: turns, lengths of paths, dependencies, and fabrics that are refused."""

from itertools import pairwise

import numpy as np
import pytest

from routing.deadlock.proof import prove
from routing.errors import OptionError
from routing.simulate.turn_model import west_first
from routing.topologies import generate


def steps(fabric, routing, source, lid):
    """Return the steps (east, north) of the path from a switch to a LID."""
    place = [tuple(map(int, name[2:].split("."))) for name in fabric.switch_name]
    found, at = [], source
    while at != fabric.lids.switch[lid]:
        cables = zip(fabric.channels.src, fabric.channels.port, fabric.channels.dst, strict=True)
        (after,) = [int(far) for near, port, far in cables if near == at and port == routing.lft[at, lid]]
        found.append(tuple(np.subtract(place[after], place[at]).tolist()))
        at = after
    return found


# Figure 13.8: a mesh has eight turns, of which west-first allows six; a chain has none.
@pytest.mark.parametrize(("size", "allowed"), [("5x4", 6), ("2x6", 6), ("1x3", 0)])
def test_paths_are_shortest_and_never_turn_to_the_west(size, allowed):
    fabric = generate("mesh", [size], cas=1)
    routing = west_first(fabric)
    turns = set()
    for source in range(fabric.switches):
        for lid in np.flatnonzero(fabric.lids.switch >= 0):
            path = steps(fabric, routing, source, int(lid))
            goal = int(fabric.lids.switch[lid])
            places = [np.array([*map(int, fabric.switch_name[row][2:].split("."))]) for row in (source, goal)]
            assert len(path) == np.abs(places[0] - places[1]).sum()
            turns |= {(a, b) for a, b in pairwise(path) if a != b}
    assert not [turn for turn in turns if turn[1] == (-1, 0)]
    assert len(turns) == allowed
    assert prove(fabric, routing).certified


def test_fabrics_without_a_west_are_refused():
    with pytest.raises(OptionError, match="no west"):
        west_first(generate("mesh", ["2x2x2"], cas=1))
    with pytest.raises(OptionError, match="no coordinates"):
        west_first(generate("kary-ntree", ["2,2"], cas=1))
