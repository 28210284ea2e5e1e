"""Output of the functions that run cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Series:
    """Time series of a run, for charts.

    Attributes
    ----------
    time
        float64[n], packet times.
    buffers
        float64[n] by channel name: occupancy of the input buffer at the end of the channel, in packets of full size.
    throughput
        float64[n] by flow name: throughput since the previous point, as a fraction of a link.
    """

    time: npt.NDArray[np.float64]
    buffers: Mapping[str, npt.NDArray[np.float64]]
    throughput: Mapping[str, npt.NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class CaseOutput:
    """Output of a function that runs a case.

    Attributes
    ----------
    found
        Figures by name; a case may expect values of them.
    stated
        Settings on which the outcome depends: arbitration, inputs, buffer, seed, remedy.
    series
        Time series, if the case has one.
    events
        Packet time and text of drops and actions of breakers.
    """

    found: Mapping[str, Any]
    stated: Mapping[str, Any]
    series: Series | None = None
    events: tuple[tuple[float, str], ...] = ()


def tables_stated(routing: Routing) -> dict[str, str]:
    """Return the engine of the tables, and the assumptions made where the table files give no information."""
    assumed = routing.provenance.assumptions
    message = {"assumed": "; ".join(assumed.values())} if assumed else {}
    return {"tables": routing.provenance.engine, **message}
