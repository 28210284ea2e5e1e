"""Results of tasks."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from routing.fabric import Fabric
from routing.tables import Routing

OUTCOMES = ("certified", "loop", "wrong", "refused", "timed out", "lost", "error")
"""``certified``: proven complete and free of credit loops.  ``loop``: complete, with a credit loop that the engine does
not promise to avoid.  ``wrong``: incomplete tables, a broken promise, or two checkers that disagree.  ``refused``: the
engine reported that it cannot route the fabric.  ``timed out``: the task exceeded its time limit.  ``lost``: the
machine failed: a worker was killed from outside, or lacked memory or a module.  ``error``: another failure, for example
of a kernel."""
AGAIN = ("timed out", "lost")
"""Outcomes after which every later run repeats the task."""
PASSING = (*AGAIN, "error")
"""Outcomes that are not a property of the task itself: any later result replaces them."""


@dataclass(frozen=True)
class Result:
    """Result of a task.  Unknown values are None.

    Attributes
    ----------
    task
        Id of the task.
    outcome
        One of :data:`OUTCOMES`.
    strength, scope
        Strength and scope of the certificate.
    vls, vls_needed
        Data VLs used, and the fewest with which the engine found these paths loop-free.
    faults, parts, cut_off
        Number of faults; of connected components of the switches; of surviving CAs and routers that are disconnected.
    entries, changed, broken
        Number of LFT entries for switches and LIDs of both the intact and the faulty fabric; of those that differ; of
        those that are no longer valid.
    a2a
        All-to-all share; None also if no channel carries traffic.
    kept
        All-to-all rate of an end port relative to its rate in the intact fabric; over 1 if the rate has grown because
        fewer end ports send.
    tables
        Hash of the tables, 16 hex digits; None for tables of a real OpenSM, which may differ from run to run.
    how
        Method by which a re-route computed the tables.
    seconds
        Wall-clock time of this task alone, without the tables of the intact fabric.
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
    tables: str | None = None
    how: str | None = None
    seconds: float = 0.0
    error: str | None = None

    @property
    def certified(self) -> bool:
        """Whether the tables are proven."""
        return self.outcome == "certified"


def tables_digest(fabric: Fabric, routing: Routing) -> str:
    """Return a hash, 16 hex digits, of LFTs, SLs and SL2VL tables of the switches by GUID."""
    state = hashlib.sha256()
    for part in (fabric.switch_guid, routing.lft, routing.sl, routing.sl2vl):
        state.update(str(part.shape).encode())
        state.update(np.ascontiguousarray(part).tobytes())
    return state.hexdigest()[:16]
