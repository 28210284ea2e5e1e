"""Service levels of OpenSM's own engines: a small plugin that writes down what the engine says of every path.

OpenSM dumps its forwarding tables, but not the service levels, without which the tables of its layered engines cannot
be judged.  Asking the SA pair by pair takes minutes where the plugin takes a second.  OpenSM's DFSSSP draws lots among
several SLs each time it is asked, so that its dump is one answer out of many; those of the others are what the SA says.
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
    """Compile the plugin into a folder; OpenSM then leaves ``opensm-path-records.dump`` beside its other dumps.

    Raises
    ------
    EnvironmentProblem
        There is no compiler, or the headers of OpenSM are missing.
    """
    folder = Path(folder).resolve()
    if not (INCLUDE / "infiniband/opensm/osm_event_plugin.h").is_file():
        raise EnvironmentProblem("the headers of OpenSM are missing (apt install libopensm-dev)")
    command: list[str | Path] = [
        find_program("cc"), "-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wno-unused-function",
        "-Wno-unused-parameter", f"-I{INCLUDE / 'infiniband'}", f"-I{INCLUDE}", _SOURCE,
        "-o", folder / f"lib{NAME}.so", "-lopensm", "-losmcomp",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentProblem(f"the path dump does not compile: {(done.stderr.splitlines() or ['no message'])[0]}")
    return Plugin(NAME, folder=folder)
