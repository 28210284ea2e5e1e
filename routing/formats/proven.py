"""What the writers of tables ask of a proof (:class:`routing.deadlock.proof.Proof` is one)."""

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
        """Which routes it covers: "forward" or "reversible"."""
        ...

    @property
    def scope(self) -> str:
        """Whose traffic it covers: "all", or "endports" for what is from or to CAs and routers."""
        ...


class Proven(Protocol):
    """A proof."""

    @property
    def hops(self) -> npt.NDArray[np.uint8]:
        """uint8[S, L], switches still to pass on the way to a LID, 0 at the one that delivers it, 255: none."""
        ...

    @property
    def certificate(self) -> Order | None:
        """The certificate, if there is one."""
        ...
