"""The routing engines by name.  Other packages add engines through the entry point group ``ibnue.engines``."""

from __future__ import annotations

from routing.engines.base import Engine
from routing.engines.dfsssp import DeadlockFreeSSSP
from routing.engines.lash import Lash
from routing.engines.minhop import MinHop
from routing.engines.nue import Nue
from routing.engines.registry import Registry
from routing.engines.sssp import SSSP
from routing.engines.updn import UpDown

__all__ = ["ENGINES"]

OWN: tuple[Engine, ...] = (MinHop(), UpDown(), Nue(), SSSP(), DeadlockFreeSSSP(), Lash())


ENGINES = Registry(OWN, "ibnue.engines")
"""All engines by name."""
