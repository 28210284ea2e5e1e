"""``ibnue lab``: run a real OpenSM with the plugin on a simulated fabric, and unplug cables."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from routing.cli import engine_options, fabric_argument, proof_report
from routing.cli.command import FINDING
from routing.cli.lab_actions import execute, last_sweep, read_actions, resolve
from routing.cli.output import echo_lines, fabric_object, json_option, print_json, print_rows, spinner
from routing.engines import ENGINES, IN_OPENSM
from routing.errors import InputError
from routing.names import escape_control
from routing.numerals import count_noun

if TYPE_CHECKING:
    from ibsim_fixtures.lab import Lab
    from routing.cli.lab_report import LabState
    from routing.fabric import Fabric

DEMO_FABRIC = "torus:4x4x4"
DEMO_RIVAL = "minhop"
DEMO_ACTIONS = ("unlink sw0.0.0 3", "relink sw0.0.0 3")
_PORTS = re.compile(r"ibnue policies: (.*)$", re.MULTILINE)
OPTIONS = {
    "demo": "--demo",
    "soak_length": "--soak",
    "opensm_engine": "--opensm-engine",
    "engine_name": "--engine",
    "fabric": "a FABRIC",
    "actions": "--do",
    "policies": "--policies",
}
"""Spelling of each parameter of the command as an option, for error messages."""
UNUSED_WITH = {
    "demo": {"fabric", "actions", "soak_length"},
    "soak_length": {"actions", "policies"},
    "opensm_engine": {"engine_name"},
}
"""For each parameter, other parameters that have no effect together with this parameter.  Such combinations are
rejected.
"""


@click.command()
@click.argument("fabric", required=False, shell_complete=fabric_argument.complete)
@engine_options.engine_option("The engine of ibnue that OpenSM uses through the plugin.", IN_OPENSM)
@click.option("--opensm-engine", metavar="ENGINE", help="Use this engine of OpenSM itself instead, such as dfsssp.")
@click.option("--do", "actions", multiple=True, metavar="ACTION",
              help="An action such as 'unlink sw1 2'; repeatable. Default: read actions from input.")  # fmt: skip
@click.option(
    "--demo",
    is_flag=True,
    help="Run a demonstration on a torus: an engine of OpenSM, then one of ibnue; a cable is pulled and restored.",
)
@click.option("--policies", type=click.Path(path_type=Path), metavar="FILE",
              help="File of rules for packet lifetimes of ports, which the plugin sets after every sweep.")  # fmt: skip
@click.option("--soak", "soak_length", metavar="LENGTH",
              help="Break and restore random parts of the fabric, for some events or a time: 100, 8h.")  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0), metavar="N", default=1, show_default=True, help="Random seed of --soak."
)
@click.option("--ledger", type=click.Path(path_type=Path), metavar="FILE",
              help="File for the results of --soak: a line with a JSON object for each event.")  # fmt: skip
@fabric_argument.name_map_option
@fabric_argument.class_options
@json_option
def lab(
    *,
    fabric: str | None,
    engine_name: str,
    opensm_engine: str | None,
    actions: tuple[str, ...],
    demo: bool,
    policies: Path | None,
    soak_length: str | None,
    seed: int,
    ledger: Path | None,
    as_json: bool,
) -> int:
    """Run OpenSM with the plugin on FABRIC, which ibsim simulates.  Pull cables, and read the tables back from the
    switches.

    \b
    ibnue lab torus:4x4x4 -e updn --do 'unlink sw0.0.0 3'
    ibnue lab ibnetdiscover.txt -e nue --soak 20

    After every action, ibnue reads the tables back from the switches and proves them.  Actions come from standard
    input, one per line, or from --do:

    \b
    unlink DEVICE [PORT]    pull a cable, or all cables of a device
    relink DEVICE [PORT]    restore the cable or cables
    show                    read the tables back and prove them
    quit

    With --soak, random faults occur and end, up to three at a time.  After each event OpenSM sweeps.  Then ibnue reads
    the tables back, proves them, and compares them with the tables that the plugin planned.

    This command needs the Debian packages opensm, ibsim-utils and infiniband-diags.  The plugin needs libopensm-dev,
    libibumad-dev and a C compiler.  Exit status 1 if any tables were incomplete, had a credit loop, or differed from
    the planned tables.
    """
    refuse_unused_options()
    subnet = fabric_argument.read(fabric or DEMO_FABRIC)
    _ = ENGINES[engine_name]
    if soak_length is not None:
        from routing.cli.soak import soak

        return soak(
            subnet, engine_name, opensm_engine, source=fabric, text=soak_length, seed=seed, ledger=ledger,
            as_json=as_json,
        )  # fmt: skip
    todo = actions or (DEMO_ACTIONS if demo else ())
    for action in todo:
        resolve(action, subnet)
    if policies is not None:
        from routing.policy import read_policy

        read_policy(policies)  # The policy is read before the lab starts, so that its errors are reported at once.
    states: list[LabState] = []

    def run(engine: str | None, wanted: Iterator[str], headline: str) -> None:
        for state in live(subnet, engine_name, engine, wanted, policies):
            states.append(state)
            if not as_json:
                show(state, headline)

    if demo:
        run(DEMO_RIVAL, iter(()), f"OpenSM's own {DEMO_RIVAL}, for comparison")
        states.clear()
    asked = f"OpenSM's own {opensm_engine}" if opensm_engine else f"OpenSM with the plugin, engine {engine_name}"
    run(opensm_engine, iter(todo) if todo else read_actions(subnet), asked)
    if as_json:
        shown = fabric_object(subnet, fabric or DEMO_FABRIC)
        print_json("ibnue-lab/1", {"fabric": shown, "states": [state.as_object() for state in states]})
    return 0 if all(state.proof.certified for state in states) else FINDING


def refuse_unused_options() -> None:
    """Raise UsageError if an option has no effect together with the other options of the command.

    Raises
    ------
    click.UsageError
        An option has no effect, or the fabric is missing.
    """
    context = click.get_current_context()
    default = click.core.ParameterSource.DEFAULT
    given = {name for name in context.params if context.get_parameter_source(name) is not default}
    for name, others in UNUSED_WITH.items():
        idle = sorted(given & others)
        if name in given and idle:
            raise click.UsageError(f"{OPTIONS[name]} cannot be combined with {OPTIONS[idle[0]]}", context)
    for name in sorted(given & {"seed", "ledger"}):
        if "soak_length" not in given:
            raise click.UsageError(f"--{name} has an effect only with --soak", context)
    if "opensm_engine" in given and "classes" in fabric_argument.given():
        raise click.UsageError("--opensm-engine cannot be combined with classes of end ports", context)
    if not given & {"fabric", "demo"}:
        raise click.UsageError("Missing argument 'FABRIC'", context)


def live(
    fabric: Fabric, engine: str, opensm_engine: str | None, wanted: Iterator[str], policies: Path | None
) -> Iterator[LabState]:
    """Start OpenSM on the simulated fabric, and yield the state of the lab at the start and after each action.

    OpenSM routes with ``engine`` of the plugin, or with its own engine ``opensm_engine`` if this argument is not None.
    ``wanted`` yields the actions to execute, such as "unlink sw1 2".
    """
    import numpy as np

    from ibsim_fixtures.lab import Lab
    from routing.cli.lab_report import inspect_lab
    from routing.cli.lab_setup import fresh_route, opensm_settings
    from routing.reroute.budget import LARGEST_SMALL_TABLE

    fresh = fresh_route(engine) if opensm_engine is None else None
    with tempfile.TemporaryDirectory(prefix="ibnue-lab-") as folder, ExitStack() as stack:
        large = fabric.switches * len(fabric.lids) > LARGEST_SMALL_TABLE
        with spinner("building the plugin and starting OpenSM", slow=large):
            opened = stack.enter_context(Lab(**opensm_settings(Path(folder), fabric, engine, opensm_engine, policies)))
        with spinner("OpenSM is up: reading the tables back, and proving them", slow=large):
            start = state = inspect_lab(opened, fabric, "start", last_sweep(opened), None)
        yield state if policies is None else with_ports(opened, state)
        for action in wanted:
            if action == "quit":
                return
            try:
                with spinner(action):
                    state = inspect_lab(opened, fabric, action, execute(opened, action, fabric), state, fresh=fresh)
                    state = replace(state, returned=np.array_equal(state.routing.lft, start.routing.lft))
            except InputError as error:
                if sys.stdin is None or not sys.stdin.isatty():
                    raise
                echo_lines(*str(error).split("\n"), err=True)
                continue
            yield state if policies is None else with_ports(opened, state)


def with_ports(opened: Lab, state: LabState) -> LabState:
    """Add the plugin's report on HOQLife and VLStallCount of the ports to a state of the lab.

    The plugin logs this report once for each sweep, after the line SUBNET UP, so this function waits for the report.
    """
    from ibsim_fixtures.processes import poll

    def lines() -> list[str]:
        return _PORTS.findall(opened.opensm.log_path.read_text(errors="replace"))

    sweeps = len(re.findall(r"-> SUBNET UP$", opened.opensm.log_path.read_text(errors="replace"), re.MULTILINE))
    poll(lambda: len(lines()) >= sweeps, opened.ibsim.timeout)
    return replace(state, ports=lines()[-1] if lines() else "no values were set: see OpenSM's log")


def show(state: LabState, headline: str) -> None:
    """Print a state of the lab as text.

    The first line of the text is ``headline`` for the first state of the lab.  For a later state, the first line is
    the action that led to the state.
    """
    sweep = state.sweep
    click.secho(escape_control(headline if state.since is None else state.action), bold=True)
    routed = "kept its tables" if sweep.engine is None else f"routed with {sweep.engine}"
    took = "" if sweep.routing_seconds is None else f" in {1000 * sweep.routing_seconds:.0f} ms"
    rows = [
        ("OpenSM", f"{routed}{took}; SUBNET UP after {1000 * sweep.seconds:.0f} ms"),
        ("fabric", proof_report.fabric_line(state.fabric)),
        ("tables", f"read back from the switches, {'equal' if state.as_dumped else 'NOT equal'} to OpenSM's dump"),
    ]
    if state.ports is not None:
        rows.append(("ports", state.ports))
    if state.since is not None:
        entries = f"{state.since.entries_changed} of {count_noun(state.since.entries, 'entry')}"
        changed = f"{entries}; {state.broken} invalid"
        rows.append(("changed", f"{changed}; the tables are those of the start" if state.returned else changed))
        rows.extend(state.kept.rows())
    print_rows([*rows, *proof_report.facts(state.proof)])
    proof_report.print_findings(state.proof)
    echo_lines()
