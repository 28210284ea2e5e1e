"""The engine that computes nothing: it takes the tables from a bundle that was made offline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from routing.engines.base import EngineOptions, Promise
from routing.fabric import Fabric
from routing.formats.bundle import bundle_routing, read_bundle
from routing.tables import Routing

BUNDLE = "bundle"


@dataclass
class BundleEngine:
    """Tables from a file, if they fit the fabric.

    It promises freedom from credit loops for what is proven on arrival, not for what the bundle says of itself: the
    proof is made again, on the fabric as it is.
    """

    path: Path
    name: str = BUNDLE
    summary: str = "tables from a bundle made offline"
    promise: Promise = Promise.NONE

    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Read the bundle and lay it onto the fabric by GUIDs.

        Raises
        ------
        InputError
            A file that is no bundle.
        TableError
            A bundle for another fabric.
        """
        del options  # the bundle was made with its own
        return bundle_routing(read_bundle(self.path), fabric)
