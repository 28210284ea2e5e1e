"""Folders that hold a fabric with its tables: snapshots of ``ibnue collect``, and folders of dumps.

A snapshot has the same files as a folder of dumps, and a manifest.  The manifest names the parts that could not be
collected, with the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from routing.errors import InputError, ParseError
from routing.formats.text import read_text

MANIFEST = "manifest.json"
SCHEMA = "ibnue-snapshot/1"
TOPOLOGY = "fabric.ibnetdiscover"
PORTS, COUNTERS = "ports.csv", "counters.csv"
NAMES = "node-name-map"
"""Name of the file with names of devices by GUID.  The names apply to the fabric of the folder."""
FABRIC_FILES = (TOPOLOGY, "ibnetdiscover.out", "opensm-subnet.lst", "ibdiagnet2.db_csv", "ibdiagnet2.lst")
"""Names of fabric files in a folder, in the order of preference."""

FILES = frozenset({
    MANIFEST, PORTS, COUNTERS, NAMES, *FABRIC_FILES, "opensm-lfts.dump", "opensm.fdbs", "ibdiagnet2.fdbs",
    "opensm-sl2vl.dump", "opensm-path-records.dump", "ibdmchk.psl", "ibdmchk.slvl", "opensm.mcfdbs", "guid2lid",
})  # fmt: skip
"""Names of all files that a snapshot may contain."""

Part = Literal["topology", "LFT", "SL2VL", "VL arbitration", "SL", "counters"]
State = Literal["collected", "incomplete", "missing"]


@dataclass(frozen=True)
class PartState:
    """One part of a snapshot: its file, and the reason if something is missing.

    Attributes
    ----------
    state
        "collected", "incomplete" or "missing".
    file
        Name of the file; None if the part is missing.
    amount
        Amount of collected data, such as "20 switches".
    reason
        Reason why something is missing; None if nothing is missing.
    seconds
        Time that the collection of this part took.
    """

    state: State
    file: str | None = None
    amount: str = ""
    reason: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Manifest:
    """Contents of a snapshot.

    Attributes
    ----------
    folder
        Folder of the files from which the snapshot was collected; None for a live fabric.
    ca, port, sm_lid
        For a live fabric: the CA and the port that sent the queries, if the user named them, and the LID of the subnet
        manager.
    began, ended
        Times of the collection in UTC, ISO 8601.
    programs
        Versions of the programs that took part.
    parts
        State of each part.
    remarks
        Remarks about the collected values, for example on VLs that a port does not operate.
    """

    folder: str | None
    ca: str | None
    port: int | None
    sm_lid: int | None
    began: str
    ended: str
    programs: Mapping[str, str]
    parts: Mapping[str, PartState]
    remarks: Sequence[str] = ()

    def as_object(self) -> dict[str, Any]:
        """Return the manifest as a dictionary for JSON.  The key ``schema`` is not in the dictionary."""
        return {
            **{name: getattr(self, name) for name in ("folder", "ca", "port", "sm_lid", "began", "ended")},
            "programs": [{"name": name, "version": version} for name, version in self.programs.items()],
            "collected": [{"part": name, **asdict(part)} for name, part in self.parts.items()],
            "remarks": list(self.remarks),
        }

    def reason(self, part: Part) -> str | None:
        """Return the reason why a part is missing or incomplete.  The result is None if the part was collected, or if
        the manifest does not name it.
        """
        known = self.parts.get(part)
        return None if known is None else known.reason


def manifest_text(manifest: Manifest) -> str:
    """Return the text of a snapshot's manifest file, in JSON."""
    return json.dumps({"schema": SCHEMA, **manifest.as_object()}, indent=2) + "\n"


def read_manifest(folder: str | Path) -> Manifest | None:
    """Read the manifest of a snapshot; None if the folder has no manifest of a snapshot.

    Raises
    ------
    ParseError
        The manifest is damaged, or of another version.
    InputError, EnvironmentProblem
        The manifest cannot be read.
    """
    path = Path(folder) / MANIFEST
    if not path.is_file():
        return None
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError):
        raise ParseError("this is not JSON", path=path, remedy="collect the snapshot again") from None
    schema = value.get("schema") if isinstance(value, dict) else None
    if not isinstance(schema, str) or not schema.startswith("ibnue-snapshot/"):
        return None
    if schema != SCHEMA:
        raise ParseError(f"a snapshot of format {schema[:40]!r}, wanted {SCHEMA!r}", path=path, remedy="collect again")
    try:
        plain = {name: value[name] for name in ("folder", "ca", "port", "sm_lid", "began", "ended")}
        return Manifest(
            **plain,
            programs={str(program["name"]): str(program["version"]) for program in value["programs"]},
            parts={str(part["part"]): _part(part) for part in value["collected"]},
            remarks=tuple(map(str, value["remarks"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ParseError("the manifest is damaged", path=path, remedy="collect the snapshot again") from None


def _part(value: Mapping[str, Any]) -> PartState:
    state = value["state"]
    if state not in ("collected", "incomplete", "missing"):
        raise ValueError(state)
    file, reason = (None if value[key] is None else str(value[key]) for key in ("file", "reason"))
    return PartState(state, file, str(value["amount"]), reason, float(value["seconds"]))


def fabric_file(folder: str | Path) -> Path:
    """Return the path of the fabric file in a folder.

    The folder is a snapshot, or has dumps of OpenSM or ibdiagnet.

    Raises
    ------
    InputError
        The folder has no fabric file.
    """
    found = first_of(Path(folder), FABRIC_FILES)
    if found is None:
        raise InputError(
            "the folder has no fabric file",
            path=folder,
            remedy=f"name a fabric file, or a folder with {', '.join(FABRIC_FILES[:-2])} or {FABRIC_FILES[-2]}",
        )
    return found


def first_of(folder: Path, names: Sequence[str]) -> Path | None:
    """Return the path of the first name in ``names`` for which the folder has a file.

    A file with the additional suffix ``.gz`` counts, too.  The result is None if the folder has no such file.
    """
    paths = (folder / f"{name}{suffix}" for name in names for suffix in ("", ".gz"))
    return next((path for path in paths if path.exists()), None)
