"""A folder that programs may be started in and that must not have a part in what they do."""

import os
import sys
from pathlib import Path

import routing

ROOT = Path(routing.__file__).parents[1]
NAMES = ("ibnue", "routing", "osm_plugin", "ibsim_fixtures", "multiprocessing", "numpy", "mpi4py")


def hostile(folder, names=NAMES):
    """Put packages into a folder that leave a file behind when they are imported, and fail."""
    for name in names:
        (folder / name).mkdir()
        mark = f"open({str(folder / 'imported')!r}, 'a').write(__name__ + '\\n')\nraise ImportError('hostile')\n"
        (folder / name / "__init__.py").write_text(mark)
    return folder


def imported(folder):
    """Names of the packages of such a folder that were imported."""
    path = folder / "imported"
    return path.read_text().split() if path.exists() else []


def program(folder):
    """Write what pip installs as ``ibnue``; the folder that holds it comes first on the import path."""
    path = folder / "ibnue"
    path.write_text("from routing.cli.__main__ import start\nif __name__ == '__main__':\n    start()\n")
    return [sys.executable, str(path)]


def environment():
    """Return an environment in which our packages are installed, as far as Python can tell."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}
