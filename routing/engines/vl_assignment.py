"""Determine the number of VLs that an engine may use, and spread destinations over VLs that deadlock freedom does not
need.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import numpy.typing as npt

from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations
from routing.errors import OptionError
from routing.numerals import count_noun
from routing.tables import DATA_VLS, identity_sl2vl


class VlTables(TypedDict):
    """SL and VL fields of a :class:`~routing.tables.Routing`."""

    sl: npt.NDArray[np.uint8]
    sl2vl: npt.NDArray[np.uint8]
    vls: int


def vls_allowed(options: EngineOptions) -> int:
    """Return the number of data VLs that an engine may use.

    If the option ``vls`` is a number, the result is this number.  With "min", the result is 1.  With "auto", the result
    is the number of VLs that the ports have from VL ``first_vl`` (an option) on.

    Raises
    ------
    OptionError
        From VL ``first_vl`` on, there are fewer VLs than the option ``vls`` requests, or none.
    """
    if options.vls == "min":
        return 1
    if options.vls == "auto":
        if options.first_vl >= options.port_vls:
            raise OptionError(
                f"ports have {count_noun(options.port_vls, 'data VL')}, and none from VL {options.first_vl} on",
                remedy="choose a lower first VL, or say how many VLs to use if the ports have more",
            )
        return options.port_vls - options.first_vl
    vls = int(options.vls)
    if options.first_vl + vls > DATA_VLS:
        raise OptionError(
            f"there are no {count_noun(vls, 'data VL')} from VL {options.first_vl} on",
            remedy=f"use at most {DATA_VLS - options.first_vl}",
        )
    return vls


def most_vls(options: EngineOptions) -> int:
    """Return the largest number of VLs that the paths of an engine may use.  With ``vls`` = "min", these are all data
    VLs from ``first_vl`` on.
    """
    return DATA_VLS - options.first_vl if options.vls == "min" else vls_allowed(options)


def vl_tables(sl: npt.NDArray[np.uint8], vls: int, options: EngineOptions) -> VlTables:
    """Return the SL table and the SL2VL table.  ``sl`` (uint8 of any shape) has the SL of each path, from 0 to
    ``vls - 1``.  In the result, SLs and VLs begin at the option ``first_vl`` instead of 0, and each SL uses the VL of
    the same number.
    """
    return {
        "sl": np.asarray(sl + np.uint8(options.first_vl), np.uint8),
        "sl2vl": identity_sl2vl(options.first_vl + vls),
        "vls": options.first_vl + vls,
    }


def round_robin_sls(destinations: Destinations, lids: int, vls: int) -> npt.NDArray[np.uint8]:
    """Return uint8[L], the SL of each LID: SLs 0 to ``vls - 1`` are assigned to ports round robin, and all LIDs of a
    port have the same SL.

    The SL follows from the LID alone, so that a port that comes or goes changes no other port's SL.
    """
    sizes = np.diff(destinations.lmc_group_first)
    block = destinations.lid[destinations.lmc_group_first[:-1]] // np.maximum(sizes, 1)
    sl = np.zeros(lids, np.uint8)
    sl[destinations.lid] = np.repeat(block % vls, sizes)
    return sl
