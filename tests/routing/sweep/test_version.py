import shutil
import subprocess
import sys
from pathlib import Path

import routing
from routing.sweep.version import LIVE, code_version

ASK = "from routing.sweep.version import code_version; print(code_version(), code_version(live=True))"


def elsewhere(folder):
    # Compiled kernels, caches and the generated source differ between machines.
    left_out = shutil.ignore_patterns("*.so", "__pycache__", "_native.c")
    for package in LIVE:
        shutil.copytree(Path(routing.__file__).parents[1] / package, folder / package, ignore=left_out)


def reported(folder):
    """Return the version of the code in a folder, and the version that includes the plugin and the lab."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1]); {ASK}", folder]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout.split()


def test_the_same_sources_are_the_same_code_anywhere(tmp_path):
    elsewhere(tmp_path)
    assert reported(tmp_path) == [code_version(), code_version(live=True)]
    assert all(version.startswith(f"{routing.__version__}+") for version in reported(tmp_path))
    for name in ("routing/quality/__init__.py", "routing/_kernels/csrc/nue/nue.c"):
        before = reported(tmp_path)
        with (tmp_path / name).open("a") as file:
            file.write("\n")
        assert all(new != old for new, old in zip(reported(tmp_path), before, strict=True))


def test_live_results_are_of_the_plugin_and_the_lab_too(tmp_path):
    elsewhere(tmp_path)
    for name in ("osm_plugin/worker.py", "osm_plugin/plugin.c", "ibsim_fixtures/lab.py"):
        offline, live = reported(tmp_path)
        with (tmp_path / name).open("a") as file:
            file.write("\n")
        assert reported(tmp_path)[0] == offline
        assert reported(tmp_path)[1] != live
