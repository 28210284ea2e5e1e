"""Make tables for tests of file formats: random shortest paths, random SLs, and a stand-in for a proof."""

from __future__ import annotations

import random
from dataclasses import dataclass

import igraph
import numpy as np

from routing.engines import ENGINES
from routing.fabric import NO_PORT, Fabric
from routing.tables import Provenance, Routing, identity_sl2vl

SOME_FABRICS = ("ftree", "dor", "torus-2qos", "dragonfly", "slimfly", "hyperx", "chain")
ANY_FABRIC = tuple(name for name in ENGINES if name not in SOME_FABRICS)
"""Names of the engines that route every fabric."""


@dataclass(frozen=True)
class FakeCertificate:
    order: np.ndarray
    strength: str = "forward"
    scope: str = "all"


@dataclass(frozen=True)
class FakeProof:
    hops: np.ndarray
    certificate: FakeCertificate | None


def shortest(fabric: Fabric, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return LFTs of random shortest paths and the hops of each path, uint8[S, L] each."""
    rng = random.Random(seed)
    lids, channels = fabric.lids, fabric.channels
    lft = np.full((fabric.switches, len(lids)), NO_PORT, np.uint8)
    hops = np.full((fabric.switches, len(lids)), 255, np.uint8)
    graph = igraph.Graph(n=fabric.switches, edges=list(zip(channels.src, channels.dst, strict=True)), directed=True)
    distance = np.array(graph.distances()).reshape(fabric.switches, fabric.switches)
    for lid in range(1, len(lids)):
        end = int(lids.switch[lid])
        if end < 0:
            continue
        for switch in range(fabric.switches):
            if switch == end:
                lft[switch, lid], hops[switch, lid] = lids.port[lid], 0
                continue
            if not np.isfinite(distance[switch, end]):
                continue
            out = range(int(channels.first[switch]), int(channels.first[switch + 1]))
            best = [c for c in out if distance[channels.dst[c], end] + 1 == distance[switch, end]]
            lft[switch, lid] = channels.port[rng.choice(best)]
            hops[switch, lid] = distance[switch, end]
    return lft, hops


def tables(
    fabric: Fabric,
    seed: int = 0,
    *,
    sl_form: str = "lid",
    per_port: bool = False,
    certified: bool = True,
    scope: str = "all",
):
    """Return a routing of random shortest paths and random SLs, with a stand-in for its proof."""
    rng = np.random.default_rng(seed)
    lft, hops = shortest(fabric, seed)
    lids = len(fabric.lids)
    shape = {"lid": (lids,), "switch": (fabric.switches, lids), "pair": (lids, lids)}[sl_form]
    sl = rng.integers(0, 4, shape, np.uint8)
    sl[..., lft.min(axis=0, initial=255) == 255] = 0
    sl2vl = identity_sl2vl(4)
    if per_port:
        ports = 1 + int(fabric.switch_ports.max(initial=0))
        sl2vl = rng.integers(0, 4, (fabric.switches, ports, ports, 16)).astype(np.uint8)
    made = Provenance("shortest", {"seed": seed}, fabric.digest, {"ibnue": "0"}, {"paths": 0.5})
    order = np.arange(4 * len(fabric.channels), dtype=np.int32).reshape(4, -1)
    return Routing(lft, sl, sl2vl, 4, 2, made), FakeProof(
        hops, FakeCertificate(order, scope=scope) if certified else None
    )
