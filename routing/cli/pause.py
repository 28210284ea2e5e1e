"""``ibnue pause``: find the links on which flow control pauses given flows, and whether the flow rates sink to zero."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import fabric_argument, proof_report
from routing.cli.command import FINDING
from routing.cli.output import echo_lines, fabric_object, json_option, print_json, print_rows, print_table, spinner
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.deadlock.pause import Flows, Iteration, PauseAnalysis
    from routing.deadlock.pause_flows import Demand
    from routing.fabric import Fabric

_DESCRIPTIONS = {
    "free": "no deadlock: no cycle of pause-regulated links",
    "settles": "no deadlock: there is a cycle of pause-regulated links, but the rates settle",
    "deadlock": "DEADLOCK predicted: a cycle of pause-regulated links, and rates that sink towards zero",
}
_LINKS = 10


@click.command()
@click.argument("fabric", required=False, shell_complete=fabric_argument.complete)
@click.argument("tables", required=False, type=click.Path(path_type=Path))
@fabric_argument.sl_options
@click.option("--flows", "flow_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Flows, as lines SOURCE DESTINATION [RATE] with names, GUIDs or LIDs of CAs.")  # fmt: skip
@click.option(
    "--shift",
    type=click.IntRange(1),
    metavar="N",
    help="Flows instead of a file: every end port sends to the Nth end port after it.",
)
@click.option("--paths", "path_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Paths instead of a fabric, as lines FLOW: LINK LINK ...")  # fmt: skip
@click.option("--trace", is_flag=True, help="Print every iteration, with all rates as fractions.")
@fabric_argument.name_map_option
@json_option
def pause(
    *,
    fabric: str | None,
    tables: Path | None,
    flow_file: Path | None,
    shift: int | None,
    path_file: Path | None,
    trace: bool,
    as_json: bool,
) -> int:
    """Find the links of FABRIC on which flow control pauses the traffic of given flows.  Report whether the rates of
    the flows sink to zero.  The flows use the paths of TABLES.

    \b
    ibnue pause fabric.net tables --shift 1
    ibnue pause fabric.net tables --flows flows.txt

    The analysis computes the rates of flows as exact fractions.  It models neither buffers nor packets.  Exit status 1
    if paused links form a cycle, and the rates sink towards zero.
    """
    from routing.deadlock.pause import analyse_pauses

    tables = tables or fabric_argument.tables_beside(fabric)
    with_fabric = fabric is not None and tables is not None and (flow_file is None) != (shift is None)
    without = fabric is None and flow_file is None and shift is None and path_file is not None
    if (
        with_fabric == without
        or (with_fabric and path_file is not None)
        or (without and ("node_name_map" in fabric_argument.given() or fabric_argument.has_sl_files()))
    ):
        raise click.UsageError("give FABRIC TABLES and --flows or --shift, or --paths", click.get_current_context())
    with spinner("reading"):
        subnet, flows, note = _flows(fabric, tables, flow_file, shift, path_file)
    with spinner("iterating"):
        found = analyse_pauses(flows)
    if as_json:
        shown = None if subnet is None else fabric_object(subnet, fabric)
        results = {"fabric": shown, **_as_object(found), "assumed": proof_report.assumed(note)}
        print_json("ibnue-pause/1", results)
    else:
        if note is not None:
            echo_lines(f"assumed: {note}")
        _print(found, trace=trace)
    return FINDING if found.verdict == "deadlock" else 0


def _flows(
    fabric: str | None, tables: Path | None, flow_file: Path | None, shift: int | None, path_file: Path | None
) -> tuple[Fabric | None, Flows, str | None]:
    """Read the flows and their paths from the files that the user named.

    ``path_file`` has flows with their paths.  Without this file, the flows come from ``flow_file`` or from ``shift``,
    and their paths from ``tables``.

    Returns
    -------
    Fabric or None
        The fabric; None if the flows come with their paths.
    Flows
        The flows with the links that they use.
    str or None
        Assumption about SLs or VLs that the tables do not state; None if the tables state both.
    """
    from routing.deadlock.flow_files import read_demands, read_paths
    from routing.deadlock.pause_flows import flows_along
    from routing.deadlock.verdict import worst_case

    if path_file is not None:
        return None, read_paths(path_file), None
    assert fabric is not None
    assert tables is not None
    subnet = fabric_argument.read(fabric)
    demands = _shifted(subnet, shift) if flow_file is None else read_demands(flow_file, subnet)
    routing = fabric_argument.tables(tables, subnet)
    return subnet, flows_along(subnet, worst_case(routing), demands), proof_report.vl_note(routing)


def _shifted(fabric: Fabric, shift: int | None) -> list[Demand]:
    """Return one flow from every end port to the end port that is ``shift`` positions later.

    The end ports are sorted by LID.  The first one follows the last one.
    """
    import numpy as np

    from routing.deadlock.pause_flows import Demand
    from routing.errors import OptionError

    rows = np.flatnonzero((fabric.endport_switch >= 0) & (fabric.endport_lid > 0))
    rows = rows[np.argsort(fabric.endport_lid[rows], kind="stable")]
    if shift is None or len(rows) < 2 or shift % len(rows) == 0:
        raise OptionError(f"a shift by {shift} among {len(rows)} end ports sends to itself", remedy="use another one")
    targets = fabric.endport_lid[np.roll(rows, -shift)].tolist()
    return [Demand(row, lid) for row, lid in zip(rows.tolist(), targets, strict=True)]


def _print(found: PauseAnalysis, *, trace: bool) -> None:
    flows, names = found.flows, found.flows.names
    slowest = min(range(len(flows.flows)), key=found.rates.__getitem__)
    print_rows(
        [
            ("flows", f"{len(flows.flows)} over {count_noun(len(names), 'link')}"),
            ("verdict", _DESCRIPTIONS[found.verdict]),
            ("iterations", str(len(found.iterations))),
            ("slowest flow", f"{flows.flows[slowest].name}: {_short(found.rates[slowest])}"),
        ]
    )
    for link, following in zip(found.cycle, [*found.cycle[1:], *found.cycle[:1]], strict=True):
        echo_lines(f"  {names[link]} waits for {names[following]}")
    if trace:
        for number, iteration in enumerate(found.iterations, 1):
            _print_iteration(flows, number, iteration)
        return
    paused = sorted((link for link, p in enumerate(found.pause) if p), key=lambda link: (-found.pause[link], link))
    print_table(
        ["paused most", "probability"],
        [(names[link], _short(found.pause[link])) for link in paused[:_LINKS]] or [("no link", "0")],
    )


def _print_iteration(flows: Flows, number: int, iteration: Iteration) -> None:
    from routing.deadlock.pause import pauses

    echo_lines(f"iteration {number}{', which fits' if iteration.fits else ''}")
    rows = [
        (flow.name, _joined(fair), _short(rate))
        for flow, fair, rate in zip(flows.flows, iteration.fair, iteration.rates, strict=True)
    ]
    print_table(["flow", "stage 1, along its links", "stage 2"], rows)
    left = zip(flows.names, iteration.capacity, pauses(flows, iteration), strict=True)
    print_table(["link", "capacity", "pause"], [(name, _short(c), _short(p)) for name, c, p in left])


def _joined(rates: Sequence[Fraction]) -> str:
    return " ".join(map(_short, rates))


def _short(value: Fraction) -> str:
    """Format a fraction exactly if its denominator is below 1000, otherwise as a decimal number.

    A decimal number that would be rounded to 1 is printed as 1 and its difference from 1, such as "1 - 0.0002".
    """
    if value.denominator < 1000:
        return str(value)
    rounded = f"{float(value):.3g}"
    return rounded if rounded != "1" else f"1 {'-' if value < 1 else '+'} {abs(float(1 - value)):.2g}"


def _as_object(found: PauseAnalysis) -> dict[str, Any]:
    """Return the analysis as an object for ``--json``, with fractions as strings."""
    names = found.flows.names

    def texts(values: Iterable[Fraction]) -> list[str]:
        return [str(value) for value in values]

    return {
        "verdict": found.verdict,
        "cycle": [names[link] for link in found.cycle],
        "link_names": list(names),
        "flows": [{"name": flow.name, "link_positions": list(flow.links)} for flow in found.flows.flows],
        "iterations": [
            {
                "fair": [texts(rates) for rates in now.fair],
                "rates": texts(now.rates),
                "capacity": texts(now.capacity),
                "fits": now.fits,
            }
            for now in found.iterations
        ],
    }
