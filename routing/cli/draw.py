"""``ibnue draw``: draw a fabric, the load of its tables, faults and a credit loop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import fabric_argument, proof_report
from routing.cli.output import fabric_object, json_option, print_json, print_rows, spinner
from routing.cli.param_types import threads_option
from routing.errors import OptionError

if TYPE_CHECKING:
    from routing.draw.picture import Picture
    from routing.draw.report import Report
    from routing.fabric import Fabric
    from routing.tables import Routing

SUFFIXES = (".html", ".svg", ".dot")


@click.command()
@fabric_argument.fabric_argument
@click.argument("tables", type=click.Path(path_type=Path), required=False)
@fabric_argument.sl_options
@fabric_argument.fault_options
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", required=True,
              help="Output file: .html (page with search and tables), .svg (picture) or .dot (Graphviz).")  # fmt: skip
@click.option("--size", type=click.IntRange(1, 100), default=1, show_default=True, metavar="MB",
              help="Maximum size of a page; paths that do not fit are left out.")  # fmt: skip
@threads_option
@json_option
def draw(*, fabric: str, tables: Path | None, output: Path, size: int, threads: int, as_json: bool) -> int:
    """Draw FABRIC, and the load of TABLES on it.

    \b
    ibnue draw ibnetdiscover.txt -o fabric.html
    ibnue draw torus:5x5 tables -o loads.svg
    ibnue draw fabric.net after --fail 'leaf1/36' -o after.html

    The lines show the all-to-all load of TABLES.  If TABLES have a credit loop, arrows show the loop.  Links and
    devices that --fail and --faults remove have dashed lines.  TABLES must then be tables of the fabric after the
    removal.
    """
    if output.suffix not in SUFFIXES:
        raise OptionError(f"{output}: no picture has the suffix {output.suffix!r}", remedy=f"use {', '.join(SUFFIXES)}")
    if fabric_argument.has_sl_files() and tables is None:
        raise OptionError("--sl and --sl2vl have no effect without TABLES", remedy="name the tables, or leave them out")
    with spinner(f"reading {fabric}"):
        whole = fabric_argument.read(fabric)
        left = fabric_argument.broken(whole)
        routing = None if tables is None else fabric_argument.tables(tables, left)
    with spinner("drawing"):
        report, picture = report_of(whole, left, routing, threads)
        write(report, picture, output, size)
    summary = [*report.summary, ("layout", picture.layout.kind), ("file", str(output))]
    if as_json:
        print_json("ibnue-draw/1", {"fabric": fabric_object(whole, fabric), **as_object(picture), "file": str(output)})
    else:
        print_rows(summary)
    return 0


def report_of(whole: Fabric, left: Fabric, routing: Routing | None, threads: int = 2) -> tuple[Report, Picture]:
    """Return a report on a fabric and its tables, and a picture of the fabric and its faults.

    ``whole`` is the fabric before the faults.  ``left`` is the fabric after the faults, to which the tables belong.
    """
    from routing.advise import describe_kind
    from routing.deadlock.verdict import decide
    from routing.draw.fabric_report import busiest_channel
    from routing.draw.picture import picture_of
    from routing.draw.report import Report
    from routing.quality import all_to_all_share, channel_loads

    rows, loop = [("fabric", proof_report.fabric_line(left)), ("kind", describe_kind(whole))], None
    if routing is not None:
        verdict = decide(left, routing, threads=threads)
        loop = verdict.possible_loop or verdict.proof.credit_loop
        loads = channel_loads(left, routing, threads=threads)
        share = all_to_all_share(left, loads)
        rows += [*proof_report.verdict_rows(verdict), ("all-to-all", proof_report.percentage(share))]
        busiest = busiest_channel(left, loads)
        if busiest is not None:
            rows.append(("most loaded", busiest))
    after = None if left is whole else left
    picture = picture_of(whole, routing, after_faults=after, loop=loop, threads=threads)
    return Report(whole.name, tuple(rows), (), lambda: picture), picture


def write(report: Report, picture: Picture, output: Path, size: int) -> None:
    """Write a picture to a file.  The suffix of the file selects the format: an HTML page, SVG or DOT.

    An HTML page of tables contains LFT columns, so that it can show paths.  If the page would exceed ``size`` MB, some
    or all columns are left out.
    """
    from routing.draw import dot_text, svg_text
    from routing.formats.atomic import write_text_atomically

    if output.suffix == ".html":
        text = report.html(most_bytes=size * 1_000_000)
    else:
        text = svg_text(picture, report.title) if output.suffix == ".svg" else dot_text(picture, report.title)
    write_text_atomically(output, text)


def as_object(picture: Picture) -> dict[str, Any]:
    """Return the contents of the picture as an object for ``--json``."""
    cables = picture.cables
    return {
        "layout": picture.layout.kind,
        "cables": len(cables),
        "lost_cables": int(cables.lost.sum()),
        "lost_switches": int(picture.lost_switches.sum()),
        "credit_loop_channels": len(picture.loop),
    }
