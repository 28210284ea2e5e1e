import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, random_fabric, ring_fabric

from routing.deadlock.proof import prove
from routing.engines import ENGINES, layered
from routing.engines.base import EngineOptions, Objective
from routing.errors import NotEnoughVLs, OptionError
from routing.quality import measure
from routing.topologies import generate

LAYERED = [("dfsssp", {}), ("dfsssp", {"reversible": True}), ("lash", {})]
named = pytest.mark.parametrize(("engine", "options"), LAYERED, ids=["dfsssp", "dfsssp both ways", "lash"])


def all_to_all(fabric, routing):
    return measure(fabric, routing, bisections=1, shifts=1, permutations=1).all_to_all


@examples(60)
@given(
    fabrics(connected=False, min_switches=0, max_switches=14, max_cas=3),
    st.sampled_from(LAYERED),
    st.sampled_from(["auto", "min", 15]),
    st.sampled_from(Objective),
)
def test_random_and_broken_fabrics_are_certified(fabric, engine, vls, objective):
    name, options = engine
    routing = ENGINES[name].route(
        fabric, EngineOptions(vls=vls, effort=0.1, objective=objective, port_vls=15, **options)
    )
    proof = prove(fabric, routing)
    assert proof.complete
    assert proof.certified
    assert routing.vls >= routing.vls_needed
    if name == "lash" or options:
        assert proof.strength == "reversible"


@examples(60)
@given(
    fabrics(connected=False, min_switches=0, max_switches=14, max_cas=3), st.sampled_from(["sssp", "dfsssp", "lash"])
)
def test_paths_are_shortest(fabric, engine):
    """On trees, only the paths between end ports are shortest."""
    routing = ENGINES[engine].route(fabric, EngineOptions(vls="min", effort=0.1))
    hops, lids = prove(fabric, routing).hops, fabric.lids
    distance = np.array(fabric.graph.distances(mode="out")).reshape(fabric.switches, fabric.switches)
    is_tree = routing.provenance.options.get("paths") == "tree"
    sources = np.flatnonzero(fabric.terminals_at) if is_tree else np.arange(fabric.switches)
    for lid in np.flatnonzero((lids.switch >= 0) & (~is_tree | (lids.endport >= 0))):
        expected = distance[sources, lids.switch[lid]]
        assert np.array_equal(np.where(np.isfinite(expected), expected, 255), hops[sources, lid])


@examples(30)
@given(fabrics(connected=False, min_switches=0, max_switches=12, max_cas=2))
def test_lash_has_one_sl_both_directions_between_two_switches(fabric):
    routing = ENGINES["lash"].route(fabric, EngineOptions(effort=0.1))
    own = np.flatnonzero(fabric.lids.switch >= 0)
    at = fabric.lids.switch[own]
    pairs = {}
    for lid, to in zip(own, at, strict=True):
        for start in range(fabric.switches):
            assert pairs.setdefault((min(start, to), max(start, to)), routing.sl[start, lid]) == routing.sl[start, lid]


EXPECTED = [
    ("torus", ["4x4x4"], {"dfsssp": 1, "lash": 1}),
    ("hypercube", ["5"], {"dfsssp": 1, "lash": 1}),
    ("mesh", ["4x5"], {"dfsssp": 1, "lash": 1}),
    ("torus", ["5x5"], {"dfsssp": 4, "lash": 4}),
    ("kary-ntree", ["3", "3"], {"dfsssp": 1, "lash": 1}),
    ("dragonfly", ["4", "2", "2"], {"dfsssp": 2, "lash": 3}),
    ("kautz", ["4", "2"], {"dfsssp": 3, "lash": 3}),
]


@pytest.mark.parametrize("engine", ["dfsssp", "lash"])
@pytest.mark.parametrize(("name", "arguments", "expected"), EXPECTED, ids=[f"{a} {b[0]}" for a, b, _ in EXPECTED])
def test_few_layers_and_good_balance(engine, name, arguments, expected):
    fabric = generate(name, arguments, cas=3)
    routing = ENGINES[engine].route(fabric, EngineOptions(vls="min"))
    assert routing.vls == routing.vls_needed <= expected[engine]
    assert prove(fabric, routing).certified
    balanced = ENGINES["minhop"].route(fabric, EngineOptions())
    assert all_to_all(fabric, routing) >= all_to_all(fabric, balanced) / 1.03 - 1e-6


