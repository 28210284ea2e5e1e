"""The certificate of freedom from credit loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Strength = Literal["reversible", "forward"]


@dataclass(frozen=True, eq=False)
class Certificate:
    """A place for every channel on every VL, such that all traffic climbs with each hop.

    Attributes
    ----------
    order
        int32[V, C]: place of each channel in a topological order of the dependencies, for V = highest VL in use + 1.
        Where VLs change on the way it is one order over all pairs of channel and VL.
    strength
        "forward": requests climb.  "reversible": so do the replies, which ride on the request's SL.
    """

    order: npt.NDArray[np.int32]
    strength: Strength
