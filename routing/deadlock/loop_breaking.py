"""Propose the LFT entries whose change removes a credit loop: Loop Breaker, carried out by the subnet manager.

Loop Breaker (Shpiner, Zahavi, Zdornov, Anker, Kadosh, "Unlocking Credit Loop Deadlocks", HotNets 2016) lets the
switches of a loop elect one switch that moves its flows to another port.  Here the tables and the CDG select the switch
and the LIDs instead, such that the fewest entries have to be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from routing.cdg.trace import dependency_graph
from routing.deadlock.proof import Proof, prove
from routing.deadlock.waitfor import WaitFor
from routing.deadlock.witness import CreditLoop, lids_of_dependency
from routing.fabric import Fabric
from routing.names import guid_text
from routing.numerals import count_noun
from routing.tables import Routing

MOST_CANDIDATES = 64
"""Largest number of changes that are tried.  The tables after each tried change are checked for credit loops."""

Lfts = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class EntryChange:
    """Change of one LFT entry.

    Attributes
    ----------
    switch, lid
        Row of the switch, and LID.
    port, new_port
        Out-port before and after the change.
    hops
        Hops that the change adds to the path from the switch.
    """

    switch: int
    lid: int
    port: int
    new_port: int
    hops: int


@dataclass(frozen=True, eq=False)
class LoopBreak:
    """Tables after a change that removes a credit loop of the earlier tables, and the changed entries.

    Attributes
    ----------
    changes
        The changed entries.
    routing
        The tables after the change.
    proof
        Proof of these tables.
    before, left
        Number of dependencies on credit loops before and after the change.
    """

    changes: tuple[EntryChange, ...]
    routing: Routing
    proof: Proof
    before: int
    left: int

    @property
    def loop_free(self) -> bool:
        """Return whether the changed tables have no credit loop, which their certificate proves."""
        return self.proof.certificate is not None

    def describe(self, fabric: Fabric) -> list[str]:
        """Return lines to print: what the change achieves, then one line for each entry."""
        head = f"proposed: {count_noun(len(self.changes), 'LFT entry', 'LFT entries')} to write"
        if self.loop_free:
            result = "the tables then have no credit loop (proven)"
        else:
            result = f"{self.left} instead of {count_noun(self.before, 'dependency')} are then on credit loops"
        return [
            f"{head}; {result}",
            *(
                f"  {fabric.labels[change.switch]} LID {change.lid}: port {change.port} -> port {change.new_port}"
                f" ({count_noun(change.hops, 'hop')} more)"
                for change in self.changes
            ),
        ]

    def as_object(self, fabric: Fabric) -> dict[str, object]:
        """Return the change for JSON."""
        return {
            "loop_free": self.loop_free,
            "dependencies_on_loops_before": self.before,
            "dependencies_on_loops": self.left,
            "changed_entries": [
                {
                    "switch_guid": guid_text(int(fabric.switch_guid[change.switch])),
                    "switch_name": fabric.switch_name[change.switch],
                    "lid": change.lid,
                    "port": change.port,
                    "new_port": change.new_port,
                    "hops_added": change.hops,
                }
                for change in self.changes
            ],
        }


def break_loop(fabric: Fabric, routing: Routing, loop: CreditLoop, *, threads: int = 2) -> LoopBreak | None:
    """Find the fewest LFT entries whose change removes a credit loop.

    A dependency of the loop leads from one channel of the loop to the next one.  Each change removes one dependency:
    the switch where the first channel begins, or the switch where the second channel begins, sends the packets of the
    dependency by another port.  Every LID must still be delivered.

    Changes with fewer entries are tried first.  Of changes with equally many entries, changes with shorter paths are
    tried first.  The result is the first change after which the tables have no credit loop.  If all tried changes leave
    credit loops, the result is the change that leaves the fewest dependencies on credit loops.

    Parameters
    ----------
    fabric, routing
        The fabric and its tables, which deliver all traffic.
    loop
        Credit loop of the requests of these tables.
    threads
        Worker threads.

    Returns
    -------
    The change; None if no change leaves fewer dependencies on credit loops than before.

    Notes
    -----
    Cost: one pass over the tables, one more pass for each of at most 64 changes, and a proof of the changed tables.
    """
    before = _on_loops(fabric, routing, threads)
    changes = sorted(
        _changes(fabric, routing, loop), key=lambda found: (len(found), sum(change.hops for change in found))
    )
    best, least = None, before
    for found in islice(changes, MOST_CANDIDATES):
        lft = routing.lft.copy()
        for change in found:
            lft[change.switch, change.lid] = change.new_port
        tables = replace(routing, lft=lft)
        left = _on_loops(fabric, tables, threads)
        if left < least:
            best, least = (found, tables), left
        if not left:
            break
    if best is None:
        return None
    proof = prove(fabric, best[1], threads=threads, explain=False)
    return LoopBreak(best[0], best[1], proof, before, least)


def _on_loops(fabric: Fabric, routing: Routing, threads: int) -> int:
    """Return the number of dependencies on credit loops of requests from or to CAs and routers."""
    graph = dependency_graph(fabric, routing, switch_pairs=False, threads=threads)
    part = WaitFor.of_dependencies(graph)
    return int((part.on_cycle[graph.source] & (part.component[graph.source] == part.component[graph.to])).sum())


def _changes(fabric: Fabric, routing: Routing, loop: CreditLoop) -> Iterator[tuple[EntryChange, ...]]:
    """Yield sets of entry changes.  Each set removes one dependency of a credit loop.

    A dependency leads from a first channel to a second channel.  All entries of a set belong to one switch.  For each
    dependency, the sets for the switch where the first channel begins come first.  The sets for the switch where the
    second channel begins follow.
    """
    turns = loop.turns
    for here, following in zip(turns, [*turns[1:], turns[0]], strict=True):
        lids = lids_of_dependency(fabric, routing, (here.channel, here.vl), (following.channel, following.vl))
        for turn in (here, following):
            switch = int(fabric.channels.src[turn.channel])
            others = {lid: _other_ports(fabric, routing.lft, switch, lid) for lid in lids}
            if all(others.values()):
                for rank in range(max(map(len, others.values()))):
                    yield tuple(ports[min(rank, len(ports) - 1)] for ports in others.values())


def _other_ports(fabric: Fabric, lft: Lfts, switch: int, lid: int) -> list[EntryChange]:
    """Return the possible changes of one LFT entry: to each other out-port by which the LID is still delivered.

    Changes with the shortest paths come first.
    """
    channels, port = fabric.channels, int(lft[switch, lid])
    ports: Mapping[int, int] = {
        int(channels.port[c]): int(channels.dst[c]) for c in np.flatnonzero(channels.src == switch).tolist()
    }
    own = _hops(fabric, lft, switch, lid, without=-1)
    if own is None or port not in ports:
        return []
    found = [
        EntryChange(switch, lid, port, other, 1 + hops - own)
        for other, hops in ((other, _hops(fabric, lft, peer, lid, without=switch)) for other, peer in ports.items())
        if other != port and hops is not None
    ]
    return sorted(found, key=lambda change: (change.hops, change.new_port))


def _hops(fabric: Fabric, lft: Lfts, switch: int, lid: int, *, without: int) -> int | None:
    """Return the number of hops between switches on the path to a LID; None if the path leads through the switch
    ``without``, or does not deliver.
    """
    channels, target = fabric.channels, int(fabric.lids.switch[lid])
    for hops in range(fabric.switches):
        if switch == without:
            return None
        if switch == target:
            return hops
        channel = int(channels.at_port[switch, lft[switch, lid]])
        if channel < 0:
            return None
        switch = int(channels.dst[channel])
    return None
