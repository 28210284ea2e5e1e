"""Recognise the kind of a fabric from its cables, and describe it in one line."""

from __future__ import annotations

import numpy as np

from routing.engines.orders import top_switches
from routing.engines.torus_dimensions import directions
from routing.fabric import Fabric
from routing.trees.levels import tree_levels


def describe_kind(fabric: Fabric) -> str:
    """Return a description of a fabric: a tree, a product of rings and meshes, or another network.

    The description is only a text for users; engines do not use it.  Most of the time is spent in
    :func:`routing.engines.torus_dimensions.directions`.
    """
    if fabric.switches == 0:
        return "no switches"
    if fabric.switches == 1:
        return "a single switch"
    tops = len(top_switches(fabric))
    if not tops and (level := tree_levels(fabric, fabric.senders_at.astype(np.float64))) is not None:
        tops = int(np.count_nonzero(level == level.max()))
    if tops:
        leaves = int(np.count_nonzero(fabric.senders_at))
        return f"a tree: {tops} top switches, {leaves} switches with end ports, {fabric.switches} switches in all"
    found = directions(fabric)
    if found is not None:
        return f"links in {int(found.max()) + 1} directions, as in a torus, mesh or HyperX"
    degree = np.bincount(fabric.channels.src, minlength=fabric.switches)
    least, most = int(degree.min()), int(degree.max())
    each = f"{most}" if least == most else f"{least} to {most}"
    return f"neither a tree nor a torus: {each} links to other switches at each switch"
