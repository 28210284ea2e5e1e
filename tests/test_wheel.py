"""The wheel has the same bytes whichever folder it is built in, and fits every Python from 3.10 on.  It contains the
schemas and the files of web pages.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("routing", "ibnue", "osm_plugin", "ibsim_fixtures")
FILES = ("setup.py", "pyproject.toml", "README.md", "LICENSE")


def build(folder):
    """Build a wheel from a copy of the sources in a folder, and return its path."""
    for name in SOURCES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.so", "_native.c"))
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run([*pip, "-w", folder / "out", folder], check=True, cwd=folder, env=environment)
    (wheel,) = (folder / "out").iterdir()
    return wheel


def test_sources_without_kernels_name_the_remedy(tmp_path):
    for name in ("routing", "ibnue"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.so", "_native.c"))
    done = subprocess.run(
        [sys.executable, "-c", "import ibnue"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "ModuleNotFoundError: the kernels are not built in this folder of sources (run Python in" in done.stderr


@pytest.mark.slow
def test_the_same_wheel_from_any_folder(tmp_path):
    folders = [tmp_path / "one", tmp_path / "another folder" / "deeper"]
    for folder in folders:
        folder.mkdir(parents=True)
    one, other = map(build, folders)
    assert one.read_bytes() == other.read_bytes()
    assert "cp310-abi3" in one.name
    names = set(zipfile.ZipFile(one).namelist())
    assert {"routing/cli/schemas/common.json", "routing/cli/schemas/check.json"} <= names
    assert {"ibnue/py.typed", "routing/draw/page.js", "routing/draw/page.css", "routing/draw/page.html"} <= names
