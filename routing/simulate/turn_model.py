"""Compute west-first tables of a mesh, one of the routings of the turn model."""

from __future__ import annotations

import numpy as np

from routing.errors import OptionError
from routing.fabric import NO_PORT, Fabric
from routing.simulate.dimension_order import switch_positions
from routing.tables import Provenance, Routing


def west_first(fabric: Fabric) -> Routing:
    """Compute tables for a mesh of two dimensions.  Each path is a shortest path, with its steps to the west first.

    West is the direction in which the first coordinate decreases.  No path turns to the west after another step, so one
    VL is deadlock-free.

    If a destination is in the east, and also in the north or south, a switch has a choice of two next steps.  The
    switch adds its two coordinates and the destination LID.  If the sum is odd, the next step is to the east.

    Raises
    ------
    OptionError
        The fabric is not a mesh of two dimensions of :func:`routing.topologies.grids.mesh`.

    Notes
    -----
    Glass and Ni, The turn model for adaptive routing (1992).  Cost: O(S L) steps of Python.
    """
    (positions, sizes), channels, lids = switch_positions(fabric), fabric.channels, fabric.lids
    if len(sizes) != 2:
        raise OptionError(f"a mesh of {len(sizes)} dimensions has no west", remedy="use one of two dimensions")
    ports = zip(channels.src.tolist(), channels.dst.tolist(), channels.port.tolist(), strict=True)
    port = {(positions[near], positions[far]): number for near, far, number in ports}
    lft = np.full((fabric.switches, len(lids)), NO_PORT, np.uint8)
    for switch, (x, y) in enumerate(positions):
        for lid in np.flatnonzero(lids.switch >= 0).tolist():
            east, north = (b - a for a, b in zip((x, y), positions[int(lids.switch[lid])], strict=True))
            along = east < 0 or not north or (east > 0 and (x + y + lid) % 2)
            step = (x + (east > 0) - (east < 0), y) if along else (x, y + (north > 0) - (north < 0))
            if (east or north) and ((x, y), step) not in port:
                raise OptionError(f"{fabric.labels[switch]} has no cable to the switch at {step}")
            lft[switch, lid] = port[(x, y), step] if east or north else lids.port[lid]
    highest = 1 + int(fabric.switch_ports.max(initial=0))
    sl2vl = np.zeros((fabric.switches, highest, highest, 16), np.uint8)
    return Routing(lft, np.zeros_like(lft), sl2vl, 1, 1, Provenance("west-first"))
