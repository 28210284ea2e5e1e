"""Check that the load that the repair kernel keeps up to date is the load of the repaired tables."""

import numpy as np
import pytest

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.reroute import Published, Stability, precompute
from routing.reroute.context import Request, RerouteContext
from routing.reroute.flow import flow_towards
from routing.reroute.rebalance import in_frame
from routing.reroute.strategies.columns import Progress, repair_columns
from routing.reroute.translate import translate_tables
from routing.topologies import generate

OPTIONS = EngineOptions(threads=1, effort=0.1)
FABRICS = {
    "torus": generate("torus", ["4x4"], cas=2),
    "random": generate("random-regular", ["24", "5"], cas=2),
    "tree": generate("kary-ntree", ["3", "3"]),
}


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("engine", ["nue", "updn", "lash"])
def test_kernel_keeps_the_load_exact(name, engine):
    """Columns whose first attempt fails are repaired again.  The flow of the first attempt must not count."""
    fabric = FABRICS[name]
    routing = ENGINES[engine].route(fabric, OPTIONS)
    before = Published(fabric, routing, prove(fabric, routing, threads=1))
    ahead, links, exact = precompute(before, before), np.unique(fabric.channels.link), 0
    for seed in range(6):
        gone = np.random.default_rng(seed).choice(links, 1 + seed % 3, replace=False)
        less = fabric.without_links(gone.tolist())
        tables = translate_tables(routing, fabric, less)
        request = Request(ENGINES[engine], OPTIONS, before, less, Stability.BALANCED, before, tables)
        context = RerouteContext.of(request, ahead).prepared()
        found = repair_columns(context, Progress.of(context))
        if not len(found.failed) and not found.splits:
            flow = flow_towards(less, found.tables, threads=1)
            assert np.array_equal(found.load, in_frame(found.numbering, less, flow))
            exact += 1
    assert exact
