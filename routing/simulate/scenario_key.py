"""Define the schema of one key of a scenario file, and the schemas that several keys share."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    """Schema of the value of one key in a table of a scenario file.

    Attributes
    ----------
    types
        Allowed types of the value.
    needed
        Whether the key is mandatory.
    least, most
        Smallest and largest allowed number.  Within these bounds, all values computed from the number fit the integers
        of the C kernels.  Bounds that depend on other keys are checked when the key is used.
    item
        Schema of the items of a list; None: the items are checked when the key is used.
    """

    types: tuple[type, ...]
    needed: bool = False
    least: float = -math.inf
    most: float = math.inf
    item: Key | None = None


NUMBER, TEXT, LIST, TABLE, FLAG, INTEGER = (int, float), (str,), (list,), (dict,), (bool,), (int,)
LONGEST = 10**12
"""Largest time in packet times.

With the largest packet (65535 bytes) this is about 10^15 ticks.  A VL stall, which lasts eight times a lifetime limit,
still fits an int64.
"""
LOAD = Key(NUMBER, least=1e-6, most=1)
TIME = Key(NUMBER, least=0, most=LONGEST)
NEEDED_TIME = Key(NUMBER, True, 0, LONGEST)
SEED = Key(INTEGER, least=0, most=2**31 - 1)
SPEEDUP = Key(INTEGER, least=0, most=255)
ROOM = Key(NUMBER, least=0, most=2048)
NEEDED_ROOM = Key(NUMBER, True, 0, 2048)
DELAY = Key(INTEGER, least=0, most=2**30 - 1)
WIRE = Key(INTEGER, least=1, most=2**30 - 1)
BYTES = Key(INTEGER, least=1, most=2**30)
VLS = Key((int, str), least=1, most=15)
WINDOW = Key(INTEGER, least=1, most=10**15)
ROUNDS = Key(INTEGER, least=0, most=2**31 - 1)
NAMES = Key(LIST, item=Key(TEXT))
