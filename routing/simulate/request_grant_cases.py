"""Run cases of a scenario file on requests and grants between the adapters of a Clos network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.simulate.case_output import CaseOutput, Series
from routing.simulate.clos import Clos, ClosTiming, blocks_of, build_clos
from routing.simulate.mechanisms.request_grant import AdapterCounts, RequestGrant, hotspot_loads, unbalanced_loads
from routing.simulate.options import Inputs, Switching
from routing.simulate.run import simulate
from routing.simulate.scenario import Case, Scenario
from routing.simulate.scenario_setup import measurement_window

RESERVES: Mapping[str, bool] = {"implicit": False, "reserve": True}
IN_BAND: Mapping[str, bool] = {"in-band": True, "out-of-band": False}
SMALL = 40
PACKETS: Mapping[str, tuple[int, float]] = {"small": (SMALL, 0.0), "bimodal": (SMALL, 0.05), "large": (9000, 0.0)}
"""Packet sizes by name: bytes of a usual packet, and the fraction of packets that have 9000 bytes instead."""
LARGE = 9000
POINTS = 200
"""Number of equal intervals of a run.  A time series has a point at the end of each interval."""


@dataclass(frozen=True)
class _Curve:
    """Figures of one simulation.

    Attributes
    ----------
    delay
        Mean delay of packets to other outputs than the hotspots, in units of the time of a small packet.
    throughput
        Throughput of the outputs that are not hotspots, as a fraction of the rate of an external line.
    hot
        Throughput of the hotspots, as a fraction of the rate of an external line.
    carried
        ``throughput`` divided by the load of the outputs that are not hotspots.
    phases
        Delay and throughput before, during and after the time in which hotspots are blocked.  Empty if hotspots are
        never blocked.
    series
        Time series of the simulation.
    """

    delay: float | None
    throughput: float
    hot: float | None
    carried: float
    phases: Mapping[str, Mapping[str, float | None]]
    series: Series


def adapters_of(scenario: Scenario, case: Case, loads: npt.NDArray[np.float64], clos: Clos) -> RequestGrant:
    """Return the adapters of a case.  The case states times in units of the time of a small packet (40 bytes on an
    external line).
    """
    table = case.table["request_grant"]
    small, share = scenario.choice("size of packets", table.get("packets", "small"), PACKETS)
    segment = table.get("segment", 256)
    reserve = scenario.choice("scheme", table["scheme"], RESERVES)
    begin, end = table.get("blocked", [0, 0])
    return RequestGrant(
        clos,
        loads,
        reserve=reserve,
        in_band=scenario.choice("kind of control data", table.get("control", "in-band"), IN_BAND),
        segment=segment,
        grant=table.get("grant", 50),
        reassembly=table.get("reassembly", 1 << 19) // segment,
        fabric_buffer=table.get("output_buffer", 61440) // segment,
        grant_rate=float(table.get("grant_rate", 10 if reserve else 1)),
        small=small,
        large=LARGE,
        large_share=share,
        burst=float(table.get("burst", 1)),
        blocked=range(table.get("hotspots", 0)) if "blocked" in table else (),
        block_from=round(begin * SMALL),
        block_until=round(end * SMALL),
    )


def _clos_of(table: Mapping[str, Any]) -> Clos:
    segment = table.get("segment", 256)
    timing = ClosTiming(
        speedup=float(table.get("speedup", 1)),
        input_blocks=blocks_of(table.get("input_buffer", 8192), segment),
        output_blocks=blocks_of(table.get("output_buffer", 61440), segment),
    )
    return build_clos(table.get("adapters", 64), table.get("radix", 8), timing)


def _between(early: AdapterCounts, late: AdapterCounts, rows: Sequence[int], ticks: int) -> tuple[float | None, float]:
    """Return the mean delay, in times of a small packet, and the throughput of the adapters with the numbers ``rows``.

    ``early`` and ``late`` are the counters at the start and at the end of a period of ``ticks`` ticks.
    """
    departed = int((late.departed - early.departed)[rows].sum())
    delay = int((late.delay - early.delay)[rows].sum())
    share = int((late.departed_bytes - early.departed_bytes)[rows].sum()) / max(ticks, 1) / max(len(rows), 1)
    return (round(delay / departed / SMALL, 1) if departed else None), round(share, 4)


def _simulate(adapters: RequestGrant, seed: int, start: int, until: int, hot: int) -> _Curve:
    """Simulate adapters of which the first ``hot`` are hotspots, and return the figures from tick ``start`` on."""
    switching = Switching(inputs=Inputs.FIFO, speedup=0, seed=seed)
    simulation = simulate(adapters.clos.network, adapters.traffic(), switching=switching, mechanisms=[adapters])
    blocks = [adapters.block_from, adapters.block_until] if adapters.blocked else []
    ticks = sorted({*np.linspace(0, until, POINTS + 1).astype(int).tolist(), start, until, *blocks})
    read, occupied = dict[int, AdapterCounts](), list[npt.NDArray[np.int64]]()
    for tick in ticks:
        simulation.run(tick)
        read[tick] = adapters.counts(simulation)
        occupied.append(simulation.virtual_channels().occupancy[adapters.clos.output_queue, 0])
    cold = list(range(hot, len(adapters.clos.first_lid)))
    delay, throughput = _between(read[start], read[until], cold, until - start)
    offered = (read[until].offered_bytes - read[start].offered_bytes)[cold].sum() / (until - start) / len(cold)
    phases = {}
    edges = [start, *blocks, until] if blocks else []
    for name, first, last in zip(("before", "during", "after"), edges, edges[1:], strict=False):
        lag, share = _between(read[first], read[last], cold, last - first)
        phases[name] = {"delay": lag, "throughput": share}
    return _Curve(
        delay, throughput, _between(read[start], read[until], list(range(hot)), until - start)[1] if hot else None,
        round(throughput / offered, 4) if offered else 1.0, phases, _series(adapters, read, ticks, occupied, hot),
    )  # fmt: skip


def _series(
    adapters: RequestGrant,
    read: Mapping[int, AdapterCounts],
    ticks: Sequence[int],
    occupied: Sequence[npt.NDArray[np.int64]],
    hot: int,
) -> Series:
    """Return the time series of a simulation: grants held, the fullest output queue, and throughputs.

    ``read`` has the counters of the adapters at each tick in ``ticks``.  ``occupied`` has the number of blocks in each
    output queue at these ticks.  The first ``hot`` adapters are hotspots.
    """
    cold, blocks = list(range(hot, len(adapters.clos.first_lid))), -(-adapters.segment // 64)
    pairs = list(pairwise(ticks))
    shares = {"other outputs": cold} | ({"hotspots": list(range(hot))} if hot else {})
    nothing = np.asarray([np.nan])
    return Series(
        np.asarray(ticks, float) / SMALL,
        {
            "grants held by an input, most": np.asarray([float(read[tick].held.max()) for tick in ticks]),
            "grants held by an input, mean": np.asarray([float(read[tick].held.mean()) for tick in ticks]),
            "fullest output queue, segments": np.asarray([float(one.max()) / blocks for one in occupied]),
        },
        {
            name: np.concatenate([
                nothing, [_between(read[first], read[last], rows, last - first)[1] for first, last in pairs]
            ])
            for name, rows in shares.items()
        },
    )  # fmt: skip


def run_request_grant(scenario: Scenario, case: Case) -> CaseOutput:
    """Simulate requests and grants, once for each load of a case or for each share that the case lists.

    A share makes the traffic unbalanced: each input sends this share of its load to the output with the same number,
    and the rest to all outputs alike.

    The figures of the result are:

    - ``delay``, ``throughput``: of packets to other outputs than the hotspots, by load or share
    - ``carried``: throughput as a fraction of the load, by load or share
    - ``worst``, ``least``: largest delay, and smallest fraction carried
    - ``hot``: throughput of the hotspots with the last load
    - ``most_held``, ``fullest``: largest number of grants that an input held, and largest number of segments in a queue
      of an output.  Only the points of the time series of the last load count.
    - ``phases``: delay and throughput before, during and after the time in which hotspots are blocked, with the last
      load
    - ``slowdown``: delay with hotspots divided by the delay without hotspots, the largest over all loads; only with
      the key ``compare``

    Raises
    ------
    ParseError, OptionError
        The case has no table ``request_grant``, or a value in the table is invalid.
    """
    if "request_grant" not in case.table:
        raise scenario.error(f"case {case.name!r} has no table request_grant", *case.where)
    table, seed = case.table["request_grant"], case.table.get("seed", scenario.tables["run"].get("seed", 1))
    start, until = measurement_window(scenario, case, SMALL)
    with scenario.placed(*case.where, "request_grant"):
        clos = _clos_of(table)
        count, hot = len(clos.first_lid), table.get("hotspots", 0)
        if hot >= count:
            raise OptionError(f"all of {count} outputs cannot be hotspots", remedy="use fewer")
        matrices = {
            f"{share:g}": unbalanced_loads(count, share) for share in table.get("shares", ())
        } or {
            f"{load:g}": hotspot_loads(count, range(hot), float(table.get("over", 2.5)), load)
            for load in case.table.get("loads", [0.5])
        }  # fmt: skip
        curves = {
            name: _simulate(adapters_of(scenario, case, loads, clos), seed, start, until, hot)
            for name, loads in matrices.items()
        }
        calm = {
            f"{load:g}": _simulate(
                adapters_of(scenario, case, hotspot_loads(count, [], 1.0, load), clos), seed, start, until, 0
            )
            for load in (case.table.get("loads", [0.5]) if table.get("compare") else ())
        }
    last = list(curves.values())[-1]
    held, _, queue = last.series.buffers.values()
    found = {
        "delay": {name: curve.delay for name, curve in curves.items()},
        "throughput": {name: curve.throughput for name, curve in curves.items()},
        "carried": {name: curve.carried for name, curve in curves.items()},
        "worst": max((curve.delay for curve in curves.values() if curve.delay is not None), default=None),
        "least": min(curve.carried for curve in curves.values()),
        "hot": last.hot,
        "most_held": int(held.max()),
        "fullest": round(float(queue.max()), 1),
        "phases": last.phases,
        "slowdown": _slowdown(curves, calm),
    }
    stated = {"request_grant": table, "stages": 1 + 2 * _spreading(clos), "paths": clos.paths, "seed": seed}
    return CaseOutput(found, stated, last.series)


def _slowdown(curves: Mapping[str, _Curve], calm: Mapping[str, _Curve]) -> float | None:
    """Return the largest ratio, over all loads, of the delay with hotspots to the delay without hotspots.

    ``curves`` has the figures with hotspots, and ``calm`` the figures without hotspots, both by load.  The result is
    None if no delay was measured.
    """
    delays = [(curves[name].delay, curve.delay) for name, curve in calm.items()]
    return max((round(delay / least, 3) for delay, least in delays if delay is not None and least), default=None)


def _spreading(clos: Clos) -> int:
    """Return how many stages of a Clos network spread packets over several paths."""
    radix = int(clos.network.fabric.switch_ports.max()) // 2
    return round(math.log(clos.paths, radix))
