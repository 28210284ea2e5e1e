"""``ibnue quality``: measure hops, load and throughput of tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from routing.cli import fabric_argument, proof_report
from routing.cli.output import channel_object, fabric_object, json_option, print_json, print_rows, print_table, spinner
from routing.cli.param_types import threads_option
from routing.cli.report_options import report_options, write_reports
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.draw.report import Report
    from routing.fabric import Fabric
    from routing.quality import Quality
    from routing.quality.disjoint_paths import DisjointPaths
    from routing.tables import Routing


@click.command()
@fabric_argument.fabric_argument
@fabric_argument.tables_argument
@click.option("--links", "most", type=click.IntRange(0), default=10, show_default=True, metavar="N",
              help="List the N channels with the highest load.")  # fmt: skip
@click.option("--patterns", type=click.IntRange(0, 100_000), default=100, show_default=True, metavar="N",
              help="Number of random bisections, shifts and permutations to average over.")  # fmt: skip
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    metavar="N",
    default=1,
    show_default=True,
    help="Random seed of the patterns.",
)
@threads_option
@report_options
@json_option
def quality(*, fabric: str, tables: Path, most: int, patterns: int, seed: int, threads: int, as_json: bool) -> int:
    """Measure TABLES on FABRIC: hops, load of the channels, rates of traffic patterns.

    \b
    ibnue quality ibnetdiscover.txt tables
    ibnue quality torus:4x4x4 tables --links 3

    TABLES is a bundle, a folder that ibnue wrote, or a folder with OpenSM's dump files.
    """
    from routing.formats.table_files import read_tables
    from routing.quality import measure

    with spinner(f"reading {fabric} and {tables}"):
        subnet = fabric_argument.read(fabric)
        routing = read_tables(tables, subnet)
    with spinner("measuring"):
        figures = measure(
            subnet, routing, seed=seed, bisections=patterns, shifts=patterns, permutations=patterns, stretches=True,
            threads=threads,
        )  # fmt: skip
        busiest = busiest_channels(subnet, routing, most, threads)
    write_reports(lambda: report_of(subnet, routing, figures, threads))
    if as_json:
        channels = [{**channel_object(subnet, channel), "load": load} for channel, load in busiest]
        shown = {"fabric": fabric_object(subnet, fabric), **figures.as_dict(), "busiest_channels": channels}
        print_json("ibnue-quality/1", shown)
        return 0
    print_rows(summary(subnet, figures))
    if figures.levels:
        levels = [
            (f"{use.level} {use.direction}", f"{use.channels}", *decimals(use.load_mean, use.load_max))
            for use in figures.levels
        ]
        print_table(["level", "channels", "load mean", "most"], levels)
    if busiest:
        rows = [(channel_name(subnet, channel), f"{load:.1f}") for channel, load in busiest]
        print_table(["busiest channels", "load"], rows)
    return 0


def summary(fabric: Fabric, figures: Quality) -> list[tuple[str, str]]:
    """Return the figures of tables as rows of a name and a text."""
    return [("fabric", proof_report.fabric_line(fabric)), *facts(figures), *proof_report.part_facts(fabric)]


def report_of(fabric: Fabric, routing: Routing, figures: Quality, threads: int = 2) -> Report:
    """Return the report on the quality of tables: the figures, the channels by load, and a picture of the fabric."""
    from routing.draw.fabric_report import channel_table
    from routing.draw.picture import picture_of
    from routing.draw.report import Report

    channels = channel_table(fabric, routing, threads=threads)
    rows = tuple(summary(fabric, figures))
    return Report(f"{fabric.name}: quality", rows, (channels,), lambda: picture_of(fabric, routing, threads=threads))


def decimals(*values: float) -> list[str]:
    """Format each value with one decimal."""
    return [f"{value:.1f}" for value in values]


def facts(figures: Quality) -> list[tuple[str, str]]:
    """Return the quality figures as rows of a name and a text."""
    patterns = {
        "bisection": (figures.bisection_mean, figures.bisection_least),
        "shift": (figures.shift_mean, figures.shift_least),
        "permutation": (figures.permutation_mean, figures.permutation_least),
    }
    measured = [(name, shares) for name, shares in patterns.items() if not math.isnan(shares[0])]
    spread = ", ".join(f"{hops}: {pairs:.0f}" for hops, pairs in enumerate(figures.hops_histogram))
    load = f"{figures.load_mean:.1f} mean, {figures.load_max:.1f} most, {figures.load_deviation:.1f} deviation"
    return [
        (
            "end ports",
            f"{figures.endports}, {count_noun(figures.pairs, 'ordered pair')}, {figures.pairs_lost:.0f} of them lost",
        ),
        ("hops", f"{figures.hops_mean:.2f} mean, {figures.hops_max} most; pairs by hops: {spread}"),
        *stretch_facts(figures),
        ("load", f"{load} (flows per channel if all end ports send to all others)"),
        ("all-to-all", proof_report.percentage(figures.all_to_all, f"; {figures.bound:.3f} if the load were even")),
        *parts_facts(figures),
        *((name, f"{mean:.3f} mean, {least:.3f} least") for name, (mean, least) in measured),
        *disjoint_facts(figures.disjoint),
    ]


def stretch_facts(figures: Quality) -> Iterator[tuple[str, str]]:
    """Yield a row on the stretch of the paths (their length relative to shortest paths); no row if the stretch was not
    measured.
    """
    if (stretch := figures.stretch) is not None:
        longer = f"{stretch.more_mean:.2f} mean, {stretch.more_most} most hops longer than the shortest path"
        yield "stretch", f"{stretch.mean:.3f} mean, {stretch.most:.2f} most; {longer}"


def parts_facts(figures: Quality) -> Iterator[tuple[str, str]]:
    """Yield rows on figures for parts of the traffic (:mod:`routing.quality.parts`): for the thin leaf (the leaf whose
    links limit the all-to-all rate), and for each class of end ports if there are several classes.
    """
    if (leaf := figures.thin_leaf) is not None:
        without = proof_report.percentage(leaf.all_to_all_without)
        ports = count_noun(leaf.endports, "end port")
        yield "thin leaf", f"{leaf.switch} with {ports} limits all-to-all; without its links {without}"
    for own in figures.classes if len(figures.classes) > 1 else ():
        ports = count_noun(own.endports, "end port")
        crossed = math.isfinite(own.all_to_all)
        share = proof_report.percentage(own.all_to_all) if crossed else "over no channel"
        patterns = "".join(
            f", {name} {proof_report.percentage(value)}"
            for name, value in (("bisections", own.bisection_mean), ("permutations", own.permutation_mean))
            if math.isfinite(value)
        )
        among = f"{ports}, all-to-all among them {share}{patterns}"
        yield own.label, among if own.counted else f"{ports}, in no traffic pattern"


def disjoint_facts(found: DisjointPaths | None) -> list[tuple[str, str]]:
    """Return a row on the pairs of end ports that have several link-disjoint paths.

    The row is missing if ``found`` is None, for example because every end port has only one LID.
    """
    if found is None:
        return []
    shares = ", ".join(f"{number}: {100 * share:.1f} %" for number, share in enumerate(found.shares, 2))
    return [("disjoint", f"pairs by their least number of link-disjoint paths: {shares}")]


def busiest_channels(fabric: Fabric, routing: Routing, most: int, threads: int) -> list[tuple[int, float]]:
    """Return the channels with the highest load under all-to-all traffic, each with its load.

    ``most`` is the number of channels to return.
    """
    import numpy as np

    from routing.quality import channel_loads

    loads = channel_loads(fabric, routing, threads=threads)
    return [(row, float(loads[row])) for row in np.argsort(-loads, kind="stable")[:most].tolist()]


def channel_name(fabric: Fabric, channel: int) -> str:
    """Format a channel with its switches and ports."""
    channels = fabric.channels
    ends = ((channels.src, channels.port), (channels.dst, channels.dst_port))
    return " -> ".join(f"{fabric.labels[switch[channel]]}[{port[channel]}]" for switch, port in ends)
