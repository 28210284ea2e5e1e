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
from routing.reroute.flow import flow_towards, lid_weights
from routing.topologies import generate
from routing.trees.levels import distances

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


def drawn_loss(data):
    """Return a drawn fabric, the fabric without up to three of its links, and the bound after this loss."""
    fabric = data.draw(fabrics(min_switches=3, max_switches=10))
    links = np.unique(fabric.channels.link).tolist()
    lost = data.draw(st.lists(st.sampled_from(links), min_size=1, max_size=3, unique=True)) if links else []
    return fabric, *bound_after(fabric, lost)


def cut_utilisation(fabric, less, one, other, tie):
    """Return the utilisation of the channels from the switches nearer to ``one`` to the switches nearer to ``other``.

    Switches at equal distance from both are on the side of ``one`` if ``tie`` is true.
    """
    part = less.component == less.component[one]
    hops = [distances(fabric, np.arange(fabric.switches) == end) for end in (one, other)]
    near = part & (hops[0] <= hops[1] if tie else hops[0] < hops[1])
    src, dst, into = less.channels.src, less.channels.dst, np.zeros(less.switches)
    np.add.at(into, less.lids.switch[less.lids.switch >= 0], lid_weights(less)[less.lids.switch >= 0])
    room = less.channels.capacity[near[src] & (part & ~near)[dst]].sum()
    return less.source_weight_at[near].sum() * into[part & ~near].sum() / room if room else 0.0


@examples(60)
@given(data=st.data())
def test_the_bound_is_the_largest_of_the_cuts_between_the_ends_of_lost_links(data):
    fabric, less, bound = drawn_loss(data)
    now = {(a, b, p) for a, b, p in zip(less.channels.src, less.channels.dst, less.channels.port, strict=True)}
    lost = {(a, b) for a, b, p in zip(fabric.channels.src, fabric.channels.dst, fabric.channels.port, strict=True)
            if (a, b, p) not in now and a != b and less.component[a] == less.component[b]}  # fmt: skip
    cuts = [cut_utilisation(fabric, less, one, other, tie) for one, other in lost for tie in (False, True)]
    assert bound == pytest.approx(max(cuts, default=0.0))


@examples(60)
@given(data=st.data())
def test_no_tables_are_better_than_the_bound(data):
    _, less, bound = drawn_loss(data)
    assert bound <= highest(less, data.draw(st.sampled_from(["nue", "updn"]))) * (1 + 1e-9)
