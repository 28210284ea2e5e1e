"""Convert between names of link rates, such as "4xEDR", and numbers.

The numbers are the link width and the signalling rate of one physical lane in Gb/s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

SPEED_OF: Mapping[str, float] = MappingProxyType(
    {
        "SDR": 2.5,
        "DDR": 5.0,
        "QDR": 10.0,
        "FDR10": 10.3125,
        "FDR": 14.0625,
        "EDR": 25.78125,
        "HDR": 53.125,
        "NDR": 106.25,
        "XDR": 212.5,
    }
)
"""Signalling rate of one physical lane in Gb/s, by name of the speed."""

NOMINAL: Mapping[str, str] = MappingProxyType(
    {"10G": "SDR", "20G": "DDR", "40G": "QDR", "56G": "FDR", "100G": "EDR", "200G": "HDR", "400G": "NDR", "800G": "XDR"}
)
"""Name of the speed, by the usual name of a 4x link's rate.  For example, a link that is called 100G has the speed
EDR.
"""

_LANE = {
    "2.5": "SDR", "5": "DDR", "10": "QDR", "FDR10": "FDR10", "14": "FDR", "25": "EDR", "50": "HDR", "100": "NDR",
    "200": "XDR",
}  # fmt: skip

WIDTHS = (1, 2, 4, 8, 12)
"""Valid link widths in physical lanes."""

_RATE = re.compile(r"(\d{1,2})x *([A-Z0-9]+)")


def parse_rate(text: str) -> tuple[int, float] | None:
    """Parse a link rate such as ``4xEDR`` or ``4x SDR``; return None for any other text.

    The result is the link width, and the signalling rate of one physical lane in Gb/s.
    """
    found = _RATE.fullmatch(text)
    if found is None or int(found[1]) not in WIDTHS or found[2] not in SPEED_OF:
        return None
    return int(found[1]), SPEED_OF[found[2]]


def lane_speed(text: str) -> float | None:
    """Parse the speed of a physical lane as OpenSM or ibdiagnet prints it, such as "2.5" or "200".

    The result is the signalling rate in Gb/s; 0 for the text "UNKNOWN", and None if the text is not a speed.
    """
    name = _LANE.get(text.upper())
    return SPEED_OF[name] if name else 0.0 if text.upper() == "UNKNOWN" else None


def printed_speed(speed: float) -> str:
    """Return the text that OpenSM prints for a speed, such as "2.5" or "200".

    ``speed`` is the signalling rate of a physical lane in Gb/s.  The text is "UNKNOWN" if no speed of InfiniBand has
    this rate.
    """
    name = speed_name(speed)
    return next((text for text, known in _LANE.items() if known == name), "UNKNOWN")


def rate_name(width: int, speed: float) -> str:
    """Return the name of a link rate, such as "4xEDR", or "4x 30 Gb/s" if the speed has no name.

    ``width`` is the link width in physical lanes, and ``speed`` the signalling rate of one physical lane in Gb/s.
    """
    return f"{width}x{speed_name(speed) or f' {speed:g} Gb/s'}"


def speed_name(speed: float) -> str | None:
    """Return the name of the speed whose signalling rate differs from ``speed`` (in Gb/s) by at most one percent.

    For example, 14 gives FDR.  The result is None if there is no such speed.
    """
    for name, exact in SPEED_OF.items():
        if abs(exact - speed) <= 0.01 * exact:
            return name
    return None
