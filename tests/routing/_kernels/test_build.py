"""Check that kernels are built again if their flags differ, and not otherwise."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
KERNELS = Path("routing/_kernels")


@pytest.fixture
def build(tmp_path):
    """Return a function that builds a copy of the project with a kernel of one line.

    The function returns whether a module was written, and whether the module has a sanitizer.
    """
    csrc = tmp_path / KERNELS / "csrc"
    csrc.mkdir(parents=True)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", KERNELS / "build.py", "routing/__init__.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / KERNELS / "__init__.py").touch()
    csrc = csrc / "one"
    csrc.mkdir()
    (csrc / "one.h").write_text("int ibn_next(int number);\n")
    (csrc / "one.c").write_text('#include "one/one.h"\nint ibn_next(int number) { return number + 1; }\n')

    def run(*how, **environment):
        known = [*tmp_path.glob(f"{KERNELS}/*.so"), *tmp_path.glob(f"build/lib*/{KERNELS}/*.so")]
        before = {path: path.stat().st_mtime_ns for path in known}
        usual = {name: value for name, value in os.environ.items() if not name.startswith("IBNUE_")}
        command = [sys.executable, "setup.py", "-q", "build_ext", *how]
        subprocess.run(command, cwd=tmp_path, env={**usual, **environment}, check=True, capture_output=True)
        position = str(KERNELS) if how else f"build/lib*/{KERNELS}"
        (built,) = tmp_path.glob(f"{position}/*.so")
        return built.stat().st_mtime_ns != before.get(built), b"__ubsan" in built.read_bytes()

    return run


def test_a_build_folder_of_other_flags_is_built_again(build):
    assert build() == (True, False)
    assert build(IBNUE_SANITIZE="undefined") == (True, True)
    assert build(IBNUE_SANITIZE="undefined") == (False, True)
    assert build() == (True, False)


def test_kernels_in_the_clone_are_built_again_wherever_their_objects_are(build):
    """The objects of another Python are in another folder.  Kernels with other flags are not kept."""
    mine, others = ("--inplace", "--build-temp", "mine"), ("--inplace", "--build-temp", "others")
    assert build(*mine) == (True, False)
    assert build(*others, IBNUE_KERNELS="keep") == (False, False)
    assert build(*others, IBNUE_SANITIZE="undefined", IBNUE_KERNELS="keep") == (True, True)
    assert build(*mine) == (True, False)
    assert build(*mine) == (False, False)


def test_kernels_of_the_same_sources_are_copied_from_the_cache(build, tmp_path):
    """The compiler of this test always fails, so that a compilation would be noticed."""
    cache = {"IBNUE_KERNEL_CACHE": str(tmp_path / "cache")}
    assert build(**cache) == (True, False)
    shutil.rmtree(tmp_path / "build")
    assert build("--inplace", CC="false", **cache) == (True, False)
    shutil.rmtree(tmp_path / "build")
    with pytest.raises(subprocess.CalledProcessError):
        build(IBNUE_SANITIZE="undefined", CC="false", **cache)
    header = tmp_path / KERNELS / "csrc" / "one" / "one.h"
    header.write_text(header.read_text() + "int ibn_previous(int number);\n")
    with pytest.raises(subprocess.CalledProcessError):
        build(CC="false", **cache)


def test_the_wheel_is_for_every_python_from_the_oldest_on(build, tmp_path):
    build()
    command = [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", "wheels"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "wheels").iterdir()
    oldest = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text())[1]
    assert f"-cp3{oldest}-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as files:
        module = files.read("routing/_kernels/_native.abi3.so")
    # The compiler's option is recorded in the module.
    assert b"-DPy_LIMITED_API=0x03%02X0000" % int(oldest) in module
