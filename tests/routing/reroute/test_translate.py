"""Check tables that are applied to another fabric: valid entries stay, and all others are removed."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, random_fabric, ring_fabric

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.reroute import translate


def routed(fabric, engine="updn"):
    return ENGINES[engine].route(fabric, EngineOptions(passes=0, threads=1))


def neighbour(fabric, switch, port):
    """Return the GUID and the port at the other end of a switch's cable, or None."""
    guids = np.concatenate([fabric.switch_guid, fabric.terminal_guid])
    for (a, b), (p, q) in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True):
        for this, that in (((a, p), (b, q)), ((b, q), (a, p))):
            if this == (switch, port):
                return int(guids[that[0]]), that[1]
    return None


def slow_translate(routing, old, new):
    """Translate tables entry by entry, for fabrics in which no LID has changed its owner."""
    lft = np.full((new.switches, len(new.lids)), 255, np.uint8)
    old_row = {int(guid): row for row, guid in enumerate(old.switch_guid)}
    for s, guid in enumerate(new.switch_guid.tolist()):
        for lid in range(min(len(old.lids), len(new.lids))):
            target, was = int(new.lids.switch[lid]), int(old.lids.switch[lid])
            if guid not in old_row or target < 0 or was < 0 or new.switch_guid[target] != old.switch_guid[was]:
                continue
            port = int(routing.lft[old_row[guid], lid])
            if s == target:
                holds = port == int(new.lids.port[lid])
            else:
                there = neighbour(new, s, port)
                holds = there is not None and there == neighbour(old, old_row[guid], port)
                holds = holds and new.component[s] == new.component[target]
            lft[s, lid] = port if holds else 255
    return lft


@examples(40)
@given(fabric=fabrics(max_switches=8, max_lmc=1), data=st.data())
def test_tables_equal_a_slow_translation(fabric, data):
    pulled = data.draw(st.sets(st.integers(0, max(0, fabric.links - 1)), max_size=3)) if fabric.links else set()
    routing = routed(fabric)
    less = fabric.without_links(pulled)
    found = translate(routing, fabric, less)
    assert np.array_equal(found.lft, slow_translate(routing, fabric, less))
    found.check_shapes(less)


def test_tables_on_an_unchanged_fabric_stay():
    fabric = random_fabric(3)
    routing = routed(fabric)
    assert np.array_equal(translate(routing, fabric, fabric).lft, routing.lft)


def swapped(fabric, one, other):
    """Return the fabric after the far ends of two cables have been exchanged."""
    device, port = fabric.link_device.copy(), fabric.link_port.copy()
    device[[one, other], 1], port[[one, other], 1] = device[[other, one], 1], port[[other, one], 1]
    return replace(fabric, link_device=device, link_port=port)


def test_entries_over_swapped_cables_are_removed():
    fabric = ring_fabric(6)
    routing = routed(fabric)
    one, other = np.unique(fabric.channels.link)[[0, 3]].tolist()
    crossed = swapped(fabric, one, other)
    found = translate(routing, fabric, crossed)
    assert np.array_equal(found.lft, slow_translate(routing, fabric, crossed))
    assert (found.lft == 255).any()


@pytest.mark.parametrize("engine", ["updn", "dfsssp", "lash"])
def test_a_switch_and_its_ca_appear(engine):
    def build(switches):
        builder = FabricBuilder("chain")
        rows = [builder.add_device(NodeKind.SWITCH, 100 + 10 * i, f"s{i}", 8) for i in range(switches)]
        for i, row in enumerate(rows):
            builder.connect(row, 1, builder.add_device(NodeKind.CA, 1000 + 10 * i, f"h{i}", 1), 1)
            if i:
                builder.connect(rows[i - 1], 3, row, 2)
        return builder.build()

    small, large = build(3), build(4)
    found = translate(routed(small, engine), small, large)
    assert found.lft.shape == (4, len(large.lids))
    new = int(np.flatnonzero(large.switch_guid == 130)[0])
    assert (found.lft[new] == 255).all()
