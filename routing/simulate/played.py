"""What a case hands back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Series:
    """What happened over time, for plots.

    Attributes
    ----------
    time
        float64[n], packet times.
    buffers
        Packets' worth of blocks in the input buffer at the end of each channel, float64[n] by channel name.
    throughput
        Share of a link that each flow got since the point before, float64[n] by flow name.
    """

    time: npt.NDArray[np.float64]
    buffers: Mapping[str, npt.NDArray[np.float64]]
    throughput: Mapping[str, npt.NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Played:
    """What a player hands back.

    Attributes
    ----------
    found
        Figures by name; those that may be expected.
    stated
        What the outcome depends on: arbitration, inputs, buffer, seed, remedy.
    series
        Over time, if there is any.
    events
        Packet time and text of what drops and breakers did.
    """

    found: Mapping[str, Any]
    stated: Mapping[str, Any]
    series: Series | None = None
    events: tuple[tuple[float, str], ...] = ()


def tables_stated(routing: Routing) -> dict[str, str]:
    """Whose tables they are, and what was assumed where their files do not say."""
    assumed = routing.provenance.options.get("assumed")
    told = {"assumed": "; ".join(map(str, assumed))} if isinstance(assumed, list) and assumed else {}
    return {"tables": routing.provenance.engine, **told}
