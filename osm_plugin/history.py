"""Keep the last proven tables in files, and the pin that selects one of them to be used again.

The files are in a folder next to the state file, and are named ``NUMBER-DATE-ENGINE-DIGEST.npz``.  Each is a state file
and thus a bundle.  The file ``pin.json`` in the folder names the pinned file.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from osm_plugin.state import SavedTables, read_state, write_state
from routing.errors import EnvironmentProblem, InputError, file_problem
from routing.formats.atomic import write_text_atomically

PIN = "pin.json"
FORMAT = "ibnue-pin/1"
_NAME = re.compile(r"(\d{6,})-(\d{8}T\d{6}Z)-([a-z0-9]+)-([0-9a-f]{12})\.npz")
_LONGEST_PIN = 1 << 12


@dataclass(frozen=True)
class Entry:
    """One file of stored tables, described by its name.

    Attributes
    ----------
    path
        Path of the file.
    number
        Number of the tables, counted from 1.  Newer tables have higher numbers.
    date
        UTC time at which the tables were stored.
    engine
        Name of the engine that computed the tables.
    digest
        First 12 digits of a digest of fabric and tables.
    """

    path: Path
    number: int
    date: str
    engine: str
    digest: str


def history_folder(state: Path) -> Path:
    """Return the folder of stored tables that belongs to a state file."""
    return state.with_name(f"{state.name.removesuffix('.npz')}.history")


def entries(folder: Path) -> list[Entry]:
    """Return the stored tables in a folder, the oldest first.  If the folder does not exist, the list is empty."""
    found: list[Entry] = []
    with suppress(OSError):
        names = [(path, _NAME.fullmatch(path.name)) for path in folder.iterdir()]
        found = [Entry(path, int(name[1]), name[2], name[3], name[4]) for path, name in names if name]
    return sorted(found, key=lambda entry: entry.number)


def digest_of(kept: SavedTables) -> str:
    """Return a digest of a fabric and its tables.  Tables that are already stored are recognised by their digest.

    ``kept`` are the tables with their fabric.
    """
    found = hashlib.blake2b(kept.fabric.digest.encode(), digest_size=6)
    for table in (kept.routing.lft, kept.routing.sl, kept.routing.sl2vl):
        found.update(repr(table.shape).encode())
        found.update(table.tobytes())
    return found.hexdigest()


def store(folder: Path, kept: SavedTables, most: int) -> Path | None:
    """Store proven tables, unless they are already stored.  If new tables were stored, remove all but the ``most``
    newest files.

    The pinned file is never removed, even if it is older.

    ``kept`` are the tables with their fabric.

    Returns
    -------
    Path of the new file.  None if nothing was stored: ``most`` is 0, the tables have no certificate, or they are stored
    already.

    Raises
    ------
    EnvironmentProblem
        The folder cannot be created or written.
    """
    if most <= 0 or not kept.proof.certified:
        return None
    here, digest = entries(folder), digest_of(kept)
    if any(entry.digest == digest and entry.engine == kept.engine for entry in here):
        return None
    try:
        folder.mkdir(mode=0o755, exist_ok=True)
    except OSError as problem:
        raise file_problem("created", folder, problem) from None
    number = here[-1].number + 1 if here else 1
    date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    path = folder / f"{number:06d}-{date}-{kept.engine}-{digest}.npz"
    try:
        write_state(path, replace(kept, deferred=None))
    except EnvironmentProblem as problem:
        # The error names the folder instead of the file, because the name of the file contains the time.  So the error
        # is the same at the next attempt, and is not logged again.
        raise EnvironmentProblem(problem.problem, path=folder, remedy=problem.remedy) from None
    pinned = pinned_name(folder)
    for entry in entries(folder)[:-most]:
        if entry.path.name != pinned:
            with suppress(OSError):
                entry.path.unlink()
    return path


def pinned_name(folder: Path) -> str | None:
    """Return the name of the pinned file; None if no file is pinned.

    Raises
    ------
    InputError
        The file ``pin.json`` cannot be read, or does not name a file of stored tables.
    """
    path = folder / PIN
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_PIN)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror}", path=path) from None
    remedy = "ibnue plugin rollback --off, or to another number"
    try:
        about = json.loads(text)
    except ValueError:
        raise InputError("is not JSON", path=path, remedy=remedy) from None
    name = about.get("tables") if isinstance(about, dict) and about.get("format") == FORMAT else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError("names no tables of the history", path=path, remedy=remedy)
    return name


def pin(folder: Path, number: int, *, threads: int = 2) -> Entry:
    """Pin stored tables by their number, after a check of their file.

    Raises
    ------
    InputError
        No stored tables have this number.
    TableError, EnvironmentProblem
        The file is damaged, or the pin cannot be written.
    """
    here = entries(folder)
    found = next((entry for entry in here if entry.number == number), None)
    if found is None:
        known = ", ".join(str(entry.number) for entry in here) or "none"
        raise InputError(f"no tables have the number {number}", path=folder, remedy=f"known are: {known}")
    read_state(found.path, threads=threads)
    write_text_atomically(folder / PIN, json.dumps({"format": FORMAT, "tables": found.path.name}) + "\n")
    return found


def unpin(folder: Path) -> bool:
    """Remove the pin, and return whether there was a pin.

    Raises
    ------
    EnvironmentProblem
        The pin cannot be removed.
    """
    try:
        (folder / PIN).unlink()
    except FileNotFoundError:
        return False
    except OSError as problem:
        raise file_problem("removed", folder / PIN, problem) from None
    return True
