"""Check verdicts on tables whose files do not state everything, against following every packet on its real SL."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_proof import Walker, all_walks, prove_slowly, routed

from routing.deadlock.proof import prove
from routing.deadlock.verdict import decide
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.tables import Provenance, identity_sl2vl
from routing.topologies import generate


def forgotten(routing, *unknown):
    """Return tables as read from files that do not state SLs, SL2VL tables, or neither."""
    sl = np.zeros(routing.lft.shape[1], np.uint8) if "SL" in unknown else routing.sl
    sl2vl = identity_sl2vl(8) if "SL2VL" in unknown else routing.sl2vl
    options = {"unknown": list(unknown), "assumed": [f"something of {part}" for part in unknown]}
    return replace(routing, sl=sl, sl2vl=sl2vl, provenance=Provenance("file", options))


def is_confirmed(fabric, routing, loop):
    """Return whether requests from or to CAs, each on its own SL, use every turn of a loop."""
    graph = nx.DiGraph()
    for _, walk in all_walks(Walker(fabric, routing), replies=False, scope="endports"):
        graph.add_edges_from(zip(walk.hops, walk.hops[1:], strict=False))
    row = {guid: row for row, guid in enumerate(fabric.switch_guid.tolist())}
    hops = [(row[turn.switch.guid], turn.port, turn.vl) for turn in loop.turns]
    return all(graph.has_edge(*turn) for turn in zip(hops, [*hops[1:], hops[0]], strict=True))


UNKNOWN = [(), ("SL",), ("SL2VL",), ("SL", "SL2VL")]


@examples(200)
@given(routed(), st.sampled_from(UNKNOWN))
def test_unknown_sls_and_vls_never_decide(case, unknown):
    fabric, routing = case
    verdict = decide(fabric, forgotten(routing, *unknown) if unknown else routing)
    cyclic = not nx.is_directed_acyclic_graph(prove_slowly(fabric, routing).requests["endports"])
    if not unknown:
        assert verdict.loops == ("yes" if cyclic else "none")
    if verdict.loops == "unknown":
        assert unknown and verdict.possible_loop is not None and not verdict.certified and verdict.vls is None
    else:
        assert verdict.loops == ("yes" if cyclic else "none")
    if verdict.loops == "yes":
        assert is_confirmed(fabric, routing, verdict.proof.credit_loop)


@examples(60)
@given(routed(wrong=False), st.sampled_from(UNKNOWN[1:]))
def test_no_loop_on_one_vl_is_a_proof(case, unknown):
    """A loop on one VL is found whenever it exists."""
    fabric, routing = case
    mixed = replace(routing, sl=np.zeros(routing.lft.shape[1], np.uint8), sl2vl=identity_sl2vl(1))
    free = prove(fabric, mixed).certificate is not None
    assert (decide(fabric, forgotten(routing, *unknown)).loops == "none") >= free


LAYERED = [("nue", {"vls": 2}), ("dfsssp", {"vls": "min"}), ("lash", {"vls": "min"})]


@pytest.mark.parametrize(("name", "options"), LAYERED, ids=[name for name, _ in LAYERED])
def test_layered_tables_without_their_sls_are_not_decidable(name, options):
    fabric = generate("torus", ["5x5"])
    routing = ENGINES[name].route(fabric, EngineOptions(**options))
    assert decide(fabric, routing).loops == "none"
    for unknown in UNKNOWN[1:]:
        verdict = decide(fabric, forgotten(routing, *unknown))
        assert verdict.loops == "unknown"
        assert not is_confirmed(fabric, routing, verdict.possible_loop)


def test_sls_make_no_difference_where_all_use_one_vl():
    fabric = generate("ring", ["5"])
    routing = ENGINES["minhop"].route(fabric, EngineOptions())
    known = forgotten(replace(routing, sl2vl=identity_sl2vl(1)), "SL")
    assert decide(fabric, known).loops == "yes"
    assert decide(fabric, forgotten(routing, "SL", "SL2VL")).loops == "unknown"
    dropping = identity_sl2vl(1)
    dropping[3] = 15
    assert decide(fabric, forgotten(replace(routing, sl2vl=dropping), "SL")).loops == "unknown"


def test_tables_of_one_vl_are_proven_whatever_the_sls_are():
    fabric = generate("torus", ["4x4"])
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, effort=0.05))
    for unknown in UNKNOWN[2:]:
        verdict = decide(fabric, forgotten(routing, *unknown))
        assert (verdict.loops, verdict.any_sl, verdict.certified, verdict.vls) == ("none", True, True, None)
        assert verdict.proof.strength == "reversible"
