"""Build the plugin library for the Debian package: ``build_plugin.py PYTHON LIBRARY``.

The library embeds a Python interpreter, whose path it contains.  ``ibnue plugin install`` uses the path of the
interpreter that runs the command.  During the build of the package, the interpreter is still in the build folder.  So
PYTHON states the path of the interpreter after the installation of the package.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

from osm_plugin.build_shim import compile_shim
from osm_plugin.bundle_engine import plugin_engines
from osm_plugin.install import PLUGIN, python_build

HEADERS = Path("/usr/include/infiniband")


def main(python: Path, library: Path) -> None:
    """Build the plugin library.  debhelper sets the compiler flags of dpkg-buildflags as environment variables."""
    flags = [flag for name in ("CPPFLAGS", "CFLAGS", "LDFLAGS") for flag in shlex.split(os.environ.get(name, ""))]
    compile_shim(
        replace(python_build(), executable=python, paths=()),
        library.resolve(),
        engines=[f"{PLUGIN}-{name}" for name in plugin_engines()],
        include=(HEADERS, HEADERS.parent),
        flags=flags,
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: build_plugin.py PYTHON LIBRARY")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
