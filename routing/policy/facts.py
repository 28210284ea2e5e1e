"""Collect properties of switch ports by which policy rules select ports, such as their role and link rate."""

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
    """Properties of all ports of all switches, by which policy rules select ports.

    Attributes
    ----------
    exists, cabled
        bool[S, 256]: whether the switch has this external port, and whether the port has a cable.
    role
        bool[S, 256] for each role.  Only cabled ports have roles.  "leaf": the port's switch has counted end ports.
        "core": the port's switch has no counted end ports.  "ca-facing": the cable leads to a CA or router.
        "switch-facing": the cable leads to a switch.  "loop": the channel out of the port is on a credit loop.
    rate, lane_speed
        float64[S, 256] in Gb/s: data rate of the link, and signalling rate of one of its physical lanes.  0 without a
        cable.
    loops_known
        Whether routing tables were given, so that the role "loop" is known.
    """

    exists: npt.NDArray[np.bool_]
    cabled: npt.NDArray[np.bool_]
    role: Mapping[Role, npt.NDArray[np.bool_]]
    rate: npt.NDArray[np.float64]
    lane_speed: npt.NDArray[np.float64]
    loops_known: bool

    @cached_property
    def opensm_hoq(self) -> npt.NDArray[np.int16]:
        """int16[S, 256]: OpenSM's default of HOQLife, which is shorter for ports to CAs and routers than for other
        ports.
        """
        return np.where(self.role["ca-facing"], OPENSM_LEAF_HOQ, OPENSM_HOQ).astype(np.int16)


def loop_channels(fabric: Fabric, routing: Routing, *, threads: int = 2) -> npt.NDArray[np.bool_]:
    """Return whether each channel is on a credit loop of the tables on some VL, bool[C].

    Only requests from or to a CA or router are considered.  Replies and switch-to-switch traffic are ignored.
    """
    graph = dependency_graph(fabric, routing, switch_pairs=False, threads=threads)
    return np.asarray(WaitFor.of_dependencies(graph).on_cycle.reshape(graph.vls, graph.channels).any(axis=0))


def port_facts(fabric: Fabric, on_loop: npt.NDArray[np.bool_] | None = None) -> PortFacts:
    """Collect the properties of all switch ports.

    ``on_loop`` is the result of :func:`loop_channels`, or None if there are no tables.
    Cost: O(S + K) for S switches and K cables.
    """
    shape = (fabric.switches, PORTS)
    exists = np.arange(PORTS) <= fabric.switch_ports[:, None]
    exists[:, 0] = False
    cabled, to_switch = np.zeros(shape, bool), np.zeros(shape, bool)
    rate, lane_speed = np.zeros(shape), np.zeros(shape)
    for near, far in ((0, 1), (1, 0)):
        cables = np.flatnonzero(fabric.link_device[:, near] < fabric.switches)
        at = fabric.link_device[cables, near], fabric.link_port[cables, near]
        cabled[at] = True
        to_switch[at] = fabric.link_device[cables, far] < fabric.switches
        rate[at], lane_speed[at] = fabric.link_capacity[cables], fabric.link_speed[cables]
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
    return PortFacts(exists, cabled, role, rate, lane_speed, on_loop is not None)
