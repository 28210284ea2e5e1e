"""The routing engines, by name.  Other packages add theirs through the entry point group ``ibnue.engines``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points

from routing.engines.base import Engine
from routing.engines.dfsssp import DeadlockFreeSSSP
from routing.engines.lash import Lash
from routing.engines.minhop import MinHop
from routing.engines.nue import Nue
from routing.engines.sssp import SSSP
from routing.engines.updn import UpDown

__all__ = ["ENGINES"]

OWN: tuple[Engine, ...] = (MinHop(), UpDown(), Nue(), SSSP(), DeadlockFreeSSSP(), Lash())


def _registry() -> Mapping[str, Engine]:
    engines = {engine.name: engine for engine in OWN}
    for point in sorted(entry_points(group="ibnue.engines"), key=lambda point: point.name):
        engines.setdefault(point.name, point.load()())
    return engines


ENGINES: Mapping[str, Engine] = _registry()
"""Every engine by its name."""