@named
def test_vls_that_may_be_used_are_used(engine, options):
    fabric = random_fabric(7, switches=30, degree=4, cas=2)
    for vls, port_vls, used in (("auto", 8, 8), ("auto", 6, 6), (7, 8, 7)):
        routing = ENGINES[engine].route(fabric, EngineOptions(vls=vls, port_vls=port_vls, effort=0.1, **options))
        assert routing.vls == used == len(np.unique(routing.sl))
        assert routing.sl2vl.tolist() == [sl % used for sl in range(16)]


@named
def test_too_few_vls_are_never_passed_over(engine, options):
    fabric = ring_fabric(7, cas=1)
    with pytest.raises(NotEnoughVLs) as caught:
        ENGINES[engine].route(fabric, EngineOptions(vls=1, **options))
    assert caught.value.have == 1
    fewest = ENGINES[engine].route(fabric, EngineOptions(vls="min", **options)).vls
    assert 2 <= fewest <= caught.value.needed
    assert prove(fabric, ENGINES[engine].route(fabric, EngineOptions(vls=caught.value.needed, **options))).certified


@pytest.mark.parametrize(
    ("vls", "effort", "paths"),
    [(3, 1.0, None), (3, 0.0, "mirrored shortest"), (2, 1.0, "shortest paths without balance")],
)
def test_directors_fit_by_simpler_paths(vls, effort, paths, monkeypatch):
    """Without paths for trees, a director is routed like a fabric that is not a tree."""
    monkeypatch.setattr("routing.engines.layered.tree_paths", lambda *_: None)
    fabric = generate("director", ["4", "8", "4", "8"], cas=2)
    routing = ENGINES["lash"].route(fabric, EngineOptions(vls=vls, effort=effort))
    assert prove(fabric, routing).strength == "reversible"
    assert routing.vls == vls
    assert str(routing.provenance.options.get("fallback")).startswith(str(paths))


@pytest.mark.parametrize("engine", ["dfsssp", "lash"])
@pytest.mark.parametrize("vls", [6, "min"])
def test_searches_that_end_early_leave_simpler_paths(engine, vls, monkeypatch):
    """This happens on a large fabric whose first paths would take all visits of an attempt."""
    monkeypatch.setattr("routing.engines.layered.FIRST_VISITS", 0)
    fabric = generate("cascade", ["1"], cas=1)
    routing = ENGINES[engine].route(fabric, EngineOptions(vls=vls, effort=0.0))
    assert prove(fabric, routing).certified
    assert "fallback" in routing.provenance.options


def test_a_search_that_reached_its_limits_is_not_repeated_with_more_layers(monkeypatch):
    """On a random network of 1500 switches, the repetition took half a minute, and found nothing."""
    budgets, search = [], layered.layering
    monkeypatch.setattr(layered, "FIRST_VISITS", 0)
    monkeypatch.setattr(layered, "layering", lambda *a, **given: budgets.append(given["budget"]) or search(*a, **given))
    with pytest.raises(NotEnoughVLs, match=r"^the search needed \d+ VLs, 2 may be used$"):
        ENGINES["dfsssp"].route(generate("random-regular", ["40", "4"]), EngineOptions(vls=2, effort=0.0, threads=1))
    assert budgets.count(0) == 1 and set(budgets) == {0, layered.SIMPLE_VISITS}


def test_a_number_that_a_search_found_is_not_called_needed():
    with pytest.raises(NotEnoughVLs, match=r"^the search needed [23] VLs, 1 may be used$"):
        ENGINES["lash"].route(ring_fabric(7, cas=1), EngineOptions(vls=1))


