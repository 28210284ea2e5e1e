import shutil
import subprocess
import sys
from pathlib import Path

import routing
from routing.sweep.version import code_version

ASK = "from routing.sweep.version import code_version; print(code_version())"


def elsewhere(folder):
    copy = folder / "routing"
    # Compiled kernels, caches and what the compiler was given differ between machines.
    shutil.copytree(
        Path(routing.__file__).parent, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__", "_native.c")
    )
    return copy


def told(folder):
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1]); {ASK}", folder]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout.strip()


def test_the_same_sources_are_the_same_code_anywhere(tmp_path):
    copy = elsewhere(tmp_path)
    assert told(tmp_path) == code_version()
    assert code_version().startswith(f"{routing.__version__}+")
    for name in ("quality.py", "_kernels/csrc/nue.c"):
        before = told(tmp_path)
        with (copy / name).open("a") as file:
            file.write("\n")
        assert told(tmp_path) != before
