"""Check OpenSM after an OpenSM that ended while it wrote tables, so that the switches have old and new entries."""

import numpy as np
import pytest
from switch_tables import holding

from osm_plugin.base import base_of
from osm_plugin.route_or_reroute import options_key
from osm_plugin.staged_update import stage_update
from osm_plugin.state import SavedTables
from osm_plugin.transition import transition_line
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.faults import apply_faults, parse_fault
from routing.reroute import Stability, reroute
from routing.topologies import generate


def before_and_after(engine, vls, faults=("sw1.1", "sw2.2/3")):
    """Return the tables of a torus, and the tables after the loss of a switch and of a cable."""
    options = EngineOptions(effort=0.1, vls=vls)
    fabric = generate("torus", ["4x4"], cas=1)
    routing = ENGINES[engine].route(fabric, options)
    before = SavedTables(fabric, routing, prove(fabric, routing), engine, options_key(options))
    left = apply_faults(fabric, [parse_fault(fault, fabric) for fault in faults])
    made = reroute(ENGINES[engine], options, before, left, stability=Stability.FULL).tables
    return before, SavedTables(left, made.routing, made.proof, engine, before.options)


def partly_written(before, after, rows):
    tables = holding(before, after.fabric, served=None)
    tables.lft[rows, : after.routing.lft.shape[1]] = after.routing.lft[rows]
    return tables


@pytest.mark.parametrize("engine", ["nue", "updn"])
@pytest.mark.parametrize("parity", [0, 1])
def test_the_next_one_knows_the_sls_and_finds_rounds(engine, parity):
    before, after = before_and_after(engine, 4)
    changed = holding(before, after.fabric).lft != after.routing.lft
    rows = np.flatnonzero(changed.any(axis=1))[parity::2]
    base = base_of(after.fabric, partly_written(before, after, rows), after.routing, [(before, False)])
    assert base.sls == "state" and base.cdg is None
    change = stage_update(base, after, wanted=True)
    assert not transition_line(change).startswith("transition not judged")
    assert change.schedule is not None or engine == "updn"


def test_the_sls_are_unknown_if_they_change_with_the_tables():
    before, after = before_and_after("nue", 4)
    after.routing.sl.flags.writeable = True
    after.routing.sl[int(after.fabric.endport_lid[0])] ^= 1
    base = base_of(after.fabric, partly_written(before, after, range(15)), after.routing, [(before, False)])
    assert base.sls == "unknown"
