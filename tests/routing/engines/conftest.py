import numpy as np
import pytest

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions


@pytest.fixture
def same_tables():
    def same(a, b):
        return (
            a.lft.tobytes() == b.lft.tobytes()
            and a.sl.tobytes() == b.sl.tobytes()
            and np.array_equal(a.sl2vl, b.sl2vl)
            and (a.vls, a.vls_needed) == (b.vls, b.vls_needed)
        )

    return same


@pytest.fixture
def route():
    """Return a function that routes a fabric and proves the tables, which must be complete for every engine."""

    def run(engine, fabric, **options):
        routing = ENGINES[engine].route(fabric, EngineOptions(**options))
        proof = prove(fabric, routing)
        assert proof.complete
        return routing, proof

    return run
