"""Build of the C kernels; everything else about the distribution stands in pyproject.toml."""

import os
from pathlib import Path

from setuptools import setup

KERNELS = Path("routing/_kernels")


def are_built() -> bool:
    """Whether kernels stand in the clone that are newer than all that they are made of."""
    built = KERNELS / "_native.abi3.so"
    sources = [Path(__file__), KERNELS / "build.py", *(KERNELS / "csrc").rglob("*.[ch]")]
    return built.exists() and built.stat().st_mtime > max(source.stat().st_mtime for source in sources)


# For environments that install the clone as editable one after the other: any Python takes the kernels of another.
keep = os.environ.get("IBNUE_KERNELS") == "keep" and are_built()
setup(cffi_modules=[] if keep else ["routing/_kernels/build.py:ffibuilder"])
