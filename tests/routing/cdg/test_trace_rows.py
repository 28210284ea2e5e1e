"""Check that the trace of complete tables on one VL, row by row, finds the dependencies that the general kernel
finds.
"""

import numpy as np
import pytest
from strategies import random_fabric

from routing._kernels.cdg import trace
from routing._kernels.slots import Slots
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.tables import Routing
from routing.topologies import generate

ONE_VL = np.ones(16, np.uint16)
BY_SL = (1 << np.arange(16)).astype(np.uint16)

FABRICS = {
    "tree": lambda: generate("kary-ntree", ["4", "3"], lmc=1),
    "over 64 channels": lambda: generate("xgft", ["2x70", "1x3"]),
    "over 64 LIDs": lambda: generate("xgft", ["90x3", "1x2"]),
    "random": lambda: random_fabric(3, 12, 4, lmc=2, parallel=2, dual_port_cas=2, routers=1, back_to_back=1),
    "parts": lambda: random_fabric(3, 12, 4, parts=2),
}


@pytest.mark.parametrize("damaged", [0, 1, 30], ids=lambda number: f"{number} damaged entries")
@pytest.mark.parametrize("name", FABRICS)
def test_rows_give_what_the_general_kernel_gives(name, damaged):
    fabric, rng = FABRICS[name](), np.random.default_rng(damaged)
    for engine in ("minhop", "updn"):
        made = ENGINES[engine].route(fabric, EngineOptions(vls=1, threads=1, effort=0.1))
        lft = made.lft.copy()
        lft.flat[rng.integers(0, lft.size, damaged)] = rng.integers(0, 6, damaged)
        sl = (np.arange(lft.shape[1]) % 2).astype(np.uint8)
        slots, routing = Slots.of(fabric), Routing(lft, sl, made.sl2vl, 1, 1, made.provenance)
        by_row, general = (trace(fabric, routing, slots, bits, threads=2) for bits in (ONE_VL, BY_SL))
        assert np.array_equal(by_row.hops, general.hops)
        for part in ("dep", "to_endports"):
            found, expected = getattr(by_row, part), getattr(general, part)
            assert np.array_equal(found & 0xFFFF != 0, expected & 0xFFFF != 0)
            assert np.isin(found, [0, 0x10001]).all()
        for count in ("undelivered", "split", "looping", "sls"):
            assert getattr(by_row, count) == getattr(general, count)
