"""Look up devices and end ports by name, GUID or LID, and list the end ports that take part in traffic."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.names import did_you_mean, guid_in, guids_text, labels_of
from routing.numerals import parse_decimal


def attached(fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return the rows of the end ports that take part in traffic, int64[N], ordered by switch and port.

    These are the end ports that have a LID, are cabled to a switch, and belong to a class with a positive weight.  So
    aggregation nodes are left out.
    """
    rows = np.flatnonzero((fabric.endport_switch >= 0) & (fabric.endport_lid > 0) & fabric.counted)
    return rows[np.lexsort((fabric.endport_switch_port[rows], fabric.endport_switch[rows]))]


def reference_rate(fabric: Fabric) -> float:
    """Return the most common data rate of the end ports' links in Gb/s.

    Rates of flows are stated as shares of this rate.  Of several equally common rates, the lowest rate is
    returned.  The result is 0 for a fabric without end ports.
    """
    rates, counts = np.unique(fabric.link_capacity[fabric.endport_link[attached(fabric)]], return_counts=True)
    return float(rates[counts.argmax()]) if rates.size else 0.0


def find_endport(fabric: Fabric, word: str) -> tuple[int, int]:
    """Find the end port that a user names by name, GUID or LID.

    Parameters
    ----------
    fabric
        The fabric to search.
    word
        Name or label of a CA or router, GUID (0x...) of a node or of a port, or LID.  For a CA with several cabled
        ports, the GUID or a LID of the port is needed.  A name takes precedence over a number.

    Returns
    -------
    row : int
        Row of the end port.
    lid : int
        The LID in ``word`` if ``word`` is a LID, else the base LID of the end port.

    Raises
    ------
    OptionError
        No end port or more than one end port matches ``word``.
    """
    rows = [row for row, name in enumerate(fabric.endport_name) if name == word]
    lid = parse_decimal(word)
    if not rows and lid is not None:
        row = int(fabric.lids.endport[lid]) if lid < len(fabric.lids) else -1
        if row < 0:
            raise OptionError(f"no CA or router has LID {word}", remedy="name one of the fabric")
        return row, lid
    rows = rows or _by_guid(fabric, word)
    if len(rows) != 1:
        known = f"{len(rows)} end ports are called {word!r}" if rows else f"no CA or router is called {word!r}"
        near = similar_names(word, fabric.endport_name)
        give = did_you_mean(near) if near else "give a name, GUID or LID of the fabric"
        ports = guids_text(fabric.endport_guid[rows].tolist())
        raise OptionError(known, remedy=f"give the GUID or the LID of the port: {ports}" if rows else give)
    return rows[0], int(fabric.endport_lid[rows[0]])


def _by_guid(fabric: Fabric, word: str) -> list[int]:
    guid = guid_in(word)
    if guid is None:
        return []
    by_port = np.flatnonzero(fabric.endport_guid == guid).tolist()
    by_node = np.flatnonzero(fabric.terminal_guid[fabric.endport_terminal] == guid).tolist()
    return by_port or by_node


def endport_names(fabric: Fabric) -> tuple[str, ...]:
    """Return a unique name for each end port: the name of its CA or router, with the port GUID where the name is not
    unique.
    """
    return labels_of(fabric.endport_name, fabric.endport_guid.tolist())


def similar_names(word: str, names: Iterable[str]) -> list[str]:
    """Return up to three of ``names`` that a user may have meant by the unknown name ``word``.

    The result has names that contain ``word``.  If there are none, it has the names most similar to ``word``.
    """
    known = list(dict.fromkeys(names))
    longer = [name for name in known if word and word.lower() in name.lower()]
    return longer[:3] or difflib.get_close_matches(word, known, 3, 0.5)


def find_device(fabric: Fabric, word: str) -> int:
    """Return the device number of the switch, CA or router that a user names.

    ``word`` is a name, a label, a node GUID, or anything that :func:`find_endport` accepts.

    Raises
    ------
    OptionError
        No device or more than one device matches `word`.
    """
    names = (*fabric.switch_name, *fabric.terminal_name)
    found = [device for device, name in enumerate(names) if name == word]
    if not found and (guid := guid_in(word)) is not None:
        found = np.flatnonzero(np.concatenate([fabric.switch_guid, fabric.terminal_guid]) == guid).tolist()
    if len(found) > 1:
        guids = np.concatenate([fabric.switch_guid, fabric.terminal_guid])[found].tolist()
        raise OptionError(f"{len(found)} devices are called {word!r}", remedy=f"name it by GUID: {guids_text(guids)}")
    if found:
        return found[0]
    try:
        return fabric.switches + int(fabric.endport_terminal[find_endport(fabric, word)[0]])
    except OptionError:
        near = similar_names(word, names)
        remedy = did_you_mean(near) if near else "give a name or GUID of the fabric"
        raise OptionError(f"there is no device {word!r}", remedy=remedy) from None
