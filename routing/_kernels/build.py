"""Builds the extension module ``routing._kernels._native`` from all of ``csrc/`` (cffi API mode).

The headers serve as cffi declarations too, so they hold plain declarations only: everything between the include guard
and the end, without macros.  ``IBNUE_SANITIZE`` in the environment names the compiler's sanitizers to build with:
``address,undefined`` or ``thread``.
"""

from __future__ import annotations

import os
from pathlib import Path

from cffi import FFI

SOURCES = Path(__file__).parent / "csrc"


def declarations() -> str:
    """Every header with its preprocessor lines taken out, in the order of the file names."""
    headers = sorted(SOURCES.glob("*.h"))
    return "\n".join(line for header in headers for line in header.read_text().splitlines() if not line.startswith("#"))


def flags() -> tuple[list[str], list[str]]:
    """Flags for the compiler and for the linker."""
    # No -march=native and no -ffast-math: the same bytes have to come out on every machine.
    compile_flags = ["-std=c11", "-O3", "-ffp-contract=off", "-Wall", "-Wextra", "-pthread", f"-I{SOURCES}"]
    link_flags = ["-pthread", "-lm"]
    sanitizers = os.environ.get("IBNUE_SANITIZE")
    if sanitizers:
        sanitize = [f"-fsanitize={sanitizers}", "-fno-omit-frame-pointer", "-g"]
        compile_flags += [*sanitize, "-O1", "-fno-sanitize-recover=undefined"]
        link_flags += sanitize
    return compile_flags, link_flags


def built_with() -> str:
    """What the module holds of its flags, so that a build with others is known; nothing of where it was built."""
    return " ".join(["ibnue kernels:", *(flag for both in flags() for flag in both if not flag.startswith("-I"))])


def make_ffi() -> FFI:
    """Describe the extension module."""
    ffi = FFI()
    ffi.cdef(declarations())
    compile_flags, link_flags = flags()
    root = Path(__file__).parents[2]
    ffi.set_source(
        "routing._kernels._native",
        "\n".join(
            [
                f'__attribute__((used)) static const char ibn_built_with[] = "{built_with()}";',
                *(f'#include "{header.name}"' for header in sorted(SOURCES.glob("*.h"))),
            ]
        ),
        depends=[str(header.relative_to(root)) for header in sorted(SOURCES.rglob("*.h"))],
        sources=[str(source.relative_to(root)) for source in sorted(SOURCES.glob("*.c"))],
        extra_compile_args=compile_flags,
        extra_link_args=link_flags,
    )
    return ffi


ffibuilder = make_ffi()

if __name__ == "__main__":
    ffibuilder.compile(verbose=True)
