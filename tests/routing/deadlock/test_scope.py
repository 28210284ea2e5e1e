"""Check that traffic between switches alone is distinguished from traffic from or to CAs and routers."""

from dataclasses import replace

import numpy as np
import pytest
from in_one_test import cases_in_one_test
from slow_proof import prove_slowly, shortest_cycle

from ibsim_fixtures.catalogue import FIXTURES
from routing.cdg.certificate import check_certificate
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import FalseCertificate
from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.formats.fabric_files import read_fabric
from routing.tables import Provenance, Routing, identity_sl2vl
from routing.topologies import generate


def minhop(fabric):
    return ENGINES["minhop"].route(fabric, EngineOptions(vls=1))


def clockwise_ring(switches, cas):
    """Return tables in which all traffic has one direction.  CAs are at the switches with the numbers ``cas``."""
    builder = FabricBuilder()
    rows = [builder.add_device(NodeKind.SWITCH, 1 + s, f"sw{s}", 3) for s in range(switches)]
    for s in rows:
        builder.connect(s, 1, rows[(s + 1) % switches], 2)
    for s in cas:
        builder.connect(builder.add_device(NodeKind.CA, 100 + 2 * s, f"ca{s}", 1), 1, rows[s], 3)
    fabric = builder.build()
    lft = np.full((switches, len(fabric.lids)), 255, np.uint8)
    lft[:, 1:] = 1
    own_switch = fabric.lids.switch[1:]
    lft[own_switch, np.arange(1, len(fabric.lids))] = fabric.lids.port[1:]
    return fabric, Routing(lft, np.zeros(lft.shape[1], np.uint8), identity_sl2vl(1), 1, 1, Provenance("test"))


@pytest.mark.parametrize("size", [["4", "3"], ["10", "3"]], ids="-ary ".join)
def test_shortest_paths_of_a_fat_tree_have_no_loop_but_between_switches(size):
    fabric = generate("kary-ntree", size)
    routing = minhop(fabric)
    proof = prove(fabric, routing)
    assert proof.certified
    assert (proof.strength, proof.scope) == ("reversible", "endports")
    assert proof.credit_loop is proof.reversible_loop is None
    check_certificate(fabric, routing, proof.certificate)
    with pytest.raises(FalseCertificate):
        check_certificate(fabric, routing, replace(proof.certificate, scope="all"))
    switches = set(fabric.switch_name)
    traffic = [turn.traffic for turn in proof.switch_loop.turns]
    # Only packets between switches lead down and then up.
    assert any({packet.source, packet.destination} <= switches for packet in traffic)


def test_a_ring_of_switches_has_a_loop_of_theirs_only():
    proof = prove(*clockwise_ring(5, cas=()))
    assert proof.certified
    assert (proof.strength, proof.scope, len(proof.switch_loop)) == ("reversible", "endports", 5)
    head = proof.switch_loop.describe()[0]
    assert head.endswith("closed by requests and their replies (switch-to-switch traffic included):")


def test_a_second_ca_closes_the_ring():
    """The traffic from or to one CA uses all turns except the turn at its own switch."""
    one, two = prove(*clockwise_ring(4, cas=(0,))), prove(*clockwise_ring(4, cas=(0, 2)))
    assert (one.certified, one.scope, len(one.switch_loop)) == (True, "endports", 4)
    assert (two.certified, two.scope, two.switch_loop) == (False, None, None)
    assert len(two.credit_loop) == 4
    assert all("ca" in turn.traffic.source + turn.traffic.destination for turn in two.credit_loop.turns)


def test_strength_goes_before_scope():
    """The tables with all requests are free of loops, but with the replies between switches there is a loop."""
    fabric, routing = clockwise_ring(5, cas=())
    sl = np.random.default_rng(58).integers(0, 4, routing.lft.shape).astype(np.uint8)
    routing = replace(routing, sl=sl, sl2vl=identity_sl2vl(4), vls=4)
    slow = prove_slowly(fabric, routing)
    assert not shortest_cycle(slow.requests["all"])
    assert shortest_cycle(slow.both["all"])
    proof = prove(fabric, routing)
    assert (proof.strength, proof.scope) == ("reversible", "endports")
    assert proof.switch_loop.replies


@cases_in_one_test("name", [name for name in FIXTURES if name != "back-to-back"])
def test_updn_is_free_of_loops_for_all_traffic(name):
    fabric = read_fabric(FIXTURES[name].path)
    proof = prove(fabric, ENGINES["updn"].route(fabric, EngineOptions(vls=1, passes=0, effort=0.05)))
    assert (proof.strength, proof.scope, proof.switch_loop) == ("reversible", "all", None)
