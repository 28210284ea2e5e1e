"""How many VLs an engine may use, and how destinations are spread over those that it does not need."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations
from routing.errors import OptionError
from routing.tables import DATA_VLS


def vls_allowed(options: EngineOptions) -> int:
    """Number of data VLs that may be used: 1 for "min", those of the ports for "auto".

    Raises
    ------
    OptionError
        Anything but "min", "auto" and 1 to 15.
    """
    if options.vls == "min":
        return 1
    if options.vls == "auto":
        return options.port_vls
    if type(options.vls) is int and 1 <= options.vls <= DATA_VLS:
        return options.vls
    raise OptionError(f"{options.vls!r} is no number of data VLs", remedy=f"use 1 to {DATA_VLS}, min or auto")


def spread(destinations: Destinations, lids: int, vls: int) -> npt.NDArray[np.uint8]:
    """uint8[L], SLs 0..vls-1 in turn, port by port; all LIDs of a port have the same.

    The SL follows from the LID alone, so that a port that comes or goes changes no other port's SL.
    """
    sizes = np.diff(destinations.family_first)
    block = destinations.lid[destinations.family_first[:-1]] // np.maximum(sizes, 1)
    sl = np.zeros(lids, np.uint8)
    sl[destinations.lid] = np.repeat(block % vls, sizes)
    return sl
