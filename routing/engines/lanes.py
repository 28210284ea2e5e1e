"""How many VLs an engine may use, and how destinations are spread over those that it does not need."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import numpy.typing as npt

from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations
from routing.errors import OptionError
from routing.numerals import number_of
from routing.tables import DATA_VLS, identity_sl2vl


class Lanes(TypedDict):
    """What a :class:`~routing.tables.Routing` says of SLs and VLs."""

    sl: npt.NDArray[np.uint8]
    sl2vl: npt.NDArray[np.uint8]
    vls: int


def vls_allowed(options: EngineOptions) -> int:
    """Number of data VLs that may be used: 1 for "min", those of the ports from the first on for "auto".

    Raises
    ------
    OptionError
        Anything but "min", "auto" and 1 to 15; more than there are from the first VL on, or none for "auto".
    """
    if options.vls == "min":
        return 1
    if options.vls == "auto":
        if options.first_vl >= options.port_vls:
            raise OptionError(
                f"ports have {number_of(options.port_vls, 'data VL')}, and none from VL {options.first_vl} on",
                remedy="choose a lower first VL, or say how many VLs to use if the ports have more",
            )
        return options.port_vls - options.first_vl
    if type(options.vls) is not int or not 1 <= options.vls <= DATA_VLS:
        raise OptionError(f"{options.vls!r} is no number of data VLs", remedy=f"use 1 to {DATA_VLS}, min or auto")
    if options.first_vl + options.vls > DATA_VLS:
        raise OptionError(
            f"there are no {number_of(options.vls, 'data VL')} from VL {options.first_vl} on",
            remedy=f"use at most {DATA_VLS - options.first_vl}",
        )
    return options.vls


def lanes(sl: npt.NDArray[np.uint8], vls: int, options: EngineOptions) -> Lanes:
    """The tables for SLs 0..vls-1 (of any shape), moved up to the first VL."""
    return {
        "sl": np.asarray(sl + np.uint8(options.first_vl), np.uint8),
        "sl2vl": identity_sl2vl(options.first_vl + vls),
        "vls": options.first_vl + vls,
    }


def spread(destinations: Destinations, lids: int, vls: int) -> npt.NDArray[np.uint8]:
    """uint8[L], SLs 0..vls-1 in turn, port by port; all LIDs of a port have the same.

    The SL follows from the LID alone, so that a port that comes or goes changes no other port's SL.
    """
    sizes = np.diff(destinations.family_first)
    block = destinations.lid[destinations.family_first[:-1]] // np.maximum(sizes, 1)
    sl = np.zeros(lids, np.uint8)
    sl[destinations.lid] = np.repeat(block % vls, sizes)
    return sl
