"""Result types of the functions that run one case of a scenario file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Series:
    """Time series of one simulation run, for charts.

    Attributes
    ----------
    time
        float64[n]: time of each point, in packet times.
    buffers
        float64[n] by channel name: occupancy of the channel's input buffer at the receiver, in packets of full size.
    throughput
        float64[n] by flow name: throughput since the previous point, as a fraction of a link.
    """

    time: npt.NDArray[np.float64]
    buffers: Mapping[str, npt.NDArray[np.float64]]
    throughput: Mapping[str, npt.NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class CaseOutput:
    """Result of running one case of a scenario file.

    Attributes
    ----------
    found
        Figures by name, which the case can compare with expected values.
    stated
        Settings by name that influence the result and are printed with it, such as the arbitration, the size of the
        buffers and the seed.
    series
        Time series for charts; None if the case has no time series.
    events
        Log of the run: time (in packet times) and text of each drop and each action of a deadlock breaker.
    """

    found: Mapping[str, Any]
    stated: Mapping[str, Any]
    series: Series | None = None
    events: tuple[tuple[float, str], ...] = ()


def tables_stated(routing: Routing) -> dict[str, str]:
    """Return the name of the engine that computed the tables, for printing with the result.

    If the table files do not state SLs or SL2VL tables, the assumptions about these are returned, too.
    """
    assumed = routing.provenance.assumptions
    message = {"assumed": "; ".join(assumed.values())} if assumed else {}
    return {"tables": routing.provenance.engine, **message}
