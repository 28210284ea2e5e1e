"""Identify the version of the code that computes the results of a sweep."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

import routing

HERE, LIVE = ("routing",), ("routing", "osm_plugin", "ibsim_fixtures")
"""Packages whose sources determine the results of tasks: ``HERE`` for ordinary tasks, and ``LIVE`` for tasks under a
real OpenSM.
"""


@lru_cache(maxsize=2)
def code_version(*, live: bool = False) -> str:
    """Return the version of ibnue with a hash (12 hex digits) of its Python and C sources, such as
    ``0.1.0+3f2a91c04d55``.

    The version is equal on all machines with equal sources, whatever the compiler.  If two results of one task are from
    equal versions, their tables must be equal, too.

    Parameters
    ----------
    live
        Whether the tasks run under a real OpenSM.  If so, the hash includes the plugin and the lab.
    """
    root = Path(routing.__file__).parents[1]
    state = hashlib.sha256()
    for package in LIVE if live else HERE:
        paths = [path for end in ("py", "c", "h") for path in (root / package).rglob(f"*.{end}")]
        for path in sorted(path for path in paths if path.stem != "_native"):
            state.update(f"{path.relative_to(root).as_posix()}\n{path.stat().st_size}\n".encode())
            state.update(path.read_bytes())
    return f"{routing.__version__}+{state.hexdigest()[:12]}"
