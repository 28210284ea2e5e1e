"""Hold injection: CAs send no further packets to some LIDs, so that the packets to these LIDs can leave the fabric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from routing.errors import OptionError
from routing.simulate.mechanisms.base import Mechanism
from routing.simulate.network import Network
from routing.simulate.traffic import Traffic

if TYPE_CHECKING:
    from routing.simulate.run import Simulation


class Hold(Mechanism):
    """Hold of injection, which :meth:`hold` begins, changes and ends during a simulation.

    Messages to a held LID wait at their CA, and their latency includes the hold.  If the next message of a flow is to a
    held LID, the whole flow waits.  A packet that already waits at the port of its CA is still sent.
    """

    name: ClassVar[str] = "hold"

    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int]:
        """Return the settings of the hold: none."""
        return ()

    def hold(self, simulation: Simulation, lids: Iterable[int]) -> None:
        """Let CAs send no further packets to the given LIDs, from the next tick on.

        LIDs of earlier calls are released, unless they are given again.

        Raises
        ------
        OptionError
            A LID is not a LID of the fabric, or this mechanism is not attached to the simulation.
        """
        wanted = np.asarray(list(lids), np.int64)
        count = simulation.network.arrays.lft.shape[1]
        if len(wanted) and not 0 <= int(wanted.min()) <= int(wanted.max()) < count:
            raise OptionError("a LID to hold is not a LID of the fabric", remedy=f"use LIDs below {count}")
        simulation.command(self, wanted)
