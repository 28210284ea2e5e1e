"""Read and write port groups for adaptive routing as text.

Each switch has a line with its GUID and name.  A line for each group of the switch follows, with the ports of the
group, a colon, and the LIDs of the group::

    # ibnue port groups 1, rule commit
    switch 0x0008f10400411a08 "leaf1"
    17,18,19: 4-8,12
    3: 13

LIDs that the switch delivers itself are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.errors import ParseError
from routing.fabric import Fabric
from routing.formats.atomic import write_text_atomically
from routing.formats.opensm_order import opensm_order
from routing.formats.text import read_text
from routing.names import escape_control
from routing.port_groups import PortGroups, Rule, grouped_lids
from routing.tables import Routing

_HEAD = re.compile(r"# ibnue port groups 1, rule (\w+)\s*$")
_SWITCH = re.compile(r"switch 0x([0-9a-fA-F]{1,16})(?:\s|$)")
_GROUP = re.compile(r"(\d{1,3}(?:,\d{1,3})*): (\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*)\s*$")


def write_port_groups(path: str | Path, groups: PortGroups) -> None:
    """Write port groups as text.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.
    """
    write_text_atomically(path, "".join(f"{line}\n" for line in port_group_lines(groups)))


def port_group_lines(groups: PortGroups) -> Iterator[str]:
    """Yield the lines of a file of port groups: for each switch its groups, in the order of their lowest LID.

    Cost: O(L C).
    """
    fabric, channels = groups.fabric, groups.fabric.channels
    bits = np.unpackbits(groups.member, axis=1, count=len(channels), bitorder="little").astype(np.bool_)
    yield f"# ibnue port groups 1, rule {groups.rule.value}"
    for switch in opensm_order(fabric.switch_guid).tolist():
        name = escape_control(fabric.switch_name[switch]).replace('"', "'")
        yield f'switch 0x{int(fabric.switch_guid[switch]):016x} "{name}"'
        first, end = int(channels.first[switch]), int(channels.first[switch + 1])
        rows = np.flatnonzero(bits[:, first:end].any(axis=1) & (fabric.lids.switch[groups.lids] != switch))
        if len(rows) == 0:
            continue
        sets, which = np.unique(bits[rows, first:end], axis=0, return_inverse=True)
        lids, which = groups.lids[rows], which.reshape(-1)
        members = [lids[which == number] for number in range(len(sets))]
        for number in sorted(range(len(sets)), key=lambda number: int(members[number][0])):
            ports = ",".join(map(str, channels.port[first:end][sets[number]].tolist()))
            yield f"{ports}: {_ranges(members[number])}"


def _ranges(lids: npt.NDArray[np.int32]) -> str:
    """Return ascending LIDs as text, with runs of successive LIDs as ranges."""
    runs = [list(run) for _, run in groupby(enumerate(lids.tolist()), lambda pair: pair[1] - pair[0])]
    return ",".join(f"{run[0][1]}" if len(run) == 1 else f"{run[0][1]}-{run[-1][1]}" for run in runs)


def read_port_groups(path: str | Path, fabric: Fabric, routing: Routing) -> PortGroups:
    """Read port groups from text.

    Parameters
    ----------
    path
        The file.
    fabric, routing
        The fabric, and the tables that the groups extend.

    Raises
    ------
    ParseError
        A line is invalid, or names a switch, port or LID that the fabric does not have.
    EnvironmentProblem
        The file cannot be read.
    """
    lids = grouped_lids(fabric)
    row_of = np.full(len(fabric.lids), -1, np.int64)
    row_of[lids] = np.arange(len(lids))
    member = np.zeros((len(lids), len(fabric.channels)), np.bool_)
    switches = {guid: row for row, guid in enumerate(fabric.switch_guid.tolist())}
    lines = read_text(path).splitlines()
    rule = _rule(lines[0] if lines else "", path)
    switch: int | None = None
    for number, line in enumerate(lines[1:], 2):
        if not line.strip() or line.startswith("#"):
            continue
        if head := _SWITCH.match(line):
            switch = switches.get(int(head[1], 16))
            if switch is None:
                problem = f"switch 0x{int(head[1], 16):016x} is not in the fabric"
                raise ParseError(problem, path=path, line=number, remedy="give the fabric of these groups")
            continue
        if switch is None or not (group := _GROUP.match(line)):
            raise ParseError(
                f"{line.strip()[:60]!r} is not a line of port groups",
                path=path,
                line=number,
                remedy="a line 'switch 0xGUID', and below it groups such as '17,18: 4-8,12' (ports: LIDs)",
            )
        channels = fabric.channels.at_port[switch, [min(int(port), 255) for port in group[1].split(",")]]
        rows = row_of[[lid for lid in _lids(group[2]) if lid < len(row_of)]]
        known = sum(1 for _ in _lids(group[2]))
        if (channels < 0).any() or len(rows) < known or (rows < 0).any():
            what = "a port without a link to a switch" if (channels < 0).any() else "a LID that no switch delivers"
            raise ParseError(f"the group has {what}", path=path, line=number, remedy="give the fabric of these groups")
        member[np.ix_(rows, channels)] = True
    return PortGroups(fabric, routing, rule, lids, np.packbits(member, axis=1, bitorder="little"))


def _rule(line: str, path: str | Path) -> Rule:
    head = _HEAD.match(line)
    names = [rule.value for rule in Rule]
    if head is None or head[1] not in names:
        raise ParseError(
            "is not a file of port groups",
            path=path,
            line=1,
            remedy=f"the first line is '# ibnue port groups 1, rule R', with R one of {', '.join(names)}",
        )
    return Rule(head[1])


def _lids(text: str) -> Iterator[int]:
    """Yield the LIDs of a list of LIDs and ranges."""
    for part in text.split(","):
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)
