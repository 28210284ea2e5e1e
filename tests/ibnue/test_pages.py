"""Check that the Python blocks of the pages run, and that the package of the template can be installed and used."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "docs" / "examples" / "engine"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/researcher.md"])
def test_python_blocks_run(page, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "docs" / "examples" / "rack", tmp_path / "docs" / "examples" / "rack")
    # The console sessions of the README create files in this folder.
    monkeypatch.chdir(tmp_path / "docs" / "examples" / "rack" if page == "README.md" else tmp_path)
    blocks = BLOCK.findall((ROOT / page).read_text())
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})


def test_the_template_is_a_distribution_of_its_own(tmp_path):
    """pip builds and installs the template without network.  ibnue finds its engine by name, and its tests pass."""
    source = shutil.copytree(ENGINE, tmp_path / "source")
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--disable-pip-version-check", "--target", target, source], check=True, timeout=120)
    assert (target / "spanning_tree.py").exists()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), str(ROOT)])}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # The engine's tests need no plugin of pytest.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    assert "5 passed" in done.stdout, done.stdout + done.stderr
