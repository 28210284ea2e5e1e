from dataclasses import dataclass

import numpy as np
import pytest
from slow_proof import shortest_path_tables
from strategies import random_fabric, ring_fabric

from routing.engines.base import EngineOptions, Promise
from routing.errors import BrokenPromise
from routing.publish import verify
from routing.tables import Provenance, Routing, identity_sl2vl


@dataclass(frozen=True)
class Careless:
    """An engine that takes random shortest paths and promises what it is told to."""

    promise: Promise
    name: str = "careless"
    summary: str = "random shortest paths"

    def route(self, fabric, options):
        lft = shortest_path_tables(fabric, np.random.default_rng(options.seed))
        sl = np.zeros(lft.shape[1], np.uint8)
        return Routing(lft, sl, identity_sl2vl(1), 1, 1, Provenance(self.name))


def test_promise_that_is_kept():
    fabric, engine = random_fabric(1, switches=1, cas=3), Careless(Promise.DEADLOCK_FREE)
    proof = verify(fabric, engine.route(fabric, EngineOptions()), engine)
    assert proof.certified


def test_broken_promise_names_the_loop():
    fabric, engine = ring_fabric(5), Careless(Promise.DEADLOCK_FREE)
    with pytest.raises(BrokenPromise, match=r"careless promises .* channels on VL 0, closed by requests: sw0 port"):
        verify(fabric, engine.route(fabric, EngineOptions()), engine)


def test_without_a_promise_a_loop_is_reported_only():
    fabric, engine = ring_fabric(5), Careless(Promise.NONE)
    proof = verify(fabric, engine.route(fabric, EngineOptions()), engine)
    assert len(proof.credit_loop) == 5
    assert not proof.certified


@pytest.mark.parametrize("promise", list(Promise))
def test_incomplete_tables_never_pass(promise):
    fabric, engine = random_fabric(2, switches=3, cas=1), Careless(promise)
    routing = engine.route(fabric, EngineOptions())
    routing.lft[1, fabric.endport_lid[0]] = 255
    with pytest.raises(BrokenPromise, match=r"careless left out routes: [^;]* delivered: .*sw1 has no route"):
        verify(fabric, routing, engine)
