"""Compile an OpenSM plugin that dumps the SLs of all paths for OpenSM's own engines.

OpenSM dumps its LFTs but not the SLs, without which the tables of its layered engines cannot be checked.  The plugin
takes a second, while SA queries for all pairs take minutes.  The dump equals the SA's answers, with one exception.
OpenSM's DFSSSP picks one of several SLs at random in each query, so the dump is only one of the possible answers.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from ibsim_fixtures.opensm import Plugin
from ibsim_fixtures.processes import find_program
from routing.errors import EnvironmentProblem

NAME = "ibnue-path-dump"
INCLUDE = Path("/usr/include")
_SOURCE = Path(__file__).with_name("path_dump.c")


def path_dump_plugin(folder: str | Path) -> Plugin:
    """Compile the plugin into a folder, and return it for use with OpenSM.

    With this plugin, OpenSM writes ``opensm-path-records.dump`` beside its other dumps.

    Raises
    ------
    EnvironmentProblem
        There is no compiler, or the headers of OpenSM are missing.
    """
    compile_plugin(_SOURCE, NAME, Path(folder))
    return Plugin(NAME, folder=Path(folder).resolve())


def compile_plugin(source: Path, name: str, folder: Path) -> None:
    """Compile an OpenSM plugin, which consists of one C file, to a library in a folder.

    ``source`` is the C file, and ``name`` the name of the plugin.

    Raises
    ------
    EnvironmentProblem
        There is no compiler, or the headers of OpenSM are missing.
    """
    if not (INCLUDE / "infiniband/opensm/osm_event_plugin.h").is_file():
        raise EnvironmentProblem("the headers of OpenSM are missing (apt install libopensm-dev)")
    command: list[str | Path] = [
        find_program("cc"), "-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wno-unused-function",
        "-Wno-unused-parameter", f"-I{INCLUDE / 'infiniband'}", f"-I{INCLUDE}", source,
        "-o", folder.resolve() / f"lib{name}.so", "-lopensm", "-losmcomp",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentProblem(f"{name} does not compile: {(done.stderr.splitlines() or ['no message'])[0]}")
