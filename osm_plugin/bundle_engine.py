"""Define the engine ``bundle``.  The engine computes nothing, but reads the tables from a bundle that was computed
offline.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from routing.engines import ENGINES
from routing.engines.base import EngineOptions, Offers, Promise
from routing.fabric import Fabric
from routing.formats.bundle import bundle_routing, read_bundle
from routing.tables import Routing

BUNDLE = "bundle"


def plugin_engines() -> list[str]:
    """Return the names of the plugin's engines: every engine of ibnue, and the bundle engine."""
    return [*ENGINES, BUNDLE]


@dataclass
class BundleEngine:
    """Engine that returns the tables of a bundle, if they fit the fabric.

    The certificate in the bundle is not trusted.  The tables are proven again on the current fabric.
    """

    path: Path
    name: str = BUNDLE
    summary: str = "tables from a bundle made offline"
    promise: Promise = Promise.NONE
    offers: ClassVar = Offers(recomputes=False)

    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Read the bundle, and renumber its tables for the fabric by GUID.

        Raises
        ------
        InputError
            The file is not a bundle.
        TableError
            The bundle is for another fabric.
        """
        del options  # The options do not apply, because the bundle was computed with other options.
        return bundle_routing(read_bundle(self.path), fabric)
