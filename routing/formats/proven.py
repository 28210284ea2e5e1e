"""Interface of a proof for the writers of tables (:class:`routing.deadlock.proof.Proof` implements it)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt


class Order(Protocol):
    """A certificate: the position of each channel in a topological order of each VL's dependency graph."""

    @property
    def order(self) -> npt.NDArray[np.int32]:
        """int32[V, C]."""
        ...

    @property
    def strength(self) -> str:
        """Return what the certificate covers: "forward" (requests) or "reversible" (requests and replies)."""
        ...

    @property
    def scope(self) -> str:
        """Traffic that the certificate covers: "all", or "endports" for traffic from or to CAs and routers."""
        ...


class Proven(Protocol):
    """Proof of a routing."""

    @property
    def hops(self) -> npt.NDArray[np.uint8]:
        """uint8[S, L], number of channels on the path to a LID, 0 at the delivering switch, 255: no path."""
        ...

    @property
    def certificate(self) -> Order | None:
        """The certificate, None if there is none."""
        ...
