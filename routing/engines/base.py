"""Interface of a routing engine, and the options that all engines share."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.tables import DATA_VLS, Routing


class Promise(enum.Enum):
    """Deadlock property that an engine claims for its tables before the proof."""

    DEADLOCK_FREE = "deadlock-free"
    """Traffic from or to CAs and routers forms no credit loop.  If the proof fails, the engine has a bug."""
    NONE = "none"
    """No claim: the tables may have credit loops, and the proof then reports them."""


class Objective(enum.Enum):
    """Traffic pattern for which an engine balances the load."""

    ALLTOALL = "alltoall"
    BISECTION = "bisection"


AUTO_VLS = 8
"""Number of VLs for "auto" if the number that the ports support is unknown."""
PASSES_LIMIT, THREADS_LIMIT, EFFORT_LIMIT = 1000, 256, 1000.0


@dataclass(frozen=True)
class EngineOptions:
    """Options of a run.  An engine rejects an option that it does not support; it ignores none silently.

    Attributes
    ----------
    vls
        Maximum number of data VLs (1 to 15), or "min", or "auto".
    objective
        Traffic pattern for which the load is balanced.
    passes
        Refinement passes over all destinations after the first; None: as many as the effort allows.
    effort
        Amount of optimisation, unless another option sets it: 1 is about a second for a thousand switches.  0.1 suits
        fast sweeps.
    seed
        Seed of all random choices.
    threads
        Worker threads of the kernels; the number does not change the result.
    roots
        Names or GUIDs (0x...) of the root switches of Up*/Down*; empty: the engine chooses.
    root_guid_file
        File that lists the GUIDs of the root switches, in OpenSM's format.
    partition
        "metis" or "none": how an engine with regions splits the destinations; None: the engine decides.
    port_vls
        Number of VLs for "auto": data VLs that every port supports; 8 if that is unknown.
    first_vl
        First VL (and SL) that the tables use; lower ones are left to other classes of traffic.
    reversible
        Whether replies, which use the SL of the request, must be free of credit loops too.
    minimal
        Whether to use shortest paths only.  False: longer paths where channels are highly loaded (some engines only).
    link_weights
        (switch GUID, out-port, factor): the channel out of that port counts as slower by the factor.  Entries for
        missing switches or channels are ignored.

    Raises
    ------
    OptionError
        A value is out of its range.  The engine checks ``roots``, ``root_guid_file``, and the sum of ``vls`` and
        ``first_vl``.
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
    link_weights: tuple[tuple[int, int, float], ...] = ()

    def __post_init__(self) -> None:
        passes = 0 if self.passes is None else self.passes
        vls_fit = self.vls in ("min", "auto") or (type(self.vls) is int and 1 <= self.vls <= DATA_VLS)
        for value, what, fits, remedy in (
            (self.vls, "number of data VLs", vls_fit, f"use 1 to {DATA_VLS}, min or auto"),
            (passes, "number of refinement passes", 0 <= passes <= PASSES_LIMIT, f"use 0 to {PASSES_LIMIT}"),
            (self.effort, "effort", 0.0 <= self.effort <= EFFORT_LIMIT, f"use 0 to {EFFORT_LIMIT:g}"),
            (self.seed, "seed", 0 <= self.seed < 1 << 31, "use 0 to 2^31-1"),
            (self.threads, "number of threads", 1 <= self.threads <= THREADS_LIMIT, f"use 1 to {THREADS_LIMIT}"),
            (self.partition, "partition", self.partition in (None, "metis", "none"), "use metis or none"),
            (self.port_vls, "number of data VLs of a port", 1 <= self.port_vls <= DATA_VLS, f"use 1 to {DATA_VLS}"),
            (self.link_weights, "weights of links", self._weights_are_positive, "use positive ones"),
            (self.first_vl, "first VL", 0 <= self.first_vl < DATA_VLS, f"use 0 to {DATA_VLS - 1}"),
        ):
            if not fits:
                raise OptionError(f"{value!r} is no {what}", remedy=remedy)

    @property
    def _weights_are_positive(self) -> bool:
        return all(weight > 0 for *_, weight in self.link_weights)


class Engine(Protocol):
    """A routing engine: computes the routing of a fabric, and has a name and a promise."""

    name: str
    summary: str
    promise: Promise

    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables.

        Every switch gets an entry for every LID of its connected component; entries for other LIDs stay 255.

        Raises
        ------
        OptionError
            The engine does not support an option.
        RoutingError
            The fabric does not allow the requested routing.
        """
        ...
