"""Build of the C kernels; everything else about the distribution stands in pyproject.toml."""

import os
import runpy
import shlex
from pathlib import Path

from setuptools import setup

KERNELS = Path("routing/_kernels")
BUILT = KERNELS / "_native.abi3.so"


KERNEL_BUILD = runpy.run_path(str(KERNELS / "build.py"))


def are_of_other_flags() -> bool:
    """Whether kernels stand in the clone that say they were built with other flags than would be taken now.

    Those in a build folder follow its C file, which holds the flags too.
    """
    return BUILT.exists() and KERNEL_BUILD["built_with"]().encode() not in BUILT.read_bytes()


def are_built() -> bool:
    """Whether kernels stand in the clone that are newer than all that they are made of."""
    sources = [Path(__file__), KERNELS / "build.py", *(KERNELS / "csrc").rglob("*.[ch]")]
    return BUILT.exists() and BUILT.stat().st_mtime > max(source.stat().st_mtime for source in sources)


# Debug information names files without the folder of the build, so that the same sources give the same bytes anywhere.
PREFIX_MAP = shlex.quote(f"-ffile-prefix-map={Path.cwd()}=.")
os.environ["CFLAGS"] = f"{os.environ.get('CFLAGS', '')} {PREFIX_MAP}".strip()
tag = KERNEL_BUILD["wheel_tag"]()
others = are_of_other_flags()
# For environments that install the clone as editable one after the other: any Python takes the kernels of another.
keep = os.environ.get("IBNUE_KERNELS") == "keep" and are_built() and not others
setup(
    cffi_modules=[] if keep else ["routing/_kernels/build.py:ffibuilder"],
    options={"build_ext": {"force": others}, "bdist_wheel": {"py_limited_api": tag} if tag else {}},
)
