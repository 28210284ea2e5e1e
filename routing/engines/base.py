"""The contract of an engine, and the options that all engines share."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.tables import DATA_VLS, Routing


class Promise(enum.Enum):
    """What an engine says of its tables before anyone has proved it."""

    DEADLOCK_FREE = "deadlock-free"
    """Free of credit loops of traffic from or to CAs and routers.  Failing the proof is a bug of the engine."""
    NONE = "none"
    """Nothing.  The tables may have credit loops, which are then named."""


class Objective(enum.Enum):
    """What balance is to serve."""

    ALLTOALL = "alltoall"
    BISECTION = "bisection"


AUTO_VLS = 8
"""What "auto" means where nothing says how many VLs the ports support."""
PASSES_LIMIT, THREADS_LIMIT, EFFORT_LIMIT = 1000, 256, 1000.0


@dataclass(frozen=True)
class EngineOptions:
    """Options of a run; an engine ignores none of them in silence.

    Attributes
    ----------
    vls
        Most data VLs that may be used (1 to 15), or "min", or "auto".
    objective
        What balance serves.
    passes
        Refinement passes over all destinations after the first, None: what the effort allows.
    effort
        How much work balance is worth, where nothing else says: 1 is about a second for a thousand switches, 0.1 is for
        sweeps in a hurry.
    seed
        Of every random choice.
    threads
        Worker threads of the kernels; never changes the result.
    roots
        Names or GUIDs (0x...) of the root switches of Up*/Down*; empty: chosen.
    root_guid_file
        A file that lists them, in OpenSM's format.
    partition
        "metis" or "none": how destinations are split where an engine wants regions; None: the engine decides.
    port_vls
        What "auto" means: data VLs that every port on the way supports, 8 where nothing says.
    first_vl
        First VL (and SL) that the tables use: those below are kept for other classes of traffic.
    reversible
        Replies, which come back on the request's SL, have to be free of credit loops too.
    minimal
        Shortest paths only; False: longer ones where channels are full, for engines that can do both.

    Raises
    ------
    OptionError
        A value out of its range.  ``vls``, ``roots`` and the file are for the engine to judge.
    """

    vls: int | str = "auto"
    objective: Objective = Objective.ALLTOALL
    passes: int | None = None
    effort: float = 1.0
    seed: int = 1
    threads: int = 2
    roots: tuple[str, ...] = ()
    root_guid_file: Path | None = None
    partition: str | None = None
    port_vls: int = AUTO_VLS
    first_vl: int = 0
    reversible: bool = False
    minimal: bool = True

    def __post_init__(self) -> None:
        passes = 0 if self.passes is None else self.passes
        for value, what, fits, remedy in (
            (passes, "number of refinement passes", 0 <= passes <= PASSES_LIMIT, f"use 0 to {PASSES_LIMIT}"),
            (self.effort, "effort", 0.0 <= self.effort <= EFFORT_LIMIT, f"use 0 to {EFFORT_LIMIT:g}"),
            (self.seed, "seed", 0 <= self.seed < 1 << 31, "use 0 to 2^31-1"),
            (self.threads, "number of threads", 1 <= self.threads <= THREADS_LIMIT, f"use 1 to {THREADS_LIMIT}"),
            (self.partition, "partition", self.partition in (None, "metis", "none"), "use metis or none"),
            (self.port_vls, "number of data VLs of a port", 1 <= self.port_vls <= DATA_VLS, f"use 1 to {DATA_VLS}"),
            (self.first_vl, "first VL", 0 <= self.first_vl < DATA_VLS, f"use 0 to {DATA_VLS - 1}"),
        ):
            if not fits:
                raise OptionError(f"{value!r} is no {what}", remedy=remedy)


class Engine(Protocol):
    """A function from a fabric and options to a routing, with a name and a promise."""

    name: str
    summary: str
    promise: Promise

    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables.

        Every switch gets an entry for every LID of its connected part; LIDs of other parts stay 255.

        Raises
        ------
        OptionError
            An option that this engine cannot serve.
        RoutingError
            What was asked cannot be had on this fabric.
        """
        ...
