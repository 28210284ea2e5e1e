"""Properties of the ports of a fabric by which rules select them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing.cdg.trace import dependency_graph
from routing.deadlock.waitfor import WaitFor
from routing.fabric import Fabric
from routing.policy.model import OPENSM_HOQ, OPENSM_LEAF_HOQ, Role
from routing.tables import Routing

PORTS = 256


@dataclass(frozen=True, eq=False)
class PortFacts:
    """Properties of the ports of switches.

    Attributes
    ----------
    exists, cabled
        bool[S, 256]: whether the switch has that external port; whether a cable is connected to it.
    role
        bool[S, 256] by role, for cabled ports only.  "leaf" and "core" describe the switch (with or without end ports),
        "ca-facing" and "switch-facing" the cable, and "loop" the channel out of the port.
    rate, lane
        float64[S, 256], data rate of the link and signalling rate of one of its physical lanes, in Gb/s; 0 without a
        cable.
    loops_known
        Whether tables were given, so that "loop" is known.
    """

    exists: npt.NDArray[np.bool_]
    cabled: npt.NDArray[np.bool_]
    role: Mapping[Role, npt.NDArray[np.bool_]]
    rate: npt.NDArray[np.float64]
    lane: npt.NDArray[np.float64]
    loops_known: bool

    @cached_property
    def opensm_hoq(self) -> npt.NDArray[np.int16]:
        """int16[S, 256], OpenSM's default of HOQLife, which differs between ports to CAs or routers and other ports."""
        return np.where(self.role["ca-facing"], OPENSM_LEAF_HOQ, OPENSM_HOQ).astype(np.int16)


def loop_channels(fabric: Fabric, routing: Routing, *, threads: int = 2) -> npt.NDArray[np.bool_]:
    """Return bool[C]: channels on a credit loop of the tables on any VL (requests from or to CAs and routers)."""
    graph = dependency_graph(fabric, routing, switch_pairs=False, threads=threads)
    return np.asarray(WaitFor.of_dependencies(graph).on_cycle.reshape(graph.vls, graph.channels).any(axis=0))


def port_facts(fabric: Fabric, on_loop: npt.NDArray[np.bool_] | None = None) -> PortFacts:
    """Return the properties of all ports; ``on_loop``: see :func:`loop_channels`, None without tables.

    Cost: O(S + K).
    """
    shape = (fabric.switches, PORTS)
    exists = np.arange(PORTS) <= fabric.switch_ports[:, None]
    exists[:, 0] = False
    cabled, to_switch = np.zeros(shape, bool), np.zeros(shape, bool)
    rate, lane = np.zeros(shape), np.zeros(shape)
    for near, far in ((0, 1), (1, 0)):
        cables = np.flatnonzero(fabric.link_device[:, near] < fabric.switches)
        at = fabric.link_device[cables, near], fabric.link_port[cables, near]
        cabled[at] = True
        to_switch[at] = fabric.link_device[cables, far] < fabric.switches
        rate[at], lane[at] = fabric.link_capacity[cables], fabric.link_speed[cables]
    loop, channels = np.zeros(shape, bool), fabric.channels
    if on_loop is not None:
        loop[channels.src[on_loop], channels.port[on_loop]] = True
    leaf = cabled & (fabric.senders_at > 0)[:, None]
    role: dict[Role, npt.NDArray[np.bool_]] = {
        "leaf": leaf,
        "core": cabled & ~leaf,
        "ca-facing": cabled & ~to_switch,
        "switch-facing": cabled & to_switch,
        "loop": loop,
    }
    return PortFacts(exists, cabled, role, rate, lane, on_loop is not None)
