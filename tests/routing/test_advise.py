"""Check the comparison of engines on a fabric, and the recommendation."""

from dataclasses import replace

import numpy as np
import pytest

from routing.advise import Candidate, Refused, contenders, describe_kind, recommend, try_engine
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.quality import measure
from routing.topologies import generate

FABRIC = generate("torus", ["4x3"], cas=2)
OPTIONS = EngineOptions(vls=2)


@pytest.fixture(scope="module")
def candidate():
    return try_engine(ENGINES["updn"], OPTIONS, FABRIC, links=2)


def test_a_candidate_has_the_figures_of_its_own_tables(candidate):
    routing = ENGINES["updn"].route(FABRIC, OPTIONS)
    assert np.array_equal(candidate.routing.lft, routing.lft)
    assert candidate.proof.strength == prove(FABRIC, routing).strength
    assert candidate.quality.all_to_all == measure(FABRIC, routing).all_to_all
    assert candidate.changed is None and 0 <= candidate.worst_loss < 1


def test_changed_entries_are_counted_against_the_tables_in_force(candidate):
    now = candidate.routing.lft.copy()
    now[0, :3] ^= 1
    assert try_engine(ENGINES["updn"], OPTIONS, FABRIC, now=now).changed == 3


def test_an_engine_that_cannot_route_is_refused_with_its_reason():
    found = try_engine(ENGINES["lash"], EngineOptions(vls=1), generate("ring", ["9"], cas=1))
    assert isinstance(found, Refused) and "VL" in found.reason


def figures(
    candidate, name, a2a, bisection, *, vls=1, strength="reversible", loss=None, changed=None, seconds=0.01, paths=""
):
    """Return a candidate with the given figures.  Candidates with the same ``paths`` (or name) have equal tables."""
    quality = replace(candidate.quality, all_to_all=a2a, bisection_mean=bisection)
    proof = replace(candidate.proof, strength=strength)
    lft = candidate.routing.lft ^ np.uint8(sum((paths or name).encode()) % 251)
    routing = replace(candidate.routing, lft=lft, vls_needed=vls)
    return Candidate(name, routing, proof, quality, seconds, changed, loss)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"a2a": 0.9}, {"a2a": 0.8}),
        ({"bisection": 0.9}, {"bisection": 0.8, "vls": 0}),
        ({"strength": "reversible", "vls": 2}, {"strength": "forward"}),
        ({"vls": 1, "loss": 0.5}, {"vls": 2, "loss": 0.1}),
        ({"loss": 0.1}, {"loss": 0.2}),
        ({"changed": 3}, {"changed": 4}),
        ({"seconds": 1.0}, {"seconds": 10.0}),
        ({"a2a": 0.896, "vls": 1}, {"a2a": 0.9, "vls": 4}),
    ],
)
def test_order_of_two_candidates(candidate, better, worse):
    usual = {"a2a": 0.9, "bisection": 0.9}
    pair = [figures(candidate, "good", **{**usual, **better}), figures(candidate, "bad", **{**usual, **worse})]
    for order in (pair, pair[::-1]):
        assert recommend(order).candidate.engine == "good"


@pytest.mark.parametrize(
    ("others", "names"),
    [
        ([("equal", 0.9, 1, "reversible"), ("worse", 0.7, 1, "reversible")], ["good", "equal"]),
        ([("hungry", 0.9, 2, "reversible")], ["good"]),
        ([("fast", 0.95, 1, "forward"), ("forward", 0.9, 1, "forward")], ["fast", "good"]),
    ],
)
def test_only_candidates_that_a_lost_link_may_decide_between_are_contenders(candidate, others, names):
    found = [figures(candidate, "good", 0.9, 0.9)]
    found += [figures(candidate, name, a2a, 0.9, vls=vls, strength=strength) for name, a2a, vls, strength in others]
    assert sorted(each.engine for each in contenders(found)) == sorted(names)
    # The loss of any other candidate does not matter.
    other = [each if each.engine in names else replace(each, worst_loss=0.9) for each in found]
    assert recommend(other).candidate.engine == recommend(found).candidate.engine


def test_the_first_of_equal_candidates_is_recommended_at_any_fraction_of_a_second(candidate):
    pair = [figures(candidate, name, 0.9, 0.9, seconds=seconds) for name, seconds in (("updn", 0.9), ("dfsssp", 0.1))]
    assert recommend(pair).candidate.engine == "updn"


@pytest.mark.parametrize(("share", "engine", "words"), [
    (0.86, "safe", "replies are safe too; fast carries 4.4 % more, but only requests are safe"),
    (0.80, "fast", "the best of all-to-all and bisection together; only requests are safe, not replies"),
])  # fmt: skip
def test_a_certificate_for_replies_is_worth_some_throughput(candidate, share, engine, words):
    fast = figures(candidate, "fast", 0.9, 0.9, strength="forward")
    found = recommend([fast, figures(candidate, "safe", share, 0.9)])
    assert found.candidate.engine == engine and found.reason.startswith(words)


def test_nothing_is_recommended_without_a_candidate():
    assert recommend([]) is None


@pytest.mark.parametrize(
    ("kind", "sizes", "words"),
    [("kary-ntree", ["3", "2"], "tree"), ("torus", ["5x5"], "torus"), ("random-regular", ["20", "3"], "neither")],
)
def test_the_kind_of_a_fabric(kind, sizes, words):
    assert words in describe_kind(generate(kind, sizes))


def test_of_candidates_with_the_same_paths_only_the_first_loses_links(candidate):
    found = [figures(candidate, name, 0.9, 0.9, paths=paths) for name, paths in (("a", ""), ("b", "a"), ("c", ""))]
    assert [each.engine for each in contenders(found)] == ["a", "c"]
    assert found[1].has_paths_of(found[0]) and not found[2].has_paths_of(found[0])
