import networkx as nx
import numpy as np
from examples import examples
from hypothesis import given
from slow_proof import Walker, prove_slowly, routed, shortest_cycle, shortest_path_tables
from strategies import random_fabric

from routing.deadlock.proof import prove
from routing.tables import Provenance, Routing, identity_sl2vl


def length(loop):
    return len(loop) if loop else 0


def graphs(slow, strength):
    return slow.both if strength == "reversible" else slow.requests


@examples(150)
@given(routed())
def test_proof_agrees_with_walking_every_packet(case):
    fabric, routing = case
    proof, slow = prove(fabric, routing), prove_slowly(fabric, routing)
    assert (proof.hops == slow.hops).all()
    missing = proof.unreachable
    assert missing.pairs == slow.counts["undelivered"]
    assert missing.expected == slow.counts["split"]
    assert missing.looping == slow.counts["looping"]
    assert missing.dropped == slow.dropped
    assert len(missing.first) == min(missing.pairs, 5)
    forward, reversible = shortest_cycle(slow.requests["endports"]), shortest_cycle(slow.both["endports"])
    strength = None if forward else "forward" if reversible else "reversible"
    assert proof.strength == strength
    assert length(proof.credit_loop) == forward
    assert length(proof.reversible_loop) == reversible
    with_switches = 0 if strength is None else shortest_cycle(graphs(slow, strength)["all"])
    assert length(proof.switch_loop) == with_switches
    assert proof.scope == (None if strength is None else "endports" if with_switches else "all")


def is_increasing(fabric, certificate, graph):
    number = fabric.channels.at_port
    order = certificate.order
    return all(order[v, number[s, p]] < order[w, number[t, q]] for (s, p, v), (t, q, w) in graph.edges)


@examples(100)
@given(routed())
def test_certificate_orders_every_dependency(case):
    fabric, routing = case
    proof, slow = prove(fabric, routing), prove_slowly(fabric, routing)
    if proof.certificate is None:
        assert not nx.is_directed_acyclic_graph(slow.requests["endports"])
        return
    assert proof.certificate.order.shape == (proof.vls, len(fabric.channels))
    assert is_increasing(fabric, proof.certificate, graphs(slow, proof.strength)[proof.scope])


def takes(walker, traffic, before, after, scope):
    """Return whether the named packet, followed hop by hop, uses both channels in succession, and is in the scope."""
    fabric = walker.fabric
    entries = [(s, p) for s, p, lids in walker.senders() if traffic.source_lid in lids]
    assert scope == "all" or entries[0][1] or walker.destination_switch[traffic.destination_lid][1]
    walk = walker.walk(*entries[0], traffic.sl, traffic.destination_lid)
    assert len(entries) == 1
    at = [(int(fabric.channels.at_port[s, p]), vl) for s, p, vl in walk.hops]
    return (before, after) in zip(at, at[1:] + at[-1:], strict=False)


@examples(100)
@given(routed())
def test_traffic_of_a_witness_takes_its_turn(case):
    fabric, routing = case
    walker = Walker(fabric, routing)
    proof = prove(fabric, routing)
    for loop in (proof.credit_loop, proof.reversible_loop, proof.switch_loop):
        turns = loop.turns if loop else ()
        assert not loop or loop.scope == ("all" if loop is proof.switch_loop else "endports")
        for turn, following in zip(turns, turns[1:] + turns[:1], strict=True):
            assert takes(walker, turn.traffic, (turn.channel, turn.vl), (following.channel, following.vl), loop.scope)


def test_any_number_of_threads_gives_the_same():
    fabric = random_fabric(3, switches=45, degree=4, cas=1, lmc=6)
    rng = np.random.default_rng(1)
    lft = shortest_path_tables(fabric, rng)
    assert lft.size > 100_000  # with fewer entries, only one thread is started
    sl = rng.integers(0, 4, lft.shape).astype(np.uint8)
    routing = Routing(lft, sl, identity_sl2vl(4), 4, 4, Provenance("random"))
    one = prove(fabric, routing, threads=1)
    for threads in (3, 8):
        many = prove(fabric, routing, threads=threads)
        assert (one.hops == many.hops).all()
        assert one.credit_loop == many.credit_loop
        assert one.reversible_loop == many.reversible_loop
        assert one.switch_loop == many.switch_loop
        assert one.strength == many.strength
