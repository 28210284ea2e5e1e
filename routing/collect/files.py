"""Collect a snapshot from files: from a folder into which OpenSM or ibdiagnet has written dumps."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from routing import __version__
from routing.errors import InputError, file_problem
from routing.fabric import Fabric
from routing.formats.fabric_files import read_fabric
from routing.formats.snapshot import FABRIC_FILES, NAMES, Manifest, Part, PartState, fabric_file, first_of
from routing.formats.table_files import FDBS, LFTS, PATH_RECORDS, PSL, SL2VL, SLVL, read_tables
from routing.numerals import count_noun

_PARTS: tuple[tuple[Part, tuple[str, ...], str], ...] = (
    ("topology", FABRIC_FILES, ""),
    ("LFT", (LFTS, *FDBS), "OpenSM with -D 0x43 dumps them"),
    ("SL2VL", (SL2VL, SLVL), "OpenSM with -D 0x43 dumps them"),
    ("SL", (PATH_RECORDS, PSL), "OpenSM's plugin dump_pr, or `saquery PR` as opensm-path-records.dump"),
)
_NEVER: tuple[tuple[Part, str], ...] = (
    ("VL arbitration", "no file of OpenSM has it"),
    ("counters", "no file of OpenSM has them"),
)
_MORE = ("opensm.mcfdbs", "guid2lid", NAMES)


def collect_files(source: str | Path, folder: Path) -> Manifest:
    """Copy the files of a fabric and its tables into a folder.  Return the manifest, which this function does not
    write.

    A node name map that is already in the folder stays there.  The copies are parsed.  So damaged files, and files that
    do not belong together, are refused.

    Raises
    ------
    InputError, EnvironmentProblem
        The source is not a folder, has no fabric file, or a file is damaged or belongs to another fabric.
    """
    source, began = Path(source), _time(None)
    if not source.is_dir():
        raise InputError("is not a folder", path=source, remedy="name the folder with OpenSM's dumps")
    fabric_file(source)
    parts: dict[str, PartState] = {}
    for part, names, remedy in _PARTS:
        found = first_of(source, names)
        if found is None:
            parts[part] = PartState("missing", reason=f"{source} has no {' or '.join(names)} ({remedy})")
            continue
        _copy(found, folder)
        parts[part] = PartState("collected", found.name, f"written {_time(found)}")
    for name in _MORE:
        if (source / name).is_file() and not (folder / name).exists():
            _copy(source / name, folder)
    parts |= {part: PartState("missing", reason=reason) for part, reason in _NEVER}
    try:
        fabric = read_fabric(fabric_file(folder))
        parts["topology"] = PartState("collected", parts["topology"].file, _size(fabric))
        if (file := parts["LFT"].file) is not None:
            lft = read_tables(folder, fabric).lft
            parts["LFT"] = PartState("collected", file, f"{count_noun(len(lft), 'switch')}, {parts['LFT'].amount}")
    except InputError as error:
        where = error.path.replace(str(folder), str(source)) if error.path else None
        raise type(error)(error.problem, path=where, line=error.line, remedy=error.remedy) from None
    return Manifest(str(source), None, None, None, began, _time(None), {"ibnue": __version__}, parts)


def _size(fabric: Fabric) -> str:
    counts = (
        count_noun(fabric.switches, "switch"),
        count_noun(fabric.terminals, "CA or router", "CAs and routers"),
        count_noun(fabric.links, "link"),
    )
    return ", ".join(counts)


def _copy(path: Path, folder: Path) -> None:
    try:
        shutil.copyfile(path, folder / path.name)
    except OSError as error:
        raise file_problem("copied", path, error) from None


def _time(path: Path | None) -> str:
    """Return the time in UTC at which a file was written; the present time if ``path`` is None."""
    when = datetime.now(UTC) if path is None else datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return when.isoformat(timespec="seconds")
