"""Find the rows of switches while a dump is read, and check that each switch of the fabric occurs exactly once."""

from __future__ import annotations

from pathlib import Path

from routing.errors import ParseError, TableError
from routing.fabric import Fabric
from routing.numerals import count_noun


class SwitchRows:
    """Finds the row of a switch by its GUID while a dump is read, and records which switches have had a section.

    Parameters
    ----------
    path
        File name of the dump for error messages.
    fabric
        Fabric with the switches.
    what
        Plural noun for the contents of the dump in error messages, such as "tables".
    """

    def __init__(self, path: str | Path, fabric: Fabric, what: str) -> None:
        self._path, self._fabric, self._what = path, fabric, what
        self._row_of = {guid: row for row, guid in enumerate(fabric.switch_guid.tolist())}
        self._seen: set[int] = set()

    def row(self, guid: str, line: int) -> int:
        """Return the row of the switch with a GUID, given in hex without 0x.

        Raises
        ------
        TableError
            The switch is not in the fabric.
        """
        row = self._row_of.get(int(guid, 16))
        if row is None:
            raise TableError(
                f"switch {int(guid, 16):#018x} is not in the fabric",
                path=self._path, line=line, remedy=f"the {self._what} belong to another fabric",
            )  # fmt: skip
        return row

    def section(self, guid: str, line: int) -> int:
        """Return the row of the switch whose section begins at ``line``, and record that the switch has had a section.

        Raises
        ------
        TableError
            The switch is not in the fabric.
        ParseError
            The switch has had a section before.
        """
        row = self.row(guid, line)
        if row in self._seen:
            raise ParseError(f"switch {int(guid, 16):#018x} has a second section", path=self._path, line=line)
        self._seen.add(row)
        return row

    def finish(self) -> None:
        """Raise :class:`~routing.errors.TableError` if the dump has no section for one of the fabric's switches."""
        missing = sorted(set(self._row_of.values()) - self._seen)
        if missing:
            remedy = f"the {self._what} belong to another fabric, or the file was cut short"
            if len(self._seen) == 1:
                remedy = "ibroute prints one switch: put the outputs for all switches into one file"
            guid, name = int(self._fabric.switch_guid[missing[0]]), self._fabric.labels[missing[0]]
            raise TableError(
                f"{len(missing)} of {count_noun(self._fabric.switches, 'switch')} of the fabric are missing in the"
                f" file, such as {guid:#018x} ({name!r})",
                path=self._path,
                remedy=remedy,
            )
