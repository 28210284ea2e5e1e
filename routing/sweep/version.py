"""Which code a result is from."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

import routing

HERE, LIVE = ("routing",), ("routing", "osm_plugin", "ibsim_fixtures")
"""Packages that tasks are done with, which stand beside each other; live tasks need the plugin and the lab."""


@lru_cache(maxsize=2)
def code_version(*, live: bool = False) -> str:
    """The version of ibnue with 12 hex digits over its sources, Python and C, such as ``0.1.0+3f2a91c04d55``.

    The same on every machine that has the same sources, whatever compiled them: results may depend on nothing else.

    Parameters
    ----------
    live
        Of tasks under a real OpenSM: over the plugin and the lab as well.
    """
    root = Path(routing.__file__).parents[1]
    state = hashlib.sha256()
    for package in LIVE if live else HERE:
        paths = [path for end in ("py", "c", "h") for path in (root / package).rglob(f"*.{end}")]
        for path in sorted(path for path in paths if path.stem != "_native"):
            state.update(f"{path.relative_to(root).as_posix()}\n{path.stat().st_size}\n".encode())
            state.update(path.read_bytes())
    return f"{routing.__version__}+{state.hexdigest()[:12]}"
