"""Compile an OpenSM plugin that dumps the SLs of all paths for OpenSM's own engines.

OpenSM dumps its LFTs but not the SLs, without which the tables of its layered engines cannot be checked.  The plugin
takes a second, while SA queries for all pairs take minutes.  The dump equals the SA's answers, with one exception.
OpenSM's DFSSSP picks one of several SLs at random in each query, so the dump is only one of the possible answers.
"""

from __future__ import annotations

from pathlib import Path

from ibsim_fixtures.opensm import Plugin
from ibsim_fixtures.records import compile_plugin

NAME = "ibnue-path-dump"
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
