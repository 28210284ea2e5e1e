"""Run one case of a scenario file, and compare its figures with the expected figures."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from routing.deadlock.proof import prove
from routing.deadlock.waitfor import WaitFor
from routing.errors import BrokenPromise, FalseCertificate, InputError, RoutingError
from routing.simulate.adaptive_cases import run_adaptive
from routing.simulate.case_output import CaseOutput, Series, tables_stated
from routing.simulate.detection_cases import run_detection
from routing.simulate.graphs import run_graph
from routing.simulate.message_types import run_message_types
from routing.simulate.network import Network
from routing.simulate.packets import run_lock_times, run_packets, run_seeds, run_shifts
from routing.simulate.pause_cases import run_pauses
from routing.simulate.request_grant_cases import run_request_grant
from routing.simulate.scenario import Case, Scenario
from routing.simulate.scenario_fabric import scenario_fabric, scenario_routing
from routing.simulate.scenario_setup import build_network_for, flows_of
from routing.simulate.table_changes import flow_sets
from routing.simulate.workload_cases import run_workload

__all__ = ["CASE_RUNNERS", "CaseOutput", "Result", "Series", "compare_with_expected", "run_case"]

TOLERANCE = 0.03
BOUNDS: tuple[tuple[str, Callable[[Any, Any], bool]], ...] = (("at_least_", operator.ge), ("at_most_", operator.le))


@dataclass(frozen=True)
class Result:
    """Result of one case of a scenario file, compared with its expectations.

    Attributes
    ----------
    scenario, case
        Names of the scenario and the case.
    stated
        Settings by name that influence the result and are printed with it, such as the arbitration, the size of the
        buffers and the seed.
    found
        Measured figures by name.
    expected
        Expected figures by name, as the case states them.
    wrong
        One line for each expectation that was not met.
    series
        Time series for charts; None if the case has no time series.
    events
        Log of the run: time (in packet times) and text of each drop and each action of a deadlock breaker.
    origin, chosen
        Texts of the case: the origin of the expected figures, and the settings that were chosen so that the simulation
        gives these figures.
    """

    scenario: str
    case: str
    stated: Mapping[str, Any]
    found: Mapping[str, Any]
    expected: Mapping[str, Any]
    wrong: tuple[str, ...]
    series: Series | None = field(default=None, compare=False)
    events: tuple[tuple[float, str], ...] = ()
    origin: str | None = None
    chosen: str = ""

    @property
    def right(self) -> bool:
        """Return whether all figures of the result agree with the expected figures of the simulation case."""
        return not self.wrong


def _close(found: float, wanted: float, tolerance: float) -> bool:
    """Return whether a measured number equals the expected number within a relative tolerance."""
    return math.isclose(found, wanted, rel_tol=tolerance, abs_tol=tolerance * 0.01)


def _differs(name: str, found: Any, wanted: Any, tolerance: float) -> str | None:
    """Return a line that states the measured and the expected value of a figure, or None if the two agree.

    ``name`` is the name of the figure, and ``tolerance`` the relative difference up to which numbers agree.
    """
    if isinstance(wanted, dict):
        lines = [
            _differs(f"{name} of {key}", found.get(key) if isinstance(found, dict) else None, value, tolerance)
            for key, value in wanted.items()
        ]
        return "; ".join(line for line in lines if line) or None
    if found is None:
        return f"{name}: nothing was found, expected {wanted}"
    numbers = isinstance(wanted, int | float) and not isinstance(wanted, bool) and isinstance(found, int | float)
    exact = isinstance(wanted, int) and isinstance(found, int)
    same = _close(found, wanted, tolerance) if numbers and not exact else found == wanted
    return None if same else f"{name} is {found}, expected {wanted}"


def compare_with_expected(found: Mapping[str, Any], expect: Mapping[str, Any]) -> tuple[str, ...]:
    """Compare the figures of a run with the expected figures, and return one line for each expectation that was not
    met.

    An expectation ``at_least_x`` or ``at_most_x`` is a bound on figure x.
    """
    tolerance = float(expect.get("tolerance", TOLERANCE))
    wrong: list[str] = []
    for name, wanted in expect.items():
        if name == "tolerance":
            continue
        for prefix, fits in BOUNDS:
            if name.startswith(prefix):
                value = found.get(name.removeprefix(prefix))
                if not isinstance(value, int | float) or not fits(value, wanted):
                    wrong.append(
                        f"{name.removeprefix(prefix)} is {value}, expected {prefix[:-1].replace('_', ' ')} {wanted}"
                    )
                break
        else:
            line = _differs(name, found.get(name), wanted, tolerance)
            wrong += [line] if line else []
    return tuple(wrong)


def run_tables(scenario: Scenario, case: Case) -> CaseOutput:
    """Check whether the tables of a simulation case have a credit loop."""
    fabric = scenario_fabric(scenario)
    routing = scenario_routing(scenario, case, fabric, flows_of(scenario, case))
    loop = prove(fabric, routing, threads=1).credit_loop
    found = {"credit_loop": loop is not None, "loop": [] if loop is None else loop.describe()}
    return CaseOutput(found, tables_stated(routing))


def _ring(waits: WaitFor, network: Network) -> str:
    """Return the switches along one cycle of the channel dependencies as text; "" if there is no cycle.

    ``waits`` is the graph of the dependencies.  The cycle is found by following dependencies, beginning at the virtual
    channel with the lowest number that is on a cycle.
    """
    on = set(np.flatnonzero(waits.on_cycle).tolist())
    after = {a: b for a, b in zip(waits.waiter.tolist(), waits.awaited.tolist(), strict=True) if a in on and b in on
             and waits.component[a] == waits.component[b]}  # fmt: skip
    vc, seen = min(on, default=-1), list[int]()
    while vc >= 0 and vc not in seen:
        seen.append(vc)
        vc = after[vc]
    names = [network.path_name(at // network.vls).split(" > ") for at in seen[seen.index(vc) :]] if seen else []
    return " > ".join([*(near for near, _ in names), *(far for _, far in names[-1:])])


def run_dependencies(scenario: Scenario, case: Case) -> CaseOutput:
    """Compute the channel dependencies of the flows' paths, and check whether the dependencies have a cycle.

    The key ``tables`` of the simulation case selects the paths.  ``"old"`` means the initial paths, ``"new"`` the paths
    after a change of tables, and ``"both"`` the union of the two.
    """
    flows = flows_of(scenario, case)
    which = str(case.table.get("tables", "old"))
    network, pairs = None, set[tuple[int, int]]()
    for chosen in scenario.choice("set of tables", which, flow_sets(flows)):
        network, traffic = build_network_for(scenario, case, chosen)
        pairs.update(
            pair for flow in traffic.flows for lid in flow.destinations
            for pair in pairwise(network.vcs_of_path(flow.source, lid))
        )  # fmt: skip
    assert network is not None
    ordered = sorted(pairs)
    vcs = network.channels * network.vls
    waits = WaitFor.of([a for a, _ in ordered], [b for _, b in ordered], vcs)
    loop = np.flatnonzero(waits.on_cycle).tolist()
    found = {
        "credit_loop": bool(loop),
        "loop": [network.vc_name(vc) for vc in loop],
        "ring": _ring(waits, network),
        "virtual_channels_on_loops": len(loop),
        "components": sorted((int(n) for n in np.bincount(waits.component[loop]) if n), reverse=True) if loop else [],
        "virtual_channels": len({vc for pair in ordered for vc in pair}),
        "dependencies": len(ordered),
    }
    return CaseOutput(found, tables_stated(network.routing) | ({"of": which} if which != "old" else {}))


CaseRunner = Callable[[Scenario, Case], CaseOutput]
CASE_RUNNERS: Mapping[str, CaseRunner] = {
    "packets": run_packets,
    "lock-times": run_lock_times,
    "seeds": run_seeds,
    "shifts": run_shifts,
    "workload": run_workload,
    "detection": run_detection,
    "adaptive": run_adaptive,
    "request-grant": run_request_grant,
    "pauses": run_pauses,
    "graph": run_graph,
    "dependencies": run_dependencies,
    "message-types": run_message_types,
    "tables": run_tables,
}
"""Functions that run a case of a scenario file, by the value of the case's key ``what``."""


