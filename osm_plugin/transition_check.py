"""Check whether a change of tables is safe, and describe the result in a line for the log."""

from __future__ import annotations

import traceback

from osm_plugin.staged_update import Change
from osm_plugin.transition import transition_line
from routing.errors import IbnueError


def check_transition(change: Change) -> str | None:
    """Return a line that states whether a change of tables is safe, or why its safety was not judged.

    Return None if no table changes.
    """
    try:
        return transition_line(change, threads=1)
    except IbnueError as problem:
        return f"transition not judged: {problem}"
    except Exception:  # A failed check must not end the worker.
        traceback.print_exc()
        return "transition not judged: bug in the worker"
