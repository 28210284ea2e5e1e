"""Check the smallest number of entries that can change, against minimum spanning arborescences."""

from dataclasses import replace

import numpy as np
import pytest
import slow_minimal_change
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import fabrics

from ibsim_fixtures.catalogue import FIXTURES
from routing.cdg.certificate import check_certificate
from routing.cdg.trace import uniform_sl2vl, vl_bits
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.formats.fabric_files import read_fabric
from routing.reroute import Published, Stability, reroute
from routing.reroute.budget import Budget
from routing.reroute.minimal_change import fill_with_fewest_changes, remote_pairs
from routing.reroute.prove_changes import prove_changes
from routing.reroute.sl_assignment import reassign_sls
from routing.reroute.translate import translate_tables
from routing.topologies import generate

OPTIONS = EngineOptions(threads=1, effort=0.0)


def lightest_tree(count, root, arcs):
    """Return the weight of the lightest tree of arcs (from, to, weight) that leads all vertices to the root.

    This is the algorithm of Chu, Liu and Edmonds: each vertex takes its lightest arc.  Each cycle is contracted to one
    vertex, and the search starts again.
    """
    weight = 0
    while True:
        best = {}
        for a, b, w in arcs:
            if a not in (root, b) and (a not in best or w < best[a][1]):
                best[a] = (b, w)
        weight += sum(w for _, w in best.values())
        name = {}
        for s in best:
            seen, at = [], s
            while at in best and at not in seen:
                seen.append(at)
                at = best[at][0]
            if at in seen:
                loop = seen[seen.index(at) :]
                name.update(dict.fromkeys(loop, min(loop)))
        if not name:
            assert len(best) == count - 1
            return weight
        count -= len(name) - len(set(name.values()))
        arcs = [(name.get(a, a), name.get(b, b), w - best[a][1]) for a, b, w in arcs if a != root]
        arcs = [(a, b, w) for a, b, w in arcs if a != b]


def least_changes(fabric, installed):
    """Return the smallest possible number of changed entries, summed over all columns.

    In the tree of a column, the arc of an existing entry has weight 0, and any other channel has weight 1.
    """
    channels, total = fabric.channels, 0
    ends = list(zip(channels.src.tolist(), channels.dst.tolist(), channels.port.tolist(), strict=True))
    for lid in np.flatnonzero(((installed == 255) & remote_pairs(fabric)).any(axis=0)).tolist():
        target = int(fabric.lids.switch[lid])
        part = fabric.component == fabric.component[target]
        arcs = [(a, b, int(installed[a, lid] != port)) for a, b, port in ends if part[a]]
        total += lightest_tree(int(part.sum()), target, arcs)
    return total


def all_arrive(fabric, lft):
    for lid in np.flatnonzero(fabric.lids.switch >= 0).tolist():
        for s in np.flatnonzero(fabric.component == fabric.component[fabric.lids.switch[lid]]).tolist():
            at, left = s, fabric.switches
            while at != fabric.lids.switch[lid]:
                at, left = int(fabric.channels.dst[fabric.channels.at_port[at, lft[at, lid]]]), left - 1
                assert left >= 0
    return True


@examples(80)
@given(fabrics(min_switches=2, max_switches=9), st.sampled_from(["minhop", "updn"]), st.integers(0, 10_000))
def test_no_fewer_could_change_for_one_link(fabric, engine, seed):
    routing, links = ENGINES[engine].route(fabric, OPTIONS), np.unique(fabric.channels.link)
    assume(len(links))
    less = fabric.without_links([int(links[seed % len(links)])])
    installed = translate_tables(routing, fabric, less).routing.lft
    lft = fill_with_fewest_changes(less, installed)
    assert all_arrive(less, lft)
    assert np.count_nonzero(lft != installed) == least_changes(less, installed)


@pytest.mark.parametrize("link", [7, 11, 38])
def test_trees_of_which_a_part_changes_its_direction(link):
    """A repair changes nearly three entries for each lost one, and no repair at all could change fewer."""
    fabric = read_fabric(FIXTURES["random-24-3-faults"].path)
    routing = ENGINES["nue"].route(fabric, EngineOptions(threads=1, effort=0.1))
    less = fabric.without_links([link])
    translated = translate_tables(routing, fabric, less)
    lft = fill_with_fewest_changes(less, translated.routing.lft)
    changed = np.count_nonzero(lft != translated.routing.lft)
    assert changed == least_changes(less, translated.routing.lft)
    assert 2.9 * translated.broken < changed <= 3 * translated.broken


@examples(60)
@given(fabrics(min_switches=2, max_switches=9), st.integers(0, 10_000))
def test_all_missing_entries_of_several_links_are_filled(fabric, seed):
    routing, rng = ENGINES["updn"].route(fabric, OPTIONS), np.random.default_rng(seed)
    links = rng.permutation(np.unique(fabric.channels.link))[: rng.integers(0, 6)].tolist()
    less = fabric.without_links(links)
    installed = translate_tables(routing, fabric, less).routing.lft
    lft = fill_with_fewest_changes(less, installed)
    assert all_arrive(less, lft)
    assert np.count_nonzero(lft != installed) >= least_changes(less, installed)