def run_case(scenario: Scenario, case: Case) -> Result:
    """Run one case of a scenario file.

    Raises
    ------
    ParseError
        The scenario cannot be run.
    """
    try:
        player = scenario.choice("thing to do", case.what, CASE_RUNNERS)
        output = player(scenario, case)
    except InputError as error:
        if error.line is not None:
            raise
        # The error states no line of the scenario file, so its message gets the location of the case.
        raise scenario.error(error.problem, *case.where, remedy=error.remedy) from None
    # These exceptions mean that an engine has made wrong tables, or that stored tables do not fit their certificate.
    # The scenario file is not the cause, so the exceptions must not become error messages about this file.
    except (BrokenPromise, FalseCertificate):
        raise
    except RoutingError as error:
        raise scenario.error(f"case {case.name!r}: {error}", *case.where, remedy="change what the case runs") from None
    unknown = [
        name for name in case.expect
        if name != "tolerance" and name.removeprefix("at_least_").removeprefix("at_most_") not in output.found
    ]  # fmt: skip
    if unknown:
        raise scenario.error(
            f"case {case.name!r} expects {unknown[0]!r}",
            *case.where,
            "expect",
            unknown[0],
            remedy=f"{case.what} finds {', '.join(output.found)}",
        )
    wrong = compare_with_expected(output.found, case.expect)
    return Result(
        scenario.name,
        case.name,
        output.stated,
        output.found,
        case.expect,
        wrong,
        output.series,
        output.events,
        case.origin,
        case.chosen,
    )
