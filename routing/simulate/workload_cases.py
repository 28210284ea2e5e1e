"""Run cases of a scenario file that simulate workloads: collective operations and trace files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from routing.fabric import Fabric
from routing.simulate.adaptive_cases import simulation_of_case
from routing.simulate.case_output import CaseOutput, tables_stated
from routing.simulate.events import describe
from routing.simulate.goal import read_goal
from routing.simulate.mechanisms.tasks import Tasks
from routing.simulate.network import BLOCK
from routing.simulate.packets import settings_of
from routing.simulate.scenario import Case, Scenario
from routing.simulate.scenario_fabric import relative_to, scenario_fabric, scenario_routing
from routing.simulate.scenario_setup import case_network, measurement_window, mechanisms_of, packet_ticks
from routing.simulate.workload import Workload, all_to_all_v, halving_doubling, read_trace, ring_allreduce

Maker = Callable[[Fabric, Mapping[str, Any]], Workload]
COLLECTIVES: Mapping[str, Maker] = {
    "ring-allreduce": lambda fabric, table: ring_allreduce(fabric, table["bytes"]),
    "halving-doubling": lambda fabric, table: halving_doubling(fabric, table["bytes"]),
    "all-to-all-v": lambda fabric, table: all_to_all_v(fabric, table["bytes"], float(table.get("skew", 0))),
}
"""Functions that make the messages of a collective operation, by the name that a scenario uses."""
PERCENTILES = (50, 90, 99)


def run_workload(scenario: Scenario, case: Case) -> CaseOutput:
    """Simulate a workload until all of its messages have arrived, and return their completion times.

    The completion time of a message is the time from the tick at which it is ready until it has arrived completely.
    """
    fabric, packet = scenario_fabric(scenario), packet_ticks(scenario)
    routing = scenario_routing(scenario, case, fabric, ())
    network = case_network(scenario, case, fabric, routing)
    workload = _workload(scenario, case, fabric)
    mtu = scenario.tables["timing"].get("packet", 2048)
    tasks, mechanisms = Tasks(workload), mechanisms_of(scenario, case)
    simulation = simulation_of_case(scenario, case, network, workload.traffic(mtu), [tasks, *mechanisms])
    _, until = measurement_window(scenario, case)
    simulation.run(until)
    ready, arrived = tasks.times(simulation)
    done = arrived >= 0
    spent = (arrived - ready)[done] / packet
    total = sum(message.bytes for message in workload.messages)
    last = int(arrived.max(initial=0))
    found = {
        "outcome": "deadlock" if simulation.deadlocks() else "progress" if done.all() else "starvation",
        "messages": len(workload.messages),
        "unfinished": int((~done).sum()),
        "time": round(last / packet, 3) if done.all() else None,
        "rate": round(total / BLOCK / last / len(simulation.traffic.flows), 4) if done.all() else None,
        "completion": {
            **{f"p{share}": round(float(np.percentile(spent, share, method="higher")), 3) for share in PERCENTILES},
            "mean": round(float(spent.mean()), 3),
            "max": round(float(spent.max()), 3),
        } if len(spent) else {},
        "dropped": simulation.totals()["dropped"],
    }  # fmt: skip
    for mechanism in mechanisms:
        found |= mechanism.figures(simulation)
    stated = settings_of(scenario, case, simulation) | {"workload": case.table["workload"], **tables_stated(routing)}
    events = tuple((round(tick / packet, 2), text) for tick, text in describe(simulation, 1000))
    return CaseOutput(found, stated, None, events)


def _workload(scenario: Scenario, case: Case, fabric: Fabric) -> Workload:
    """Return the messages of a simulation case, which come from a collective operation or from a trace file."""
    table, where = case.table.get("workload", {}), (*case.where, "workload")
    if ("collective" in table) == ("trace" in table):
        raise scenario.error(
            f"case {case.name!r} needs a collective operation or a trace", *case.where,
            remedy=f'give it workload = {{ collective = "{next(iter(COLLECTIVES))}", bytes = 65536 }}',
        )  # fmt: skip
    if "trace" in table:
        with scenario.placed(*where, "trace"):
            path = relative_to(scenario, table["trace"])
            return (read_goal if path.suffix == ".goal" else read_trace)(path, fabric)
    maker = scenario.choice("collective operation", table["collective"], COLLECTIVES)
    if "bytes" not in table:
        raise scenario.error(f"the collective operation of case {case.name!r} needs bytes", *where)
    with scenario.placed(*where, "collective"):
        return maker(fabric, table)
