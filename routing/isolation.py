"""Keep the working directory off Python's import path, so that files in this directory cannot shadow installed
packages.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path


def import_path() -> list[str]:
    """Return ``sys.path`` without the working directory.

    For ``-c`` and ``-m``, Python searches the working directory first.  A file there would be imported in place of an
    installed package.  The directory stays if this package was loaded from it, or if ``PYTHONPATH`` names it.
    """
    own = str(Path(__file__).parents[1])
    kept = [entry for entry in sys.path if Path(entry).is_absolute()]
    if kept and kept[0] == sys.path[0] != own and not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):
        with contextlib.suppress(OSError):  # The working directory may not exist any more.
            kept = kept[kept[0] == str(Path.cwd()) :]
    return kept if own in kept else [*kept, own]
