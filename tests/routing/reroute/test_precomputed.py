"""Check that values computed before a fault equal the values that would be computed after it."""

import networkx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import Sketch, fabrics, random_fabric

from routing.counterparts import channel_numbers
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import NodeKind
from routing.reroute import Published, precompute, reroute
from routing.reroute.baseline import restore_baseline_entries
from routing.reroute.translate import same_devices, translate_tables
from routing.topologies import generate

OPTIONS = EngineOptions(threads=1, effort=0.1)


def published(fabric, engine):
    routing = ENGINES[engine].route(fabric, OPTIONS)
    return Published(fabric, routing, prove(fabric, routing, threads=1))


def pulled(fabric, seed, most=4):
    links, rng = np.unique(fabric.channels.link), np.random.default_rng(seed)
    return fabric.without_links(rng.permutation(links)[: rng.integers(0, most)].tolist())


@examples(60)
@given(fabrics(connected=False, min_switches=0, max_switches=9), st.integers(0, 1000))
def test_parts_are_those_of_networkx(fabric, seed):
    less = pulled(fabric, seed, most=9)
    graph = networkx.Graph(zip(less.channels.src.tolist(), less.channels.dst.tolist(), strict=True))
    graph.add_nodes_from(range(less.switches))
    parts = sorted((sorted(part) for part in networkx.connected_components(graph)), key=min)
    assert [np.flatnonzero(less.component == number).tolist() for number in range(len(parts))] == parts


@pytest.mark.parametrize("seed", range(6))
def test_translated_entries_between_the_same_devices(seed):
    """Check the kept and the broken entries against their definition, entry by entry."""
    fabric = random_fabric(seed, 9, 3, parallel=2)
    baseline, less = published(fabric, "minhop"), pulled(fabric, seed, most=12)
    translated, channels = translate_tables(baseline.routing, fabric, less), less.channels
    assert same_devices(fabric, less)
    number, broken = channel_numbers(fabric, less), 0
    for s in range(fabric.switches):
        for lid in range(len(fabric.lids)):
            port = baseline.routing.lft[s, lid]
            c = fabric.channels.at_port[s, port]
            target = less.lids.switch[lid]
            holds = target >= 0 and less.component[s] == less.component[target] and (c < 0 or number[c] >= 0)
            assert translated.routing.lft[s, lid] == (port if holds else 255)
            broken += not holds and port != 255
    assert (translated.broken, translated.in_place) == (broken, True)
    assert len(channels) == (number >= 0).sum()


@pytest.mark.parametrize("engine", ["nue", "updn", "dfsssp"])
def test_home_is_found_by_the_columns_that_differ(engine):
    fabric = generate("torus", ["4x4"], cas=2)
    baseline, links = published(fabric, engine), np.unique(fabric.channels.link).tolist()
    less = fabric.without_links(links[4:7])
    found = reroute(ENGINES[engine], OPTIONS, baseline, less, baseline=baseline)
    now, more = Published(less, found.routing, found.proof), fabric.without_links([links[4], links[11]])
    translated, apart = translate_tables(found.routing, less, more).routing, precompute(now, baseline).differing_lids
    healed, count = restore_baseline_entries(translated, baseline, more, apart)
    everywhere, same_count = restore_baseline_entries(translated, baseline, more)
    assert count == same_count > 0
    assert np.array_equal(healed.lft, everywhere.lft)
    assert np.array_equal(healed.sl, everywhere.sl)


@pytest.mark.parametrize("engine", ["nue", "updn", "dfsssp", "minhop"])
def test_prepared_or_not(engine):
    """Values that were computed ahead for other tables, or for another baseline, are not used."""
    fabric = generate("kary-ntree", ["3", "3"])
    baseline, links = published(fabric, engine), np.unique(fabric.channels.link).tolist()
    less = fabric.without_links(links[:1])
    one = reroute(ENGINES[engine], OPTIONS, baseline, less, baseline=baseline)
    now, again = (Published(less, one.routing, one.proof) for _ in range(2))
    ready, other = precompute(now, baseline), precompute(baseline, baseline)
    assert ready.is_for(now, baseline)
    assert not ready.is_for(now, None)
    assert not other.is_for(now, baseline)
    assert ready.dependencies is not None
    assert ready.ordered
    two = fabric.without_links([links[0], links[30]])
    expected = reroute(ENGINES[engine], OPTIONS, again, two, baseline=baseline)
    for ahead in (ready, other):
        found = reroute(ENGINES[engine], OPTIONS, now, two, baseline=baseline, precomputed=ahead)
        assert np.array_equal(found.routing.lft, expected.routing.lft)
        assert (found.proof.certificate is None) == (expected.proof.certificate is None)


@pytest.mark.parametrize("further", [0, 1])
def test_load_decides_among_paths_that_are_hardly_longer(further):
    """Switch a can reach b over c, over which many CAs send to b, or over idle switches; this path is ``further`` hops
    longer.
    """
    sketch = Sketch("past")
    a, b, c, *others = (sketch.add(NodeKind.SWITCH) for _ in range(4 + further))
    for s, t in zip([a, a, c, *others, a], [b, c, b, *others[1:], b, others[0]], strict=True):
        sketch.cable(s, t)
    for s in [a, b, b, b, b, *[c] * 6]:
        sketch.cable(sketch.add(NodeKind.CA), s)
    fabric = sketch.build()
    baseline = published(fabric, "minhop")
    direct, busy, free = (int(fabric.channels.at_port[a, port]) for port in (1, 2, 3))
    assert [int(fabric.channels.dst[n]) for n in (direct, busy, free)] == [b, c, others[0]]
    less = fabric.without_links([int(fabric.channels.link[direct])])
    found = reroute(ENGINES["minhop"], OPTIONS, baseline, less, baseline=baseline)
    lids = np.flatnonzero((fabric.lids.switch == b) & (fabric.lids.endport >= 0))
    lids = lids[baseline.routing.lft[others[0], lids] == 1]  # only LIDs for which the idle switches do not send over a
    assert len(lids)
    assert (found.routing.lft[a, lids] == 3).all()
