"""Compare the numbers of link-disjoint paths with a search over all subsets of the paths, which are followed entry by
entry.
"""

import json
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from command_runs import run
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, random_fabric

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.quality import measure
from routing.quality.disjoint_paths import disjoint_paths
from routing.topologies import generate


def links_of(fabric, lft, source, lid):
    """Return the cables between switches on the path from a switch to a LID; None if the packet does not arrive."""
    s, found = source, []
    for _ in range(fabric.switches + 1):
        port = int(lft[s, lid])
        if s == fabric.lids.switch[lid]:
            return set(found) if port == fabric.lids.port[lid] else None
        c = int(fabric.channels.at_port[s, port])
        if c < 0:
            return None
        found.append(int(fabric.channels.link[c]))
        s = int(fabric.channels.dst[c])
    return None


def slow_disjoint(paths):
    """Return the largest number of paths of which no two share a cable; 0 if a path does not arrive."""
    if None in paths:
        return 0
    for size in range(len(paths), 0, -1):
        for some in combinations(paths, size):
            if all(not a & b for a, b in combinations(some, 2)):
                return size
    return 0


def slow_shares(fabric, lft):
    """Return the number of pairs, and the shares with at least two, three and four disjoint paths; None if there are no
    pairs.
    """
    ports = [row for row in range(fabric.endports) if fabric.endport_switch[row] >= 0 and fabric.endport_lid[row] > 0]
    counts = Counter()
    for a in ports:
        for b in ports:
            if fabric.endport_switch[a] != fabric.endport_switch[b]:
                base, size = int(fabric.endport_lid[b]), 1 << int(fabric.endport_lmc[b])
                paths = [links_of(fabric, lft, int(fabric.endport_switch[a]), base + i) for i in range(size)]
                counts[slow_disjoint(paths)] += 1
    pairs = counts.total()
    if pairs == 0 or not any(fabric.endport_lmc[ports]):
        return None
    return pairs, *(sum(n for found, n in counts.items() if found >= least) / pairs for least in (2, 3, 4))


@examples(60)
@given(
    fabrics(connected=False, max_switches=7, max_cas=2, max_lmc=3),
    st.sampled_from(["minhop", "nue", "disjoint"]),
    st.integers(0, 1000),
)
def test_every_pair_is_counted_as_by_hand(fabric, engine, seed):
    lft = ENGINES[engine].route(fabric, EngineOptions(effort=0.1, port_vls=15)).lft.copy()
    rng = np.random.default_rng(seed)
    for _ in range(seed % 3 if lft.size else 0):
        lft[rng.integers(lft.shape[0]), rng.integers(lft.shape[1])] = rng.integers(256)
    found = disjoint_paths(fabric, lft)
    expected = slow_shares(fabric, lft)
    assert (None if found is None else (found.pairs, *found.shares)) == expected


def test_more_than_eight_lids_are_counted_exactly():
    fabric = random_fabric(5, switches=6, degree=3, cas=1, parallel=2, lmc=4)
    lft = ENGINES["minhop"].route(fabric, EngineOptions()).lft
    found = disjoint_paths(fabric, lft)
    ports = np.flatnonzero(fabric.endport_switch >= 0)
    least = 0
    for a in ports:
        for b in ports:
            base = int(fabric.endport_lid[b])
            paths = {frozenset(links_of(fabric, lft, int(fabric.endport_switch[a]), base + i)) for i in range(16)}
            least += a != b and slow_disjoint([set(path) for path in paths]) >= 2
    assert found.two == least / found.pairs
    assert 0 < found.two < 1


def test_nothing_is_counted_without_several_lids():
    fabric = random_fabric(1, lmc=0)
    routing = ENGINES["minhop"].route(fabric, EngineOptions())
    assert disjoint_paths(fabric, routing.lft) is None
    assert measure(fabric, routing, bisections=0, shifts=0, permutations=0).as_dict()["disjoint_paths"] is None


def test_a_mix_of_lmcs():
    fabric = random_fabric(8, switches=6, degree=4, cas=1, lmc=2)
    lmc = fabric.endport_lmc.copy()
    lmc[::2] = 0
    mixed = replace(fabric, endport_lmc=lmc)
    lft = ENGINES["disjoint"].route(mixed, EngineOptions()).lft
    found = disjoint_paths(mixed, lft)
    assert (found.pairs, *found.shares) == slow_shares(mixed, lft)


def test_the_command_reports_the_shares(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "reversible").mkdir()
    made = run("route", "hyperx:3x3,cas=1,lmc=2", "-e", "disjoint", "-o", tmp_path / "out").stdout
    at_offset = "safe on the request's SL only if sent to the LID offset of the request"
    assert at_offset in made
    assert at_offset in run("check", "hyperx:3x3,cas=1,lmc=2", tmp_path / "out").stdout
    run("route", "hyperx:3x3,cas=1,lmc=2", "-e", "disjoint", "--reversible", "-o", tmp_path / "reversible")
    checked = run("check", "hyperx:3x3,cas=1,lmc=2", tmp_path / "reversible", "--json").stdout
    assert not json.loads(checked)["replies_at_offset"]
    text = run("quality", "hyperx:3x3,cas=1,lmc=2", tmp_path / "out").stdout
    assert "pairs by their least number of link-disjoint paths: 2: 100.0 %" in text
    measured = json.loads(run("quality", "hyperx:3x3,cas=1,lmc=2", tmp_path / "out", "--json").stdout)
    fabric = generate("hyperx", ["3x3"], cas=1, lmc=2)
    found = disjoint_paths(fabric, ENGINES["disjoint"].route(fabric, EngineOptions()).lft)
    assert measured["disjoint_paths"] == {
        "pairs": 72, "two": found.two, "three": found.three, "four": pytest.approx(found.four)
    }  # fmt: skip
