import numpy as np
from strategies import ring_fabric

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.tables import Provenance, Routing, identity_sl2vl
from routing.topologies import generate


def clockwise(switches):
    """Return tables of a ring in which all traffic has one direction: the first example of Dally and Seitz."""
    fabric = ring_fabric(switches)
    channels, lids = fabric.channels, fabric.lids
    lft = np.full((switches, len(lids)), 255, np.uint8)
    for s in range(switches):
        ahead = next(
            c for c in range(channels.first[s], channels.first[s + 1]) if channels.dst[c] == (s + 1) % switches
        )
        lft[s, lids.switch >= 0] = channels.port[ahead]
        lft[s, lids.switch == s] = lids.port[lids.switch == s]
    return fabric, lft


def routing(lft, sl, sl2vl, vls):
    return Routing(lft, np.asarray(sl, np.uint8), sl2vl, vls, vls, Provenance("test"))


def test_ring_clockwise_is_a_credit_loop_of_the_whole_ring():
    fabric, lft = clockwise(6)
    proof = prove(fabric, routing(lft, np.zeros(lft.shape[1]), identity_sl2vl(1), 1))
    assert proof.complete
    assert not proof.certified
    assert proof.certificate is None
    assert len(proof.credit_loop) == len(proof.reversible_loop) == 6
    assert {turn.switch.name for turn in proof.credit_loop.turns} == set(fabric.switch_name)
    assert int(proof.hops[:, 1:].max()) == 5


def test_two_layers_by_pair_do_not_cut_a_clockwise_ring():
    fabric, lft = clockwise(6)
    target = np.maximum(fabric.lids.switch, 0)
    # SL 1: the path crosses the link from the last to the first switch
    sl = (target[None, :] < np.arange(6)[:, None]).astype(np.uint8)
    split = prove(fabric, routing(lft, sl, identity_sl2vl(2), 2))
    assert split.credit_loop is not None  # the paths on VL 1 alone close a cycle: 5 -> 0 -> ... -> 4


def test_describe_names_switches_ports_and_lids():
    fabric, lft = clockwise(3)
    proof = prove(fabric, routing(lft, np.zeros(lft.shape[1]), identity_sl2vl(1), 1))
    lines = proof.credit_loop.describe()
    assert len(lines) == 4
    assert "VL 0" in lines[0]
    assert all("sw" in line and "LID" in line and "ca" in line for line in lines[1:])


def test_loops_that_do_not_stand_against_the_tables_need_not_be_searched_for():
    fabric = generate("torus", ["5x5"], cas=1)
    tables = ENGINES["nue"].route(fabric, EngineOptions(vls=4))
    reported, short = prove(fabric, tables), prove(fabric, tables, explain=False)
    assert reported.strength == short.strength == "forward"
    assert reported.reversible_loop is not None
    assert short.reversible_loop is None
    assert short.certified
    assert np.array_equal(reported.certificate.order, short.certificate.order)


def test_a_loop_that_stands_against_the_tables_is_always_named():
    fabric, lft = clockwise(6)
    proof = prove(fabric, routing(lft, np.zeros(lft.shape[1]), identity_sl2vl(1), 1), explain=False)
    assert len(proof.credit_loop) == 6
    assert proof.reversible_loop is None
