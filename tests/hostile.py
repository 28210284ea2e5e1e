"""A working directory with packages that must never be imported, to test that ibnue ignores them."""

import os
import sys
from pathlib import Path

import routing

ROOT = Path(routing.__file__).parents[1]
NAMES = ("ibnue", "routing", "osm_plugin", "ibsim_fixtures", "multiprocessing", "numpy", "mpi4py")


def hostile(folder, names=NAMES):
    """Put packages into a folder that record their name in a file and fail when they are imported."""
    for name in names:
        (folder / name).mkdir()
        mark = f"open({str(folder / 'imported')!r}, 'a').write(__name__ + '\\n')\nraise ImportError('hostile')\n"
        (folder / name / "__init__.py").write_text(mark)
    return folder


def imported(folder):
    """Return the names of the packages that were imported from a folder that :func:`hostile` has filled."""
    path = folder / "imported"
    return path.read_text().split() if path.exists() else []


def program(folder):
    """Write the script that pip installs as ``ibnue`` into a folder, and return the command that runs the script."""
    path = folder / "ibnue"
    path.write_text("from routing.cli.__main__ import start\nif __name__ == '__main__':\n    start()\n")
    return [sys.executable, str(path)]


def environment():
    """Return environment variables by which Python finds ibnue as if it were installed."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}
