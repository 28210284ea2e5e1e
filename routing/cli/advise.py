"""``ibnue advise``: compare all engines on a fabric, and recommend one."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import fabric_argument, proof_report
from routing.cli.command import FINDING
from routing.cli.output import echo_lines, fabric_object, json_option, print_json, print_rows, print_table, spinner
from routing.cli.param_types import Number, seed_option, threads_option
from routing.cli.report_options import report_options, write_reports
from routing.engines import ENGINES

if TYPE_CHECKING:
    from routing.advise import Candidate, Recommendation, Refused
    from routing.draw.report import Report
    from routing.fabric import Fabric

COLUMNS = ("engine", "proof", "VLs", "all-to-all", "bisection", "permutation", "hops", "stretch", "worst link",
           "changed", "seconds")  # fmt: skip
CLASS_COLUMNS = ("engine", "class", "end ports", "all-to-all", "bisection", "permutation")


@click.command()
@fabric_argument.fabric_argument
@click.option("--tables", type=click.Path(path_type=Path),
              help="Tables in the switches now, to count the entries that each engine would change.")  # fmt: skip
@click.option(
    "--vls",
    type=click.IntRange(1, 15),
    metavar="K",
    help="Number of data VLs that may be used (default: all that the ports have).",
)
@click.option("--reversible", is_flag=True, help="Accept only tables whose certificate also covers replies.")
@click.option("--links", type=click.IntRange(0), default=8, show_default=True, metavar="N",
              help="Number of links to lose one by one, if this can change the recommendation.")  # fmt: skip
@click.option("--budget", type=Number(0, 1e6, min_open=True), metavar="SECONDS",
              help="Estimated CPU seconds of all engines, without lost links; sets their effort.")  # fmt: skip
@seed_option
@threads_option
@report_options
@json_option
def advise(
    *, fabric: str, tables: Path | None, vls: int | None, reversible: bool,
    links: int, budget: float | None, seed: int, threads: int, as_json: bool,
) -> int:  # fmt: skip
    """Compare all engines on FABRIC, and recommend one of them.

    \b
    ibnue advise ibnetdiscover.txt
    ibnue advise ibnetdiscover.txt --tables dump_fts.txt --vls 4
    ibnue advise torus:4x4x4 --budget 10

    ibnue routes the fabric with every engine that promises tables without a credit loop.  It proves and measures the
    tables of each engine.  Exit status 1 if no engine routes the fabric.
    """
    from routing.advise import contenders, describe_kind, recommend, try_engine, worst_loss
    from routing.engines.base import EngineOptions, Promise, offers_of
    from routing.engines.budget import effort_within

    with spinner(f"reading {fabric}"):
        subnet = fabric_argument.read(fabric)
        now = None if tables is None else fabric_argument.tables_of(tables, subnet, "--tables").lft
    promising = [engine for engine in ENGINES.values() if engine.promise is Promise.DEADLOCK_FREE]
    engines = [engine for engine in promising if not offers_of(engine).chooses]
    options = EngineOptions(vls=vls or "auto", seed=seed, threads=threads)
    if budget is not None:
        options = replace(options, effort=effort_within(subnet, budget / len(engines)))
    own = {
        each.name: replace(options, reversible=reversible and "reversible" in offers_of(each).options)
        for each in engines
    }
    found: list[Candidate | Refused] = []
    for engine in engines:
        with spinner(f"routing {subnet.name} with {engine.name}"):
            found.append(try_engine(engine, own[engine.name], subnet, now=now))
    candidates, refused = split(found, reversible=reversible)
    for each in contenders(candidates):
        with spinner(f"losing links with {each.engine}"):
            loss = worst_loss(ENGINES[each.engine], own[each.engine], subnet, each.routing, links)
        candidates = [replace(c, worst_loss=loss) if c.has_paths_of(each) else c for c in candidates]
    best = recommend(candidates)
    write_reports(lambda: report_of(subnet, describe_kind(subnet), candidates, refused, best))
    if as_json:
        results = as_object(describe_kind(subnet), candidates, refused, best)
        print_json(
            "ibnue-advise/1", {"fabric": fabric_object(subnet, fabric), "effort": float(options.effort), **results}
        )
    else:
        rows = [("fabric", proof_report.fabric_line(subnet)), ("kind", describe_kind(subnet))]
        if budget is not None:
            effort = f"{options.effort:.2g} for each engine; proofs, figures and lost links do not count in the budget"
            rows.append(("effort", effort))
        print_rows(rows)
        report(candidates, refused, best, fabric, seed=seed, vls=vls, reversible=reversible)
    return FINDING if best is None else 0


def split(found: Sequence[Candidate | Refused], *, reversible: bool) -> tuple[list[Candidate], list[Refused]]:
    """Separate the engines that routed the fabric from the engines that did not.

    With ``reversible``, an engine whose certificate does not cover replies counts as refused.

    Returns
    -------
    candidates
        Engines that routed the fabric, with the figures of their tables.
    refused
        Engines that did not route the fabric, each with the reason.
    """
    from routing.advise import Refused

    candidates, refused = [], []
    for each in found:
        if isinstance(each, Refused):
            refused.append(each)
        elif reversible and not each.reversible:
            refused.append(Refused(each.engine, "its certificate does not cover replies"))
        else:
            candidates.append(each)
    return candidates, refused


def report(
    candidates: Sequence[Candidate], refused: Sequence[Refused], best: Recommendation | None, fabric: str,
    *, seed: int, vls: int | None, reversible: bool,
) -> None:  # fmt: skip
    """Print the comparison of the engines, the engines without tables, the recommendation, and the command to run
    next.
    """
    if candidates:
        shown = [name for name in COLUMNS if any(cell(each, name) != "-" for each in candidates)]
        print_table(shown, [[cell(each, name) for name in shown] for each in candidates], texts=2)
        if by_class := class_rows(candidates):
            echo_lines("traffic among the end ports of one class:")
            print_table(list(CLASS_COLUMNS), by_class, texts=2)
    for each in refused:
        echo_lines(f"{each.engine} has no tables: {each.reason}")
    if best is None:
        echo_lines("no engine routes this fabric without a credit loop")
        return
    more = [*fabric_argument.words(), *(("--vls", str(vls)) if vls else ())]
    more += [*(("--seed", str(seed)) if seed != 1 else ()), *["--reversible"] * reversible, "-o", "tables"]
    print_rows([
        ("recommended", f"{best.candidate.engine}: {best.reason}"),
        ("next", shlex.join(["ibnue", "route", fabric, "-e", best.candidate.engine, *more])),
    ])  # fmt: skip


def report_of(
    fabric: Fabric, kind: str, candidates: Sequence[Candidate], refused: Sequence[Refused], best: Recommendation | None
) -> Report:
    """Return the report on the comparison of engines, with a picture of the recommended tables."""
    from routing.draw.picture import picture_of
    from routing.draw.report import Report
    from routing.formats.csv_table import Table

    rows = tuple(tuple(cell(each, name) for name in COLUMNS) for each in candidates)
    none = Table("Engines without tables", ("engine", "reason"), tuple((each.engine, each.reason) for each in refused))
    chosen = "none" if best is None else f"{best.candidate.engine}: {best.reason}"
    summary = (("fabric", proof_report.fabric_line(fabric)), ("kind", kind), ("recommended", chosen))
    routing = None if best is None else best.candidate.routing
    by_class = Table("Classes of end ports", CLASS_COLUMNS, tuple(map(tuple, class_rows(candidates))))
    tables = (Table("Engines", COLUMNS, rows), *([by_class] if by_class.rows else []), *([none] if refused else []))
    return Report(f"{fabric.name}: engines", summary, tables, lambda: picture_of(fabric, routing))


def cell(candidate: Candidate, column: str) -> str:
    """Return the text of one cell of the comparison; "-" for a figure that is not known."""
    quality = candidate.quality
    loss, changed, stretch = candidate.worst_loss, candidate.changed, quality.stretch
    return {
        "engine": candidate.engine,
        "proof": candidate.proof.strength or "",
        "VLs": f"{candidate.routing.vls_needed} of {candidate.routing.vls}",
        "all-to-all": _share(quality.all_to_all),
        "bisection": _share(quality.bisection_mean),
        "permutation": _share(quality.permutation_mean),
        "hops": f"{quality.hops_mean:.2f}",
        "stretch": "-" if stretch is None else f"{stretch.mean:.3f}+{stretch.more_most}",
        "worst link": "-" if loss is None else f"{100 * loss + 0.0:.1f} %",
        "changed": "-" if changed is None else str(changed),
        "seconds": f"{candidate.seconds:.2f}",
    }[column]


def class_rows(candidates: Sequence[Candidate]) -> list[list[str]]:
    """Return the rows of the table by class of end ports: one row for each engine and each class of counted end ports.

    The list is empty if all counted end ports have the same class.
    """
    counted = [(each, [own for own in each.quality.classes if own.counted]) for each in candidates]
    return [
        [
            each.engine,
            own.label,
            str(own.endports),
            *map(_share, (own.all_to_all, own.bisection_mean, own.permutation_mean)),
        ]
        for each, classes in counted
        for own in classes
        if len(classes) > 1
    ]


def _share(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "-"


def as_object(
    kind: str, candidates: Sequence[Candidate], refused: Sequence[Refused], best: Recommendation | None
) -> dict[str, Any]:
    """Return the comparison of the engines as an object for ``--json``."""
    return {
        "kind": kind,
        "candidates": [_candidate(each) for each in candidates],
        "engines_refused": [{"engine": each.engine, "reason": each.reason} for each in refused],
        "recommended": None if best is None else {"engine": best.candidate.engine, "reason": best.reason},
    }


def _candidate(each: Candidate) -> dict[str, Any]:
    return {
        "engine": each.engine,
        "strength": each.proof.strength,
        "vls_needed": each.routing.vls_needed,
        "vls": each.routing.vls,
        "quality": each.quality.as_dict(),
        "worst_link_loss": each.worst_loss,
        "entries_changed": each.changed,
        "seconds": each.seconds,
    }
