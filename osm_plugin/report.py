"""Report on the worker's tables for the status file."""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from osm_plugin.background import LastItemThread
from osm_plugin.staged_update import Change
from osm_plugin.state import SavedTables
from routing.errors import IbnueError
from routing.fabric import Fabric
from routing.quality import all_to_all_share, channel_loads
from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Answer:
    """An answer that was sent to OpenSM, with figures for the status file.

    Attributes
    ----------
    sequence
        Number of the request.
    kept
        The tables of the answer.
    change
        The change of the tables in the switches; None if nothing changes.
    how
        Method by which the tables were computed, in words.
    figures
        Figures by name.  "entries_broken" and "entries_changed" are numbers of LFT entries.  "all_to_all_kept" is the
        all-to-all rate divided by the rate of the previous tables.  Unknown figures are missing.
    seconds
        Duration of each phase of the routing, by name.
    """

    sequence: int
    kept: SavedTables
    change: Change | None
    how: str
    figures: Mapping[str, float]
    seconds: Mapping[str, float]

    def as_object(self) -> dict[str, Any]:
        """Return an object for JSON with all figures that are already known."""
        fabric, proof = self.kept.fabric, self.kept.proof
        schedule = None if self.change is None else self.change.schedule
        return {
            "sequence": self.sequence,
            "fabric_digest": fabric.digest,
            "switches": fabric.switches,
            "end_ports": fabric.endports,
            "engine": self.kept.engine,
            "certified": proof.certified,
            "strength": proof.strength,
            "scope": proof.scope,
            "vls": self.kept.routing.vls,
            "description": self.how,
            **self.figures,
            "rounds_planned": 1 if schedule is None else max(1, len(schedule)),
            "phase_seconds": {name: round(seconds, 6) for name, seconds in self.seconds.items()},
        }


class Reporter:
    """Sends reports to the host inside OpenSM, which writes them into the status file.

    Slow figures are computed in a thread.  If several answers are queued, the slow figures are computed only for the
    last answer.

    Parameters
    ----------
    link
        The socket for reports, which the worker got from the host.
    """

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._answers = LastItemThread("ibnue-report", self._report_share)

    def put(self, answer: Answer) -> None:
        """Send the figures that are already known, and let the thread compute the slow figures of the answer."""
        self.send(answer.as_object())
        self._answers.put(answer)

    def send(self, report: Mapping[str, Any]) -> None:
        """Send a report without waiting.  If the socket is full or closed, the report is lost."""
        with suppress(OSError):
            self._link.send(json.dumps(report).encode(), socket.MSG_DONTWAIT)

    def _report_share(self, answer: Answer) -> None:
        share = all_to_all(answer.kept.fabric, answer.kept.routing)
        self.send({"sequence": answer.sequence, "all_to_all": share})


def all_to_all(fabric: Fabric, routing: Routing) -> float | None:
    """Return the rate of every end port under all-to-all traffic, as a share of the reference rate; None if no channel
    carries traffic, or if the rate cannot be computed.
    """
    try:
        share = all_to_all_share(fabric, channel_loads(fabric, routing, threads=1))
    except IbnueError:
        return None
    return share if math.isfinite(share) else None
