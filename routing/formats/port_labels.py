"""Parse port numbers in the labels on devices, as cabling plans and topology files write them."""

from __future__ import annotations

import re
from typing import NamedTuple

_PLAIN = re.compile(r"(?:IB )?(?:Port |P|IB)?(\d{1,3}(?:/\d{1,3}){0,3})", re.IGNORECASE)
_CAGE = re.compile(r"sw(\d{1,3})p(\d)", re.IGNORECASE)
_BLADE = re.compile(r"Blade (\d{1,3})_Port (\d)/(\d{1,3})", re.IGNORECASE)
HCA = r"(?:mlx\d+_\d+|HCA-?\d+|ib[a-z]{0,3}\d\w*)"
"""Pattern of the names of HCAs."""
_HCA = re.compile(rf"(?:\S+ )?({HCA})(?:(?:/| )(?:Port |P)?(\d{{1,2}}))?", re.IGNORECASE)


class Label(NamedTuple):
    """Contents of a label: the port number, and the part of the device that has the port.

    Attributes
    ----------
    port
        Port number on this part.
    part
        "" for the device itself.  Otherwise the name of an HCA of a host, or leaf and switch of a chassis such as
        "L16/U2".
    is_hca
        Whether the part is an HCA.
    """

    port: int
    part: str = ""
    is_hca: bool = False


def read_label(text: str) -> Label | None:
    """Return the contents of a label, or None if the label is not understood.

    Numbers have the meaning that they have on NVIDIA's switches.  A cage has two ports.  A split port has two halves,
    which are numbered as ports:

    - ``Port 21`` and ``P21``: port 21.
    - ``1/16/1`` and ``sw16p1``: the first port of cage 16, which is port 31.
    - ``1/16/1/2``: the second half of port 31 on a switch with split ports, which is port 62.
    - ``2/1``: the first half of port 2 on a switch with split ports, which is port 3.
    """
    text = " ".join(text.split())
    if found := _PLAIN.fullmatch(text):
        number = _number([int(part) for part in found[1].split("/")])
        return None if number is None else Label(number)
    if found := _CAGE.fullmatch(text):
        number = _number([1, int(found[1]), int(found[2])])
        return None if number is None else Label(number)
    if found := _BLADE.fullmatch(text):
        return Label(int(found[3]), f"L{int(found[1])}/U{int(found[2])}")
    if found := _HCA.fullmatch(text):
        return Label(int(found[2] or 1), found[1], is_hca=True)
    return None


def _number(parts: list[int]) -> int | None:
    """Return the port number for the numbers in a label, or None if these numbers do not follow NVIDIA's numbering of
    switches.
    """
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        # A label with two numbers has one of two meanings.  On a switch without split ports, the first number is 1,
        # and the second number is the port: IB1/21 is port 21.  On a switch with split ports, the label names a half
        # of a port: 2/1 is the first half of port 2, which counts as port 3.  For 1/1 and 1/2, both meanings give the
        # same port (1 or 2).
        return parts[1] if parts[0] == 1 else _counted(parts[0], parts[1])
    if parts[0] != 1:  # A number above 1 means a second ASIC, whose labels are not understood.
        return None
    port = _counted(parts[1], parts[2])
    return port if len(parts) == 3 or port is None else _counted(port, parts[3])


def _counted(group: int, member: int) -> int | None:
    """Return the number of a member of a group.

    Each group has two members.  The members of group 1 have the numbers 1 and 2, those of group 2 the numbers 3 and 4,
    and so on.  The result is None if ``member`` is not 1 or 2, or ``group`` is 0.
    """
    return 2 * (group - 1) + member if member in (1, 2) and group > 0 else None
