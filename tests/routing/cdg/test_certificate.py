from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from slow_proof import prove_slowly, routed, shortest_path_tables
from strategies import random_fabric

from routing._kernels.check_certificate import next_hops_increase
from routing.cdg.certificate import Certificate, check_certificate
from routing.deadlock.proof import prove
from routing.errors import FalseCertificate, TableError
from routing.tables import Provenance, Routing, identity_sl2vl


def is_increasing(fabric, certificate, graph):
    number, order = fabric.channels.at_port, certificate.order
    return all(
        v < len(order) and w < len(order) and order[v, number[s, p]] < order[w, number[t, q]]
        for (s, p, v), (t, q, w) in graph.edges
    )


def accepts(fabric, routing, certificate):
    try:
        check_certificate(fabric, routing, certificate)
    except FalseCertificate:
        return False
    return True


@examples(120)
@given(routed())
def test_proven_tables_are_accepted(case):
    fabric, routing = case
    proof = prove(fabric, routing)
    if proof.certificate is not None:
        check_certificate(fabric, routing, proof.certificate)
        check_certificate(fabric, routing, replace(proof.certificate, strength="forward"))
    if proof.strength == "forward":
        assert not accepts(fabric, routing, replace(proof.certificate, strength="reversible"))
    if proof.scope == "all":
        assert accepts(fabric, routing, replace(proof.certificate, scope="endports"))
    if proof.scope == "endports":
        assert not accepts(fabric, routing, replace(proof.certificate, scope="all"))


@examples(120)
@given(routed())
def test_a_random_order_is_judged_as_networkx_does(case):
    fabric, routing = case
    proof, slow = prove(fabric, routing), prove_slowly(fabric, routing)
    rng = np.random.default_rng(len(fabric.channels))
    size = (proof.vls, len(fabric.channels))
    orders = [rng.permutation(size[0] * size[1]).reshape(size).astype(np.int32), np.zeros(size, np.int32)]
    if proof.certificate is not None:
        right = proof.certificate.order
        orders += [-right, np.where(rng.random(size) < 0.02, rng.permutation(right.ravel()).reshape(size), right)]
    for order in orders:
        for strength, graphs in (("forward", slow.requests), ("reversible", slow.both)):
            for scope, graph in graphs.items():
                certificate = Certificate(order.astype(np.int32), strength, scope)
                assert accepts(fabric, routing, certificate) == is_increasing(fabric, certificate, graph)


@pytest.fixture
def certified():
    fabric = random_fabric(5, switches=9, degree=3, cas=2)
    lft = shortest_path_tables(fabric, np.random.default_rng(2), tree=True)
    routing = Routing(lft, np.zeros(lft.shape[1], np.uint8), identity_sl2vl(1), 1, 1, Provenance("tree"))
    return fabric, routing, prove(fabric, routing).certificate


def test_two_channels_exchanged_are_found_and_named(certified):
    fabric, routing, certificate = certified
    waits = next(iter(prove_slowly(fabric, routing).requests["all"].edges))
    a, b = (int(fabric.channels.at_port[s, p]) for s, p, _ in waits)
    order = certificate.order.copy()
    order[0, [a, b]] = order[0, [b, a]]
    with pytest.raises(
        FalseCertificate, match=r"traffic from sw\d+ port \d+ to LID \d+ on SL 0 violates the order at sw\d+"
    ):
        check_certificate(fabric, routing, Certificate(order, "forward"))


def test_vls_without_buffers_are_refused(certified):
    fabric, routing, certificate = certified
    with pytest.raises(FalseCertificate):
        check_certificate(fabric, replace(routing, sl2vl=np.ones(16, np.uint8)), certificate)


def test_certificate_of_another_fabric_is_refused(certified):
    fabric, routing, certificate = certified
    with pytest.raises(TableError, match="channels"):
        check_certificate(fabric, routing, Certificate(certificate.order[:, 1:], "forward"))


@pytest.mark.parametrize("seed", range(8))
def test_next_hops_are_compared_with_the_order(seed):
    """For each switch and LID, the channel out of the switch is compared with the channel out of the next switch."""
    fabric, rng = random_fabric(seed, switches=7, degree=2, cas=1), np.random.default_rng(seed)
    lft = shortest_path_tables(fabric, rng, tree=True)
    right = prove(fabric, Routing(lft, np.zeros(lft.shape[1], np.uint8), identity_sl2vl(1), 1, 1, Provenance("tree")))
    order = np.stack([right.certificate.order[0], rng.permutation(len(fabric.channels))]).astype(np.int32)
    expected, channels = [True, True], fabric.channels
    for s, lid in np.ndindex(lft.shape):
        here = channels.at_port[s, lft[s, lid]]
        then = channels.at_port[channels.dst[here], lft[channels.dst[here], lid]] if here >= 0 else -1
        for vl in range(2):
            expected[vl] &= then < 0 or bool(order[vl, here] < order[vl, then])
    assert next_hops_increase(fabric, lft, order, threads=2).tolist() == expected
    assert expected[0]
