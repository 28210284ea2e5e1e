"""Check rebalance steps that take LFTs from scratch, and the SLs that such a step needs."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from rebalance_cases import OPTIONS, published, share
from slow_rounds import check_rounds

from benchmarks.accumulated import losses
from routing._kernels.assign_vls import NO_VL
from routing.cdg.certificate import check_certificate
from routing.cdg.trace import uniform_sl2vl, vl_bits
from routing.deadlock.proof import prove
from routing.deadlock.schedule_search import find_schedule
from routing.engines import ENGINES
from routing.reroute import Published, precompute, reroute, spread
from routing.reroute.sls_for_change import sls_for_change
from routing.reroute.strategies.from_scratch import FROM_SCRATCH
from routing.topologies import generate


def after_faults(name, size, seed, changes):
    """Return the baseline tables of a mesh, and the tables after some links have failed or returned."""
    fabric = generate("mesh", [size], cas=1)
    baseline = now = published(fabric, name)
    for less in islice(losses(fabric, changes, seed), changes):
        found = reroute(ENGINES[name], OPTIONS, now, less, baseline=baseline)
        now = Published(less, found.routing, found.proof)
    return baseline, now


def step_of(name, before, baseline, most):
    """Return the result and the tables of a step.  Check that its rounds are safe, and that it is certified."""
    step = spread(ENGINES[name], OPTIONS, before, most=most, baseline=baseline)
    after = Published(before.fabric, step.routing, step.proof)
    check_certificate(before.fabric, step.routing, step.proof.certificate, threads=1)
    schedule = find_schedule(before.fabric, before.routing, step.routing, replies=True)
    check_rounds(before.fabric, before.routing, step.routing, schedule, replies=True)
    return step, after


@pytest.mark.parametrize("name, seed, changes, removes", [("updn", 2, 4, True), ("nue", 1, 1, False)])
def test_a_step_takes_lfts_from_scratch_if_no_smaller_change_gains(name, seed, changes, removes):
    """With a limit of 5 entries, no step exists.  With `updn`, safe rounds remove many entries for a while."""
    baseline, now = after_faults(name, "3x3", seed, changes)
    fresh = published(now.fabric, name)
    assert spread(ENGINES[name], OPTIONS, now, most=5, baseline=baseline) is None
    step, after = step_of(name, now, baseline, 20)
    assert step.reason == "the LFTs were computed from scratch"
    assert 0 < np.count_nonzero(step.routing.lft != now.routing.lft) <= FROM_SCRATCH * 20
    assert np.array_equal(after.routing.lft, fresh.routing.lft) and np.array_equal(after.routing.sl, now.routing.sl)
    assert share(after) > 1.02 * share(now)
    assert (find_schedule(now.fabric, now.routing, after.routing, replies=True, few=0) is None) == removes


def test_sls_change_first_if_the_present_sls_do_not_allow_lfts_from_scratch():
    baseline, now = after_faults("dfsssp", "4x4", 3, 3)
    fresh = published(now.fabric, "dfsssp")
    proof = prove(now.fabric, replace(now.routing, lft=fresh.routing.lft), threads=1)
    assert proof.certificate is None or proof.strength != "reversible"
    step, with_sls = step_of("dfsssp", now, baseline, 256)
    assert step.statistics.prepared_sls and "SLs changed, so that the next step can move entries" in step.reason
    assert np.array_equal(with_sls.routing.lft, now.routing.lft) and not np.array_equal(step.routing.sl, now.routing.sl)
    step, after = step_of("dfsssp", with_sls, baseline, 256)
    assert step.reason == "the LFTs were computed from scratch"
    assert np.array_equal(after.routing.lft, fresh.routing.lft)
    assert np.array_equal(after.routing.sl, with_sls.routing.sl)
    assert share(after) > 1.02 * share(now)


def sls_for(before, lft, sl_of_vl):
    routing, proof = before.routing, before.proof
    return sls_for_change(
        before.fabric, routing, lft, dependencies=proof.cdg, certificate=proof.certificate,
        vl_bit=vl_bits(uniform_sl2vl(routing)), sl_of_vl=sl_of_vl, visits=10**6,
    )  # fmt: skip


@pytest.mark.parametrize("name, other", [("dfsssp", "updn"), ("lash", "dfsssp")])
@pytest.mark.parametrize("words", ["mesh 3x4", "torus 3x3", "kautz 2 3", "random-regular 10 3"])
def test_sls_for_a_change_are_safe_with_both_lfts(words, name, other):
    """While senders use old and new SLs, the present entries are safe.  With the new SLs, the other LFTs are safe."""
    topology, *words = words.split()
    fabric = generate(topology, words, cas=1)
    before, lft = published(fabric, name), published(fabric, other, replace(OPTIONS, seed=7)).routing.lft
    routing, sl = before.routing, sls_for(before, lft, precompute(before).sl_of_vl)
    with_sls = replace(routing, sl=sl, vls_needed=routing.vls)
    replies = before.proof.strength == "reversible"
    schedule = find_schedule(fabric, routing, with_sls, replies=replies, threads=1)
    check_rounds(fabric, routing, with_sls, schedule, replies=replies)
    for tables in (with_sls, replace(with_sls, lft=lft)):
        found = prove(fabric, tables, threads=1)
        assert found.certificate is not None and (not replies or found.strength == "reversible")


def test_without_a_free_vl_no_sls_are_found():
    """A ring needs two VLs for the shortest paths, so the tables of dfsssp do not fit on one VL."""
    before = published(generate("ring", ["6"], cas=1), "dfsssp")
    one_vl = precompute(before).sl_of_vl.copy()
    assert sls_for(before, before.routing.lft, one_vl) is not None
    one_vl[1:] = NO_VL
    assert sls_for(before, before.routing.lft, one_vl) is None
