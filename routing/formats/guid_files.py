"""Read and apply OpenSM's small files keyed by GUID: ``guid2lid``, GUID lists such as ``root_guid_file``, name maps.

The files are read as OpenSM's own parsers read them.  But if OpenSM silently skips or truncates a line, the line is an
error here.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from routing.class_settings import PortClass
from routing.errors import InputWarning, ParseError, raise_errors
from routing.fabric import MAX_UNICAST_LID, Fabric
from routing.formats.guid_lists import write_guid2lid
from routing.formats.text import c_number, lines_of, read_text
from routing.lids import give_lids
from routing.port_classes import PortClasses, detected

__all__ = [
    "GuidLine", "LidRange", "apply_guid2lid", "apply_node_names", "apply_port_classes", "read_guid2lid",
    "read_guid_lines", "read_guid_list", "read_node_name_map", "write_guid2lid",
]  # fmt: skip

_NUMBER = r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*"
_GUID_LINE = re.compile(rf"\s*({_NUMBER})(?=\s|$)\s*([^# \t]*)")
_LID_LINE = re.compile(rf"({_NUMBER})[ \t]+({_NUMBER})[ \t]+({_NUMBER})[ \t]*$")
_NAME_LINE = re.compile(rf'\s*({_NUMBER})\s*"([^"#]+)["#]')
_MAX_LINE = 254
_MOST_ERRORS = 10


@dataclass(frozen=True)
class GuidLine:
    """One line of a GUID list: the GUID, the word after it (often empty), and the number of the line."""

    guid: int
    word: str
    line: int


@dataclass(frozen=True)
class LidRange:
    """The LIDs of one port in ``guid2lid``: a base LID and an LMC."""

    base: int
    lmc: int


def read_guid_lines(path: str | Path) -> tuple[GuidLine, ...]:
    """Read a file with a GUID and an optional word in each line, and ``#`` comments.

    OpenSM reads such files by its function ``parse_node_map``.

    Raises
    ------
    ParseError, ParseErrors
        A line does not begin with a number, or the number is followed by neither white space nor a newline.  OpenSM
        rejects the whole file because of such a line.  If there are many such lines, only the first ones are named.
    """
    text = read_text(path)
    last, lines, errors = text.count("\n") + 1, list[GuidLine](), list[ParseError]()
    for number, line in lines_of(text):
        if line.strip() and not line.lstrip().startswith("#") and len(errors) < _MOST_ERRORS:
            try:
                lines.append(_guid_line(line, path, number, is_last=number == last))
            except ParseError as error:
                errors.append(error)
    raise_errors(errors)
    return tuple(lines)


def _guid_line(line: str, path: str | Path, number: int, *, is_last: bool) -> GuidLine:
    found = _GUID_LINE.match(line) if len(line) <= _MAX_LINE else None
    if found is None:
        raise _error("no GUID at the start of the line", path, number, "OpenSM rejects the whole file")
    if is_last and line == found[0] and not found[2]:
        raise _error("the last line has no newline", path, number, "OpenSM rejects the whole file")
    return GuidLine(_guid(found[1], path, number), found[2], number)


def read_guid_list(path: str | Path) -> tuple[int, ...]:
    """Read the GUIDs of a list such as ``root_guid_file``, in the order of the file.

    Raises
    ------
    ParseError
        A line does not begin with a number, or the number is followed by neither white space nor a newline.
    """
    return tuple(line.guid for line in read_guid_lines(path))


def read_node_name_map(path: str | Path) -> dict[int, str]:
    """Read a node name map, with ``0xguid "name"`` in each line.  As in OpenSM, a name ends at the first ``"`` or
    ``#``.

    Raises
    ------
    ParseError
        A line is invalid, or a GUID is repeated.
    """
    names: dict[int, str] = {}
    for number, line in lines_of(read_text(path)):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _NAME_LINE.match(line) if len(line) <= _MAX_LINE else None
        if found is None:
            raise _error("the line has no GUID and name", path, number, 'write 0xguid "name"')
        guid = _guid(found[1], path, number)
        if guid in names:
            raise _error(f"GUID {guid:#x} occurs twice", path, number, "remove one of the two lines")
        names[guid] = found[2]
    return names


def apply_node_names(fabric: Fabric, names: Mapping[int, str]) -> Fabric:
    """Return the fabric with new names.  ``names`` maps node GUIDs to names.

    If a device had a class (such as storage) because of its old name, its end ports keep this class.
    """
    switches = zip(fabric.switch_guid.tolist(), fabric.switch_name, strict=True)
    terminals = zip(fabric.terminal_guid.tolist(), fabric.terminal_name, strict=True)
    by_guid = dict(zip(fabric.terminal_guid.tolist(), fabric.terminal_name, strict=True))
    was = ((guid, detected(by_guid[guid])) for guid in sorted(names.keys() & by_guid))
    recognised = [(guid, own) for guid, own in was if own is not PortClass.COMPUTE]
    classes = fabric.port_classes
    return replace(
        fabric,
        port_classes=replace(classes, recognised=(*classes.recognised, *recognised)),
        switch_name=tuple(names.get(guid, name) for guid, name in switches),
        terminal_name=tuple(names.get(guid, name) for guid, name in terminals),
    )


def apply_port_classes(fabric: Fabric, rules: PortClasses) -> Fabric:
    """Return the fabric with ``rules`` in place of its own rules for the classes of end ports.

    Warns
    -----
    InputWarning
        A pattern or a GUID of a rule fits no end port of the fabric.
    """
    unused = rules.unused(fabric.terminal_name, fabric.terminal_guid, fabric.endport_guid)
    if unused:
        shown = ", ".join(unused[:3]) + (f" and {len(unused) - 3} more" if len(unused) > 3 else "")
        warnings.warn(f"{fabric.name}: no end port fits the rule of a class for {shown}", InputWarning, stacklevel=2)
    return replace(fabric, port_classes=fabric.port_classes.with_rules_of(rules))


def read_guid2lid(path: str | Path) -> dict[int, LidRange]:
    """Read ``guid2lid``, the file in which OpenSM keeps LIDs over a restart.

    Each line has a port GUID (for a switch its node GUID), the lowest LID and the highest LID of the port.  An empty
    line follows each entry.

    Raises
    ------
    ParseError
        A line is invalid, an empty line between entries is missing, or a LID is not a unicast LID.  It is also an error
        if a GUID or LID is repeated, if the number of LIDs is not a power of two, or if the base LID is not a multiple
        of this number.
    """
    ranges: dict[int, LidRange] = {}
    owner: dict[int, int] = {}
    closed = True
    for number, line in lines_of(read_text(path)):
        if not line:
            closed = True
            continue
        if not closed:
            raise _error(
                "there is no empty line before this one", path, number, "OpenSM would add it to the entry before"
            )
        closed = False
        found = _LID_LINE.match(line) if len(line) <= _MAX_LINE else None
        if found is None:
            raise _error("the line has no GUID, lowest and highest LID", path, number, "is the file whole?")
        guid, low, high = _guid(found[1], path, number), *(_number(found[k]) for k in (2, 3))
        if guid in ranges:
            raise _error(f"GUID {guid:#x} occurs twice", path, number, "remove one of the two lines")
        ranges[guid] = _lid_range(low, high, path, number)
        for lid in range(low, high + 1):
            if owner.setdefault(lid, guid) != guid:
                raise _error(f"LID {lid} belongs to {owner[lid]:#x} too", path, number, "LIDs are unique")
    return ranges


def _lid_range(low: int, high: int, path: str | Path, line: int) -> LidRange:
    count = high - low + 1
    if not 0 < low <= high <= MAX_UNICAST_LID:
        raise _error(f"LIDs {low:#x} to {high:#x} are not unicast LIDs", path, line, "unicast LIDs are 1 to 0xBFFF")
    if count & (count - 1) or count > 128 or low % count:
        raise _error(
            f"LIDs {low} to {high} cannot belong to one port",
            path,
            line,
            "a port has 1, 2, 4, ... or 128 LIDs, and its base LID is a multiple of that",
        )
    return LidRange(low, count.bit_length() - 1)


def apply_guid2lid(fabric: Fabric, ranges: Mapping[int, LidRange], *, lmc: int = 0) -> Fabric:
    """Return the fabric with the LIDs that OpenSM would assign, given its file ``guid2lid``.

    ``ranges`` has the LIDs of each port in the file, by GUID.

    Ports in the file get the LIDs that the file states.  A switch gets only the lowest of these LIDs.  A port that the
    file lacks keeps its LIDs if all of them are still free.  Otherwise the port gets the lowest free LIDs: one LID for
    a switch, 2^``lmc`` LIDs for an end port.

    Raises
    ------
    FabricError
        More LIDs are needed than exist.
    """
    switch_ranges = [ranges.get(guid) for guid in fabric.switch_guid.tolist()]
    endport_ranges = [ranges.get(guid) for guid in fabric.endport_guid.tolist()]
    used = {r.base for r in switch_ranges if r is not None}
    for r in endport_ranges:
        used.update(range(r.base, r.base + (1 << r.lmc)) if r is not None else ())
    switch_lid, endport_lid = [], []
    for r, lid in zip(switch_ranges, fabric.switch_lid.tolist(), strict=True):
        switch_lid.append(r.base if r is not None else _keep(lid, 0, used))
    before = zip(fabric.endport_lid.tolist(), fabric.endport_lmc.tolist(), strict=True)
    for r, (lid, own) in zip(endport_ranges, before, strict=True):
        endport_lid.append((r.base, r.lmc) if r is not None else (_keep(lid, own, used), own))
    switch_lid, endport_lid = give_lids(switch_lid, endport_lid, lmc)
    return replace(
        fabric,
        switch_lid=np.array(switch_lid, np.uint16),
        endport_lid=np.array([lid for lid, _ in endport_lid], np.uint16),
        endport_lmc=np.array([own for _, own in endport_lid], np.uint8),
    )


def _keep(lid: int, lmc: int, used: set[int]) -> int:
    """Check whether the 2^``lmc`` LIDs from base LID ``lid`` are free.  If all are free, mark them as used and return
    ``lid``.

    The result is 0 if one of these LIDs is used, or if ``lid`` is 0.
    """
    block = range(lid, lid + (1 << lmc))
    if not lid or not used.isdisjoint(block):
        return 0
    used.update(block)
    return lid


def _guid(text: str, path: str | Path, line: int) -> int:
    guid = _number(text)
    if not 0 < guid < 1 << 64:
        raise _error(f"{text[:30]} is not a 64-bit GUID", path, line, "GUIDs are 1 to 2^64-1")
    return guid


def _number(text: str) -> int:
    """Parse a number that a pattern of this module has matched.

    A number with too many digits becomes 2^64, which every later check rejects.
    """
    number = c_number(text)
    return 1 << 64 if number is None else number


def _error(problem: str, path: str | Path, line: int, remedy: str) -> ParseError:
    return ParseError(problem, path=path, line=line, remedy=remedy)
