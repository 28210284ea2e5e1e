"""Read the file that divides a fabric into parts, each with a routing engine."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.formats.toml_text import Toml

_KEYS = {"engine", "switches"}


@dataclass(frozen=True, eq=False)
class FabricPart:
    """Part of a fabric.

    Attributes
    ----------
    engine
        Name of the engine that routes the part.
    switches
        bool[S], the switches of the part.
    where
        File and line of the part, for error messages.
    """

    engine: str
    switches: npt.NDArray[np.bool_]
    where: tuple[str, int | None]


def read_parts(path: str | Path, fabric: Fabric) -> tuple[FabricPart, ...]:
    """Read a parts file, and find the switches of each part.

    The file is TOML with a table ``[[part]]`` for each part.  The key ``engine`` is the name of an engine.  The key
    ``switches`` is a list of names, patterns with ``*``, ``?`` and ``[...]``, or GUIDs (``0x...``).  If the lists of
    several parts fit a switch, the switch belongs to the first of these parts.

    Raises
    ------
    ParseError
        A key is unknown or missing, a pattern fits no switch, or a switch belongs to no part.
    EnvironmentProblem
        The file cannot be read.
    """
    file = Toml.read(path)
    if set(file.table) != {"part"} or not isinstance(file.table["part"], list):
        unknown = next((key for key in file.table if key != "part"), None)
        raise file.error(
            "has no [[part]]" if unknown is None else f"{unknown!r} is not a key", *([unknown] if unknown else []),
            remedy="write a table [[part]] with engine and switches for each part",
        )  # fmt: skip
    taken, found = np.zeros(fabric.switches, bool), []
    for number, table in enumerate(file.table["part"]):
        if not isinstance(table, dict) or set(table) != _KEYS:
            raise file.error(
                "a part needs engine and switches, and nothing else", "part", number, remedy="see docs/engines.md"
            )
        engine, patterns = table["engine"], table["switches"]
        if (
            not isinstance(engine, str)
            or not isinstance(patterns, list)
            or not all(isinstance(p, str) for p in patterns)
        ):
            raise file.error(
                "engine is a name, and switches is a list of names",
                "part",
                number,
                remedy='such as ["leaf*", "spine*"]',
            )
        own = np.zeros(fabric.switches, bool)
        for pattern in patterns:
            fits = _fitting(fabric, pattern)
            if not fits.any():
                raise file.error(
                    f"{pattern!r} fits no switch", "part", number, "switches", remedy="correct or remove it"
                )
            own |= fits
        found.append(FabricPart(engine, own & ~taken, (str(path), file.line("part", number))))
        taken |= own
    if not taken.all():
        name = fabric.switch_name[int(np.flatnonzero(~taken)[0])]
        raise file.error(f"switch {name!r} belongs to no part", remedy='add its name, or "*" to the last part')
    return tuple(part for part in found if part.switches.any())


def _fitting(fabric: Fabric, pattern: str) -> npt.NDArray[np.bool_]:
    """Return the switches whose name or GUID fits ``pattern``, bool[S]."""
    if pattern.lower().startswith("0x"):
        try:
            return np.asarray(fabric.switch_guid == np.uint64(int(pattern, 16)))
        except (ValueError, OverflowError):
            return np.zeros(fabric.switches, bool)
    return np.array([name == pattern or fnmatch.fnmatchcase(name, pattern) for name in fabric.switch_name], bool)
