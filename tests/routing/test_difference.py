"""Compare differences with a slow reference that follows every path in both tables."""

from dataclasses import replace

import numpy as np
import pytest
import strategies
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from routing.difference import compare, tables_of_bundle, tables_of_fabric
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.faults import apply_faults, every_switch
from routing.formats.bundle import read_bundle, write_bundle
from routing.publish import verify
from routing.topologies import generate


def path(fabric, lft, switch, lid):
    taken = []
    for _ in range(fabric.switches + 1):
        port = int(lft[switch, lid])
        taken.append((int(fabric.switch_guid[switch]), port))
        channel = int(fabric.channels.at_port[switch, port])
        if channel < 0:
            break
        switch = int(fabric.channels.dst[channel])
    return taken


def routed(fabric, engine="minhop"):
    return tables_of_fabric(fabric, ENGINES[engine].route(fabric, EngineOptions()))


@examples(25)
@given(strategies.fabrics(), st.integers(0, 1 << 30))
def test_paths_as_walked(fabric, seed):
    before = routed(fabric)
    rng = np.random.default_rng(seed)
    lft = before.routing.lft.copy()
    if lft.size:
        spots = rng.integers(0, lft.size, 3)
        lft.flat[spots] = rng.integers(0, 4, 3)
    after = replace(before, routing=replace(before.routing, lft=lft))
    found = compare(before, after)
    lids = np.flatnonzero(before.owner_guid > 0)
    pairs = [(int(switch), int(lid)) for switch in fabric.endport_switch[fabric.endport_switch >= 0] for lid in lids]
    walked = sum(path(fabric, before.routing.lft, *pair) != path(fabric, lft, *pair) for pair in pairs)
    assert found.paths == len(pairs)
    assert found.paths_changed == walked
    assert found.entries_changed == int((before.routing.lft != lft)[:, lids].sum())
    assert sum(count for _, count in found.changed_by_switch) == found.entries_changed


@examples(25)
@given(strategies.fabrics())
def test_nothing_differs_from_itself(fabric):
    tables = routed(fabric)
    found = compare(tables, tables)
    assert found.same
    assert found.paths_changed == 0


def test_no_switch_is_left():
    whole = generate("ring", ["3"])
    bare = apply_faults(whole, every_switch(whole))
    assert compare(routed(bare), routed(bare)).same
    found = compare(routed(whole), routed(bare))
    assert (found.blocks, found.blocks_changed, len(found.switches_gone)) == (0, 0, 3)
    assert compare(routed(bare), routed(whole)).blocks_changed == 3


def test_switches_and_lids_follow_their_guids():
    """A line loses its last switch.  The LIDs of the CAs move, and the comparison follows their owners."""
    whole = generate("mesh", ["5"], cas=2)
    less = generate("mesh", ["4"], cas=2)
    found = compare(routed(whole, "updn"), routed(less, "updn"))
    assert found.switches_gone == ("sw4",)
    assert found.switches_new == ()
    assert found.owners_gone == 3
    assert found.lids_moved == 8
    assert found.entries == 4 * 12
    assert not found.same


def test_a_bundle_compares_as_its_tables(tmp_path):
    fabric = generate("torus", ["3x3"], lmc=1)
    routings = [ENGINES[name].route(fabric, EngineOptions()) for name in ("updn", "minhop")]
    bundles = []
    for number, (routing, name) in enumerate(zip(routings, ("updn", "minhop"), strict=True)):
        write_bundle(tmp_path / f"{number}.npz", fabric, routing, verify(fabric, routing, ENGINES[name]).proof)
        bundles.append(tables_of_bundle(read_bundle(tmp_path / f"{number}.npz")))
    without = compare(*bundles)
    within = compare(*(tables_of_fabric(fabric, routing) for routing in routings))
    assert without == replace(within, paths=None, paths_changed=None, loads=None)
    assert within.entries_changed > 0


@pytest.mark.parametrize("form", ["by destination", "by switch", "by source LID"])
def test_sls(form):
    fabric = generate("ring", ["4"])
    before = routed(fabric)
    lids = before.routing.lft.shape[1]
    shape = {"by destination": (lids,), "by switch": (4, lids), "by source LID": (lids, lids)}[form]
    first, second = np.zeros(shape, np.uint8), np.zeros(shape, np.uint8)
    second[..., 1] = 1
    changed = [replace(before, routing=replace(before.routing, sl=sl)) for sl in (first, second)]
    used = {"by destination": 1, "by switch": 4, "by source LID": lids - 1}[form]
    assert compare(*changed).sls_changed == used
    assert compare(before, changed[0]).sls_changed == (None if form == "by source LID" else 0)


@examples(25)
@given(strategies.fabrics(), st.integers(0, 1 << 30))
def test_blocks_as_opensm_counts_them(fabric, seed):
    rng = np.random.default_rng(seed)
    before, after = routed(fabric), routed(strategies.pull_links(fabric, seed % 1000, 0.2))
    wide = np.full((len(after.switch_guid), 300), 255, np.uint8)
    wide[:, : after.routing.lft.shape[1]] = after.routing.lft
    wide.flat[rng.integers(0, wide.size, 3)] = 1
    owners, offsets = np.zeros(300, np.uint64), np.zeros(300, np.uint8)
    owners[: len(after.owner_guid)], offsets[: len(after.owner_guid)] = after.owner_guid, after.owner_offset
    after = replace(
        after, routing=replace(after.routing, lft=wide, sl=np.zeros(300, np.uint8)), owner_guid=owners,
        owner_offset=offsets, fabric=None,
    )  # fmt: skip
    filled = sent = 0
    for row, guid in enumerate(after.switch_guid.tolist()):
        old = before.routing.lft[before.switch_guid.tolist().index(guid)].tolist()
        for first in range(0, 300, 64):
            block, held = wide[row, first : first + 64].tolist(), old[first : first + 64]
            block, held = block + [255] * (64 - len(block)), held + [255] * (64 - len(held))
            filled += any(port != 255 for port in block)
            sent += block != held
    found = compare(replace(before, fabric=None), after)
    assert (found.blocks, found.blocks_changed) == (filled, sent)
    back = compare(after, after)
    assert back.blocks_changed == 0 and back.blocks == filled
