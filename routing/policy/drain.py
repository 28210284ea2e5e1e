"""Compute upper bounds of the time that a packet waits at the head of a queue if there is no deadlock.

The bounds are needed to choose head-of-queue lifetimes that drop packets only in a deadlock.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.policy.facts import PORTS
from routing.tables import Routing


def drain_times(
    fabric: Fabric, routing: Routing, *, packet_bytes: int = 4096, burst_bytes: int = 65536
) -> npt.NDArray[np.float64]:
    """Compute how long a packet can wait at the head of a queue of each switch port without a deadlock, in seconds.

    In the worst case all CAs and routers send to one destination, and switches serve their inputs round-robin.  Two
    upper bounds hold for this case, and the result is the smaller one:

    - The first bound assumes that the senders never stop, so that all buffers are full.  Let c be the channel out of
      the port, and d a destination whose paths use c.  At each switch on the path from the end of c to d, several
      inputs have packets to d, and send in turn.  Let ``g(c, d)`` be the product of the numbers of these inputs over
      all these switches.  Then the buffer at the end of c forwards one packet in ``g(c, d)`` packet times.  In the
      port's own switch, ``n(c)`` inputs send packets over c in turn.  So a packet waits at most ``n(c)`` times the
      largest ``g(c, d)``, in packet times.  One more packet time is added for the packet in transmission.
    - The second bound assumes that every sender sends only one burst.  Then all bursts have arrived after (number of
      senders) x (time of a burst).

    The packet time is the time of a packet on the slowest link of the paths to the destination.  This link limits the
    rate of the buffers upstream.

    Parameters
    ----------
    fabric, routing
        Fabric and its routing tables.
    packet_bytes
        Size in bytes of the largest packet: the MTU and the headers.
    burst_bytes
        Number of bytes that each sender sends at once.

    Returns
    -------
    float64[S, 256]
        Waiting times in seconds.  The times are 0 for ports without a cable or without traffic.  Routes that do not
        reach their destination LID are ignored.

    Notes
    -----
    Cost: O(S) for every LID and every hop of distance from it.  1000 switches with 4000 CAs take seconds.  Credit loops
    are not considered: the result is the time that a packet may have to wait *without* a deadlock.
    """
    lids, channels = fabric.lids, fabric.channels
    width = 1 + int(fabric.switch_ports.max(initial=0))
    # turns[s, i, o] is True if packets enter switch s by port i and leave it by port o.
    turns = np.zeros((fabric.switches, width, width), bool)
    waits, bursts, packets = (np.zeros((fabric.switches, PORTS)) for _ in range(3))
    for lid in np.flatnonzero((lids.switch >= 0) & (lids.endport >= 0)).tolist():
        target, last = int(lids.switch[lid]), int(lids.port[lid])
        tree = _Tree(fabric, routing, lid)
        here = np.flatnonzero(tree.sends & (tree.hops > 0))
        via = tree.channel[here]
        ends = fabric.endport_link[[*tree.local, lids.endport[lid]]]
        slowest = min(channels.capacity[via].min(initial=np.inf), fabric.link_capacity[ends].min())
        packet = 8e-9 * packet_bytes / float(slowest)
        waits[here, channels.port[via]] = np.maximum(
            waits[here, channels.port[via]], packet * tree.gap[channels.dst[via]]
        )
        waits[target, last] = max(waits[target, last], packet)
        burst = len(tree.local) * packet * burst_bytes / packet_bytes
        packets[here, channels.port[via]] = np.maximum(packets[here, channels.port[via]], packet)
        packets[target, last] = max(packets[target, last], packet)
        bursts[here, channels.port[via]] = np.maximum(bursts[here, channels.port[via]], burst)
        bursts[target, last] = max(bursts[target, last], burst)
        out = np.where(tree.hops > 0, routing.lft[:, lid], last)
        turns[channels.dst[via], channels.dst_port[via], out[channels.dst[via]]] = True
        at, by = fabric.endport_switch[tree.local], fabric.endport_switch_port[tree.local]
        turns[at, by, out[at]] = True
    inputs = turns.sum(axis=1)
    waits[:, :width] *= inputs
    return np.minimum(waits + packets, bursts)


class _Tree:
    """Routes of all switches to one LID, with the worst-case traffic on these routes (all end ports send to the LID).

    Attributes
    ----------
    hops
        int[S]: number of channels on the route from each switch to the LID's switch.  -1: the route does not reach the
        LID.
    channel
        int[S]: first channel on the route from each switch.
    sends
        bool[S]: whether the switch sends packets to the LID, from its own end ports or from switches upstream.
    local
        Rows of the end ports that send to the LID.
    gap
        float64[S]: time between two packets to the LID that the switch forwards from one input, in packet times.  At
        this switch and at each later switch of the route, all inputs with packets to the LID send in turn.
    """

    def __init__(self, fabric: Fabric, routing: Routing, lid: int) -> None:
        rows, lids, channels = np.arange(fabric.switches), fabric.lids, fabric.channels
        target = int(lids.switch[lid])
        self.channel = channels.at_port[rows, routing.lft[:, lid]]
        onward = (self.channel >= 0) & (rows != target)
        following = np.where(onward, channels.dst[np.where(onward, self.channel, 0)] if len(channels) else rows, rows)
        self.hops = np.full(fabric.switches, -1)
        self.hops[target] = 0 if int(routing.lft[target, lid]) == int(lids.port[lid]) else -1
        for depth in range(1, fabric.switches):
            reached = onward & (self.hops < 0) & (self.hops[following] == depth - 1)
            if not reached.any():
                break
            self.hops[reached] = depth
        attached = fabric.endport_switch
        self.local = np.flatnonzero((attached >= 0) & (np.arange(fabric.endports) != lids.endport[lid]))
        self.local = self.local[self.hops[attached[self.local]] >= 0]
        feeding = np.bincount(attached[self.local], minlength=fabric.switches)
        deepest = int(self.hops.max(initial=0))
        for depth in range(deepest, 0, -1):
            here = np.flatnonzero((self.hops == depth) & (feeding > 0))
            feeding += np.bincount(following[here], minlength=fabric.switches)
        self.sends = feeding > 0
        self.gap = np.where(self.hops == 0, feeding, 0).astype(np.float64)
        for depth in range(1, deepest + 1):
            here = np.flatnonzero(self.hops == depth)
            self.gap[here] = feeding[here] * self.gap[following[here]]
