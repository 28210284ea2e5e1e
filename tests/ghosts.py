"""The smallest fabric with ghost dependencies (Pinkston, Pang and Duato, 2003).

Five switches are routed by Up*/Down*.  The root, switch 0, is lost, and switch 2 becomes the new root.
"""

from __future__ import annotations

import networkx as nx
import numpy as np

from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.tables import Provenance, Routing, identity_sl2vl

OLD_ORDER, NEW_ORDER = {1: 1, 2: 2, 3: 3, 4: 4}, {2: 0, 1: 1, 4: 4, 3: 5}
"""Rank of each switch in the Up*/Down* order: before the loss of root 0, and from the new root 2."""


def ring(lmc):
    """Return the fabric after the loss of switch 0: switches 1 to 4 with links 1-2, 1-3, 2-4 and 3-4, and one
    CA each.
    """
    builder = FabricBuilder("ghosts")
    switches = {n: builder.add_device(NodeKind.SWITCH, 0x200 + n, f"sw{n}", 4) for n in (1, 2, 3, 4)}
    for n, switch in switches.items():
        ca = builder.add_device(NodeKind.CA, 0x100 + 16 * n, f"ca{n}", 1)
        builder.connect(switch, 4, ca, 1, width=4, speed=2.5)
    ports = dict.fromkeys(switches, 0)
    for a, b in ((1, 2), (1, 3), (2, 4), (3, 4)):
        ports[a] += 1
        ports[b] += 1
        builder.connect(switches[a], ports[a], switches[b], ports[b], width=4, speed=2.5)
    return builder.build(lmc=lmc)


def up_down(fabric, rank):
    """Return tables of shortest paths that lead up and then down by the ``rank`` of each switch.

    Where there are two first hops, the LIDs of a CA alternate between them.
    """
    names = [int(name[2:]) for name in fabric.switch_name]
    channels, lids = fabric.channels, fabric.lids
    lft = np.full((4, len(lids)), 255, np.uint8)
    paths = nx.DiGraph()
    for c in range(len(channels)):
        s, t = names[channels.src[c]], names[channels.dst[c]]
        down = rank[t] > rank[s]
        paths.add_edge((s, down), (t, down), port=int(channels.port[c]))
        if down:
            paths.add_edge((s, False), (t, True), port=int(channels.port[c]))
    paths.add_edges_from(((s, False), (s, True), {"port": None}) for s in names)
    for lid in np.flatnonzero(lids.switch >= 0).tolist():
        end = names[lids.switch[lid]]
        for row, start in enumerate(names):
            if start == end:
                lft[row, lid] = lids.port[lid]
                continue
            firsts = sorted(
                {
                    path[1][0] if path[1][0] != start else path[2][0]
                    for path in nx.all_shortest_paths(paths, (start, False), (end, True))
                }
            )
            hops = {n: nx.shortest_path_length(paths, (n, False), (end, True)) for n in firsts}
            firsts = [n for n in firsts if hops[n] == min(hops.values())]
            first = firsts[lid % len(firsts)]
            to = names.index(first)
            lft[row, lid] = next(
                int(channels.port[c]) for c in range(len(channels)) if (channels.src[c], channels.dst[c]) == (row, to)
            )
    return Routing(lft, np.zeros(len(lids), np.uint8), identity_sl2vl(1), 1, 1, Provenance("up-down"))
