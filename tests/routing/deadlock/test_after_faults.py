"""Check transitions after the loss of CAs, switches or links, after a split of the fabric, or after a CA has moved."""

import numpy as np
import pytest
from examples import SHARE
from slow_transition import Case, Side, case_of, check, rebuilt
from strategies import random_fabric

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.reroute import Published, Stability, reroute

FALSE_ANY_ORDER = (42, 81, 87, 143, 165, 237, 366, 370, 455, 486)
FALSE_ORDERED = (100, 104, 128, 130, 167, 230, 241, 246, 297, 316)
"""Seeds with which traffic towards LIDs that are lost or cut off closes a loop.  Without this traffic, there is no
loop.
"""
CAMPAIGN = 2000


@pytest.mark.parametrize("seed", [*range(max(4, round(24 * SHARE))), *FALSE_ANY_ORDER, *FALSE_ORDERED])
def test_verdict_plan_and_rounds_agree_with_walking_every_packet(seed):
    check(case_of(seed), replies=seed % 4 == 0)


@pytest.mark.parametrize(("seed", "link"), [(0, 3), (1, 19), (4, 11), (6, 18)])
def test_a_dual_ported_ca_and_a_link_of_ten_switches_die(seed, link):
    fabric = random_fabric(seed, switches=10, degree=4, cas=1, dual_port_cas=1)
    options, engine = EngineOptions(effort=0.1, seed=1, vls=8), ENGINES["dfsssp"]
    old = engine.route(fabric, options)
    dual = int(fabric.terminal_guid[np.flatnonzero(fabric.terminal_ports == 2)[0]])
    less = rebuilt(fabric, without={dual}).without_links([link])
    before = Published(fabric, old, prove(fabric, old))
    new = reroute(engine, options, before, less, stability=Stability.BALANCED).routing
    assert check(Case(seed, "named", Side(fabric, old), Side(less, new))).startswith("ordered")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CAMPAIGN, 100))
def test_two_thousand_transitions_agree_with_walking_every_packet(first):
    for seed in range(first, first + 100):
        check(case_of(seed), replies=seed % 4 == 0)
