"""Compute the rate of each path as the rate code in a path record.  A path has the rate of its slowest link."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric

_NOMINAL = {2.5: 2.5, 5.0: 5.0, 10.0: 10.0, 10.3125: 10.0, 14.0625: 14.0, 25.78125: 25.0, 53.125: 50.0, 106.25: 100.0}
_CODE = {
    2.5: 2, 5: 5, 10: 3, 14: 11, 20: 6, 25: 15, 28: 19, 30: 4, 40: 7, 50: 20, 56: 12, 60: 8, 80: 9, 100: 16, 112: 13,
    120: 10, 168: 14, 200: 17, 300: 18, 400: 21, 600: 22, 800: 23, 1200: 24,
}  # fmt: skip
_STEPS = np.array(sorted(_CODE))
_CODES = np.array([_CODE[step] for step in sorted(_CODE)], np.uint8)
SLOWEST_FIRST = _CODES
"""uint8[23], the rate codes of InfiniBand from the slowest to the fastest rate.

A *step* is an index into this array.  A larger step is a faster rate.
"""


def link_step(fabric: Fabric) -> npt.NDArray[np.int16]:
    """Return the rate of each cable as an index into :data:`SLOWEST_FIRST`, int16[K].

    If no rate code has the rate of a cable, the cable gets the next lower rate.
    """
    speeds = np.array(sorted(_NOMINAL))
    nearest = speeds[np.argmin(np.abs(fabric.link_speed[:, None] - speeds), axis=1)] if fabric.links else speeds[:0]
    nominal = np.array([_NOMINAL[speed] for speed in nearest.tolist()]) * fabric.link_width
    return np.maximum(np.searchsorted(_STEPS, nominal + 1e-6) - 1, 0).astype(np.int16)


def endport_step(fabric: Fabric) -> npt.NDArray[np.int16]:
    """Return the rate of each end port's cable, as an index into :data:`SLOWEST_FIRST`, int16[E]."""
    return link_step(fabric)[fabric.endport_link]


def path_step(fabric: Fabric, lft: npt.NDArray[np.uint8], hops: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
    """Return the rate of the path from each switch to each LID, which is the rate of the slowest cable of the path.

    The result is int16[S, L], indices into :data:`SLOWEST_FIRST`.

    Parameters
    ----------
    fabric
        Fabric with the cables.
    lft, hops
        uint8[S, L] each: the forwarding tables, and the number of channels of each path.  Where ``hops`` is 255 there
        is no path, and the result is undefined.

    Notes
    -----
    Cost: O(S L) for each number of hops that occurs.
    """
    step, fastest = link_step(fabric), len(_CODES) - 1
    by_port = np.full((fabric.switches, 256), fastest, np.int16)
    for end in (0, 1):
        on = fabric.link_device[:, end] < fabric.switches
        by_port[fabric.link_device[on, end], fabric.link_port[on, end]] = step[on]
    slowest = np.take_along_axis(by_port, lft.astype(np.int64), axis=1)
    channels = fabric.channels
    for count in np.unique(hops[(hops > 0) & (hops != 255)]).tolist():
        row, lid = np.nonzero(hops == count)
        channel = channels.at_port[row, lft[row, lid]]
        row, lid, channel = row[channel >= 0], lid[channel >= 0], channel[channel >= 0]
        slowest[row, lid] = np.minimum(slowest[row, lid], slowest[channels.dst[channel], lid])
    return slowest
