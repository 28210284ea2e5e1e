"""Check that the bound of the loss with stability ``full`` is the smallest loss with any next hops for the broken
entries.
"""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from benchmarks.least_full import GAP, choices, least_loss
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.reroute import Published, Stability, precompute
from routing.reroute.context import Request, RerouteContext
from routing.reroute.translate import translate_tables
from routing.topologies import generate


def peak(fabric, lft, lids):
    """Return the largest number of paths over a channel, or None if a path is a forwarding loop."""
    load = Counter()
    for lid in lids:
        for switch in range(fabric.switches):
            at, hops = switch, 0
            while at != fabric.lids.switch[lid]:
                channel, hops = int(fabric.channels.at_port[at, lft[at, lid]]), hops + 1
                if hops > fabric.switches:
                    return None
                load[channel] += 1
                at = int(fabric.channels.dst[channel])
    return max(load.values())


@pytest.mark.parametrize("link", [0, 7, 12])
def test_no_choice_of_next_hops_loses_less(link):
    pytest.importorskip("scipy")
    fabric, engine, options = generate("torus", ["3x3"], cas=1), ENGINES["nue"], EngineOptions(threads=1)
    routing = engine.route(fabric, options)
    before = Published(fabric, routing, prove(fabric, routing, threads=1))
    less = fabric.without_links([np.unique(fabric.channels.link)[link]])
    tables = translate_tables(routing, fabric, less)
    request = Request(engine, options, before, less, Stability.FULL, before, tables)
    context = RerouteContext.of(request, precompute(before, before)).prepared()
    lft, lids = context.start.lft.copy(), np.flatnonzero(less.lids.endport >= 0).tolist()
    entries = [(s, lid) for lid in lids for s in range(less.switches) if lft[s, lid] == 255]
    channels, peaks = less.channels, []
    for chosen in product(*(channels.port[channels.first[s] : channels.first[s + 1]] for s, _ in entries)):
        for (switch, lid), port in zip(entries, chosen, strict=True):
            lft[switch, lid] = port
        peaks.append(peak(less, lft, lids))
    least = max(0, 1 - peak(fabric, routing.lft, lids) / min(found for found in peaks if found))
    bound = least_loss(context, choices(context, dependencies=False))
    assert 1 < len(entries) < 8
    assert bound == pytest.approx(least, abs=GAP)
