"""Repair of tables in which VLs change along a path: changed paths use spare VLs, all other paths stay."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from slow_proof import prove_slowly

from routing.cdg.certificate import check_certificate
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.faults import apply_faults, every_switch
from routing.faults.choose import between_switches
from routing.reroute import Published, Stability, reroute
from routing.topologies import generate

ENGINE = ENGINES["torus-2qos"]


def published(size, **options):
    given = EngineOptions(threads=1, **{"vls": 8, **options})
    fabric = generate("torus", [size], cas=1)
    routing = ENGINE.route(fabric, given)
    assert routing.sl2vl.ndim == 4  # VLs change along a path.
    return given, Published(fabric, routing, prove(fabric, routing, threads=1))


def path(fabric, routing, switch, lid):
    """Return each hop of a path, with the VL of its packets."""
    hops, in_port, sl = [], 0, int(np.broadcast_to(routing.sl, routing.lft.shape)[switch, lid])
    while (channel := int(fabric.channels.at_port[switch, routing.lft[switch, lid]])) >= 0:
        port = int(routing.lft[switch, lid])
        hops.append((switch, port, int(routing.sl2vl[switch, in_port, port, sl])))
        switch, in_port = int(fabric.channels.dst[channel]), int(fabric.channels.dst_port[channel])
    return hops


def is_proven(fabric, found):
    slow, replies = prove_slowly(fabric, found.routing), found.proof.strength == "reversible"
    graph = (slow.both if replies else slow.requests)[found.proof.scope]
    return not slow.counts["undelivered"] and not slow.dropped and nx.is_directed_acyclic_graph(graph)


def check(found, before, fabric, spare=frozenset(range(2, 8))):
    """Check the certificate slowly, and that each changed path keeps one spare VL."""
    assert is_proven(fabric, found)
    check_certificate(fabric, found.routing, found.proof.certificate, threads=1)
    assert found.proof.strength == before.proof.strength and found.proof.scope == before.proof.scope
    for lid in np.flatnonzero(fabric.lids.switch >= 0).tolist():
        for switch in range(fabric.switches):
            then, now = path(before.fabric, before.routing, switch, lid), path(fabric, found.routing, switch, lid)
            vls = {vl for *_, vl in now}
            assert now == then or (len(vls) == 1 and vls <= spare)


@pytest.mark.parametrize("stability", [Stability.FULL, Stability.BALANCED])
@pytest.mark.parametrize("reversible", [False, True])
def test_only_changed_paths_move_to_spare_vls(stability, reversible):
    options, before = published("5x3", reversible=reversible)
    for link in between_switches(before.fabric).tolist()[4::13]:
        less = before.fabric.without_links([link])
        found = reroute(ENGINE, options, before, less, stability=stability, baseline=before)
        check(found, before, less)
        assert found.how == "repaired" and found.statistics.changed_sls


def test_vl_0_can_be_spare():
    """Packets that change between VLs 1 and 5 do not count as packets on VL 0."""
    options, plain = published("5x3")
    vl = np.arange(16, dtype=np.uint8)
    vl[[0, 5]] = 5, 0
    routing = replace(plain.routing, sl2vl=vl[plain.routing.sl2vl], vls=6, vls_needed=6)
    before = Published(plain.fabric, routing, prove(plain.fabric, routing, threads=1))
    for link in between_switches(before.fabric).tolist()[6::20]:
        less = before.fabric.without_links([link])
        found, usual = (reroute(ENGINE, options, tables, less, baseline=tables) for tables in (before, plain))
        check(found, before, less, spare={0, 2, 3, 4, 6, 7})
        assert found.how == "repaired" and found.statistics.changed_sls == usual.statistics.changed_sls


def test_lost_links_change_few_entries_and_keep_the_rate():
    options, before = published("6x5x5")
    for link in between_switches(before.fabric).tolist()[1::150]:
        less = before.fabric.without_links([link])
        scratch, balanced, full = (
            reroute(ENGINE, options, before, less, stability=stability, baseline=before)
            for stability in (Stability.FRESH, Stability.BALANCED, Stability.FULL)
        )
        assert full.changed <= 2 * full.broken and full.changed < balanced.changed < 0.7 * scratch.changed
        assert full.kept < balanced.kept > scratch.kept - 0.02


def test_faults_come_and_go():
    options, baseline = published("5x3")
    fabric, now = baseline.fabric, baseline
    faults = every_switch(fabric)[3:7:3]
    one = apply_faults(fabric, faults[:1])
    both = apply_faults(fabric, faults)
    for present in (one, both, one, fabric):
        found = reroute(ENGINE, options, now, present, baseline=baseline)
        assert found.proof.certified and is_proven(present, found)
        assert found.how == ("baseline" if present is fabric else "repaired")
        now = Published(present, found.routing, found.proof)
    assert np.array_equal(now.routing.lft, baseline.routing.lft)


def test_the_first_vl_is_respected():
    options, before = published("5x3", vls=6, first_vl=2)
    less = before.fabric.without_links(between_switches(before.fabric)[:1].tolist())
    found = reroute(ENGINE, options, before, less, baseline=before)
    used = found.routing.sl2vl[..., np.unique(found.routing.sl)]
    assert found.how == "repaired" and found.proof.certified
    assert used.min() == 2 and used.max() < 8 and found.routing.vls == 1 + used.max()


@pytest.mark.parametrize(("vls", "ports"), [(8, 8), ("min", 8), ("min", 4)])
def test_no_sl_uses_a_vl_that_ports_do_not_have(vls, ports):
    """OpenSM's ports have as many VLs as the tables state, and OpenSM writes the VLs of SLs that no path uses, too."""
    given, before = published("5x3", vls=vls, port_vls=ports)
    for link in between_switches(before.fabric).tolist()[::5]:
        less = before.fabric.without_links([link])
        found = reroute(ENGINE, given, before, less, baseline=before)
        assert found.proof.certified
        assert found.routing.sl2vl.max() < found.routing.vls <= ports


@pytest.mark.parametrize(("vls", "reason"), [(2, "no VL is spare"), (3, "the spare VLs do not suffice")])
def test_without_enough_vls_the_engine_routes_from_scratch(vls, reason):
    options, before = published("5x3", vls=vls)
    less = before.fabric.without_links(between_switches(before.fabric)[:1].tolist())
    found = reroute(ENGINE, options, before, less, baseline=before)
    assert found.how == "fresh" and reason in found.reason and found.proof.certified
