"""Format names and GUIDs for messages and reports.  Names in files may contain any character."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

_GUID = re.compile(r"(0[xX][0-9a-fA-F]{1,16})|.* \((0[xX][0-9a-fA-F]{1,16})\)", re.ASCII | re.DOTALL)
_SYSTEM = re.compile(r"MF0;([^:;]+):[^:;/]+((?:/[A-Z]\d+)+)")
_ENDS_IN_GUID = re.compile(r"(?:.* )?\(?(0x[0-9a-f]{16})\)?", re.ASCII | re.DOTALL)


def escape_control(text: str, may_stay: Callable[[str], bool] = str.isprintable) -> str:
    r"""Return the text with an escape such as ``\n`` or ``\x1b`` in place of each character that ``may_stay`` rejects.

    By default every unprintable character is escaped, so that a terminal shows the text as one line.
    """
    if text.isprintable() and may_stay is str.isprintable:
        return text
    return "".join(letter if may_stay(letter) else letter.encode("unicode_escape").decode() for letter in text)


def join_lines(text: str) -> str:
    """Return a text as one line, with one space in place of each line break and the white space around it.

    Spaces inside a line stay, because a name of a device may contain several spaces in a row.
    """
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


def did_you_mean(names: Sequence[str]) -> str:
    """Return the question "did you mean ...?" for names that resemble an unknown name; names with spaces are quoted."""
    return f"did you mean {' or '.join(repr(name) if ' ' in name else name for name in names)}?"


def similar_or(otherwise: str, word: str, known: Iterable[str], most: int = 1) -> str:
    """Return the question "did you mean ...?" with those of the ``known`` words that are most similar to ``word``.

    The question has at most ``most`` words.  If no known word is similar, the result is the text ``otherwise``.
    """
    near = difflib.get_close_matches(word, list(known), most)
    return did_you_mean(near) if near else otherwise


def system_name(description: str) -> str:
    """Return the name of the system in the description of a switch, without prefix and type.

    ``MF0;leaf1:MQM8700/U1`` is ``leaf1``, and a switch ``MF0;core1:CS8500/L06/U2`` inside a chassis is ``core1/L6/U2``.
    Other descriptions are returned unchanged.
    """
    found = _SYSTEM.fullmatch(description)
    if found is None:
        return description
    return found[1] + ("" if found[2] == "/U1" else re.sub("(?<=[A-Z])0+(?=[0-9])", "", found[2]))


def guid_text(guid: int) -> str:
    """Format a GUID as ``0x`` and 16 hexadecimal digits."""
    return f"0x{guid:016x}"


def guid_in(word: str) -> int | None:
    """Return the GUID at the end of a text such as ``0x...`` or ``name (0x...)``; None if the text has no GUID
    there.
    """
    found = _GUID.fullmatch(word)
    return None if found is None else int(found[1] or found[2], 16)


def guids_text(guids: Sequence[int], most: int = 8) -> str:
    """Format the first ``most`` GUIDs as a list for a message, followed by ``...`` if there are more GUIDs."""
    return ", ".join([*map(guid_text, guids[:most]), *(["..."] if len(guids) > most else [])])


def labels_of(names: Sequence[str], guids: Sequence[int]) -> tuple[str, ...]:
    """Return a unique label for each device: its name, or ``name (0x...)``, or ``0x...`` alone.

    The label includes the GUID in three cases:
    - The name is empty.
    - Several devices have the name, where white space at its ends is ignored.
    - The name ends in the GUID of another device, so that it looks like that device's label.
    """
    stripped = [name.strip() for name in names]
    if all(stripped) and len(set(stripped)) == len(stripped) and "0x" not in "\n".join(stripped):
        return tuple(names)  # None of the three cases occurs.  One test of all names is faster than a test of each.
    count = Counter(stripped)
    return tuple(
        name if visible and count[visible] == 1 and not _ends_in_other(name, guid) else _with_guid(name, guid)
        for name, visible, guid in zip(names, stripped, guids, strict=True)
    )


def _ends_in_other(name: str, guid: int) -> bool:
    """Return whether ``name`` ends in a GUID other than ``guid``."""
    # A search for "0x" is much faster than the regular expression.  Nearly no name contains "0x", so the regular
    # expression is seldom needed.
    if "0x" not in name:
        return False
    ending = _ENDS_IN_GUID.fullmatch(name)
    return ending is not None and ending[1] != guid_text(guid)


def _with_guid(name: str, guid: int) -> str:
    return f"{name} ({guid_text(guid)})" if name.strip() else guid_text(guid)
