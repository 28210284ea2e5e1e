"""Define the plan of a simulation run of a scenario: network, traffic, mechanisms, and actions during the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from routing.simulate.mechanisms.base import CaseMechanism, Mechanism
from routing.simulate.network import Network
from routing.simulate.run import Simulation
from routing.simulate.sm_watch import SmWatch
from routing.simulate.traffic import Traffic

Do = Callable[[Simulation], None]
Lids = npt.NDArray[np.bool_]


class Action(NamedTuple):
    """Action on a simulation at a given tick, such as writing new tables.

    Attributes
    ----------
    tick
        Tick at which the action takes place.
    do
        Function to call with the simulation.
    drained
        bool[L]: LIDs that should be drained at this tick, so that no packet to them is in flight.  None: the action
        requires no drained LIDs.
    """

    tick: int
    do: Do
    drained: Lids | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """Complete input of a simulation run.

    Attributes
    ----------
    network, traffic
        Network with its initial tables, and the traffic.
    owner
        For each flow of the traffic, the index of its name in ``names``.  Several flows can have the same name.
    names
        Names of flows, by which results are reported: the name in the scenario file, the name of the end port that
        sends, or the table of the mechanism that adds the flow.
    actions
        Actions during the run, in order of time.
    mechanisms
        Mechanisms to attach to the simulation.
    change
        Ticks of the first and the last write of a change of tables.  None: the run has no change of tables.
    watch
        Simulated subnet manager that some of the actions call.  None: no subnet manager is simulated.
    """

    network: Network
    traffic: Traffic
    owner: tuple[int, ...]
    names: tuple[str, ...]
    actions: tuple[Action, ...] = ()
    mechanisms: tuple[Mechanism, ...] = ()
    change: tuple[int, int] | None = None
    watch: SmWatch | None = None


def with_case_mechanisms(plan: Plan, mechanisms: Sequence[CaseMechanism]) -> Plan:
    """Return a plan with mechanisms of a case.  If a mechanism adds flows, their name is that of its table."""
    for mechanism in mechanisms:
        traffic = mechanism.extended_traffic(plan.network, plan.traffic)
        added = len(traffic.flows) - len(plan.traffic.flows)
        if added:
            owner = (*plan.owner, *[len(plan.names)] * added)
            plan = replace(plan, traffic=traffic, owner=owner, names=(*plan.names, mechanism.table))
    return replace(plan, mechanisms=(*plan.mechanisms, *mechanisms))
