"""Compile the plugin once for all processes of a run of pytest."""

import fcntl
import os

from osm_plugin.install import LIBRARY, install


def plugin_build(tmp_path_factory):
    """Return the folder with ``libibnue.so`` for the installed OpenSM.  The first call compiles the library."""
    base = tmp_path_factory.getbasetemp()
    # Under pytest-xdist, each process has its own folder inside the folder of the run.
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = base / "plugin"
    folder.mkdir(exist_ok=True)
    with (base / "plugin.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / LIBRARY).exists():
            install(libdir=folder)
    return folder