def assert_same_as_slow(fabric, installed):
    fast = fill_with_fewest_changes(fabric, installed)
    assert np.array_equal(fast, slow_minimal_change.fill_with_fewest_changes(fabric, installed))
    assert all_arrive_who_have_to(fabric, installed, fast)


def all_arrive_who_have_to(fabric, installed, lft):
    """Return whether each missing entry got a path.  Forwarding loops elsewhere do not matter."""
    for s, lid in np.argwhere((installed == 255) & remote_pairs(fabric)).tolist():
        at, left = s, fabric.switches
        while at != fabric.lids.switch[lid] and left >= 0:
            at, left = int(fabric.channels.dst[fabric.channels.at_port[at, lft[at, lid]]]), left - 1
        if left < 0:
            return False
    return True


@examples(80)
@given(fabrics(min_switches=2, max_switches=14, connected=False), st.integers(0, 10_000), st.floats(0.0, 1.0))
def test_the_same_bytes_as_slow_and_obvious(fabric, seed, share):
    """Entries of an engine's tables are missing, and others lead anywhere: into cycles, to CAs, or to unused ports."""
    rng, installed = np.random.default_rng(seed), ENGINES["minhop"].route(fabric, OPTIONS).lft.copy()
    wrong = rng.random(installed.shape) < share * rng.random()
    installed[wrong] = rng.integers(0, 1 + int(fabric.switch_ports.max()), int(wrong.sum()))
    installed[rng.random(installed.shape) < share * rng.random()] = 255
    assert_same_as_slow(fabric, installed)


@pytest.mark.parametrize(
    ("kind", "size", "gone"), [("torus", "4x4x4", 15), ("kary-ntree", "3,3", 12), ("random-regular", "40,3", 6)]
)
def test_the_same_bytes_on_large_fabrics(kind, size, gone):
    """Many entries of a column are missing, and no neighbour of their switches has an entry for the LID."""
    fabric = generate(kind, size.split(","), cas=1)
    rng, links = np.random.default_rng(gone), np.unique(fabric.channels.link)
    less = fabric.without_links(rng.choice(links, gone, replace=False).tolist())
    installed = translate_tables(ENGINES["dfsssp"].route(fabric, OPTIONS), fabric, less).routing.lft
    installed[:, int(fabric.switch_lid[3])] = 255
    assert_same_as_slow(less, installed)


def test_a_loop_is_broken_only_where_a_hole_leads_through_it():
    """On a line of switches sw0 - sw1 - sw2 - sw3, sw1 and sw2 forward to each other, and sw3 has lost its path."""
    fabric = generate("mesh", ["4"])
    port = {
        (int(a), int(b)): p
        for a, b, p in zip(*(getattr(fabric.channels, n) for n in ("src", "dst", "port")), strict=True)
    }
    lid = int(fabric.switch_lid[0])
    lft = ENGINES["minhop"].route(fabric, OPTIONS).lft.copy()
    lft[1, lid], lft[2, lid], lft[3, lid] = port[1, 2], port[2, 1], 255
    assert all_arrive(fabric, fill_with_fewest_changes(fabric, lft))
    lft[3, lid] = port[3, 2]
    assert np.array_equal(fill_with_fewest_changes(fabric, lft), lft)


@pytest.mark.parametrize("link", [1, 40, 77])
def test_the_order_that_comes_with_new_sls_is_a_proof(link):
    """All changed paths increase in the order.  So the short proof need not follow other paths, and the checker accepts
    it.
    """
    fabric = generate("torus", ["4x4x4"], cas=1)
    routing = ENGINES["dfsssp"].route(fabric, EngineOptions(threads=1, effort=0.1))
    baseline = Published(fabric, routing, prove(fabric, routing, threads=1))
    certificate = baseline.proof.certificate
    less = fabric.without_links([int(np.unique(fabric.channels.link)[link])])
    translated, vl_bit = translate_tables(routing, fabric, less), vl_bits(uniform_sl2vl(routing))
    tables = replace(translated.routing, lft=fill_with_fewest_changes(less, translated.routing.lft))
    level = np.arange(len(certificate.order), dtype=np.uint8)
    assert (vl_bit[level] == 1 << level).all()
    found, order = reassign_sls(
        less, tables, translated.routing, certificate, vl_bit, sl_of_vl=level, threads=1, budget=Budget()
    )
    short = prove_changes(less, found, baseline, translated, order)
    assert short is not None
    assert prove(less, found, threads=1).complete
    check_certificate(less, found, short.certificate, threads=1)
    assert prove_changes(less, found, baseline, translated, np.ascontiguousarray(order[:, ::-1])) is None


def test_twenty_links_at_once_are_worth_more_than_one_cleared_vl():
    fabric = generate("kary-ntree", ["10", "3"], cas=11)
    options = replace(OPTIONS, partition="metis")  # with layers, as on a fabric that is not a tree
    routing = ENGINES["dfsssp"].route(fabric, options)
    baseline = Published(fabric, routing, prove(fabric, routing))
    gone = np.random.default_rng(1).choice(np.unique(fabric.channels.link), 20, replace=False)
    less = fabric.without_links(gone.tolist())
    found = reroute(ENGINES["dfsssp"], options, baseline, less, stability=Stability.FULL, baseline=baseline)
    assert found.how == "repaired" and found.statistics.fewest
    assert found.changed <= 3 * found.broken
    assert found.proof.certificate is not None and found.proof.scope == baseline.proof.scope
