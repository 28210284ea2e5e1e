"""Build the tables of an engine, with the record of its run."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from routing import __version__
from routing.engines.base import OPTIONS, Engine, EngineOptions
from routing.engines.vl_assignment import VlTables
from routing.fabric import Fabric
from routing.tables import Provenance, Routing

LOOP_FREE = "loop_free"
"""Key in the provenance for freedom from credit loops.  If the tables of an engine without a promise may have a credit
loop, the engine states the reason under this key.
"""
REPLIES = "replies"
"""Key in the provenance under which an engine states why replies on the SL of the request may close a credit loop."""


def provenance(
    engine: str, fabric: Fabric, options: EngineOptions, seconds: Mapping[str, float], **results: object
) -> Provenance:
    """Return the provenance of tables: engine, recorded options, versions and the digest of the fabric."""
    asked = {name: value for name, value in options.as_dict().items() if OPTIONS[name].recorded}
    return Provenance(engine, asked | results, fabric.digest, {"ibnue": __version__}, dict(seconds))


def engine_tables(
    engine: Engine,
    fabric: Fabric,
    options: EngineOptions,
    start: float,
    /,
    *,
    lft: npt.NDArray[np.uint8],
    tables: VlTables,
    vls_needed: int,
    **results: object,
) -> Routing:
    """Return the tables of an engine, with their provenance.

    Parameters
    ----------
    engine, fabric, options
        The engine, and its input.
    start
        Time at which the engine began, by ``time.perf_counter``.
    lft, tables, vls_needed
        The LFTs, the SL and VL tables, and the number of VLs that deadlock freedom needs.
    results
        Further values of the provenance.
    """
    seconds = {"route": time.perf_counter() - start}
    record = provenance(engine.name, fabric, options, seconds, **results)
    return Routing(lft=lft, **tables, vls_needed=vls_needed, provenance=record)
