"""Define the properties of a proof that the writers of tables need.  :class:`routing.deadlock.proof.Proof` implements
these properties.

Because of this definition, :mod:`routing.formats` does not have to import :mod:`routing.deadlock`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt


class Order(Protocol):
    """A certificate: for each VL, the position of each channel in a topological order of the channel dependency
    graph.
    """

    @property
    def order(self) -> npt.NDArray[np.int32]:
        """Position of each channel on each VL, int32[V, C]."""
        ...

    @property
    def strength(self) -> str:
        """Return which traffic the certificate includes: "forward" for requests, "reversible" for requests and
        replies.
        """
        ...

    @property
    def scope(self) -> str:
        """Traffic that the certificate covers: "all", or only "endports", the traffic from or to CAs and routers."""
        ...


class Proven(Protocol):
    """Properties of a proof that the writers of tables need."""

    @property
    def hops(self) -> npt.NDArray[np.uint8]:
        """Number of channels on the path from each switch to each LID, uint8[S, L].  0 at the switch that delivers, 255
        if there is no path.
        """
        ...

    @property
    def certificate(self) -> Order | None:
        """The certificate of freedom from credit loops, or None if the tables have no certificate."""
        ...
