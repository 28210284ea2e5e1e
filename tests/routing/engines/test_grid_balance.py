"""Check that the balance around missing links makes the moves of a slow reference, and lowers the highest
utilisation.
"""

import numpy as np
import pytest
from slow_grid_balance import balance_slowly

from routing._kernels.symmetric_paths import LinkBundles
from routing.deadlock.proof import prove
from routing.engines import ENGINES, dor, grid_tables
from routing.engines.base import EngineOptions
from routing.engines.destinations import inverse_capacity
from routing.engines.grid_balance import balance_detours
from routing.engines.grid_tables import GridRoutes, place
from routing.errors import NotEnoughVLs
from routing.faults.choose import between_switches
from routing.grids.miscabled import facts
from routing.topologies import generate

SHAPES = [
    ("torus", "5x5"),
    ("torus", "6x4x3"),
    ("mesh", "5x6"),
    ("hyperx", "5x4"),
    ("hypercube", "4"),
    ("torus", "4x4x4"),
]


def faulty(name, size, seed, *, redundancy=1, missing=0.06):
    fabric = generate(name, [size], cas=2, redundancy=redundancy)
    links = np.random.default_rng(seed).permutation(between_switches(fabric))
    return fabric.without_links(links[: max(1, int(missing * len(links)))].tolist())


@pytest.mark.parametrize(("name", "size"), SHAPES)
@pytest.mark.parametrize("seed", [1, 2])
def test_moves_are_those_of_the_reference(name, size, seed):
    fabric = faulty(name, size, seed, redundancy=1 + seed % 2)
    routes = GridRoutes.of(fabric, EngineOptions())
    bundles = LinkBundles.between_switches(fabric.channels, inverse_capacity(fabric, None))
    weight = np.random.default_rng(seed).integers(0, 4, (2, fabric.switches)).astype(float)
    found, visits = balance_detours(fabric, bundles, routes.paths, weight, visits=1 << 40)
    expected = balance_slowly(fabric, bundles, routes.paths, weight)
    assert not np.array_equal(found.hop, routes.paths.hop)
    assert np.array_equal(found.hop, expected.hop) and np.array_equal(found.regular, expected.regular)
    assert 0 < visits < 1 << 40


def test_without_visits_no_path_moves():
    fabric = faulty("torus", "5x5", 1)
    routes, weight = GridRoutes.of(fabric, EngineOptions()), np.ones((2, fabric.switches))
    found, visits = balance_detours(fabric, routes.bundles, routes.paths, weight, visits=0)
    assert visits == 0
    assert np.array_equal(found.hop, routes.paths.hop) and np.array_equal(found.regular, routes.paths.regular)


@pytest.mark.parametrize(
    ("engine", "seed", "missing", "vls"), [("dor", 1002, 2, 2), ("dor", 1009, 3, 2), ("torus-2qos", 245, 5, 4)]
)
def test_balanced_paths_are_taken_if_only_they_fit_into_the_vls(engine, seed, missing, vls):
    whole = generate("torus", ["5x5"], cas=1)
    links = np.random.default_rng(seed).permutation(between_switches(whole))
    fabric = whole.without_links(links[:missing].tolist())
    routing = ENGINES[engine].route(fabric, EngineOptions(vls=vls, threads=1))
    assert routing.vls_needed <= vls and prove(fabric, routing, threads=1).certified


@pytest.mark.parametrize(("vls", "missing", "expected"), [(1, 0, 1), (2, 0, 2), (3, 2, 2)])
def test_dor_places_paths_only_once_in_the_same_way(vls, missing, expected, monkeypatch):
    whole = generate("torus", ["5x5"], cas=1)
    links = np.random.default_rng(1).permutation(between_switches(whole))
    routes = GridRoutes.of(whole.without_links(links[:missing].tolist()), EngineOptions(effort=0, threads=1))
    found = []
    monkeypatch.setattr(dor, "place", lambda *each, **options: found.append(place(*each, **options)) or found[-1])
    dor.ENGINE._service_levels(routes, vls, sequences=(False, True), visits=dor.VISITS)
    assert len(found) == len({one.vl.tobytes() for one in found}) == expected


@pytest.mark.parametrize("engine", ["dor", "torus-2qos"])
def test_paths_are_not_balanced_if_too_many_have_no_vl(engine, monkeypatch):
    whole = generate("torus", ["10x10"], cas=1)
    links = np.random.default_rng(1).permutation(between_switches(whole))
    fabric = whole.without_links(links[:26].tolist())
    monkeypatch.setattr(GridRoutes, "balanced", lambda self: pytest.fail("paths were balanced"))
    if engine == "dor":
        routing = ENGINES[engine].route(fabric, EngineOptions(vls=3, threads=1))
        reason = "no: the search found no 3 VLs on which the rings and the detours around missing links close no cycle"
        assert routing.provenance.options["loop_free"] == reason
    else:
        with pytest.raises(NotEnoughVLs, match="no detours around missing links without credit loops with up to 3 VLs"):
            ENGINES[engine].route(fabric, EngineOptions(vls=3, threads=1))


def test_without_work_no_routes_are_balanced():
    assert not list(GridRoutes.of(faulty("torus", "5x5", 1), EngineOptions(effort=0)).balanced())


@pytest.mark.parametrize("engine", ["dor", "torus-2qos"])
def test_links_that_may_be_miscabled_are_searched_once(engine, monkeypatch):
    calls = []
    monkeypatch.setattr(grid_tables, "facts", lambda *each: calls.append(each) or facts(*each))
    routing = ENGINES[engine].route(faulty("torus", "6x6", 1, missing=0.2), EngineOptions(threads=1))
    assert routing.provenance.options["detours"] and len(calls) == 1


def test_fewer_paths_move_until_the_vls_suffice():
    fabric = faulty("torus", "6x6x6", 1, missing=0.05)
    routes = GridRoutes.of(fabric, EngineOptions())
    moved = [np.count_nonzero(~one.paths.regular) for one in (*routes.balanced(), routes)]
    assert len(moved) == 5 and moved == sorted(moved, reverse=True) and moved[3] > moved[4]
    routing = ENGINES["dor"].route(fabric, EngineOptions())
    assert "loop_free" not in routing.provenance.options and prove(fabric, routing).certified
    assert routing.provenance.options["detours"] > moved[4]
