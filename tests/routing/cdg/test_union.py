"""Check that a proof by the union of all VLs' dependencies, if there is one, has the result of a proof of each VL."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import random_fabric

from routing._kernels.slots import Slots
from routing.cdg import union
from routing.cdg.certificate import check_certificate
from routing.cdg.trace import vl_bits
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.tables import identity_sl2vl
from routing.topologies import generate

FABRICS = {
    "tree": lambda: generate("kary-ntree", ["4", "3"]),
    "torus": lambda: generate("torus", ["4", "4"], cas=2),
    "random": lambda: random_fabric(3, 12, 4, lmc=1, parallel=2, dual_port_cas=2, routers=1, back_to_back=1),
    "parts": lambda: random_fabric(3, 12, 4, parts=2),
}


def tables(fabric, engine, form):
    """Return an engine's tables, with random SLs on four VLs, which depend on the destination, the source switch or
    the source LID.
    """
    made = ENGINES[engine].route(fabric, EngineOptions(vls=1, threads=1, effort=0.1))
    rows = {"lid": (), "switch": (fabric.switches,), "pair": (len(fabric.lids),)}[form]
    sl = np.random.default_rng(1).integers(0, 4, (*rows, len(fabric.lids)), np.uint8)
    return replace(made, sl=sl, sl2vl=identity_sl2vl(4), vls=4, vls_needed=4)


@pytest.mark.parametrize("form", ["lid", "switch", "pair"])
@pytest.mark.parametrize("name", FABRICS)
def test_union_gives_the_proof_of_each_vl(name, form, monkeypatch):
    fabric = FABRICS[name]()
    routing = tables(fabric, "updn", form)
    apart = prove(fabric, routing)
    monkeypatch.setattr(union, "LARGE", 0)
    assert union.acyclic_union(fabric, routing, Slots.of(fabric), vl_bits(routing.sl2vl), threads=1) is not None
    together = prove(fabric, routing)
    for part in ("strength", "scope", "complete", "vls", "unreachable"):
        assert getattr(together, part) == getattr(apart, part)
    assert (together.strength, together.scope) == ("reversible", "all")
    assert np.array_equal(together.hops, apart.hops)
    assert np.array_equal(together.cdg.masks | apart.cdg.masks, together.cdg.masks)
    check_certificate(fabric, routing, together.certificate)
    # The certificate is valid for any other SLs, too.
    check_certificate(fabric, replace(routing, sl=(routing.sl + 1) % 4), together.certificate)


@pytest.mark.parametrize("sampled", [1, 16])
def test_union_with_a_cycle_leaves_the_proof_to_each_vl(sampled, monkeypatch):
    fabric = generate("torus", ["6", "6"], cas=1)
    routing = ENGINES["dfsssp"].route(fabric, EngineOptions(vls=8, threads=1))
    apart = prove(fabric, routing)
    monkeypatch.setattr(union, "LARGE", 0)
    monkeypatch.setattr(union, "SAMPLED", sampled)
    assert union.acyclic_union(fabric, routing, Slots.of(fabric), vl_bits(routing.sl2vl), threads=1) is None
    assert np.array_equal(prove(fabric, routing).cdg.masks, apart.cdg.masks)


def test_tables_on_one_vl_are_left_to_the_exact_trace(monkeypatch):
    fabric = FABRICS["tree"]()
    routing = replace(tables(fabric, "updn", "lid"), sl2vl=identity_sl2vl(1), vls=1, vls_needed=1)
    monkeypatch.setattr(union, "LARGE", 0)
    assert union.acyclic_union(fabric, routing, Slots.of(fabric), vl_bits(routing.sl2vl), threads=1) is None
