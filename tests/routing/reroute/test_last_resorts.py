"""Check what a repair does for LIDs without a path beside the dependencies of others: clear a VL, or copy the paths of
another LID.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from campaigns import without_slow

from routing.cdg.certificate import check_certificate
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import RoutingError
from routing.reroute import Published, reroute
from routing.reroute.prove_changes import prove_changes
from routing.reroute.translate import translate_tables
from routing.topologies import generate

ENGINE = ENGINES["nue"]


@cache
def published(size, vls, cas=2):
    fabric = generate("torus", [size], cas=cas)
    options = EngineOptions(threads=1, effort=0.1, vls=vls)
    routing = ENGINE.route(fabric, options)
    return Published(fabric, routing, prove(fabric, routing, threads=1)), options


@cache
def without(baseline, options, link):
    less = baseline.fabric.without_links([link])
    found = reroute(ENGINE, options, baseline, less, baseline=baseline)
    proof = prove(less, found.routing, threads=1)
    assert proof.complete
    assert proof.certified
    check_certificate(less, found.routing, found.proof.certificate, threads=1)
    return less, found


@pytest.mark.parametrize(
    ("size", "vls", "link"),
    without_slow([("6x6", 2, 19), ("6x6", 2, 32), ("6x6", 1, 23), ("4x4x4", 1, 14)], [("6x6", 2, 32), ("6x6", 1, 23)]),
)
def test_unused_dependencies_are_pruned(size, vls, link):
    """Before unused dependencies were pruned, these faults on few VLs needed a trace of all tables, or tables from
    scratch.
    """
    baseline, options = published(size, vls)
    less, found = without(baseline, options, link)
    assert found.statistics.pruned_lids > 0
    assert found.how == "repaired"
    assert found.statistics.proven_by_changes
    assert found.changed <= 6 * found.broken
    back = reroute(ENGINE, options, Published(less, found.routing, found.proof), baseline.fabric, baseline=baseline)
    assert back.how == "baseline"
    assert np.array_equal(back.routing.lft, baseline.routing.lft)
    again = reroute(ENGINE, options, baseline, less, baseline=baseline)
    assert np.array_equal(again.routing.lft, found.routing.lft)
    assert np.array_equal(again.routing.sl, found.routing.sl)


def test_a_lid_takes_the_paths_of_another(may_change_sls):
    baseline, options = published("8x8", 2)
    _, found = without(baseline, options, 59)
    assert found.statistics.copied_lids > 0
    assert found.how == "repaired"
    assert 10 * found.changed < baseline.routing.lft.size


def test_one_more_fault_after_a_last_resort():
    """Pruned dependencies are forbidden from then on: the next change is routed within the remaining ones."""
    baseline, options = published("6x6", 2)
    less, found = without(baseline, options, 19)
    before = Published(less, found.routing, found.proof)
    for link in np.unique(less.channels.link).tolist()[::36]:
        fewer = less.without_links([link])
        more = reroute(ENGINE, options, before, fewer, baseline=baseline)
        proof = prove(fewer, more.routing, threads=1)
        assert proof.complete
        check_certificate(fewer, more.routing, more.proof.certificate, threads=1)


def test_the_short_proof_takes_an_order_for_what_it_shows():
    """An order in which two channels are exchanged is a proof exactly if all used dependencies increase in it."""
    baseline, options = published("4x4x4", 2, cas=1)
    less, found = without(baseline, options, int(baseline.fabric.channels.link[7]))
    translated, rng = translate_tables(baseline.routing, baseline.fabric, less), np.random.default_rng(1)
    taken = {True: 0, False: 0}
    for _ in range(150):
        order = found.proof.certificate.order.copy()
        vl, near = rng.integers(len(order)), rng.integers(order.shape[1] - 40)
        one, other = np.argsort(order[vl])[near + rng.permutation(40)[:2]]
        order[vl, [one, other]] = order[vl, [other, one]]
        short = prove_changes(less, found.routing, baseline, translated, order)
        try:
            check_certificate(less, found.routing, replace(found.proof.certificate, order=order), threads=1)
            holds = True
        except RoutingError:
            holds = False
        assert (short is not None) == holds
        taken[holds] += 1
    assert min(taken.values()) > 20
