"""Check that the trace of packets that change their VL finds the CDG edges that are found by following every packet."""

from dataclasses import replace

import numpy as np
from examples import examples
from hypothesis import given
from slow_proof import SCOPES, prove_slowly, routed

from routing._kernels.cdg_by_vl import trace_vls, trace_vls_endports
from routing._kernels.slots import Slots
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import Fabric
from routing.topologies import generate


def edges(fabric: Fabric, masks: np.ndarray) -> set:
    """Return the CDG edges of the masks of a trace, as pairs of (switch, port, VL)."""
    before, after = fabric.channels.edges.channels()
    at = list(zip(fabric.channels.src.tolist(), fabric.channels.port.tolist(), strict=True))
    masks = masks[fabric.channels.edges.numbers()]
    return {
        ((*at[before[row]], own), (*at[after[row]], vl))
        for row, own in np.argwhere(masks).tolist()
        for vl in range(16)
        if masks[row, own] >> vl & 1
    }


@examples(60)
@given(routed(max_switches=5, max_cas=3))
def test_edges_are_those_of_all_walks(case):
    fabric, routing = case
    if routing.sl2vl.ndim == 1:
        ports = 1 + int(fabric.switch_ports.max())
        routing = replace(routing, sl2vl=np.tile(routing.sl2vl, (fabric.switches, ports, ports, 1)))
    slow, slots = prove_slowly(fabric, routing), Slots.of(fabric)
    for replies, graphs in ((False, slow.requests), (True, slow.both)):
        found = trace_vls(fabric, routing, slots, replies=replies, threads=1)
        endports = trace_vls_endports(fabric, routing, slots, found, replies=replies, threads=1)
        for scope, masks in zip(SCOPES, (found.dep, endports), strict=True):
            assert edges(fabric, masks) == set(graphs[scope].edges)


def test_a_lid_that_its_switch_sends_on_is_followed_beside_a_delivered_lid():
    fabric = generate("ring", ["4"], cas=2)
    routing = ENGINES["minhop"].route(fabric, EngineOptions(threads=1, vls=1))
    ports = 1 + int(fabric.switch_ports.max())
    lft, channels = routing.lft.copy(), fabric.channels
    last = int(np.flatnonzero((fabric.lids.switch == 0) & (fabric.lids.port > 0))[-1])
    first = int(np.flatnonzero((fabric.lids.switch == 0) & (fabric.lids.port > 0))[0])
    lft[:, last] = lft[:, first]
    lft[0, last] = channels.port[channels.first[0]]
    sl2vl = np.tile(routing.sl2vl, (fabric.switches, ports, ports, 1))
    routing = replace(routing, lft=lft, sl2vl=sl2vl)
    found = trace_vls(fabric, routing, Slots.of(fabric), replies=False, threads=1)
    assert edges(fabric, found.dep) == set(prove_slowly(fabric, routing).requests[SCOPES[0]].edges)
