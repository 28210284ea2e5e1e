"""Route many fabrics with many engines, faults and seeds, to find regressions: ``ibnue sweep``."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import engine_options, fabric_argument
from routing.cli.command import FINDING, Terminated
from routing.cli.output import json_option, print_json, progress_bar, spinner
from routing.cli.param_types import Number
from routing.cli.report_options import report_options, write_reports
from routing.cli.sweep_report import Report, page_of, show
from routing.errors import OptionError
from routing.numerals import DIGITS, count_noun, parse_decimal

if TYPE_CHECKING:
    from routing.sweep.executors import Workers
    from routing.sweep.ledger import Ledger
    from routing.sweep.spec import Block, Plan
    from routing.sweep.work import Batch


RUNNING = ("shard", "executor", "jobs", "timeout")
"""Parameters that control how cases are run.  These parameters have no effect if no cases are given."""

LAB = "routing.cli.sweep_lab:run"
"""Module and name of the function that runs cases with a real OpenSM.  Only worker processes import this module."""


def all_or_number(text: str) -> int | str:
    """Parse the value of ``--links`` or ``--switches``: ``all`` or a number."""
    number = text if text == "all" else parse_decimal(text)
    if number is not None:
        return number
    raise click.BadParameter(f"{text!r} is neither all nor a number of at most {DIGITS} digits")


@click.command()
@fabric_argument.name_map_option
@fabric_argument.class_options
@click.argument("fabric_names", nargs=-1, metavar="[FABRIC]...", shell_complete=fabric_argument.complete)
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file that describes all cases, instead of FABRIC and of the options from --engine to --lab.",
)
@click.option(
    "-e",
    "--engine",
    "engine_names",
    multiple=True,
    metavar="ENGINE[:OPTION=VALUE,...]",
    shell_complete=engine_options.complete,
    help="An engine, such as nue or nue:vls=4; repeatable.",
)
@click.option(
    "--links",
    type=all_or_number,
    metavar="all|N",
    default="0",
    help="Break each link between switches, or N of them, one per case.",
)
@click.option(
    "--switches",
    type=all_or_number,
    metavar="all|N",
    default="0",
    help="Break each switch, or N of them, one per case.",
)
@click.option("--fault", "faults", multiple=True, metavar="FAULT", help="A fault by name, such as 'sw1/3'; repeatable.")
@click.option(
    "--random",
    "samples",
    multiple=True,
    metavar="N[:K|:P%]",
    help="N random cases with K faults each (default 2), or with P percent of all components; repeatable.",
)
@click.option(
    "--kinds",
    default="link",
    show_default=True,
    metavar="KIND,...",
    help="Kinds of faults in a random case: link, ca-link, switch, ca, degrade, swap.",
)
@click.option("--seeds", default="1", show_default=True, metavar="N,M-K", help="Seeds of the engines.")
@click.option(
    "--stability",
    "modes",
    type=click.Choice(["fresh", "balanced", "full"]),
    multiple=True,
    help="How tables are computed after the fault, as in ibnue route; repeatable.  [default: fresh]",
)
@click.option(
    "--lab", is_flag=True, help="Route with a real OpenSM and the plugin on ibsim, and check with ibdmchk too."
)
@click.option(
    "--ledger",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File that stores the results. Cases with a result in this file are not run again.",
)
@click.option("--shard", metavar="K/N", help="Run only the K-th of N parts, for instance on different machines.")
@click.option(
    "--executor",
    default="processes",
    show_default=True,
    metavar="processes|dask://HOST:PORT|mpi",
    help="Executor of the cases: processes, Dask or MPI.",
)
@click.option(
    "-j", "--jobs", type=click.IntRange(1, 4096), metavar="N", help="Number of processes (default: one per core)."
)
@click.option(
    "--timeout",
    type=Number(0, 1e6, min_open=True),
    metavar="SECONDS",
    help="Stop a case after this time and continue with others; overrides the time limit of --spec.",
)
@click.option("--retry-errors", is_flag=True, help="Run cases again that ended in an error, such as a crash.")
@click.option(
    "--merge",
    "others",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="LEDGER",
    help="Copy the results of another ledger first; repeatable.",
)
@click.option("--against", type=click.Path(path_type=Path), metavar="LEDGER", help="Compare with an earlier ledger.")
@click.option(
    "--tolerance",
    type=Number(0, 1),
    default=0.05,
    show_default=True,
    metavar="X",
    help="Largest loss of the all-to-all share that does not count as a regression.",
)
@click.option("--by-fabric", is_flag=True, help="Print one line per fabric in the summary.")
@report_options
@json_option  # fmt: skip
def sweep(
    *, path: Path | None, shard: str | None, executor: str, jobs: int | None, timeout: float | None,
    retry_errors: bool, others: tuple[Path, ...], against: Path | None, tolerance: float, by_fabric: bool,
    as_json: bool, **given: Any,
) -> int:  # fmt: skip
    """Route every fabric with every engine and every fault.  Prove, measure and store each result.

    \b
    ibnue sweep torus:4x4x4 -e nue -e lash --links all --switches all --ledger torus.db
    ibnue sweep nets/*.net -e updn --random 100:1% --ledger new.db --against old.db
    ibnue sweep --ledger torus.db                     print the results in a ledger

    If a run was stopped or killed, the same command with the same ledger continues it.  Exit status 1 if any tables
    were not certified, or if a result is worse than in the earlier ledger.  Worse means: no longer certified, more VLs
    needed, a lower all-to-all rate, or different tables although the version of ibnue is the same.
    """
    from routing.sweep.executors import Mpi, mpi_ranks, workers
    from routing.sweep.ledger import Ledger
    from routing.sweep.results import AGAIN, PASSING
    from routing.sweep.summary import compare, lines

    if given["spec"] is None and not given["fabric_names"]:
        # This check depends only on the command line.  So all MPI ranks come to the same result.
        refuse_running_options()
    with ExitStack() as stack:
        ranks = stack.enter_context(mpi_ranks()) if executor == "mpi" else None
        if executor == "mpi" and ranks is None:
            return 0  # This process is an MPI rank other than 0, and its work is done.
        if against is None and named(["tolerance"]):
            raise OptionError(
                "--tolerance has no effect without --against", remedy="add --against LEDGER, or leave it out"
            )
        plan = planned(given, shard, timeout)
        if plan is None and (path is None or retry_errors):
            raise OptionError("there is nothing to do", remedy="name fabrics, a --spec or a --ledger")
        earlier = opened(stack, against, path)
        merged = [stack.enter_context(Ledger(same(other, path), read_only=True)) for other in others]
        ledger = stack.enter_context(Ledger(path, must_exist=plan is None and not others))
        for other in merged:
            ledger.absorb(other)
        again = PASSING if retry_errors else AGAIN
        crew = partial(workers, executor, jobs) if ranks is None else partial(Mpi, ranks)
        ran, seconds = (0, 0.0) if plan is None else run(stack, ledger, plan, again=again, executor=executor, crew=crew)
        wanted = None if plan is None else {task.id for task in plan.tasks}
        records = [record for record in ledger.records() if wanted is None or record.task.id in wanted]
        compared = None if earlier is None else compare(earlier.records(), records, tolerance=tolerance)
    report = Report(records, lines(records, by_fabric=by_fabric), compared, ran, seconds)
    write_reports(lambda: page_of(report))
    if as_json:
        print_json("ibnue-sweep/1", report.as_object())
    else:
        show(report, by_fabric=by_fabric)
    return FINDING if report.failures or (compared is not None and compared.regressions) else 0


def same(other: Path, path: Path | None) -> Path:
    """Return ``other``, the path of a ledger (file of results) to read.  ``path`` is the ledger of this run.

    Raises
    ------
    OptionError
        Both paths lead to the same file.
    """
    if path is not None and other.exists() and path.exists() and other.samefile(path):
        raise OptionError(f"{other} is the ledger of this run", remedy="name an earlier one, or a copy")
    return other


def opened(stack: ExitStack, against: Path | None, path: Path | None) -> Ledger | None:
    """Open the earlier ledger (file of results) to compare with, or return None without ``--against``."""
    from routing.sweep.ledger import Ledger

    return None if against is None else stack.enter_context(Ledger(same(against, path), read_only=True))


def refuse_running_options() -> None:
    """Raise OptionError if the user gave an option that has no effect without fabrics.

    Such options control how cases are run, or assign classes to end ports.  Call this function only if the command line
    names neither fabrics nor a specification file.
    """
    for name in [*named(RUNNING), *(["--class"] if "classes" in fabric_argument.given() else [])]:
        raise OptionError(f"{name} has no effect without fabrics", remedy="name a FABRIC")


def planned(given: Mapping[str, Any], shard: str | None, timeout: float | None) -> Plan | None:
    """Return the cases that the options or the specification file describe.

    The result is None if the user named neither fabrics nor a specification file.

    Raises
    ------
    OptionError
        Options contradict each other, or have no effect.
    """
    from routing.sweep.spec import expand, read_spec
    from routing.sweep.tasks import Shard

    part = None if shard is None else Shard.parse(shard)
    if given["spec"] is not None and given["fabric_names"]:
        raise OptionError("a --spec names its own fabrics", remedy="give FABRIC or --spec")
    if not given["fabric_names"]:
        for name in named(given):
            if given["spec"] is None:
                raise OptionError(f"{name} has no effect without fabrics", remedy="name a FABRIC")
            if name != "--spec":
                raise OptionError(f"{name} cannot be combined with --spec", remedy="write it into the spec")
    elif "--kinds" in named(given) and not given["samples"]:
        raise OptionError("--kinds has no effect without --random", remedy="add --random 100, or leave it out")
    if given["spec"] is None and not given["fabric_names"]:
        refuse_running_options()
        return None
    blocks = [block(given)] if given["spec"] is None else read_spec(given["spec"])
    if timeout is not None:
        blocks = [replace(block, timeout=timeout) for block in blocks]
    with spinner("reading fabrics"):
        return expand(blocks, fabric_argument.read, part)


def named(given: Collection[str]) -> list[str]:
    """Return the names of the options that the user has set on the command line, among the parameters ``given``."""
    context = click.get_current_context()
    return [
        max(param.opts, key=len)
        for param in context.command.params
        if param.name in given and context.get_parameter_source(param.name) is click.core.ParameterSource.COMMANDLINE
    ]


def block(given: Mapping[str, Any]) -> Block:
    """Return the options as one block of a sweep specification, as a TOML file would state them."""
    from routing.sweep.spec import Block, parse_seeds

    if given["lab"] and given["modes"]:
        raise OptionError(
            "--lab cannot be combined with --stability", remedy="with --lab the plugin decides; give one of the two"
        )
    return Block(
        fabrics=given["fabric_names"],
        engines=given["engine_names"] or Block.engines,
        modes=("lab",) if given["lab"] else given["modes"] or ("fresh",),
        seeds=parse_seeds(given["seeds"]),
        links=given["links"],
        switches=given["switches"],
        faults=given["faults"],
        random=given["samples"],
        kinds=tuple(kind.strip() for kind in given["kinds"].split(",")),
    )


def run(
    stack: ExitStack, ledger: Ledger, plan: Plan, *, again: Sequence[str], executor: str, crew: Callable[[], Workers]
) -> tuple[int, float]:
    """Run the cases of ``plan`` whose results are not yet in the ledger (file of results).

    A case is also run if its stored outcome is one of ``again``, such as "timed out".  ``crew`` is a function that
    starts the worker processes.  ``executor`` is the kind of the workers, such as "processes".  The plugin is built in
    a temporary folder, which is removed when the caller closes ``stack``.

    Returns
    -------
    tasks : int
        Number of cases that were run.
    seconds : float
        Elapsed time in seconds.
    """
    from routing.sweep.run import Run

    if not plan.tasks:  # An empty part of the sweep (--shard) gets a ledger too, so that all ledgers can be merged.
        ledger.begin(f"0 of 0 tasks, {executor}")
    done = ledger.done(without=again)
    todo = [task for task in plan.tasks if task.id not in done]
    if not todo:
        return 0, 0.0
    live = [task for task in todo if task.mode == "lab"]
    if live and executor != "processes":
        raise OptionError("--lab needs ibsim and OpenSM on this machine", remedy="leave out --executor")
    started = time.perf_counter()
    working = crew()
    finished = False
    try:
        settings = prepared(stack) if live else ()
        with progress_bar("sweep", len(todo)) as advance:
            # The ledger stores the version of the code for each run.  Cases with OpenSM depend on more code, so these
            # cases are a separate run.
            for part in filter(None, ([task for task in todo if task.mode != "lab"], live)):
                number = ledger.begin(f"{len(part)} of {len(plan.tasks)} tasks, {executor}", live=part is live)
                Run(ledger, number, working, packer(plan, settings), lambda pairs: advance(len(pairs))).finish(part)
        finished = True
    except KeyboardInterrupt as error:
        stored = f"{len({task.id for task in plan.tasks} & ledger.done())} of {count_noun(len(plan.tasks), 'case')}"
        how = "no case is stored: --ledger FILE stores the cases, so that the same command continues"
        if ledger.path is not None:
            how = f"{ledger.path} has the results of {stored}; the same command continues"
        raise Terminated(getattr(error, "number", signal.SIGINT), how) from None
    finally:
        working.close(now=not finished)
    return len(todo), time.perf_counter() - started


def prepared(stack: ExitStack) -> tuple[tuple[str, str], ...]:
    """Build the plugin in a temporary folder, and return the settings that workers need for cases with a real
    OpenSM.
    """
    from routing.cli.sweep_lab import prepare

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ibnue-sweep-"))
    with spinner("building the plugin"):
        return prepare(Path(folder))


def packer(plan: Plan, settings: tuple[tuple[str, str], ...]) -> Any:
    """Return a function that packs cases with the same fabric into a batch for a worker process."""
    from routing.sweep.work import OFFLINE, Batch, pack

    packed: dict[str, bytes] = {}

    def pack_batch(tasks: Sequence[Any]) -> Batch:
        digest = tasks[0].digest
        if digest not in packed:
            packed[digest] = pack(plan.fabrics[digest])
        runner = LAB if tasks[0].mode == "lab" else OFFLINE
        timeouts = tuple(plan.timeouts.get(task.id) for task in tasks)
        return Batch(packed[digest], tuple(tasks), runner, settings, timeouts)

    return pack_batch
