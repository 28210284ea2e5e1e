import os

import numpy as np
import plugin_request
import pytest

from osm_plugin.answer import SharedMemory
from osm_plugin.config import PluginConfig
from osm_plugin.policies import as_routing, read_lft
from osm_plugin.shadow import Shadow, Tables, analyse_tables, tables_in
from osm_plugin.snapshot import read_request
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import NO_PORT
from routing.topologies import generate


@pytest.fixture
def memory():
    descriptor = os.memfd_create("test")
    yield SharedMemory(descriptor)
    os.close(descriptor)


@pytest.fixture(scope="module")
def torus():
    return generate("torus", ["4x4x4"], cas=1)


def lft_of(fabric, engine):
    return ENGINES[engine].route(fabric, EngineOptions()).lft


def message(sequence):
    return {"sequence": sequence, "in_force": "minhop", "own_sls": False, "fell_back": False}


def test_tables_are_those_of_the_message_or_none(torus, memory):
    lft = lft_of(torus, "minhop")
    plugin_request.write_request_with_tables(torus, lft, memory, sequence=5)
    tables = tables_in(memory, message(5))
    assert np.array_equal(tables.routing.lft, lft) and tables.snapshot.fabric.digest == torus.digest
    assert tables_in(memory, message(4)) is None
    memory.view()[:8] = bytes(8)  # in this manner, the next sweep begins its write
    assert tables_in(memory, message(5)) is None


def test_verdicts(torus):
    minhop, updn = (as_routing(torus, lft_of(torus, engine), "opensm") for engine in ("minhop", "updn"))
    assert analyse_tables(prove(torus, minhop), own_sls=False)[0] == "loop"
    assert analyse_tables(prove(torus, minhop), own_sls=True)[0] == "unknown"
    for own_sls in (False, True):
        assert analyse_tables(prove(torus, updn), own_sls=own_sls)[0] == "no loop"
    missing = updn.lft.copy()
    missing[0, :] = NO_PORT
    assert analyse_tables(prove(torus, as_routing(torus, missing, "opensm")), own_sls=False)[0] == "incomplete"


def test_a_shadow_goes_on_from_its_own_tables(torus, memory):
    plugin_request.write_request_with_tables(torus, lft_of(torus, "minhop"), memory, sequence=5)
    shadow, config = Shadow(), PluginConfig(shadow="nue", threads=1)
    looks = [shadow.inspect(tables_in(memory, message(5)), config) for _ in range(2)]
    assert "routed from scratch" in looks[0][1] and "tables unchanged" in looks[1][1]
    assert looks[0][0].entries_differing == looks[1][0].entries_differing > 0


@pytest.mark.parametrize("shadow", [None, "nue"])
@pytest.mark.parametrize("fell_back", [False, True])
def test_a_credit_loop_after_a_fallback_is_an_error_with_and_without_a_shadow_engine(torus, memory, shadow, fell_back):
    plugin_request.write_request_with_tables(torus, lft_of(torus, "minhop"), memory, sequence=5)
    tables = tables_in(memory, {**message(5), "fell_back": fell_back})
    _, line = Shadow().inspect(tables, PluginConfig(shadow=shadow, threads=1))
    assert line.startswith("ERR IBN32: ") == fell_back and "credit loop of" in line


def test_an_engine_that_cannot_route_leaves_the_verdict(torus, memory):
    plugin_request.write_request_with_tables(torus, lft_of(torus, "minhop"), memory, sequence=5)
    snapshot = read_request(memory.view())
    tables = Tables(snapshot, as_routing(torus, read_lft(memory.view(), torus), "minhop"), "minhop", False, False)
    inspection, line = Shadow().inspect(tables, PluginConfig(shadow="minhop", threads=1))
    assert (
        inspection.verdict == "loop"
        and inspection.certified is None
        and "the tables have a credit loop" in inspection.problem
    )
    assert "minhop has no tables" in line
