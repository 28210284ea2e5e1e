"""A slow reference for the proof.  It follows every packet hop by hop, and builds the dependency graph with networkx.

The module also has Hypothesis strategies for tables with and without errors.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import networkx as nx
import numpy as np
from hypothesis import strategies as st
from strategies import fabrics

from routing.fabric import Fabric
from routing.tables import Provenance, Routing


@dataclass(frozen=True)
class Walk:
    """Path of a packet: (switch, out-port, VL) for each hop to another switch, and what happens to the packet at the
    end.
    """

    hops: tuple[tuple[int, int, int], ...]
    end: str


def plugs(fabric: Fabric) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the device and port at the other end of each cable, by device and port."""
    other = {}
    for (a, b), (p, q) in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True):
        other[a, p], other[b, q] = (b, q), (a, p)
    return other


class Walker:
    def __init__(self, fabric: Fabric, routing: Routing) -> None:
        self.fabric, self.routing, self.plugs = fabric, routing, plugs(fabric)
        self.destination_switch = {}
        for e in range(fabric.endports):
            for lid in range(
                int(fabric.endport_lid[e]), int(fabric.endport_lid[e]) + (1 << int(fabric.endport_lmc[e]))
            ):
                near = (fabric.switches + int(fabric.endport_terminal[e]), int(fabric.endport_port[e]))
                self.destination_switch[lid] = near
        for s in range(fabric.switches):
            self.destination_switch[int(fabric.switch_lid[s])] = (s, 0)

    def senders(self):
        """Yield the switch, the in-port and the LIDs of each sender."""
        for s in range(self.fabric.switches):
            yield s, 0, [int(self.fabric.switch_lid[s])]
        for e in range(self.fabric.endports):
            device = self.fabric.switches + int(self.fabric.endport_terminal[e])
            switch, port = self.plugs[device, int(self.fabric.endport_port[e])]
            if switch < self.fabric.switches:
                base = int(self.fabric.endport_lid[e])
                yield switch, port, list(range(base, base + (1 << int(self.fabric.endport_lmc[e]))))

    def receivers(self):
        """Yield each LID, with the switch and the port by which the LID is delivered."""
        for lid, (device, port) in sorted(self.destination_switch.items()):
            if device < self.fabric.switches:
                yield lid, device, 0
            elif self.plugs[device, port][0] < self.fabric.switches:
                yield (lid, *self.plugs[device, port])

    def vl(self, switch, in_port, out_port, sl):
        table = self.routing.sl2vl
        return int(table[sl]) if table.ndim == 1 else int(table[switch, in_port, out_port, sl])

    def walk(self, switch, in_port, sl, lid) -> Walk:
        hops: tuple[tuple[int, int, int], ...] = ()
        seen = set()
        while True:
            out = int(self.routing.lft[switch, lid])
            if (switch, out) == self.destination_switch[lid]:
                return Walk(hops, "delivered")
            far = self.plugs.get((switch, out))
            if far is None:
                return Walk(hops, "lost")
            vl = self.vl(switch, in_port, out, sl)
            if far[0] >= self.fabric.switches:
                if far != self.destination_switch[lid]:
                    return Walk(hops, "lost")
                return Walk(hops, "dropped" if vl >= 15 else "delivered")
            if vl >= 15:
                return Walk(hops, "dropped")
            if (switch, in_port, hops[-1:]) in seen or far[
                0
            ] == switch:  # A cable from a switch to itself is not a channel of the fabric.
                return Walk(hops, "circle")
            seen.add((switch, in_port, hops[-1:]))
            hops = (*hops, (switch, out, vl))
            switch, in_port = far

    def reach(self, switch, lid):
        """Return the number of hops of a route by the LFT alone, or "lost" or "circle" if the route does not arrive."""
        seen: list[int] = []
        while switch not in seen:
            seen.append(switch)
            out = int(self.routing.lft[switch, lid])
            if (switch, out) == self.destination_switch[lid] or self.plugs.get(
                (switch, out)
            ) == self.destination_switch[lid]:
                return len(seen) - 1
            far = self.plugs.get((switch, out))
            if far is None or far[0] >= self.fabric.switches:
                return "lost"
            switch = far[0]
        return "circle"


def request_sl(fabric, routing, switch, source_lid, lid):
    if routing.sl.ndim == 1:
        return int(routing.sl[lid])
    return int(routing.sl[switch if len(routing.sl) == fabric.switches else source_lid, lid])


def all_walks(walker: Walker, *, replies: bool, scope: str = "all"):
    """Yield ((switch, LID), walk) for every request, or for every reply if ``replies``."""
    fabric, routing = walker.fabric, walker.routing
    receivers = list(walker.receivers())

    def counts(port, other):
        return scope == "all" or port != 0 or other != 0

    if not replies:
        for switch, port, source_lids in walker.senders():
            for lid, _, leave in receivers:
                for source in source_lids if counts(port, leave) else ():
                    sl = request_sl(fabric, routing, switch, source, lid)
                    yield (switch, lid), walker.walk(switch, port, sl, lid)
        return
    for asker, asker_switch, asker_port in receivers:
        for lid, switch, port in receivers:
            if not counts(asker_port, port):
                continue
            sl = request_sl(fabric, routing, asker_switch, asker, lid)
            yield (switch, asker), walker.walk(switch, port, sl, asker)


