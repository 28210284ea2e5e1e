import numpy as np
import pytest
from slow_proof import shortest_path_tables
from strategies import random_fabric, ring_fabric

from routing.cdg.certificate import check_certificate
from routing.deadlock.proof import prove
from routing.errors import TableError
from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.tables import Provenance, Routing, identity_sl2vl


def flat(fabric, lft, sl=0, sl2vl=None):
    """Return tables on which all packets have one SL."""
    levels = np.full(len(fabric.lids), sl, np.uint8)
    return Routing(lft, levels, identity_sl2vl(1) if sl2vl is None else sl2vl, 1, 1, Provenance("test"))


@pytest.fixture
def ring():
    fabric = ring_fabric(4)
    return fabric, shortest_path_tables(fabric, np.random.default_rng(1), tree=True)


def ca_lid(fabric, name):
    return int(fabric.endport_lid[fabric.endport_name.index(name)])


def test_nothing_is_reported_of_whole_tables(ring):
    fabric, lft = ring
    proof = prove(fabric, flat(fabric, lft))
    assert proof.complete
    assert proof.certified
    assert proof.strength == "reversible"
    assert proof.unreachable.describe() == []


def test_missing_entry_is_named(ring):
    fabric, lft = ring
    lid = ca_lid(fabric, "ca2")
    lft[2, lid] = 255
    proof = prove(fabric, flat(fabric, lft))
    assert not proof.complete
    assert not proof.certified
    assert proof.unreachable.pairs == 4
    assert str(proof.unreachable.first[0]) == f"sw0 -> ca2 (LID {lid}): sw2 has no route"


def test_uncabled_port_is_named():
    fabric = random_fabric(1, switches=3, cas=1, spare_ports=2)
    lft = shortest_path_tables(fabric, np.random.default_rng(1))
    port, lid = int(fabric.switch_ports[1]), ca_lid(fabric, "ca1")
    lft[1, lid] = port
    first = prove(fabric, flat(fabric, lft)).unreachable.first
    assert {pair.reason for pair in first} == {f"sw1 sends it to port {port}, which is not cabled"}
    assert len(first) == 3


def test_delivery_at_the_wrong_port_is_named(ring):
    fabric, lft = ring
    lid = ca_lid(fabric, "ca2")
    lft[2, lid] = 0
    first = prove(fabric, flat(fabric, lft)).unreachable.first
    assert {pair.reason for pair in first} == {"sw2 delivers it at port 0, where the LID is not"}


def test_loop_is_named_and_is_a_credit_loop(ring):
    fabric, lft = ring
    lid, channels = ca_lid(fabric, "ca2"), fabric.channels
    there = int(channels.first[0])
    neighbour = int(channels.dst[there])
    lft[0, lid], lft[neighbour, lid] = channels.port[there], channels.dst_port[there]
    proof = prove(fabric, flat(fabric, lft))
    assert proof.unreachable.looping == proof.unreachable.pairs >= 2
    assert "forwarding loop through sw" in proof.unreachable.first[0].reason
    assert len(proof.credit_loop) == 2
    assert any("forwarding loop" in line for line in proof.unreachable.describe())


def test_loop_back_cable_is_a_loop():
    builder = FabricBuilder()
    switch = builder.add_device(NodeKind.SWITCH, 1, "sw", 4)
    for k in range(2):
        builder.connect(builder.add_device(NodeKind.CA, 10 + 4 * k, f"ca{k}", 1), 1, switch, 1 + k)
    builder.connect(switch, 3, switch, 4)
    fabric = builder.build()
    lft = np.full((1, len(fabric.lids)), 255, np.uint8)
    lft[0, 1:] = fabric.lids.port[1:]
    assert prove(fabric, flat(fabric, lft)).certified
    lft[0, ca_lid(fabric, "ca1")] = 4
    missing = prove(fabric, flat(fabric, lft)).unreachable
    assert (missing.pairs, missing.looping) == (1, 1)
    assert missing.first[0].reason == "forwarding loop over the loop-back cable at sw port 4"


