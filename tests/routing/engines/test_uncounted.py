"""Check that end ports without traffic get proven routes, and change no route and no VL of other end ports."""

from dataclasses import replace

import numpy as np
import pytest
from in_one_test import cases_in_one_test

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.engines.uncounted import Uncounted
from routing.topologies import generate

FABRICS = [("kary-ntree", ["3", "3"]), ("torus", ["3x3"]), ("cluster", ["4x4x4", "4x2"]), ("slimfly", ["5"])]


def without_switch_lids(fabric):
    return replace(fabric, switch_lid=np.zeros_like(fabric.switch_lid))


def columns(fabric, routing):
    """Return the entries towards each counted end port and each switch, by GUID, at switches with counted end ports;
    and the SLs.
    """
    lids = [*fabric.endport_lid[fabric.counted].tolist(), *fabric.switch_lid.tolist()]
    guids = [*fabric.endport_guid[fabric.counted].tolist(), *fabric.switch_guid.tolist()]
    leaf = fabric.senders_at > 0
    found = {guid: routing.lft[leaf, lid].tolist() for guid, lid in zip(guids, lids, strict=True)}
    sl = routing.sl[:, lids] if routing.sl.ndim == 2 else np.tile(routing.sl[lids], (fabric.switches, 1))
    return found, sl[leaf].tolist()


@cases_in_one_test("engine", ["minhop", "updn", "nue", "sssp", "dfsssp", "lash"])
@cases_in_one_test(("name", "arguments"), FABRICS)
def test_routes_of_others_and_vls_stay(name, arguments, engine):
    plain, more = generate(name, arguments), generate(name, arguments, aggregation=1)
    options = EngineOptions(vls=4 if engine in ("dfsssp", "lash", "nue") else "min", effort=0.1)
    before, after = (ENGINES[engine].route(fabric, options) for fabric in (plain, more))
    first, second = columns(plain, before), columns(more, after)
    if engine in ("updn", "nue", "dfsssp", "lash"):
        proof = prove(more, after)
        assert proof.certified and proof.complete and proof.certificate.scope == "all"
        assert after.vls_needed == before.vls_needed
        # if SLs depend on the LID, the round-robin assignment depends on the LIDs
        assert first[1] == second[1] or before.sl.ndim == 1
    assert first[0] == second[0]
    assert (after.lft[:, more.endport_lid] != 255).all()
    assert after.provenance.fabric_digest == more.digest


def test_the_fewest_vls_of_a_tree_stay():
    for engine in ("dfsssp", "lash"):
        found = ENGINES[engine].route(generate("kary-ntree", ["4", "3"], aggregation=1), EngineOptions(vls="min"))
        assert found.vls_needed == 1


@pytest.mark.parametrize("words", ["4x4x4 4x2", "4x8x8 8x4"])
@pytest.mark.parametrize(("engine", "reversible"), [("dfsssp", False), ("dfsssp", True), ("lash", False)])
def test_the_fewest_vls_of_a_cluster_stay_with_its_management_leaf(engine, reversible, words):
    """Shortest paths from the management leaf to top switches lead down and then up, so no order admits these paths."""
    options = EngineOptions(vls="min", reversible=reversible)
    fabrics = [generate("cluster", words.split(), aggregation=each) for each in (0, 1)]
    tables = [ENGINES[engine].route(fabric, options) for fabric in fabrics]
    assert tables[0].vls_needed == tables[1].vls_needed == 1
    proofs = [prove(*each) for each in zip(fabrics, tables, strict=True)]
    assert proofs[1].certified and proofs[1].complete and proofs[1].scope == "all"
    assert proofs[1].strength == proofs[0].strength
    assert columns(fabrics[0], tables[0]) == columns(fabrics[1], tables[1])


def test_a_model_is_delivered_by_the_same_switch():
    fabric = generate("kary-ntree", ["3", "2"], aggregation=1, lmc=1)
    found = Uncounted.of(fabric)
    lids = fabric.lids
    assert len(found.lid) == 2 * fabric.aggregation.sum()
    assert np.array_equal(lids.switch[found.lid], lids.switch[found.model])
    leaf = fabric.senders_at[lids.switch[found.lid]] > 0
    assert (fabric.counted[lids.endport[found.model[leaf]]]).all() and (lids.port[found.model[~leaf]] == 0).all()
    assert found.fabric.switches == fabric.switches and len(found.fabric.lids) == len(lids)
    assert Uncounted.of(found.fabric) is None


@pytest.mark.parametrize("engine", ["updn", "nue", "lash"])
def test_end_ports_without_a_model_are_routed_all_the_same(engine):
    fabric = without_switch_lids(generate("kary-ntree", ["2", "2"], aggregation=1))
    routing = ENGINES[engine].route(fabric, EngineOptions())
    assert prove(fabric, routing).certified
    assert (routing.lft[:, fabric.endport_lid] != 255).all()