SCOPES = ("all", "endports")


@dataclass(frozen=True)
class SlowProof:
    """The dependency graphs by scope, for requests alone and for requests with replies, and the figures of
    the proof.
    """

    requests: dict[str, nx.DiGraph]
    both: dict[str, nx.DiGraph]
    hops: np.ndarray
    counts: Counter
    dropped: int


def prove_slowly(fabric: Fabric, routing: Routing) -> SlowProof:
    walker = Walker(fabric, routing)
    requests, both, dropped = {}, {}, set()
    for scope in SCOPES:
        requests[scope] = nx.DiGraph()
        for pair, walk in all_walks(walker, replies=False, scope=scope):
            requests[scope].add_edges_from(zip(walk.hops, walk.hops[1:], strict=False))
            if walk.end == "dropped" and isinstance(walker.reach(*pair), int):
                dropped.add(pair)
        both[scope] = requests[scope].copy()
        for _, walk in all_walks(walker, replies=True, scope=scope):
            both[scope].add_edges_from(zip(walk.hops, walk.hops[1:], strict=False))
    hops, counts = np.full(routing.lft.shape, 255, np.uint8), Counter()
    parts = nx.Graph()
    parts.add_nodes_from(range(fabric.switches))
    parts.add_edges_from((a, b) for a, b in fabric.link_device.tolist() if max(a, b) < fabric.switches)
    part = {s: k for k, members in enumerate(nx.connected_components(parts)) for s in members}
    for lid, switch, _ in walker.receivers():
        for s in range(fabric.switches):
            end = walker.reach(s, lid)
            if isinstance(end, int):
                hops[s, lid] = end
                continue
            counts["undelivered" if part[s] == part[switch] else "split"] += 1
            counts["looping"] += end == "circle"
    return SlowProof(requests, both, hops, counts, len(dropped))


def shortest_cycle(graph: nx.DiGraph) -> int:
    """Return the length of a shortest cycle of a graph, or 0 if there is no cycle."""
    best = 0
    for a, b in graph.edges:
        if nx.has_path(graph, b, a):
            length = nx.shortest_path_length(graph, b, a) + 1
            best = min(best or length, length)
    return best


def shortest_path_tables(fabric: Fabric, rng: np.random.Generator, *, tree: bool = False) -> np.ndarray:
    """Return random LFTs (uint8[S, L]) of shortest paths.

    With ``tree``, all paths follow one spanning tree of each connected component, so that they close no credit loop.
    """
    graph = nx.MultiGraph()
    graph.add_nodes_from(range(fabric.switches))
    for (a, b), (p, q) in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True):
        if a != b and max(a, b) < fabric.switches:
            graph.add_edge(a, b, ports={a: p, b: q})
    if tree:
        kept = nx.minimum_spanning_tree(graph)
        graph = nx.MultiGraph(kept)
    far = dict(nx.all_pairs_shortest_path_length(graph))
    lids = fabric.lids
    lft = np.full((fabric.switches, len(lids)), 255, np.uint8)
    for lid in np.flatnonzero(lids.switch >= 0).tolist():
        target = int(lids.switch[lid])
        for s in range(fabric.switches):
            if s == target:
                lft[s, lid] = lids.port[lid]
            elif target in far[s]:
                ports = [
                    data["ports"][s] for _, n, data in graph.edges(s, data=True) if far[n][target] + 1 == far[s][target]
                ]
                lft[s, lid] = rng.choice(ports)
    return lft


@st.composite
def routed(draw, *, wrong: bool = True, max_switches: int = 7, max_cas: int = 2):
    """Hypothesis strategy: a fabric and a routing, with SL and SL2VL tables of every shape, with or without errors."""
    fabric = draw(fabrics(max_switches=max_switches, max_cas=max_cas, max_lmc=1, connected=draw(st.booleans())))
    rng = np.random.default_rng(draw(st.integers(0, 10_000), label="table seed"))
    lft = shortest_path_tables(fabric, rng, tree=draw(st.booleans(), label="tree"))
    switches, lids = lft.shape
    for _ in range(draw(st.integers(0, 4), label="wrong entries") if wrong and lids > 1 else 0):
        s = int(rng.integers(switches))
        lft[s, rng.integers(1, lids)] = rng.choice([255, *range(int(fabric.switch_ports[s]) + 1)])
    sls = draw(st.sampled_from([1, 2, 5, 16]), label="SLs")
    shape = draw(st.sampled_from([(lids,), (switches, lids), (lids, lids)]), label="SL shape")
    sl = rng.integers(0, sls, shape).astype(np.uint8)
    vls = draw(st.sampled_from([1, 2, 3, 15]), label="VLs")
    by_port = draw(st.sampled_from(["no", "same", "differs"]), label="SL2VL by port")
    ports = 1 + int(fabric.switch_ports.max())
    sl2vl = rng.integers(0, vls, (switches, ports, ports, 16) if by_port == "differs" else 16).astype(np.uint8)
    if wrong and draw(st.booleans(), label="drops"):
        sl2vl[rng.random(sl2vl.shape) < 0.05] = 15
    if by_port == "same":
        sl2vl = np.tile(sl2vl, (switches, ports, ports, 1))
    return fabric, Routing(lft, sl, sl2vl, vls, vls, Provenance("random"))
