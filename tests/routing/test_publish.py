import ast
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from slow_proof import shortest_path_tables
from strategies import random_fabric, ring_fabric

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions, Promise
from routing.errors import BrokenPromise
from routing.publish import Demand, Shortfall, VerifiedTables, admit, as_before, promised, verify, weaker
from routing.tables import Provenance, Routing, identity_sl2vl

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Careless:
    """An engine that takes random shortest paths.  It claims to guarantee ``promise``, but checks nothing."""

    promise: Promise
    name: str = "careless"
    summary: str = "random shortest paths"

    def route(self, fabric, options):
        lft = shortest_path_tables(fabric, np.random.default_rng(options.seed))
        sl = np.zeros(lft.shape[1], np.uint8)
        return Routing(lft, sl, identity_sl2vl(1), 1, 1, Provenance(self.name))


def test_promise_that_is_kept():
    fabric, engine = random_fabric(1, switches=1, cas=3), Careless(Promise.DEADLOCK_FREE)
    proof = verify(fabric, engine.route(fabric, EngineOptions()), engine).proof
    assert proof.certified


def test_broken_promise_names_the_loop():
    fabric, engine = ring_fabric(5), Careless(Promise.DEADLOCK_FREE)
    with pytest.raises(BrokenPromise, match=r"careless promises .* channels on VL 0, closed by requests: sw0 port"):
        verify(fabric, engine.route(fabric, EngineOptions()), engine)


def test_without_a_promise_a_loop_is_reported_only():
    fabric, engine = ring_fabric(5), Careless(Promise.NONE)
    proof = verify(fabric, engine.route(fabric, EngineOptions()), engine).proof
    assert len(proof.credit_loop) == 5
    assert not proof.certified


@pytest.mark.parametrize("promise", list(Promise))
def test_incomplete_tables_never_pass(promise):
    fabric, engine = random_fabric(2, switches=3, cas=1), Careless(promise)
    routing = engine.route(fabric, EngineOptions())
    routing.lft[1, fabric.endport_lid[0]] = 255
    with pytest.raises(BrokenPromise, match=r"careless did not route everything: [^;]* delivered: .*sw1 has no route"):
        verify(fabric, routing, engine)


def test_only_the_gate_constructs_verified_tables():
    fabric = random_fabric(1, switches=1, cas=3)
    tables = verify(fabric, Careless(Promise.NONE).route(fabric, EngineOptions()), Careless(Promise.NONE))
    with pytest.raises(TypeError, match="constructs verified tables"):
        VerifiedTables(fabric, tables.routing, tables.proof, tables.demand, object())
    with pytest.raises((TypeError, ValueError), match="must be specified"):
        replace(tables, routing=tables.routing)


def calls(path):
    """Yield the names of all functions and classes that a file calls."""
    for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(part, ast.Call):
            yield part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")


@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("VerifiedTables", {"routing/publish.py"}),
        ("write_tables", {"routing/cli/route.py"}),  # this file takes verified tables
        ("write_bundle", set()),
        ("save_bundle", {"routing/formats/bundle.py", "osm_plugin/state.py"}),  # the state saves published tables
        # the first takes verified tables, the second ports
        ("write_answer", {"osm_plugin/request_handler.py", "osm_plugin/policies.py"}),
    ],
)
def test_tables_leave_through_the_gate_alone(name, positions):
    files = [path for folder in ("routing", "osm_plugin", "ibsim_fixtures") for path in (ROOT / folder).rglob("*.py")]
    files = [path for path in files if name in path.read_text(encoding="utf-8")]  # Only these are parsed.
    assert {path.relative_to(ROOT).as_posix() for path in files if name in calls(path)} == positions


@pytest.mark.parametrize("promise", list(Promise))
def test_demands_grow_from_delivery_to_replies_and_traffic_between_switches(promise):
    fabric, engine = ring_fabric(5), Careless(promise)
    routing = engine.route(fabric, EngineOptions())
    looped = prove(fabric, routing)
    expected = Shortfall.CREDIT_LOOP if promise is Promise.DEADLOCK_FREE else None
    assert promised(engine).shortfall(routing, looped) is expected
    assert Demand(None, vls=0).shortfall(routing, looped) is Shortfall.VLS
    whole = prove(fabric, ENGINES["updn"].route(fabric, EngineOptions()))
    assert (whole.strength, whole.scope) == ("reversible", "all")
    forward = replace(whole, strength="forward")
    endports = replace(whole, scope="endports")
    for proof, strict, lacks in (
        (whole, Demand("reversible", "all"), None),
        (forward, Demand("forward", "all"), None),
        (forward, as_before(whole.certificate), Shortfall.STRENGTH),
        (endports, as_before(whole.certificate), None),
        (endports, as_before(whole.certificate, scope="all"), Shortfall.SCOPE),
        (replace(forward, complete=False), as_before(whole.certificate), Shortfall.INCOMPLETE),
    ):
        assert strict.shortfall(routing, proof) is lacks
        found = admit(fabric, routing, proof, strict)
        assert found is lacks or (lacks is None and found.demand is strict and found.proof is proof)


def test_weaker_proofs_are_reported():
    fabric = ring_fabric(5)
    looped = prove(fabric, Careless(Promise.NONE).route(fabric, EngineOptions()))
    whole = prove(fabric, ENGINES["updn"].route(fabric, EngineOptions()))
    assert weaker(whole, whole) == weaker(looped, looped) == weaker(whole, looped) == []
    assert weaker(replace(whole, scope="endports"), whole) == ["traffic between switches may close a loop"]
    assert weaker(looped, whole) == [
        "no tables without a credit loop were found, and the engine does not promise such tables"
    ]
