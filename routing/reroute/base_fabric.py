"""Number switches and channels as an earlier fabric does.  So CDG edges keep their numbers when switches or channels
fail.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import RepairFabric
from routing.cdg.acyclic import AcyclicCdg
from routing.counterparts import channel_numbers, old_rows
from routing.fabric import NO_PORT, Fabric
from routing.reroute.flow import inverse_capacity_of_base, lid_weights
from routing.reroute.values import Published

Number = TypeVar("Number", np.uint8, np.int32, np.int64)


@dataclass(frozen=True, eq=False)
class BaseNumbering:
    """Maps the present fabric to the switch and channel numbers of an earlier fabric, the *base*. The base has all
    switches and channels of the present fabric.

    A switch or channel that a fault has removed keeps its number in the base.  So topological orders of channels that
    were computed before the fault still apply.

    Attributes
    ----------
    base
        The earlier fabric whose switch rows and channel numbers are used.
    fabric
        The present fabric.
    row
        int32[S], row in the base of each switch of the present fabric.
    channel
        int32[C], number in the base of each channel of the present fabric.
    """

    base: Fabric
    fabric: Fabric
    row: npt.NDArray[np.int32]
    channel: npt.NDArray[np.int32]

    @classmethod
    def of(cls, fabric: Fabric, earlier: Sequence[Fabric]) -> BaseNumbering:
        """Return the map from the present fabric (``fabric``) to the numbers of an earlier fabric.

        The first of the ``earlier`` fabrics that has all present switches and channels becomes the base.  If no
        earlier fabric has all of them, the present fabric is its own base.
        """
        for base in earlier:
            row, channel = old_rows(base, fabric), channel_numbers(fabric, base)
            if (row >= 0).all() and (channel >= 0).all():
                return cls(base, fabric, row, channel)
        everything = np.arange(fabric.switches, dtype=np.int32), np.arange(len(fabric.channels), dtype=np.int32)
        return cls(fabric, fabric, *everything)

    @cached_property
    def whole(self) -> bool:
        """Return whether every switch of the base (the earlier fabric that gives the numbers) is still present."""
        return len(self.row) == self.base.switches

    @cached_property
    def repair_fabric(self) -> RepairFabric:
        """Return the data of the present fabric that the repair kernel needs, in switch and channel numbers of the
        earlier fabric ``base``.
        """
        fabric, channels = self.fabric, self.base.channels
        alive = np.zeros(len(channels), np.uint8)
        alive[self.channel] = 1
        lids = fabric.lids
        here = lids.switch >= 0
        lid_switch = np.full(len(lids), -1, np.int32)
        lid_switch[here] = self.row[lids.switch[here]]
        return RepairFabric(
            channels=channels, alive=alive, part=self.spread(fabric.component, -1), lid_switch=lid_switch,
            lid_port=lids.port, has_endport=self.spread((fabric.terminals_at > 0).astype(np.uint8), 0),
            inverse_capacity=inverse_capacity_of_base(channels), sources=self.spread(fabric.source_weight_at, 0),
            weight=lid_weights(fabric),
        )  # fmt: skip

    def spread(self, rows: npt.NDArray[Number], missing: int) -> npt.NDArray[Number]:
        """Convert an array with a row for each present switch to an array with a row for each switch of the base
        fabric.

        The base is the earlier fabric whose numbers are used.  The rows of lost switches are filled with ``missing``.
        """
        if self.whole:
            return rows
        out: npt.NDArray[Number] = np.full((self.base.switches, *rows.shape[1:]), missing, rows.dtype)
        out[self.row] = rows
        return out

    def gathered(self, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Convert an array with a row for each switch of the base fabric to an array with a row for each present
        switch.

        The base is the earlier fabric whose numbers are used.
        """
        return rows if self.whole else np.ascontiguousarray(rows[self.row])

    def in_base_rows(self, lft: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return LFTs with a row for each switch of the base fabric (the earlier fabric whose numbers are used).

        The row of a switch that is lost has no entries (255).
        """
        return lft if self.whole else self.spread(lft, NO_PORT)


def union_of_proven_dependencies(base: Fabric, tables: Sequence[Published], *, threads: int) -> AcyclicCdg | None:
    """Return the union of the CDGs of several sets of tables, in the channel numbers of ``base``; None if the union has
    a cycle.

    An acyclic union proves that any mixture of these tables is free of credit loops.  If all tables are Up*/Down*
    tables with a common switch order, every dependency that this switch order allows is added to the union.
    """
    cdgs = [table.proof.cdg for table in tables if table.proof.cdg is not None]
    if len(cdgs) == 1 and cdgs[0].fabric is base:
        found: AcyclicCdg | None = cdgs[0]
    else:
        union = functools.reduce(operator.or_, (cdg.onto(base) for cdg in cdgs))
        found = union.sorted(max(len(cdg.order) for cdg in cdgs), threads=threads)
    if found is None or not all("first_switches" in table.routing.provenance.options for table in tables):
        # Only tables of Up*/Down* engines have the option "first_switches", which names the switches at the top of the
        # order.
        return found
    position = found.switch_order()
    return found if position is None else found.along(position)
