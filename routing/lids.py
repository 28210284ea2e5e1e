"""Assign LIDs to switches and end ports without a LID."""

from __future__ import annotations

from collections.abc import Iterator

from routing.errors import FabricError
from routing.fabric import MAX_UNICAST_LID


def give_lids(
    switch_lid: list[int], endport_lid: list[tuple[int, int]], lmc: int
) -> tuple[list[int], list[tuple[int, int]]]:
    """Assign the lowest free LIDs to switches and end ports without a LID.

    A LID of 0 means that the switch or end port has no LID.  ``lmc`` is the LMC of the end ports that get their LIDs
    from this function.

    Returns
    -------
    switch_lid : list[int]
        LID of each switch.
    endport_lid : list[tuple[int, int]]
        Base LID and LMC of each end port.
    """
    used = {lid for lid in switch_lid if lid}
    for lid, own in endport_lid:
        used.update(range(lid, lid + (1 << own)) if lid else ())

    def free(step: int) -> Iterator[int]:
        lid = step
        while lid + step - 1 <= MAX_UNICAST_LID:
            if used.isdisjoint(range(lid, lid + step)):
                used.update(range(lid, lid + step))
                yield lid
            lid += step
        raise FabricError(
            f"the fabric needs more than the {MAX_UNICAST_LID} unicast LIDs that exist",
            remedy=f"use an LMC under {lmc}" if lmc else "split the fabric into subnets",
        )

    single, block = free(1), free(1 << lmc)
    switch_lid = [lid or next(single) for lid in switch_lid]
    return switch_lid, [(lid, own) if lid else (next(block), lmc) for lid, own in endport_lid]
