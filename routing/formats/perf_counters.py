"""What perfquery prints: counters of a port by name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from routing.errors import ParseError

_COUNTER = re.compile(r"^([A-Z][A-Za-z0-9]*):\.*(\d+|0x[0-9a-fA-F]+)$", re.MULTILINE)


def parse_counters(text: str, *names: str) -> Mapping[str, int]:
    """Counters in the output of ``perfquery``, with or without ``--xmtdisc``.

    Raises
    ------
    ParseError
        One of ``names`` is not there: perfquery failed, or the port does not count that.
    """
    found = {name: int(value, 0) for name, value in _COUNTER.findall(text)}
    for name in names:
        if name not in found:
            told = " ".join(text.split())[:120]
            raise ParseError(f"perfquery gave no {name}: {told}", remedy="try perfquery for that port by hand")
    return found
