"""Check the file of ``partition_config_file`` before OpenSM reads it.

If the file has an error, OpenSM drops all partitions of the file.  OpenSM ignores unknown flags, so the check accepts
unknown flags, too.
"""

from __future__ import annotations

from pathlib import Path

from routing.errors import ParseError, raise_errors
from routing.formats.text import c_number, read_text

_GROUPS = ("NONE", "ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "SELF")
"""Words for groups of ports.  OpenSM also accepts the first letters of such a word."""
_WHITE = " \t"
_PKEY = 0x7FFF
"""Mask of the bits of a PKey without the bit for full membership."""
_LONGEST_LINE = 4094
"""Length in bytes of the longest line that OpenSM reads whole."""


def check_partitions(path: Path) -> set[int] | None:
    """Check a partition file, and return the PKeys of its partitions.

    Returns
    -------
    The PKeys, without the bit for full membership.  The result is None if the file states no PKey for some partition:
    OpenSM then chooses the PKey of this partition.

    Raises
    ------
    ParseError
        OpenSM would drop all partitions, or misread a line.  If there are several errors, a
        :class:`~routing.errors.ParseErrors` has all errors up to the first after which the check cannot continue.
    InputError, EnvironmentProblem
        The file cannot be read.
    """
    pkeys, errors = set[int](), list[ParseError]()
    try:
        _check_lines(path, pkeys, errors)
    except ParseError as error:
        errors.append(error)
    raise_errors(errors)
    if not pkeys:
        raise ParseError("defines no partition", path=path, remedy="define one, or name no file")
    return None if 0 in pkeys else pkeys


def _check_lines(path: Path, pkeys: set[int], errors: list[ParseError]) -> None:
    """Check the lines of a partition file.  Add the PKeys of its partitions to ``pkeys``, and each error in a partition
    to ``errors``.

    Raises
    ------
    ParseError
        An error after which the rest of the file cannot be checked.
    """
    lines = read_text(path).split("\n")
    if b"\r\n" in path.read_bytes():  # OpenSM reads the carriage return as a part of the line's last word.
        raise ParseError("its lines end with a carriage return", path=path, line=1, remedy="use Unix line ends")
    inside = False  # whether a definition continues: its head has been read, and the ";" at its end has not
    for number, raw in enumerate(lines, 1):
        rest = raw.partition("#")[0]
        if len(raw.encode()) > _LONGEST_LINE:
            remedy = "write the definition in several lines"
            raise ParseError(f"the line is longer than {_LONGEST_LINE} bytes", path=path, line=number, remedy=remedy)
        if inside and rest.lstrip(_WHITE).startswith(";"):
            remedy = "write the semicolon at the end of the line before"
            raise ParseError("a line that continues a partition begins with ';'", path=path, line=number, remedy=remedy)
        while rest.strip(_WHITE):
            part, end, rest = rest.partition(";")
            if not inside:
                head, colon, part = part.partition(":")
                if not colon:
                    remedy = "write 'NAME=PKEY, FLAG=VALUE : PORT=full;'"
                    raise ParseError("a partition has no colon before its ports", path=path, line=number, remedy=remedy)
            try:
                if not inside:
                    pkeys.add(_check_head(path, number, head) & _PKEY)
                _check_ports(path, number, part)
            except ParseError as error:
                errors.append(error)
            inside = not end


def _check_head(path: Path, line: int, head: str) -> int:
    """Check the part of a partition's definition before the colon, and return its PKey; 0: no PKey."""
    first, *flags = ([word.strip(_WHITE) for word in part.partition("=")] for part in head.split(","))
    for flag, _, value in flags:
        if flag == "sl" and c_number(value) not in range(16):  # OpenSM would ignore the wrong SL, and use SL 0.
            remedy = "write a number from 0 to 15"
            raise ParseError(f"{value!r} is not an SL", path=path, line=line, remedy=remedy)
    name, equals, key = first
    if not equals and name[:1].isdigit():
        equals, key = "=", name
    number = c_number(key) if equals else 0
    if number is None:
        raise ParseError(f"{key!r} is not a PKey", path=path, line=line, remedy="write a number such as 0x8001")
    return number


def _check_ports(path: Path, line: int, text: str) -> None:
    """Check the ports of a partition in ``text``, which is the part of a line after the colon of the definition."""
    for word in text.split(","):
        name = word.partition("=")[0].strip(_WHITE)
        if name == "mgid":
            return  # The rest of the line describes a multicast group.
        known = any(group.startswith(name) for group in _GROUPS)
        if not known and not c_number(name):
            remedy = f"use a port GUID or {', '.join(_GROUPS)}"
            raise ParseError(f"{name!r} is not a port", path=path, line=line, remedy=remedy)
