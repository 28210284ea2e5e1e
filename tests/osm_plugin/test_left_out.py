"""Check active links that are left out of routing: no path uses these links, but switches may still forward over
them.
"""

import os

import numpy as np
import pytest
from plugin_request import write_request
from switch_tables import holding

from osm_plugin.answer import SharedMemory
from osm_plugin.base import base_of
from osm_plugin.route_or_reroute import options_key
from osm_plugin.snapshot import read_request
from osm_plugin.state import SavedTables
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.topologies import generate

OPTIONS = EngineOptions(effort=0.1, vls=1)


def made(fabric):
    routing = ENGINES["updn"].route(fabric, OPTIONS)
    return SavedTables(fabric, routing, prove(fabric, routing), "updn", options_key(OPTIONS))


@pytest.mark.parametrize("kind", ["sick", "throttled"])
def test_entries_over_a_link_that_is_left_out_are_unknown(kind):
    fabric = generate("torus", ["4x4"], cas=1)
    before, channels = made(fabric), fabric.channels
    link = int(channels.link[0])
    memory = SharedMemory(os.memfd_create("request"))
    write_request(fabric, memory, installed=holding(before, fabric), **{kind: [link]})
    snapshot = read_request(memory.view())
    assert snapshot.fabric.digest == fabric.without_links([link]).digest
    after = made(snapshot.fabric)
    base = base_of(snapshot.fabric, snapshot.switch_tables, after.routing, [(before, True)])
    expected = np.zeros_like(base.unknown)
    for src, port in zip(channels.src[channels.link == link], channels.port[channels.link == link], strict=True):
        expected[src] = before.routing.lft[src] == port
    assert expected.any() and np.array_equal(base.unknown, expected)
    assert not base.known and "base unknown" in base.describe_unknown(snapshot.fabric)
    # A link that is gone forwards nothing.
    write_request(fabric.without_links([link]), memory, installed=holding(before, fabric))
    snapshot = read_request(memory.view())
    assert base_of(snapshot.fabric, snapshot.switch_tables, after.routing, [(before, True)]).known
