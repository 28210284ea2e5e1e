import numpy as np
import pytest
from examples import examples
from hypothesis import given
from strategies import fabrics, random_fabric

from routing.errors import FabricError
from routing.topologies import generate


def parts(fabric):
    """Return the number of the connected part of each switch, by a search from each switch in turn."""
    found, count = np.full(fabric.switches, -1), 0
    channels = fabric.channels
    for start in range(fabric.switches):
        if found[start] >= 0:
            continue
        found[start], queue = count, [start]
        for switch in queue:
            for near in channels.dst[channels.first[switch] : channels.first[switch + 1]].tolist():
                if found[near] < 0:
                    found[near] = count
                    queue.append(near)
        count += 1
    return found


@examples(200)
@given(fabric=fabrics(connected=False))
def test_connected_parts_are_those_that_a_search_finds(fabric):
    assert fabric.component.dtype == np.int32 and np.array_equal(fabric.component, parts(fabric))


def test_a_split_ring_and_switches_without_a_cable_are_parts_of_their_own():
    ring = generate("ring", ["60"], cas=0)
    cut = ring.without_links([3, 20, 41])
    assert np.array_equal(cut.component, parts(cut)) and cut.component.max() == 2
    bare = ring.without_links(range(ring.links))
    assert bare.component.tolist() == list(range(60))


def test_a_lid_of_two_ports_is_named():
    fabric = random_fabric(3, switches=6)
    fabric.endport_lid[1] = fabric.switch_lid[2]
    with pytest.raises(FabricError, match=f"LID {fabric.switch_lid[2]} belongs to more than one port"):
        len(fabric.lids)
