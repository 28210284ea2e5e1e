from itertools import pairwise

import numpy as np
import pytest

from routing._kernels.symmetric_paths import LinkBundles
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations
from routing.engines.path_selection import PathSelector
from routing.errors import NotEnoughVLs
from routing.quality import measure
from routing.topologies import generate


def rings_of(name, *arguments, **options):
    fabric = generate(name, list(arguments), **options)
    maker = PathSelector(fabric, Destinations.of(fabric), EngineOptions())
    return fabric, maker.rings, maker


def channels_between(fabric, bundles, hop, start, goal):
    """Return one channel of each bundle of parallel links on the path."""
    found, at = [], start
    while at != goal:
        bundle = int(bundles.first[at]) + int(hop[goal, at])
        found.append(int(np.flatnonzero(bundles.of == bundle)[0]))
        at = int(bundles.dst[bundle])
    return found


@pytest.mark.parametrize("size", ["6x5", "6x8", "10x3", "5x5", "7x4", "9x2", "5x6x3"])
def test_every_pair_has_a_layer_both_directions_and_every_layer_an_order(size):
    fabric, rings, maker = rings_of("torus", size, cas=1)
    bundles = LinkBundles.between_switches(fabric.channels, maker.inverse_capacity)
    hop, (avoid, order) = rings.hops(fabric, bundles), rings.cuts(fabric)
    number = {
        turn: i
        for i, turn in enumerate(zip(*(part.tolist() for part in fabric.channels.edges.channels()), strict=True))
    }
    distance = np.array(fabric.graph.distances())
    every = (1 << rings.layers) - 1
    for a in range(fabric.switches):
        for b in range(a):
            out, back = channels_between(fabric, bundles, hop, a, b), channels_between(fabric, bundles, hop, b, a)
            assert len(out) == len(back) == distance[a, b]
            used = [number[turn] for direction in (out, back) for turn in pairwise(direction)]
            barred = np.bitwise_or.reduce(avoid[used], initial=0)
            assert barred != every
            for layer in range(rings.layers):
                for direction in (out, back) if not barred >> layer & 1 else ():
                    assert (np.diff(order[layer, direction]) > 0).all()


def test_rings_are_found_where_there_are_some():
    assert rings_of("torus", "6x5x4", cas=1)[1].layers == 4  # the ring of four needs no cut
    assert rings_of("torus", "4x4", cas=1)[1] is None
    assert rings_of("mesh", "6x5", cas=1)[1] is None
    assert rings_of("hypercube", "4", cas=1)[1] is None
    assert rings_of("kautz", "3", "3", cas=1)[1] is None
    assert rings_of("torus", "9", cas=1)[1] is None  # without squares, no directions are found


def test_a_missing_link_leaves_the_rings_in_place():
    fabric = generate("torus", ["6x5x3"], cas=1)
    fabric = fabric.without_links([int(fabric.channels.link[0])])
    rings = PathSelector(fabric, Destinations.of(fabric), EngineOptions()).rings
    assert sorted(rings.length.tolist()) == [0, 5, 6]


@pytest.mark.parametrize(("size", "vls", "least"), [("10x10", 4, 0.95), ("6x6x6", 8, 0.97), ("9x9", 4, 0.99)])
def test_lash_holds_a_torus_in_two_vls_a_dimension(size, vls, least):
    fabric = generate("torus", [size], cas=2)
    routing = ENGINES["lash"].route(fabric, EngineOptions(vls=vls, effort=0.1))
    proof = prove(fabric, routing)
    assert proof.certified
    assert proof.strength == "reversible"
    assert routing.vls <= vls
    quality = measure(fabric, routing, bisections=1, shifts=1, permutations=1)
    assert quality.all_to_all >= least * quality.bound


def test_no_search_says_that_it_needs_what_it_may_use():
    fabric = generate("torus", ["6x6x6"], cas=1)
    links = sorted(set(fabric.channels.link.tolist()))
    broken = fabric.without_links(links[::50])
    with pytest.raises(NotEnoughVLs) as problem:
        ENGINES["lash"].route(broken, EngineOptions(vls=4, effort=0.02))
    assert problem.value.needed > 4
