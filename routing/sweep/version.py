"""Which code a result is from."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

import routing


@lru_cache(maxsize=1)
def code_version() -> str:
    """The version of ibnue with 12 hex digits over its sources, Python and C, such as ``0.1.0+3f2a91c04d55``.

    The same on every machine that has the same sources, whatever compiled them: results may depend on nothing else.
    """
    root = Path(routing.__file__).parent
    state = hashlib.sha256()
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.c"), *root.rglob("*.h")]):
        if path.stem != "_native":
            state.update(f"{path.relative_to(root).as_posix()}\n{path.stat().st_size}\n".encode())
            state.update(path.read_bytes())
    return f"{routing.__version__}+{state.hexdigest()[:12]}"
