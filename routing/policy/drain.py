"""How long a packet at the head of a queue may have to wait although nothing is deadlocked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.policy.facts import PORTS
from routing.tables import Routing


def drain_times(
    fabric: Fabric, routing: Routing, *, packet_bytes: int = 4096, burst_bytes: int = 65536
) -> npt.NDArray[np.float64]:
    """Worst-case waiting time at the head of every port of switches, in seconds.

    The worst case is that all CAs and routers send to one destination, and that switches serve their inputs in turn.
    Two bounds hold then, and the smaller one counts:

    - The buffer that channel c leads to, full of packets for destination d, moves on once every ``g(c, d)`` packet
      times: the product, over the switches from there to d, of the number of inputs that send to d.
      The up to ``n(c)`` inputs that use c take turns for that buffer, so that the head of each waits at most ``n(c)`` x
      the largest ``g(c, d)`` packet times, and one more for the packet that is just being sent.  It grows with every
      switch on the way: service in turn is that unfair.
    - When everybody has sent a burst, it has all arrived after as many times a burst takes.

    The packet time is that of the slowest link on the ways to the destination: it paces the buffers before it, and a
    packet that comes in slowly holds up the link by which it leaves.

    Parameters
    ----------
    fabric, routing
        What to look at.
    packet_bytes
        The largest packet: the MTU and its headers.
    burst_bytes
        What each sends at once.

    Returns
    -------
    float64[S, 256], 0 where nothing is cabled or nobody sends.  Routes that do not arrive do not count.

    Notes
    -----
    Cost: O(S) for every LID and hop of its distance; 1000 switches with 4000 CAs take seconds.  Credit loops are not
    looked at: the figure is what a port must be able to wait *without* one.
    """
    lids, channels = fabric.lids, fabric.channels
    width = 1 + int(fabric.switch_ports.max(initial=0))
    turns = np.zeros((fabric.switches, width, width), bool)  # switch, in-port, out-port
    waits, bursts, packets = (np.zeros((fabric.switches, PORTS)) for _ in range(3))
    for lid in np.flatnonzero((lids.switch >= 0) & (lids.endport >= 0)).tolist():
        target, last = int(lids.switch[lid]), int(lids.port[lid])
        tree = _Tree(fabric, routing, lid)
        here = np.flatnonzero(tree.sends & (tree.level > 0))
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
        out = np.where(tree.level > 0, routing.lft[:, lid], last)
        turns[channels.dst[via], channels.dst_port[via], out[channels.dst[via]]] = True
        at, by = fabric.endport_switch[tree.local], fabric.endport_switch_port[tree.local]
        turns[at, by, out[at]] = True
    inputs = turns.sum(axis=1)
    waits[:, :width] *= inputs
    return np.minimum(waits + packets, bursts)


class _Tree:
    """Everybody's way to one LID.

    ``level`` is the distance in channels (-1: does not arrive), ``channel`` the next one, ``sends`` whether anything
    comes from there or from behind, ``local`` the end ports that send, ``gap`` the packet times of the last link
    between two packets of one input.
    """

    def __init__(self, fabric: Fabric, routing: Routing, lid: int) -> None:
        rows, lids, channels = np.arange(fabric.switches), fabric.lids, fabric.channels
        target = int(lids.switch[lid])
        self.channel = channels.at_port[rows, routing.lft[:, lid]]
        onward = (self.channel >= 0) & (rows != target)
        following = np.where(onward, channels.dst[np.where(onward, self.channel, 0)] if len(channels) else rows, rows)
        self.level = np.full(fabric.switches, -1)
        self.level[target] = 0 if int(routing.lft[target, lid]) == int(lids.port[lid]) else -1
        for depth in range(1, fabric.switches):
            reached = onward & (self.level < 0) & (self.level[following] == depth - 1)
            if not reached.any():
                break
            self.level[reached] = depth
        attached = fabric.endport_switch
        self.local = np.flatnonzero((attached >= 0) & (np.arange(fabric.endports) != lids.endport[lid]))
        self.local = self.local[self.level[attached[self.local]] >= 0]
        feeding = np.bincount(attached[self.local], minlength=fabric.switches)
        deepest = int(self.level.max(initial=0))
        for depth in range(deepest, 0, -1):
            here = np.flatnonzero((self.level == depth) & (feeding > 0))
            feeding += np.bincount(following[here], minlength=fabric.switches)
        self.sends = feeding > 0
        self.gap = np.where(self.level == 0, feeding, 0).astype(np.float64)
        for depth in range(1, deepest + 1):
            here = np.flatnonzero(self.level == depth)
            self.gap[here] = feeding[here] * self.gap[following[here]]
