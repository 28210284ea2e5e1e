"""Compare several initial states for the engine Nue, and print a Markdown table.

Nue routes each layer (VL) from an initial state: an escape tree and an initial order of the channels.  In the published
algorithm, the escape tree is a breadth-first tree, and the channels have no initial order.  The root of the escape tree
is the most central switch (by betweenness, weighted by end ports) of the layer's convex subgraph: all switches on
shortest paths between the switches of the layer's destinations.  CPU seconds count the C kernel alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import igraph
import numpy as np
import numpy.typing as npt

from benchmarks.usage import parser_of
from routing._kernels.nue import NueTrees, nue_trees
from routing._kernels.order import build_order
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.nue_seeds import Seeds, by_order, by_region
from routing.engines.orders import breadth_first, top_switches
from routing.fabric import Fabric
from routing.formats.fabric_files import read_fabric
from routing.partition import regions

Layer = npt.NDArray[np.int32]


def central_in_hull(fabric: Fabric, owners: npt.NDArray[np.int64], hops: npt.NDArray[np.float64]) -> int:
    """Return the most central switch of the convex subgraph of the switches ``owners``.

    The convex subgraph has all switches on shortest paths between two switches of ``owners``.

    Parameters
    ----------
    fabric
        Fabric.
    owners
        int64[n], switches that deliver the destinations of a layer.
    hops
        float64[S, S], hop counts between all switches.
    """
    between = hops[owners][:, :, None] + hops[:, owners][None, :, :]
    inside = np.flatnonzero((between == hops[np.ix_(owners, owners)][:, None, :]).any(axis=(0, 2)))
    part: igraph.Graph = fabric.graph.as_undirected(mode="collapse").induced_subgraph(inside.tolist())
    weight = 1 + fabric.terminals_at[inside]
    score = np.zeros(len(inside))
    for source in range(len(inside)):
        score += weight[source] * np.asarray(part.betweenness(sources=[source]))
    return int(inside[np.argmax(np.round(score, 6))])


def published(fabric: Fabric, destinations: Destinations, layer: Layer, layers: int) -> Seeds:
    """Return the initial state of the published algorithm Nue.

    The escape tree of each layer is a breadth-first tree from the most central switch.  The channels have no order.

    ``layer`` is the layer of each destination, and ``layers`` the number of layers.
    """
    hops = np.asarray(fabric.graph.distances(mode="out"), float)
    flow = destinations.share > 0.0
    centres = [
        central_in_hull(fabric, np.unique(destinations.root[flow & (layer == number)]), hops)
        for number in range(layers)
    ]
    seeds = by_order(fabric, np.stack([breadth_first(fabric, [centre]) for centre in centres]))
    return replace(seeds, rank=np.zeros_like(seeds.rank))


def centre_by_region(fabric: Fabric, destinations: Destinations, layer: Layer, layers: int) -> Seeds:
    """Return an initial state for Nue with the escape tree of :func:`published` and the order of channels of
    :func:`region`.
    """
    region = by_region(fabric, destinations, layer, layers, 2)
    return replace(published(fabric, destinations, layer, layers), rank=region.rank)


def clustered(fabric: Fabric, destinations: Destinations, layer: Layer, layers: int) -> Seeds:
    """Return an initial state for Nue with an Up*/Down* order for each layer, from a maximum cardinality search.

    Such a search takes next the switch with the most channels to switches that were taken before.
    """
    keys = np.random.default_rng(1).random((layers, fabric.switches))
    return by_order(fabric, np.stack([build_order(fabric.channels, key, pull=1.0) for key in keys]))


def tops(fabric: Fabric, destinations: Destinations, layer: Layer, layers: int) -> Seeds:
    """Return an initial state for Nue with a breadth-first Up*/Down* order from the top switches of a tree."""
    return by_order(fabric, np.tile(breadth_first(fabric, top_switches(fabric)), (layers, 1)))


def region(fabric: Fabric, destinations: Destinations, layer: Layer, layers: int) -> Seeds:
    """Return an initial state for Nue with channels ordered by their distance from the destinations of each layer.

    The root of a layer's escape tree is the switch with the smallest mean distance from these destinations.
    """
    return by_region(fabric, destinations, layer, layers, 2)


WAYS: dict[str, Callable[[Fabric, Destinations, Layer, int], Seeds]] = {
    "published": published,
    "published, order by distance": centre_by_region,
    "clustered order": clustered,
    "top of the tree": tops,
    "region": region,
}


def row(fabric: Fabric, name: str, vls: int, passes: int) -> list[str]:
    """Route a fabric with Nue from one kind of initial state, and return the row of the table.

    Parameters
    ----------
    fabric
        Fabric to route.
    name
        Name of the kind of initial state, a key of :data:`WAYS`.
    vls, passes
        Number of VLs, and number of passes of the kernel over all destinations.
    """
    destinations = Destinations.of(fabric)
    layer = regions(fabric, vls, seed=1)[destinations.root]
    seeds = WAYS[name](fabric, destinations, layer, vls)
    start = time.process_time()
    trees: NueTrees = nue_trees(
        fabric.channels,
        inverse_capacity(fabric),
        fabric.terminals_at.astype(np.float64),
        destinations.targets(layer),
        parent=seeds.parent,
        rank=seeds.rank,
        passes=passes,
        seed=1,
        threads=2,
    )
    seconds = time.process_time() - start
    flow = destinations.share > 0.0
    share = (fabric.endports - 1) / trees.max_utilisation
    return [
        fabric.name, str(vls), name, f"{share[0]:.3f}", f"{share.max(where=trees.max_utilisation > 0, initial=0):.3f}",
        str(int(trees.escaped[flow].sum())), f"{seconds:.2f}",
    ]  # fmt: skip


HEAD = ("fabric", "VLs", "seeds", "a2a, first pass", "a2a, best", "entries on the escape tree", "CPU s")


def main(words: Sequence[str] | None = None) -> int:
    parser = parser_of("nue_seeds", __doc__)
    parser.add_argument("fabrics", nargs="+", type=Path, metavar="FABRIC")
    parser.add_argument("--vls", type=lambda text: [int(part) for part in text.split(",")], default=[8, 2])
    parser.add_argument("--passes", type=int, default=1)
    arguments = parser.parse_args(words)
    print("", " | ".join(HEAD), "", sep="| ")
    print("|---" * len(HEAD) + "|")
    for path in arguments.fabrics:
        fabric = read_fabric(path)
        for vls in arguments.vls:
            for name in WAYS:
                if name != "top of the tree" or top_switches(fabric):
                    print(f"| {' | '.join(row(fabric, name, vls, arguments.passes))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
