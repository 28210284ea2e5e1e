"""What came out of a task."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from routing.fabric import Fabric
from routing.tables import Routing

OUTCOMES = ("certified", "loop", "wrong", "refused", "timed out", "error")
"""``certified``: proven complete and free of credit loops.  ``loop``: complete, with a credit loop that the engine
never promised to avoid.  ``wrong``: incomplete tables, a broken promise, or two judges that disagree.  ``refused``: the
engine says that it cannot.  ``timed out``: it took longer than it may.  ``error``: something broke, a worker for
example."""
PASSING = ("timed out", "error")
"""Outcomes that say nothing of the task itself: any other result, or a later one, takes their place."""


@dataclass(frozen=True)
class Result:
    """What came out of a task.  What could not be found out is None.

    Attributes
    ----------
    task
        Its id.
    outcome
        One of :data:`OUTCOMES`.
    strength, scope
        Those of the certificate.
    vls, vls_needed
        Data VLs used, and the fewest with which the engine found these paths loop-free.
    faults, parts, cut_off
        Things broken; connected parts of the switches; CAs and routers that survive and are cut off.
    entries, changed, broken
        Forwarding entries for what both the intact and the broken fabric have; those that differ; those that could not
        stay as they were.
    a2a
        All-to-all share; None also where no channel carries anything.
    tables
        16 hex digits over the tables, None for those of a real OpenSM, which may differ from run to run.
    how
        How a re-routing came by them.
    seconds
        Wall time of this task alone; the tables of the intact fabric not counted.
    error
        One line.
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
    tables: str | None = None
    how: str | None = None
    seconds: float = 0.0
    error: str | None = None

    @property
    def certified(self) -> bool:
        """Whether the tables were proven."""
        return self.outcome == "certified"


def tables_digest(fabric: Fabric, routing: Routing) -> str:
    """16 hex digits over forwarding tables, service levels and SL-to-VL tables of the switches by GUID."""
    state = hashlib.sha256()
    for part in (fabric.switch_guid, routing.lft, routing.sl, routing.sl2vl):
        state.update(str(part.shape).encode())
        state.update(np.ascontiguousarray(part).tobytes())
    return state.hexdigest()[:16]
