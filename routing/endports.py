"""Devices and end ports by what people call them: a name, a GUID or a LID."""

from __future__ import annotations

import difflib
import re

import numpy as np

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.numerals import decimal

_GUID = re.compile(r"0[xX][0-9a-fA-F]{1,16}", re.ASCII)


def find_endport(fabric: Fabric, word: str) -> tuple[int, int]:
    """The row of an end port, and the LID that it was called by (its base LID where it was called otherwise).

    Parameters
    ----------
    fabric
        Where it is.
    word
        The name of a CA or router, a GUID (0x..., of the node or of the port) or a LID; a CA with several cabled ports
        needs its port's GUID or LID.  A name comes before a number.

    Raises
    ------
    OptionError
        Nobody, or more than one end port, is called so.
    """
    rows = [row for row, name in enumerate(fabric.endport_name) if name == word]
    lid = decimal(word)
    if not rows and lid is not None:
        row = int(fabric.lids.endport[lid]) if lid < len(fabric.lids) else -1
        if row < 0:
            raise OptionError(f"no CA or router has LID {word}", remedy="name one of the fabric")
        return row, lid
    rows = rows or _by_guid(fabric, word)
    if len(rows) != 1:
        known = f"{len(rows)} end ports are called {word!r}" if rows else f"no CA or router is called {word!r}"
        near = difflib.get_close_matches(word, dict.fromkeys(fabric.endport_name), 3, 0.5)
        give = f"did you mean {' or '.join(near)}?" if near else "give a name, GUID or LID of the fabric"
        raise OptionError(known, remedy="give the GUID or the LID of the port" if rows else give)
    return rows[0], int(fabric.endport_lid[rows[0]])


def _by_guid(fabric: Fabric, word: str) -> list[int]:
    guid = _guid(word)
    if guid is None:
        return []
    by_port = np.flatnonzero(fabric.endport_guid == guid).tolist()
    by_node = np.flatnonzero(fabric.terminal_guid[fabric.endport_terminal] == guid).tolist()
    return by_port or by_node


def _guid(word: str) -> np.uint64 | None:
    return np.uint64(int(word, 16)) if _GUID.fullmatch(word) else None


def endport_names(fabric: Fabric) -> tuple[str, ...]:
    """What each end port is called so that no other is: the name of its CA or router, or its GUID."""
    names = fabric.endport_name
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    guids = fabric.endport_guid.tolist()
    return tuple(
        name if name and seen[name] == 1 else f"0x{guid:016x}" for name, guid in zip(names, guids, strict=True)
    )


def find_device(fabric: Fabric, word: str) -> int:
    """Number of the device with a name, a node GUID, or a port that :func:`find_endport` finds.

    Raises
    ------
    OptionError
        Nobody, or more than one device, is called so.
    """
    names = (*fabric.switch_name, *fabric.terminal_name)
    found = [device for device, name in enumerate(names) if name == word]
    if not found and (guid := _guid(word)) is not None:
        found = np.flatnonzero(np.concatenate([fabric.switch_guid, fabric.terminal_guid]) == guid).tolist()
    if len(found) > 1:
        raise OptionError(f"{len(found)} devices are called {word!r}", remedy="name it by its GUID")
    if found:
        return found[0]
    try:
        return fabric.switches + int(fabric.endport_terminal[find_endport(fabric, word)[0]])
    except OptionError:
        near = difflib.get_close_matches(word, dict.fromkeys(names), 3, 0.5)
        remedy = f"did you mean {' or '.join(near)}?" if near else "give a name or GUID of the fabric"
        raise OptionError(f"there is no device {word!r}", remedy=remedy) from None