@pytest.mark.parametrize("engine", ["sssp", "dfsssp", "lash"])
def test_threads_change_nothing(engine, same_tables):
    fabric = random_fabric(2, switches=40, degree=5, cas=3, parallel=2, lmc=1)
    one, four = (ENGINES[engine].route(fabric, EngineOptions(threads=threads, effort=0.2)) for threads in (1, 4))
    assert same_tables(one, four)


HASHES = """
import hashlib, sys
sys.path.insert(0, "tests")
from strategies import random_fabric
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
fabric = random_fabric(2, switches=30, degree=4, cas=2, parallel=2)
for engine in ("sssp", "dfsssp", "lash"):
    routing = ENGINES[engine].route(fabric, EngineOptions(effort=0.1, vls="min"))
    print(hashlib.sha256(routing.lft.tobytes() + routing.sl.tobytes()).hexdigest())
"""


def test_hash_seeds_change_nothing():
    root = Path(__file__).parents[3]
    outputs = []
    for seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run([sys.executable, "-c", HASHES], check=True, capture_output=True, cwd=root, env=environment)
        outputs.append(run.stdout)
    assert outputs[0] == outputs[1]
    assert len(set(outputs[0].split())) == 3


@pytest.mark.parametrize("engine", ["sssp", "dfsssp", "lash"])
def test_roots_are_refused(engine):
    with pytest.raises(OptionError, match=f"{engine} has no roots"):
        ENGINES[engine].route(random_fabric(1), EngineOptions(roots=("sw1",)))


@pytest.mark.parametrize("engine", ["minhop", "sssp"])
def test_replies_are_promised_only_where_they_are_safe(engine):
    with pytest.raises(OptionError, match="replies"):
        ENGINES[engine].route(random_fabric(1), EngineOptions(reversible=True))


def test_sssp_is_balanced_as_minhop_is_or_better():
    for fabric in (random_fabric(3, switches=40, degree=5, cas=3), generate("torus", ["4x4x4"], cas=3)):
        sssp, minhop = (ENGINES[engine].route(fabric, EngineOptions()) for engine in ("sssp", "minhop"))
        assert all_to_all(fabric, sssp) >= all_to_all(fabric, minhop)


@named
def test_regions_of_destinations_prefer_layers(engine, options):
    fabric = random_fabric(7, switches=40, degree=5, cas=2)
    routing = ENGINES[engine].route(fabric, EngineOptions(partition="metis", **options))
    assert prove(fabric, routing).certified
    assert routing.sl.tobytes() != ENGINES[engine].route(fabric, EngineOptions(**options)).sl.tobytes()


@named
def test_a_torus_with_a_missing_switch_keeps_its_directions(engine, options):
    whole = generate("torus", ["5x5"], cas=2)
    routing = ENGINES[engine].route(whole, EngineOptions(vls="min", **options))
    assert routing.provenance.options["paths"] == "directed"


def test_the_published_rule_takes_longer_paths_where_channels_are_full():
    fabric = generate("dragonfly", ["4", "2", "2"], cas=2)
    short, published = (ENGINES["sssp"].route(fabric, EngineOptions(minimal=minimal)) for minimal in (True, False))
    hops = [prove(fabric, routing).hops.astype(int) for routing in (short, published)]
    assert (hops[1] >= hops[0]).all()
    assert hops[1].sum() > hops[0].sum()


@pytest.mark.parametrize("engine", ["minhop", "updn", "nue", "dfsssp", "lash"])
def test_longer_paths_are_refused_where_there_are_none(engine):
    with pytest.raises(OptionError, match="paths"):
        ENGINES[engine].route(random_fabric(1), EngineOptions(minimal=False))


def test_the_published_rule_knows_no_passes():
    with pytest.raises(OptionError, match="published rule"):
        ENGINES["sssp"].route(random_fabric(1), EngineOptions(minimal=False, passes=1))


@named
def test_vls_begin_where_they_are_given(engine, options):
    fabric = random_fabric(7, switches=20, degree=4, cas=2)
    routing = ENGINES[engine].route(fabric, EngineOptions(first_vl=3, port_vls=8, **options))
    assert set(np.unique(routing.sl[:, fabric.endport_lid])) <= set(range(3, 8))
    assert prove(fabric, routing).certified
