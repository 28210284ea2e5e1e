"""Build the extension module ``routing._kernels._native`` from all of ``csrc/`` (cffi API mode).

The headers in the folders of ``csrc/``, except those in ``internal/``, also serve as cffi declarations.  So these
headers contain plain declarations only, without macros.  The environment variable
``IBNUE_SANITIZE`` names the sanitizers with which the compiler builds the module: ``address,undefined`` or ``thread``.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from pathlib import Path

from cffi import FFI

SOURCES = Path(__file__).parent / "csrc"
INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)
OLDEST_PYTHON = (3, 10)
"""Oldest Python version that can load the module.  The field ``requires-python`` of pyproject.toml names this version.
"""


def public_headers() -> list[Path]:
    """Return the public headers, which declare the functions that Python calls.  Each header comes after the headers
    that it includes.
    """
    found: dict[Path, None] = {}

    def add(header: Path) -> None:
        for name in INCLUDE.findall(header.read_text()):
            add(SOURCES / name)
        found[header] = None

    for header in sorted(SOURCES.glob("*/*.h")):
        add(header)
    return list(found)


def declarations() -> str:
    """Return the text of the public headers without their preprocessor lines."""
    return "\n".join(
        line for header in public_headers() for line in header.read_text().splitlines() if not line.startswith("#")
    )


def wheel_tag() -> str | None:
    """Return the Python tag of a wheel with the stable ABI, such as ``cp310``.  Return None if the module can be loaded
    by one Python version only.

    Debug builds and free-threaded builds of Python do not have the stable ABI.
    """
    if hasattr(sys, "gettotalrefcount") or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    return None if sys.implementation.name != "cpython" else "cp{}{}".format(*OLDEST_PYTHON)


def flags() -> tuple[list[str], list[str]]:
    """Return the flags for the compiler and for the linker."""
    # No -march=native and no -ffast-math: the kernels must return the same bytes on every machine.
    compile_flags = ["-std=c11", "-O3", "-ffp-contract=off", "-Wall", "-Wextra", "-pthread", f"-I{SOURCES}"]
    if wheel_tag() is not None:
        compile_flags.append("-DPy_LIMITED_API=0x{:02X}{:02X}0000".format(*OLDEST_PYTHON))
    link_flags = ["-pthread", "-lm"]
    sanitizers = os.environ.get("IBNUE_SANITIZE")
    if sanitizers:
        sanitize = [f"-fsanitize={sanitizers}", "-fno-omit-frame-pointer", "-g"]
        compile_flags += [*sanitize, "-O1", "-fno-sanitize-recover=undefined"]
        link_flags += sanitize
    return compile_flags, link_flags


def built_with() -> str:
    """Return the compiler and linker flags as a text.  The text is recorded in the module.

    The text shows whether an existing module was built with other flags.  Include paths are left out, because they
    depend on the build folder.
    """
    return " ".join(["ibnue kernels:", *(flag for both in flags() for flag in both if not flag.startswith("-I"))])


def make_ffi() -> FFI:
    """Return the cffi description of the extension module."""
    ffi = FFI()
    ffi.cdef(declarations())
    compile_flags, link_flags = flags()
    root = Path(__file__).parents[2]
    ffi.set_source(
        "routing._kernels._native",
        "\n".join(
            [
                f'__attribute__((used)) static const char ibn_built_with[] = "{built_with()}";',
                *(f'#include "{header.relative_to(SOURCES)}"' for header in public_headers()),
            ]
        ),
        depends=[str(header.relative_to(root)) for header in sorted(SOURCES.rglob("*.h"))],
        sources=[str(source.relative_to(root)) for source in sorted(SOURCES.rglob("*.c"))],
        extra_compile_args=compile_flags,
        extra_link_args=link_flags,
    )
    return ffi


ffibuilder = make_ffi()

if __name__ == "__main__":
    ffibuilder.compile(verbose=True)
