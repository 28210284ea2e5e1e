"""Recognise the kind of a fabric from its cables, and describe it in one line."""

from __future__ import annotations

import numpy as np

from routing.engines.torus_dimensions import directions
from routing.fabric import Fabric
from routing.numerals import count_noun
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
    level = tree_levels(fabric, fabric.senders_at.astype(np.float64))
    if level is not None:
        tops = int(np.count_nonzero(level == level.max()))
        leaves = int(np.count_nonzero(fabric.senders_at))
        top, edge = count_noun(tops, "top switch", "top switches"), count_noun(leaves, "switch", "switches")
        return f"a tree: {top}, {edge} with end ports, {fabric.switches} switches in all"
    found = directions(fabric)
    if found is not None:
        return f"links in {int(found.max()) + 1} directions, as in a torus, mesh or HyperX"
    degree = np.bincount(fabric.channels.src, minlength=fabric.switches)
    least, most = int(degree.min()), int(degree.max())
    each = f"{most}" if least == most else f"{least} to {most}"
    return f"neither a tree nor a torus: {each} links to other switches at each switch"
