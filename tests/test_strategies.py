"""The random fabrics for tests have the properties that their options state."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from strategies import fabrics, pull_links, random_fabric, ring_fabric, split_fabrics

from routing.fabric import NodeKind


def parts(fabric):
    return len(np.unique(fabric.component))


def between_switches(fabric):
    return len(fabric.channels) // 2


def test_same_seed_gives_the_same_fabric():
    options = {"mixed_speeds": True, "parallel": 3, "shuffled_guids": True, "dual_port_cas": 2}
    assert random_fabric(5, **options).digest == random_fabric(5, **options).digest
    assert random_fabric(5, **options).digest != random_fabric(6, **options).digest


@pytest.mark.parametrize("seed", range(5))
def test_counts_of_a_random_fabric(seed):
    fabric = random_fabric(seed, 20, 6, 3, lmc=1)
    assert (fabric.switches, fabric.terminals, fabric.endports) == (20, 60, 60)
    assert between_switches(fabric) == 60
    assert parts(fabric) == 1
    assert fabric.endport_lmc.tolist() == [1] * 60


def test_dense_request_ends_at_the_full_mesh():
    assert between_switches(random_fabric(1, 5, 50, 0)) == 10


def test_oddities_are_there():
    fabric = random_fabric(3, 8, 3, 1, routers=2, loop_cables=1, back_to_back=2, dual_port_cas=3, spare_ports=4)
    ends = fabric.link_device
    assert np.count_nonzero(ends[:, 0] == ends[:, 1]) == 1
    assert np.count_nonzero(fabric.terminal_kind == NodeKind.ROUTER) == 2
    assert np.count_nonzero(fabric.endport_switch < 0) == 4
    assert np.count_nonzero(fabric.terminal_ports == 2) == 3
    used = np.bincount(ends[ends < fabric.switches], minlength=fabric.switches)
    assert (fabric.switch_ports - used == 4).all()


def test_mixed_speeds_mix():
    assert len(np.unique(random_fabric(1, mixed_speeds=True).link_capacity)) > 3


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_pull_links(share):
    fabric = random_fabric(2, 20, 6, 1, parallel=2)
    cables = between_switches(fabric)
    for seed in range(5):
        pulled = pull_links(fabric, seed, share)
        assert between_switches(pulled) == cables - int(cables * share)
        assert parts(pulled) == 1
        assert pulled.endports == fabric.endports


def test_pull_links_of_a_tree():
    tree = random_fabric(2, 20, 1, 1)
    assert between_switches(pull_links(tree, 1)) == 19
    assert parts(pull_links(tree, 1, keep_connected=False)) == 1 + int(19 * 0.3)


def test_ring():
    assert between_switches(ring_fabric(5)) == 5
    assert set(ring_fabric(5).graph.degree(mode="out")) == {2}
    assert between_switches(ring_fabric(1)) == 0


@examples(40)
@given(fabrics())
def test_fabrics_are_connected(fabric):
    assert parts(fabric) == 1
    assert (fabric.lids.switch[fabric.switch_lid] == np.arange(fabric.switches)).all()


@examples(40)
@given(split_fabrics())
def test_split_fabrics_are_split(fabric):
    assert parts(fabric) > 1
