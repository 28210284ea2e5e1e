"""The routing engines by name.  Other packages add engines through the entry point group ``ibnue.engines``."""

from __future__ import annotations

from routing.engines.registry import Registry

__all__ = ["DEFAULT", "ENGINES", "IN_OPENSM", "OWN"]

DEFAULT = "auto"
"""Name of the engine that is used if no engine is named."""

IN_OPENSM = "updn"
"""Name of the engine that is used inside OpenSM if no engine is named.  This engine routes any fabric on one VL.
Unlike ``auto``, it does not run several engines, which would take more time.
"""

OWN = (
    "auto",
    "updn",
    "ftree",
    "nue",
    "dfsssp",
    "lash",
    "lash-tor",
    "mud",
    "dnup",
    "segment",
    "lturn",
    "smart",
    "disjoint",
    "dragonfly",
    "slimfly",
    "hyperx",
    "torus-2qos",
    "dor",
    "sssp",
    "minhop",
    "chain",
)
"""Names of the engines of this package, which are also the names of their modules."""

ENGINES = Registry(OWN, "ibnue.engines")
"""All engines by name."""
