"""Build of the C kernels.  The file pyproject.toml describes everything else about the distribution."""

import fcntl
import os
import runpy
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = Path("routing/_kernels")
BUILT = KERNELS / "_native.abi3.so"


KERNEL_BUILD = runpy.run_path(str(KERNELS / "build.py"))


def are_of_other_flags() -> bool:
    """Return whether the built kernels in the sources have compiler flags that differ from the current ones.

    A build folder needs no such check: its generated C file contains the flags, so it changes with them.
    """
    return BUILT.exists() and KERNEL_BUILD["built_with"]().encode() not in BUILT.read_bytes()


def are_built() -> bool:
    """Return whether the built kernels in the sources are newer than all files from which they are built."""
    sources = [Path(__file__), KERNELS / "build.py", *(KERNELS / "csrc").rglob("*.[ch]")]
    return BUILT.exists() and BUILT.stat().st_mtime > max(source.stat().st_mtime for source in sources)


class BuildWithAllCores(build_ext):
    """Build of extension modules that compiles several C files at once, as many as the machine has cores."""

    def build_extension(self, extension: Extension) -> None:
        """Compile and link an extension module."""
        compile_files = self.compiler.compile

        def compile_at_once(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = pool.map(lambda source: compile_files([source], **options), sources)
            return [name for names in objects for name in names]

        self.compiler.compile = compile_at_once
        super().build_extension(extension)


# The flag keeps the path of the build folder out of debug information, so that equal sources give equal bytes anywhere.
PREFIX_MAP = shlex.quote(f"-ffile-prefix-map={Path.cwd()}=.")
os.environ["CFLAGS"] = f"{os.environ.get('CFLAGS', '')} {PREFIX_MAP}".strip()


@contextmanager
def one_build_at_a_time() -> Iterator[None]:
    """Wait until no other process builds from these sources, and let no other process start before the end."""
    Path("build").mkdir(exist_ok=True)
    with Path("build/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


with one_build_at_a_time():
    tag = KERNEL_BUILD["wheel_tag"]()
    others = are_of_other_flags()
    # Several environments may install these sources as editable. The kernels fit any Python, so the environments can
    # share them.
    keep = os.environ.get("IBNUE_KERNELS") == "keep" and are_built() and not others
    setup(
        cmdclass={"build_ext": BuildWithAllCores},
        cffi_modules=[] if keep else ["routing/_kernels/build.py:ffibuilder"],
        options={"build_ext": {"force": others}, "bdist_wheel": {"py_limited_api": tag} if tag else {}},
    )
