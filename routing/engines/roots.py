"""Find the roots for Up*/Down* that the options name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from routing.engines.base import EngineOptions
from routing.errors import OptionError, ParseError
from routing.fabric import Fabric
from routing.formats.guid_files import read_guid_list
from routing.names import guid_in, guids_text


def named_roots(fabric: Fabric, options: EngineOptions) -> list[int]:
    """Return the rows of the switches that the options name: first the switches of ``roots``, then the switches of the
    file ``root_guid_file``.  The result is empty if both options are empty.

    Raises
    ------
    OptionError
        A given name or GUID belongs to no switch of the fabric, or to several switches.
    ParseError
        The file does not follow its format, or names no switch.
    """
    wanted = [_row(fabric, root) for root in options.roots]
    if options.root_guid_file is not None:
        by_guid = {guid: row for row, guid in enumerate(fabric.switch_guid.tolist())}
        listed = read_guid_list(options.root_guid_file)
        if not listed:
            raise ParseError(
                "names no switch", path=options.root_guid_file, remedy="leave the file out, and roots are found"
            )
        for guid in listed:
            if guid not in by_guid:
                raise OptionError(
                    f"no switch has GUID {guid:#018x}",
                    path=options.root_guid_file,
                    remedy="list node GUIDs of switches of this fabric",
                )
            wanted.append(by_guid[guid])
    return list(dict.fromkeys(wanted))


def roots_left(fabric: Fabric, options: EngineOptions, earlier: Sequence[Fabric]) -> EngineOptions:
    """Return the options without the roots that are in an earlier fabric but not in this fabric.  All other roots stay.

    Raises
    ------
    ParseError
        The file does not follow its format.
    """
    listed = [] if options.root_guid_file is None else read_guid_list(options.root_guid_file)
    named = [*options.roots, *(f"{guid:#018x}" for guid in listed)]
    gone = [not _rows(fabric, root) and any(_rows(before, root) for before in earlier) for root in named]
    if not any(gone):
        return options
    left = tuple(root for root, lost in zip(named, gone, strict=True) if not lost)
    return replace(options, roots=left, root_guid_file=None)


def _row(fabric: Fabric, root: str) -> int:
    rows = _rows(fabric, root)
    if len(rows) == 1:
        return rows[0]
    if rows:
        guids = guids_text(fabric.switch_guid[rows].tolist())
        problem, remedy = f"{len(rows)} switches are named {root!r}", f"name the root by its GUID: {guids}"
    else:
        problem, remedy = f"no switch is named {root!r}", "name a switch, or give its node GUID as 0x..."
    raise OptionError(problem, option="roots", remedy=remedy)


def _rows(fabric: Fabric, root: str) -> list[int]:
    """Return the rows of the switches with the name ``root``.  If no switch has this name, look for ``root``
    as a GUID.
    """
    rows = [row for row, name in enumerate(fabric.switch_name) if name == root]
    if not rows and (guid := guid_in(root)) is not None:
        rows = [row for row, own in enumerate(fabric.switch_guid.tolist()) if own == guid]
    return rows
