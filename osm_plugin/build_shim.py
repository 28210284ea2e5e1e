"""Compiles ``libibnue.so``: the C shim, and the code that cffi generates to embed Python in it.

The compiler is called directly: cffi's own ``compile`` wants setuptools, which a runtime environment need not have.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cffi import FFI

from routing.errors import EnvironmentProblem

HERE = Path(__file__).parent
SOURCES = (
    "plugin.c", "embed.c", "worker.c", "walk.c", "collect.c", "route.c", "answer.c", "publish.c", "rounds.c",
    "settle.c", "last.c", "multicast.c", "policies.c",
)  # fmt: skip
HEADERS = ("host.h", "layout.h", "shim.h")


@dataclass(frozen=True)
class PythonBuild:
    """How to link with an interpreter.

    Attributes
    ----------
    executable
        The interpreter that the embedded Python is to be like: that of the virtual environment.
    include
        Directories of Python.h and pyconfig.h.
    libpython
        The shared library.
    paths
        Put first on ``sys.path`` of host and worker.
    """

    executable: Path
    include: tuple[Path, ...]
    libpython: Path
    paths: tuple[str, ...]


def declarations(header: Path) -> str:
    """A header without its preprocessor lines."""
    return "\n".join(line for line in header.read_text().splitlines() if not line.startswith("#"))


def init_code(build: PythonBuild) -> str:
    """What the embedded Python runs before the first call."""
    return (
        "import sys\n"
        f"sys.path[:0] = [path for path in {list(build.paths)!r} if path not in sys.path]\n"
        "from _ibnue_shim import ffi\n"
        "from osm_plugin.callbacks import attach\n"
        f"attach(ffi, {str(build.executable)!r}, {list(build.paths)!r})\n"
    )


def write_glue(build: PythonBuild, target: Path) -> None:
    """Write the C code that makes the functions of ``host.h`` call Python."""
    ffi = FFI()
    ffi.embedding_api(declarations(HERE / "host.h"))
    ffi.embedding_init_code(init_code(build))
    # Nothing outside the library needs these functions, and another plugin may have functions of the same names.
    ffi.set_source(
        "_ibnue_shim",
        '#undef CFFI_DLLEXPORT\n#define CFFI_DLLEXPORT __attribute__((visibility("hidden")))\n#include "host.h"\n',
    )
    with contextlib.redirect_stdout(io.StringIO()):  # cffi says what it does
        ffi.emit_c_code(str(target))


def compile_shim(
    build: PythonBuild,
    target: Path,
    *,
    engines: Sequence[str],
    include: Sequence[Path],
    libraries: Sequence[Path] = (),
    compiler: str = "cc",
) -> None:
    """Compile and link the plugin.

    Parameters
    ----------
    build
        The Python to embed.
    target
        The library to write; written beside it and renamed, so that a running OpenSM keeps the one it has.
    engines
        Names to register when the worker does not say which ones there are.
    include
        Where ``opensm/osm_opensm.h``, ``iba/ib_types.h`` and ``infiniband/umad.h`` are.
    libraries
        Where OpenSM's libraries are, if not where the linker looks anyway.
    compiler
        Name or path of the C compiler.

    Raises
    ------
    EnvironmentProblem
        No compiler, or it failed (its first error is in the message).
    """
    if shutil.which(compiler) is None:
        raise EnvironmentProblem(f"there is no C compiler {compiler!r} (apt install gcc libc6-dev)")
    with tempfile.TemporaryDirectory(prefix="ibnue-shim-") as scratch:
        glue, library = Path(scratch, "glue.c"), Path(scratch, target.name)
        write_glue(build, glue)
        names = "".join(f"{name}\\n" for name in engines)
        command = [
            compiler, "-std=gnu11", "-O3", "-g", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Wall",
            "-Wextra", "-Wno-unused-parameter", "-Wno-unused-function", "-Wno-missing-field-initializers",
            # What the plugin lacks must not come to light in a running OpenSM, which provides some of its symbols.
            "-Werror=implicit-function-declaration",
            f'-DIBNUE_PYTHON="{build.executable}"', f'-DIBNUE_ENGINES="{names}"',
            f"-I{HERE}", *(f"-I{place}" for place in (*include, *build.include)),
            str(glue), *(str(HERE / source) for source in SOURCES), "-o", str(library),
            # Python cannot be unloaded, so what it calls back into must not be either.
            "-Wl,-z,nodelete", str(build.libpython), f"-Wl,-rpath,{build.libpython.parent}",
            *(f"-L{place}" for place in libraries), "-lopensm", "-losmcomp",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
            raise EnvironmentProblem(f"the plugin does not compile: {lines[0] if lines else 'no message'}")
        _put(library, target)


def _put(library: Path, target: Path) -> None:
    beside = target.with_name(f".{target.name}.new")
    try:
        shutil.copyfile(library, beside)
        beside.chmod(0o755)
        beside.replace(target)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise EnvironmentProblem(f"{target} cannot be written: {problem.strerror}") from None
