"""Check SLs that change in a separate step, so that entries can move in the next step."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from rebalance_cases import OPTIONS, published, share
from strategies import fabrics

from routing.cdg.certificate import check_certificate
from routing.deadlock.proof import prove
from routing.deadlock.schedule_search import find_schedule
from routing.engines import ENGINES
from routing.reroute import Published, Stability, precompute, reroute, spread
from routing.reroute.context import Request, RerouteContext
from routing.reroute.strategies.prepared_sls import sls_for_moves
from routing.reroute.strategies.steps import released
from routing.reroute.translate import translate_tables
from routing.topologies import generate


def searched(before, name, most):
    """Return the SLs and the LFT after a search that may prepare SLs."""
    tables = translate_tables(before.routing, before.fabric, before.fabric)
    request = Request(ENGINES[name], OPTIONS, before, before.fabric, Stability.BALANCED, None, tables)
    context = RerouteContext.of(request, precompute(before))
    return sls_for_moves(context, released(context), most)


def assert_both_steps_are_safe(before, sl, lft):
    """Check that the new SLs are safe with the present entries, also while old SLs are in use, and that the new entries
    are safe with the new SLs.
    """
    fabric, routing, strength = before.fabric, before.routing, before.proof.certificate.strength
    with_sls = replace(routing, sl=sl, vls_needed=routing.vls)
    schedule = find_schedule(fabric, routing, with_sls, replies=strength == "reversible", threads=1)
    assert schedule is not None
    assert len(schedule) <= 1
    for tables in (with_sls, replace(routing, sl=sl, lft=lft, vls_needed=routing.vls)):
        proof = prove(fabric, tables, threads=1)
        assert proof.certificate is not None
        assert strength == "forward" or proof.certificate.strength == "reversible"


@examples(60)
@given(data=st.data())
def test_prepared_sls_are_safe_before_and_after_the_moves(data):
    fabric = data.draw(fabrics(min_switches=4, faults=False, max_switches=12))
    name = data.draw(st.sampled_from(["dfsssp", "lash"]))
    before = published(fabric, name)
    if before.routing.service_levels.by_switch:
        assert_both_steps_are_safe(before, *searched(before, name, data.draw(st.sampled_from([5, 50, 1000]))))


@pytest.fixture(scope="module")
def worn():
    """Return the baseline and the present tables of dfsssp on a 4x4 torus that has lost six links."""
    fabric, engine = generate("torus", ["4x4"], cas=2), ENGINES["dfsssp"]
    baseline = now = published(fabric, "dfsssp")
    links = np.random.default_rng(2).permutation(np.unique(fabric.channels.link))
    for lost in range(1, 7):
        less = fabric.without_links(sorted(links[:lost].tolist()))
        found = reroute(engine, OPTIONS, now, less, baseline=baseline)
        now = Published(less, found.routing, found.proof)
    return baseline, now


@pytest.mark.parametrize("most", [20, 60, 400])
def test_prepared_sls_of_tables_after_faults(worn, most):
    _, now = worn
    sl, lft = searched(now, "dfsssp", most)
    assert (sl != now.routing.sl).any()
    assert (lft != now.routing.lft).any()
    assert_both_steps_are_safe(now, sl, lft)


def test_steps_that_change_sls_let_entries_move(worn):
    baseline, now = worn
    gains = []
    for _ in range(20):
        step = spread(ENGINES["dfsssp"], OPTIONS, now, most=60, baseline=baseline)
        if step is None or step.how == "unchanged":
            break
        after = Published(now.fabric, step.routing, step.proof)
        check_certificate(now.fabric, step.routing, step.proof.certificate, threads=1)
        assert find_schedule(now.fabric, now.routing, step.routing, replies=True, threads=1) is not None
        if step.statistics.prepared_sls:
            assert np.array_equal(step.routing.lft, now.routing.lft)
            assert step.statistics.prepared_sls == np.count_nonzero(step.routing.sl != now.routing.sl)
            assert "so that the next step can move entries" in step.reason
            gains.append(share(now))
        now = after
    assert gains
    assert share(now) > 1.03 * gains[0]


def test_sls_of_the_baseline_do_not_change_for_balance(worn):
    _baseline, now = worn
    own = Published(now.fabric, now.routing, now.proof)
    for _ in range(20):
        step = spread(ENGINES["dfsssp"], OPTIONS, now, most=60, baseline=own)
        if step is None or step.how == "unchanged":
            break
        assert not step.statistics.prepared_sls
        now = Published(now.fabric, step.routing, step.proof)
