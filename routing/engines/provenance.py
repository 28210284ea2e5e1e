"""Record of an engine run."""

from __future__ import annotations

from collections.abc import Mapping

from routing import __version__
from routing.engines.base import EngineOptions
from routing.fabric import Fabric
from routing.tables import Provenance


def provenance(
    engine: str, fabric: Fabric, options: EngineOptions, seconds: Mapping[str, float], **results: object
) -> Provenance:
    """Return the engine, options (except the thread count, which changes nothing), versions, and fabric digest."""
    asked = {
        "vls": options.vls,
        "objective": options.objective.value,
        "passes": options.passes,
        "effort": options.effort,
        "seed": options.seed,
        "partition": options.partition,
        "first_vl": options.first_vl,
        "reversible": options.reversible,
        **results,
    }
    return Provenance(engine, asked, fabric.digest, {"ibnue": __version__}, dict(seconds))
