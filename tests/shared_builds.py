"""Compile libraries for tests once for all processes of a run of pytest."""

import fcntl
import os
import shutil

from osm_plugin.install import LIBRARY, InstalledPlugin, install


def built_once(tmp_path_factory, name, build):
    """Return the folder ``name`` of a run of pytest, in which ``build(folder)`` has compiled something.

    The first process of the run that needs the folder calls ``build``, and the other processes wait for its end.
    """
    base = tmp_path_factory.getbasetemp()
    # Under pytest-xdist, each process has its own folder inside the folder of the run.
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, complete = base / name, base / f"{name}.complete"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            folder.mkdir(exist_ok=True)
            build(folder)
            complete.touch()
    return folder


def copied_library(tmp_path_factory):
    """Return a replacement of ``compile_shim`` that copies the library that :func:`plugin_build` has compiled."""
    library = plugin_build(tmp_path_factory) / LIBRARY  # before a caller replaces the compiler

    def copy(python, target, **options):
        shutil.copy(library, target)

    return copy


def copied_plugin(tmp_path_factory):
    """Return a replacement of :func:`osm_plugin.install.install` that copies the library of :func:`plugin_build`."""

    def copy(*, libdir, flags):
        library = shutil.copy(plugin_build(tmp_path_factory) / LIBRARY, libdir)
        return InstalledPlugin(library, "", (), {"LD_LIBRARY_PATH": str(libdir)})

    return copy


def plugin_build(tmp_path_factory):
    """Return the folder with ``libibnue.so`` for the installed OpenSM, compiled as for users."""
    return built_once(tmp_path_factory, "plugin", lambda folder: install(libdir=folder))
