"""A slow reference for the dependencies of mixed tables.  Every packet takes every choice of entries at each hop."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
from hypothesis import strategies as st
from slow_proof import Walker, plugs, request_sl, routed, shortest_path_tables

from routing.fabric import Fabric
from routing.tables import Routing


class MixedWalker:
    """Packets that may meet old and new entries, VLs and SLs in any order."""

    def __init__(self, fabric: Fabric, old: Routing, new: Routing) -> None:
        self.fabric, self.both, self.plugs = fabric, (old, new), plugs(fabric)
        self.walkers = Walker(fabric, old), Walker(fabric, new)
        self.receivers = list(self.walkers[0].receivers())

    def steps(self, switch, in_port, sl, lid):
        """Yield the out-port and VL of each channel to which a switch may send a packet, by old or new entries and
        SL2VL tables.
        """
        for routing in self.both:
            out = int(routing.lft[switch, lid])
            far = self.plugs.get((switch, out))
            if far is None or far[0] >= self.fabric.switches or far[0] == switch:
                continue
            for vls in self.walkers:
                vl = vls.vl(switch, in_port, out, sl)
                if vl < 15:
                    yield out, vl

    def dependencies(self, switch, in_port, sl, lid, graph):
        """Add to ``graph`` all dependencies of a packet that enters at a port, over every mixture of entries."""
        begin = [(switch, *step) for step in self.steps(switch, in_port, sl, lid)]
        seen, left = set(begin), list(begin)
        while left:
            here = left.pop()
            at, port = self.plugs[here[:2]]
            for step in self.steps(at, port, sl, lid):
                following = (at, *step)
                graph.add_edge(here, following)
                if following not in seen:
                    seen.add(following)
                    left.append(following)

    def forwarding_loops(self, lid):
        """Return whether mixed entries can lead a packet for a LID back to a switch that it has left."""
        graph = nx.DiGraph()
        for routing in self.both:
            for switch in range(self.fabric.switches):
                far = self.plugs.get((switch, int(routing.lft[switch, lid])))
                if far is not None and far[0] < self.fabric.switches and routing.lft[switch, lid]:
                    graph.add_edge(switch, far[0])
        return not nx.is_directed_acyclic_graph(graph)


def transition_slowly(fabric: Fabric, old: Routing, new: Routing, *, replies: bool, scope: str) -> nx.DiGraph:
    """Return the graph of dependencies between virtual channels (switch, port, VL) during a transition."""
    walker, graph, done = MixedWalker(fabric, old, new), nx.DiGraph(), set()

    def follow(switch, port, sl, lid):
        if (switch, port, sl, lid) not in done:
            done.add((switch, port, sl, lid))
            walker.dependencies(switch, port, sl, lid, graph)

    for switch, port, sl, lid in starts_slowly(fabric, old, new, replies=replies, scope=scope):
        follow(switch, port, sl, lid)
    return graph


def starts_slowly(fabric, old, new, *, replies, scope):
    """Yield (switch, in-port, SL, LID) for all packets that may be sent during a transition.

    Packets to every LID may have the SL of the old tables.  Packets to a LID that the switch can reach may have the SL
    of the new tables.
    """
    walker = MixedWalker(fabric, old, new)
    parts = nx.Graph()
    parts.add_nodes_from(range(fabric.switches))
    parts.add_edges_from((a, far[0]) for (a, _), far in walker.plugs.items() if max(a, far[0]) < fabric.switches)
    part = {s: k for k, members in enumerate(nx.connected_components(parts)) for s in members}
    receivers = walker.receivers
    at = {lid: switch for lid, switch, _ in receivers}
    gone = [lid for lid in range(len(fabric.lids)) if lid not in at]
    for routing in (old, new):
        for switch, port, source_lids in walker.walkers[0].senders():
            for lid, target, leave in receivers:
                near = part[switch] == part[target]
                for source in source_lids if (scope == "all" or port or leave) and (near or routing is old) else ():
                    yield switch, port, request_sl(fabric, routing, switch, source, lid), lid
            for lid in gone if routing is old else ():
                for source in source_lids:
                    yield switch, port, request_sl(fabric, routing, switch, source, lid), lid
        for lid, switch, port in receivers if replies else ():
            for asker, asker_switch, asker_port in receivers:
                near = part[switch] == part[asker_switch]
                if (scope == "all" or asker_port or port) and (near or routing is old):
                    yield switch, port, request_sl(fabric, routing, asker_switch, asker, lid), asker
            for asker in gone if routing is old else ():
                for asker_switch in range(fabric.switches):  # The former owner of the LID may have been at any switch.
                    yield switch, port, request_sl(fabric, routing, asker_switch, asker, lid), asker


@st.composite
def transitions(draw, **options):
    """Hypothesis strategy: a fabric and two routings of the fabric, which differ in few or in many entries."""
    fabric, old = draw(routed(**options))
    rng = np.random.default_rng(draw(st.integers(0, 10_000), label="new table seed"))
    kind = draw(st.sampled_from(["entries", "paths", "all"]), label="what changes")
    lft, sl, sl2vl = old.lft.copy(), old.sl, old.sl2vl
    if kind == "entries":
        other = shortest_path_tables(fabric, rng)
        few = rng.random(lft.shape) < 0.1
        lft[few] = other[few]
    else:
        lft = shortest_path_tables(fabric, rng, tree=draw(st.booleans(), label="new tree"))
    if kind == "all":
        sl = rng.permutation(sl.ravel()).reshape(sl.shape)
        sl2vl = draw(st.sampled_from([sl2vl, np.roll(sl2vl, 1, axis=-1)]), label="new SL2VL")
    new = Routing(lft, sl, sl2vl, old.vls, old.vls, old.provenance)
    if draw(st.booleans(), label="old SLs of one sender"):
        sls, at = old.service_levels, np.maximum(fabric.lids.switch, 0).tolist()
        table = np.array([sls.from_sender(switch, lid) for lid, switch in enumerate(at)])
        sender = draw(st.sampled_from(np.flatnonzero(fabric.lids.switch >= 0).tolist()))
        table[sender] = rng.permutation(table[sender])
        old = replace(old, sl=table)
    return fabric, old, new
