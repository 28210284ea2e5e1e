"""Build of the C kernels.  The file pyproject.toml describes everything else about the distribution."""

import fcntl
import hashlib
import os
import runpy
import shlex
import shutil
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
    """Return whether the kernels in the source folder were built with other compiler flags than the current flags.

    Kernels in a build folder need no such check.  A generated C file contains the flags, so new flags change this file,
    and setuptools builds the kernels again.
    """
    return BUILT.exists() and KERNEL_BUILD["built_with"]().encode() not in BUILT.read_bytes()


def are_built() -> bool:
    """Return whether the built kernels in the source folder are newer than all files from which they are built."""
    sources = [Path(__file__), KERNELS / "build.py", *(KERNELS / "csrc").rglob("*.[ch]")]
    return BUILT.exists() and BUILT.stat().st_mtime > max(source.stat().st_mtime for source in sources)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which only one process at a time can hold."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest_of(extension: Extension) -> str:
    """Return a checksum of everything from which an extension module is built.

    The checksum covers the names and the contents of the files. One of the files is a generated C file, which contains
    the compiler flags. The folders of the files are left out, because the generated C file is in a different folder in
    each build.
    """
    digest = hashlib.sha256()
    for path in map(Path, [*extension.sources, *extension.depends]):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


class BuildWithAllCores(build_ext):
    """Build of extension modules that compiles several C files at once, as many as the machine has cores.

    If the environment variable ``IBNUE_KERNEL_CACHE`` names a folder, this folder keeps built modules. A module is then
    copied from there instead of being compiled, if all sources, headers and flags are the same.
    """

    def build_extension(self, extension: Extension) -> None:
        """Provide an extension module: copy the module from the cache, or compile it."""
        folder = os.environ.get("IBNUE_KERNEL_CACHE")
        if not folder:
            self.compile_extension(extension)
            return
        Path(folder).mkdir(parents=True, exist_ok=True)
        kept, target = Path(folder, digest_of(extension)), Path(self.get_ext_fullpath(extension.name))
        with locked(Path(folder, "lock")):
            if kept.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(kept, target)
            else:
                self.compile_extension(extension)
                shutil.copyfile(target, kept)

    def compile_extension(self, extension: Extension) -> None:
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


# Only one build from these sources may run at a time, because all builds write the same files.
Path("build").mkdir(exist_ok=True)
with locked(Path("build/lock")):
    tag = KERNEL_BUILD["wheel_tag"]()
    others = are_of_other_flags()
    # Several Python environments may have an editable installation of these sources. The kernels fit any Python
    # version, so the environments can share the kernels.
    keep = os.environ.get("IBNUE_KERNELS") == "keep" and are_built() and not others
    setup(
        cmdclass={"build_ext": BuildWithAllCores},
        cffi_modules=[] if keep else ["routing/_kernels/build.py:ffibuilder"],
        options={"build_ext": {"force": others}, "bdist_wheel": {"py_limited_api": tag} if tag else {}},
    )
