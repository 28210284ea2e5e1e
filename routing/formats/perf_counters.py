"""Parse the port counters that perfquery prints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from routing.errors import ParseError

_COUNTER = re.compile(r"^([A-Z][A-Za-z0-9]*):\.*(\d+|0x[0-9a-fA-F]+)$", re.MULTILINE)
_HEAD = re.compile(r"^#.*\bport (\d+)(?: \(CapMask: (0x[0-9a-fA-F]+))?.*$", re.MULTILINE)


def parse_counters(text: str, ports: Iterable[int], *names: str) -> dict[int, Mapping[str, int]]:
    """Parse the counters that ``perfquery`` prints for ports of one switch.

    Each of ``ports`` must have the counters ``names``.  The result has the value of each counter by port and name.
    ``CapMask``, the capability mask in the port's PerfMgt ClassPortInfo, is included if perfquery prints it.

    Raises
    ------
    ParseError
        One of ``names`` is missing for one of ``ports``: perfquery failed, or the port does not have the counter.
    """
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    found: dict[int, Mapping[str, int]] = {}
    for head, end in zip(heads, ends, strict=False):
        counters = _COUNTER.findall(text, head.end(), end)
        message = {name: int(value, 0) for name, value in [("CapMask", head[2]), *counters] if value}
        found[int(head[1])] = message
    for port in ports:
        for name in names:
            if name not in found.get(port, {}):
                answer = " ".join(text.split())[:120]
                remedy = "try perfquery for that port by hand"
                raise ParseError(f"perfquery gave no {name} of port {port}: {answer}", remedy=remedy)
    return found
