"""Check the lower bounds of the highest utilisation, which follow from cuts of the fabric."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.cut_bounds import lost_link_bound
from routing.reroute.flow import flow_towards
from routing.topologies import generate

OPTIONS = EngineOptions(threads=1, effort=0.1)


def bound_after(fabric, links):
    less = fabric.without_links(links)
    return less, lost_link_bound(BaseNumbering.of(less, [fabric]))


def highest(fabric, name):
    flow = flow_towards(fabric, ENGINES[name].route(fabric, OPTIONS), threads=1)
    return float((flow / fabric.channels.capacity).max(initial=0))


@pytest.mark.parametrize("switches", [6, 7])
def test_a_ring_without_a_link_carries_half_of_all_pairs_over_its_middle(switches):
    fabric = generate("torus", [str(switches)], cas=1)
    less, bound = bound_after(fabric, np.unique(fabric.channels.link)[:1].tolist())
    assert bound == pytest.approx(highest(less, "updn"))  # there is only one path for each pair


def test_all_links_between_the_halves_of_a_torus_share_the_flow_of_a_lost_link():
    """16,384 pairs of CAs have one CA in each half, and 31 channels per direction are left between the halves."""
    fabric = generate("torus", ["4x4x4"], cas=4)
    _, bound = bound_after(fabric, np.unique(fabric.channels.link)[:1].tolist())
    assert bound == pytest.approx(128 * 128 / 31 * highest_of_one_pair(fabric))


def highest_of_one_pair(fabric):
    """Return the utilisation that the flow from one CA to another one causes."""
    numbering = BaseNumbering.of(fabric, [fabric])
    weight = numbering.repair_fabric.weight
    return float(weight.max()) * fabric.source_weight_at.sum() / 256 / float(fabric.channels.capacity[0])


@examples(60)
@given(data=st.data())
def test_no_tables_are_better_than_the_bound(data):
    fabric = data.draw(fabrics(min_switches=3, max_switches=10))
    links = np.unique(fabric.channels.link).tolist()
    lost = data.draw(st.lists(st.sampled_from(links), min_size=1, max_size=3, unique=True)) if links else []
    less, bound = bound_after(fabric, lost)
    assert bound <= highest(less, data.draw(st.sampled_from(["nue", "updn"]))) * (1 + 1e-9)
