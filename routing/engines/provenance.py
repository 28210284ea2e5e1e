"""Build the record of an engine run."""

from __future__ import annotations

from collections.abc import Mapping

from routing import __version__
from routing.engines.base import OPTIONS, EngineOptions
from routing.fabric import Fabric
from routing.tables import Provenance

LOOP_FREE = "loop_free"
"""Key in the provenance under which an engine without a promise states why its tables may have a credit loop."""
REPLIES = "replies"
"""Key in the provenance under which an engine states why replies on the SL of the request may close a credit loop."""


def provenance(
    engine: str, fabric: Fabric, options: EngineOptions, seconds: Mapping[str, float], **results: object
) -> Provenance:
    """Return the provenance of tables: engine, recorded options, versions and the digest of the fabric."""
    asked = {name: value for name, value in options.as_dict().items() if OPTIONS[name].recorded}
    return Provenance(engine, asked | results, fabric.digest, {"ibnue": __version__}, dict(seconds))
