"""Port groups for adaptive routing, with a proof that packets which follow these groups cannot deadlock.

A switch with adaptive routing has a port group for each LID, and may send a packet to this LID by any port of the
group.  A group has the port of the forwarding table, and further ports that lead nearer to the LID.  Switches choose a
port by one of two rules:

- ``Rule.COMMIT``: the switch chooses a port once, and the packet may have to wait for this port.  There is no deadlock
  if the dependencies of all choices together are acyclic (W. J. Dally, C. L. Seitz, IEEE Trans. Computers C-36, 1987).
- ``Rule.ESCAPE``: a packet that waits takes whichever port of its group has room first.  The paths of the forwarding
  table are then the escape paths of J. Duato (IEEE Trans. Parallel and Distributed Systems 4, 1993).  A buffer of
  InfiniBand takes whole packets, so a waiting packet occupies only one buffer.  So a waiting packet has one dependency:
  from the channel by which it came to the channel that the forwarding table names.  If the dependencies of all such
  packets are acyclic, a deadlock is impossible.

The published theory lets an escape packet change its VL.  In InfiniBand the SL of a packet fixes its VL, so adaptive
packets and escape packets share their VLs here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.port_groups import GroupTrace, grow_port_groups, trace_port_groups
from routing.cdg.acyclic import AcyclicCdg, Cdg
from routing.cdg.injection import InjectionPoints, injected_traffic
from routing.cdg.trace import uniform_sl2vl, vl_bits
from routing.deadlock.proof import Proof
from routing.errors import RoutingError, TableError
from routing.fabric import Fabric
from routing.port_groups import PortGroups, Rule, grouped_lids
from routing.tables import Routing


@dataclass(frozen=True, eq=False, repr=False)
class GroupProof:
    """Verdict on port groups.

    Attributes
    ----------
    trace
        The CDG edges of packets that follow the groups, the numbers of groups and ports, and the errors of the groups.
    cdg
        The dependencies of all packets with a topological order, which proves that no deadlock is possible; None if the
        dependencies have a cycle.
    cycle
        A shortest cycle of dependencies, as pairs (channel, VL); empty if there is no cycle.
    """

    trace: GroupTrace
    cdg: AcyclicCdg | None
    cycle: tuple[tuple[int, int], ...]

    @property
    def certified(self) -> bool:
        """Return whether packets that follow the port groups always arrive, and cannot deadlock."""
        found = self.trace
        return self.cdg is not None and found.dead_ends == found.without_table == found.circulating == 0


def compute_port_groups(fabric: Fabric, routing: Routing, proof: Proof, rule: Rule = Rule.COMMIT) -> PortGroups:
    """Extend tables by port groups that are as large as freedom from deadlock allows.

    Every port of a group leads nearer to the LID: to a switch whose path in the tables has fewer hops.  So packets
    cannot circulate, and no path has more hops than the tables' path from the same switch.  Groups for LIDs of switches
    have only the port of the forwarding table.

    Parameters
    ----------
    fabric, routing, proof
        The fabric, its tables, and their proof.  The groups are made for the traffic that the certificate of the proof
        covers.
    rule
        What a switch does with a packet that has to wait.

    Raises
    ------
    RoutingError
        The tables have a credit loop.
    TableError
        VLs depend on the port (SL2VL tables differ).

    Notes
    -----
    Ports are added one by one, LID by LID.  A port is left out if its dependencies would close a cycle with the
    dependencies of the ports that were added before.  So the result depends on the order of the LIDs.  Cost: O(L C)
    candidate ports, each with a search in a part of the CDG.
    """
    if proof.certificate is None or proof.cdg is None:
        _uniform_row(routing)
        raise RoutingError(
            "the tables have a credit loop, so no port group can be proven (ibnue route computes others)"
        )
    lids = grouped_lids(fabric)
    endport = fabric.lids.endport[lids] >= 0
    order = _by_turns(fabric, lids[endport])
    targets = np.concatenate([order, lids[~endport]])
    member = grow_port_groups(
        fabric,
        routing.lft,
        targets,
        entering_vls(fabric, routing, proof, targets),
        proof.cdg.order,
        grown=len(order),
        commit=rule is Rule.COMMIT,
    )
    return PortGroups(fabric, routing, rule, lids, member[np.argsort(targets, kind="stable")])


def prove_port_groups(groups: PortGroups, proof: Proof, *, threads: int = 2) -> GroupProof:
    """Check that packets which follow port groups always arrive, and cannot deadlock.

    The check uses only the groups, the tables, and the scope and strength of the tables' certificate.  The check shares
    no code with :func:`compute_port_groups`, and groups of any origin can be checked.

    Parameters
    ----------
    groups
        The port groups.
    proof
        Proof of the tables.  The check covers the traffic that the certificate of the proof covers.
    threads
        Worker threads; the result is the same with any number.

    Raises
    ------
    TableError
        VLs depend on the port (SL2VL tables differ).

    Notes
    -----
    Cost: O(L C).
    """
    fabric, routing = groups.fabric, groups.routing
    enter = entering_vls(fabric, routing, proof, groups.lids)
    commit = groups.rule is Rule.COMMIT
    trace = trace_port_groups(fabric, routing.lft, groups.lids, enter, groups.member, commit=commit, threads=threads)
    cdg = Cdg(fabric, trace.masks)
    acyclic = cdg.sorted(max(1, int(np.bitwise_or.reduce(trace.masks, initial=0)).bit_length()), threads=threads)
    cycle = () if acyclic is not None else tuple(cdg.graph().shortest_cycle(fabric))
    return GroupProof(trace, acyclic, cycle)


def entering_vls(fabric: Fabric, routing: Routing, proof: Proof, lids: npt.NDArray[np.int32]) -> npt.NDArray[np.uint16]:
    """Return uint16[T, S], the VLs (as bits) of packets that enter at each switch towards each of T LIDs.

    Packets are left out if the proof's certificate does not cover them, or if the tables do not deliver them.

    Raises
    ------
    TableError
        VLs depend on the port.
    """
    bits, entries = vl_bits(_uniform_row(routing)), InjectionPoints.by_switch(fabric)
    enter = np.zeros((len(lids), fabric.switches), np.uint16)
    for kept, pairs in ((fabric.lids.port[lids] > 0, True), (fabric.lids.port[lids] == 0, proof.scope == "all")):
        columns = lids[kept].astype(np.int64)
        requests, replies = injected_traffic(
            fabric, entries, [routing.service_levels], bits, columns, switch_pairs=pairs
        )
        enter[kept] = requests | replies if proof.strength == "reversible" else requests
    delivered = proof.hops[:, lids].T != 255
    return np.where(delivered, enter, np.uint16(0))


def _uniform_row(routing: Routing) -> npt.NDArray[np.uint8]:
    row = uniform_sl2vl(routing)
    if row is None:
        raise TableError(
            "SL2VL tables differ between ports, so that the VL of a packet depends on its path",
            remedy="use an engine with one SL2VL table, such as nue or updn",
        )
    return row


def _by_turns(fabric: Fabric, lids: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the LIDs in a new order: one LID of each switch, then a second LID of each switch, and so on."""
    switch = fabric.lids.switch[lids]
    by_switch = np.argsort(switch, kind="stable")
    start = np.searchsorted(switch[by_switch], switch[by_switch])
    turn = np.empty(len(lids), np.int64)
    turn[by_switch] = np.arange(len(lids)) - start
    return lids[np.lexsort((switch, turn))]
