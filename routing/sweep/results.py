"""Define the result of one task of a sweep, and a hash of routing tables."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from routing.fabric import Fabric
from routing.tables import Routing

OUTCOMES = ("certified", "loop", "wrong", "refused", "timed out", "lost", "error")
"""Outcomes of a task:

- ``certified``: the tables are proven complete and free of credit loops.
- ``loop``: the tables are complete and have a credit loop, but the engine does not promise to avoid loops.
- ``wrong``: the tables are incomplete or break the engine's promise, or two checkers disagree.
- ``refused``: the engine reported that it cannot route the fabric.
- ``timed out``: the task exceeded its time limit.
- ``lost``: the machine failed.  A worker was killed from outside, or lacked memory or a module.
- ``error``: another failure, for example a crash of a C kernel.
"""
AGAIN = ("timed out", "lost")
"""Outcomes after which every later run of the sweep repeats the task."""
PASSING = (*AGAIN, "error")
"""Outcomes that may depend on the machine, so that another attempt may give another outcome.  Any later result of the
task replaces such a result.
"""


@dataclass(frozen=True)
class Result:
    """Result of one task of a sweep.  Unknown values are None.

    Attributes
    ----------
    task
        Id of the task.
    outcome
        One of :data:`OUTCOMES`.
    strength, scope
        Strength of the certificate ("forward": requests, "reversible": also replies), and its scope (the traffic that
        it covers).
    vls, vls_needed
        Number of data VLs that the tables use, and the fewest VLs with which the engine found these paths free of
        credit loops.
    faults, parts, cut_off
        Number of faults, number of connected components of the switches, and number of surviving CAs and routers that
        the faults have disconnected.
    entries, changed, broken
        Number of all LFT entries, number of entries that differ between the tables before and after the fault, and
        number of old entries that became invalid.  Only entries of switches and LIDs that exist both before and after
        the fault are counted.
    a2a
        All-to-all rate of an end port as a share of the reference rate.  None also if no channel carries traffic.
    kept
        All-to-all rate of an end port divided by its rate before the fault.  The value exceeds 1 if the rate has grown
        because fewer end ports send.
    bisection_kept
        Rate of random bisections divided by the rate before the fault.
    fresh_kept, fresh_bisection_kept
        The values of ``kept`` and ``bisection_kept`` for tables from scratch.  None after a re-route that did not
        compute such tables.
    tables
        Hash of the tables, 16 hex digits.  None for the tables of a real OpenSM, which may differ from run to run.
    how
        Method by which a re-route computed the tables.  None without a re-route.
    seconds
        Wall-clock time of this task, without the time for the tables of the fault-free fabric, in seconds.
    error
        Description of a failure, in one line.
    """

    task: str
    outcome: str
    strength: str | None = None
    scope: str | None = None
    vls: int | None = None
    vls_needed: int | None = None
    faults: int | None = None
    parts: int | None = None
    cut_off: int | None = None
    entries: int | None = None
    changed: int | None = None
    broken: int | None = None
    a2a: float | None = None
    kept: float | None = None
    bisection_kept: float | None = None
    fresh_kept: float | None = None
    fresh_bisection_kept: float | None = None
    tables: str | None = None
    how: str | None = None
    seconds: float = 0.0
    error: str | None = None

    @property
    def certified(self) -> bool:
        """Whether the tables are proven complete and free of credit loops."""
        return self.outcome == "certified"


def tables_digest(fabric: Fabric, routing: Routing) -> str:
    """Return a hash (16 hex digits) of LFTs, SLs and SL2VL tables.  The hash depends on the GUIDs of the switches, not
    on their names.
    """
    state = hashlib.sha256()
    for part in (fabric.switch_guid, routing.lft, routing.sl, routing.sl2vl):
        state.update(str(part.shape).encode())
        state.update(np.ascontiguousarray(part).tobytes())
    return state.hexdigest()[:16]