def test_dropped_sl_is_not_delivery(ring):
    fabric, lft = ring
    sl2vl = identity_sl2vl(1)
    sl2vl[3] = 15
    assert prove(fabric, flat(fabric, lft, 0, sl2vl)).complete
    proof = prove(fabric, flat(fabric, lft, 3, sl2vl))
    assert not proof.complete
    assert proof.unreachable.dropped == 4 * 8 - 4  # all pairs except packets from a switch to itself
    assert "28 pairs are sent on an SL that is dropped (VL 15)" in proof.unreachable.describe()


def test_unconnected_parts_are_exceptions_not_faults():
    fabric = random_fabric(4, switches=6, cas=1, parts=2, back_to_back=1)
    lft = shortest_path_tables(fabric, np.random.default_rng(1), tree=True)
    proof = prove(fabric, flat(fabric, lft))
    assert proof.certified
    assert proof.unreachable.pairs == 0
    assert proof.unreachable.expected == 2 * 3 * 6
    assert len(proof.unreachable.unattached) == 2
    text = "\n".join(proof.unreachable.describe())
    assert "36 pairs lie in different parts" in text
    assert "in another part of the fabric" in text
    assert "2 LIDs are cabled to no switch" in text


def test_two_cas_and_no_switch():
    builder = FabricBuilder()
    a, b = (builder.add_device(NodeKind.CA, 10 * k, f"ca{k}", 1) for k in (1, 2))
    builder.connect(a, 1, b, 1)
    fabric = builder.build()
    for sl2vl in (identity_sl2vl(1), np.zeros((0, 1, 1, 16), np.uint8)):
        proof = prove(fabric, flat(fabric, np.zeros((0, len(fabric.lids)), np.uint8), 0, sl2vl))
        assert proof.certified
        assert proof.unreachable.unattached == (1, 2)


@pytest.mark.parametrize("shape", [(7,), (2, 7), (7, 7)])
@pytest.mark.parametrize("by_port", [False, True])
def test_switches_without_lids_still_send(shape, by_port):
    builder = FabricBuilder()
    switches = [builder.add_device(NodeKind.SWITCH, 1 + k, f"sw{k}", 2) for k in range(2)]
    builder.connect(switches[0], 1, switches[1], 1)
    for k, switch in enumerate(switches):
        ca = builder.add_device(NodeKind.CA, 10 + 4 * k, f"ca{k}", 1)
        builder.connect(ca, 1, switch, 2)
        builder.set_port(ca, 1, lid=5 + k)
    fabric = builder.build(assign_lids=False)
    lft = shortest_path_tables(fabric, np.random.default_rng(1))
    sl2vl = np.zeros((2, 3, 3, 16), np.uint8) if by_port else identity_sl2vl(1)
    if by_port:
        sl2vl[0, 0, 1] = 1  # packets of switch sw0 itself use VL 1
    proof = prove(fabric, Routing(lft, np.zeros(shape, np.uint8), sl2vl, 2, 2, Provenance("test")))
    assert proof.strength == "reversible"
    assert proof.complete
    assert proof.hops[:, 5:].tolist() == [[0, 1], [1, 0]]
    check_certificate(fabric, Routing(lft, np.zeros(shape, np.uint8), sl2vl, 2, 2, Provenance("x")), proof.certificate)


def test_hops_over_254_are_counted_as_254():
    fabric = ring_fabric(600, cas=0)
    lft = np.full((600, len(fabric.lids)), 255, np.uint8)
    first, channels = fabric.channels.first, fabric.channels
    for s in range(600):
        out = [c for c in range(first[s], first[s + 1]) if channels.dst[c] == (s + 1) % 600]
        lft[s, 1:] = channels.port[out[0]]
        lft[s, fabric.lids.switch == s] = 0
    proof = prove(fabric, flat(fabric, lft))
    assert proof.complete
    assert int(proof.hops[:, 1:].max()) == 254
    assert len(proof.switch_loop) == 600


def test_shapes_are_checked_first(ring):
    fabric, lft = ring
    with pytest.raises(TableError, match="LFT"):
        prove(fabric, flat(fabric, lft[:, 1:]))
