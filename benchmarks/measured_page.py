"""Write docs/measured.md, the list of all tables of figures in docs/, with the command and the date of each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.plots import write_plots
from benchmarks.records import Record
from routing.numerals import count_noun

ROOT = Path(__file__).parents[1]
PAGE, PLOTS = ROOT / "docs" / "measured.md", ROOT / "docs" / "figures"
HEAD = """# All measured figures

This page lists the tables of measured figures in these pages, with command and date. The figures themselves are on the
linked pages. `python -m benchmarks --page` writes this page.

| command | effect |
|---|---|
| `python -m benchmarks` | run all benchmarks, with OpenSM's engines in the same run |
| `python -m benchmarks --quick` | run only benchmarks that take about a minute each |
| `python -m benchmarks --repeat 3` | run each benchmark three times, to measure the noise of times |
| `python -m benchmarks -o FILE` | also write the output as JSON |
| `python -m benchmarks --plots DIR` | also draw each table as SVG |

The output has a line for each figure that differs from the record in `benchmarks/figures.json`:

| the line begins with | meaning |
|---|---|
| `figure` | a result differs |
| `time` | a time or a size differs |
| `noise` | a time differs so little that the difference may come from the machine |

All figures are from one kind of machine: a virtual machine with two x86-64 cores, Debian 12, Python 3.11, OpenSM
3.3.23. Other programs ran on the same cores, so seconds are upper bounds. Counts, shares and VLs are equal on every
machine.
"""


@dataclass(frozen=True)
class Place:
    """Place in docs/ with the measured figures of a benchmark.

    Attributes
    ----------
    link
        Page and heading with the figures, as the target of a Markdown link, such as ``reroute.md#measured``.
    opensm
        Whether the benchmark also runs OpenSM.
    date
        Date of the figures on the page.
    unrecorded
        Reason why the benchmark has no stored record; an empty text if nothing prevents a record.
    """

    link: str
    opensm: bool
    date: str
    unrecorded: str


@dataclass(frozen=True)
class OtherTable:
    """Table of measured figures in docs/ that is printed by a command other than a benchmark.

    Attributes
    ----------
    title
        Description of the table.
    place
        Page in docs/ and heading, as the target of a Markdown link.
    command
        Command that prints the figures.
    date
        Date of the figures.
    """

    title: str
    place: str
    command: str
    date: str


OTHERS = (
    OtherTable(
        "Loss if one percent of the links fail at once",
        "reroute.md#several-faults",
        "ibnue whatif FABRIC -e ENGINE --random N:1% --beside-fresh",
        "2026-11-28",
    ),
    OtherTable(
        "OpenSM's engines on a tree that loses parts",
        "coming-from-opensm.md#what-opensms-engines-do-when-a-tree-is-not-perfect",
        "ibnue lab kary-ntree:4,3 --opensm-engine ENGINE --do ...",
        "2026-11-25",
    ),
    OtherTable(
        "Engines with two hop classes", "engines.md#how-hop-classes-work", "ibnue route FABRIC -e ENGINE", "2026-11-24"
    ),
    OtherTable(
        "Fat-tree engine on whole and degraded trees",
        "engines.md#how-the-fat-tree-engine-works",
        "ibnue route FABRIC -e ftree",
        "2026-11-25",
    ),
    OtherTable(
        "Tori with failed links",
        "engines.md#measured-on-tori",
        "ibnue whatif FABRIC -e torus-2qos --links all",
        "2026-11-24",
    ),
    OtherTable(
        "Link-disjoint paths",
        "lmc.md#measured",
        "ibnue route FABRIC --lmc N -e disjoint --vls 4 -o DIR && ibnue quality FABRIC --lmc N DIR",
        "2026-11-23",
    ),
    OtherTable(
        "Fewest VLs of dfsssp and lash",
        "dfsssp-lash.md#measured",
        "ibnue route FABRIC -e ENGINE --vls min",
        "2026-11-20",
    ),
    OtherTable(
        "Transitions of lash-tor",
        "dfsssp-lash.md#lash-tor",
        "ibnue sweep FABRIC -e lash:vls=min -e lash-tor:vls=min",
        "2026-11-24",
    ),
    OtherTable("Replies with nue", "nue.md#replies", "ibnue route FABRIC -e nue --reversible", "2026-11-23"),
    OtherTable(
        "Milliseconds of a sweep, by phase", "plugin.md#time", "the log line of the plugin in ibnue lab", "2026-11-25"
    ),
    OtherTable(
        "Figures of simulations beside their sources",
        "simulation.md#comparison-with-figures-from-other-sources",
        "ibnue simulate SCENARIO",
        "2026-11-25",
    ),
    OtherTable(
        "Workloads and congestion control", "simulation.md#workloads", "ibnue simulate collectives", "2026-11-25"
    ),
    OtherTable(
        "Reconfiguration under load",
        "simulation.md#reconfiguration-under-load",
        "ibnue simulate reconfiguration",
        "2026-11-25",
    ),
    OtherTable("Soak of 600 events", "lab.md#the-soak", "tox -e soak", "2026-11-20"),
    OtherTable(
        "Size of pages, and time to the first picture",
        "pictures.md#the-page",
        "ibnue draw FABRIC TABLES -o x.html",
        "2026-11-25",
    ),
)
"""All tables of measured figures in docs/ that other commands than benchmarks print."""


def page(benchmarks: Mapping[str, Place], stored: Mapping[str, Record], drawn: list[str]) -> str:
    """Return the text of docs/measured.md.

    Parameters
    ----------
    benchmarks
        Place of the figures of each benchmark.
    stored
        Stored records, with the names of their benchmarks as keys.
    drawn
        Names of the benchmarks whose record has a plot in docs/figures.
    """
    return "\n".join([HEAD, *_benchmarks(benchmarks, stored), *_others(), *_plots(drawn), ""])


def _benchmarks(benchmarks: Mapping[str, Place], stored: Mapping[str, Record]) -> Iterator[str]:
    yield "## Benchmarks"
    yield ""
    yield "If the table names a commit for a benchmark, `benchmarks/figures.json` has the record of the run."
    yield ""
    yield "| benchmark | page | command | beside OpenSM | date | commit |"
    yield "|---|---|---|---|---|---|"
    for name, place in benchmarks.items():
        record = stored.get(name)
        link = f"[{place.link.partition('#')[0].removeprefix('../')}]({place.link})"
        when = (record.date, f"`{record.commit}`") if record else (place.date, "")
        beside = "yes" if place.opensm else ""
        yield f"| {title_of(name)} | {link} | `python -m benchmarks {name}` | {beside} | {when[0]} | {when[1]} |"
    missing = {name: place.unrecorded for name, place in benchmarks.items() if name not in stored}
    if missing:
        yield ""
        of = count_noun(len(benchmarks), "benchmark")
        yield f"{len(missing)} of the {of} have no record. The table above has the date of each of their figures."
        yield ""
        yield "| benchmark | reason |"
        yield "|---|---|"
        yield from (f"| `{name}` | {reason or 'not run with `--store` yet'} |" for name, reason in missing.items())


def _others() -> Iterator[str]:
    yield ""
    yield "## Commands"
    yield ""
    yield "| figures | page | command | date |"
    yield "|---|---|---|---|"
    for table in OTHERS:
        yield f"| {table.title} | [{table.place.partition('#')[0]}]({table.place}) | `{table.command}` | {table.date} |"


def _plots(drawn: list[str]) -> Iterator[str]:
    yield ""
    yield "## Plots"
    yield ""
    yield "Each bar shows a figure of the stored record. In each column of bars, the longest bar is the largest figure."
    for name in drawn:
        yield ""
        yield f"![Bar chart: {subject_of(name)}](figures/{name}.svg)"


def title_of(name: str) -> str:
    """Return the first sentence of a benchmark's docstring in Markdown, without the full stop."""
    text = ast.get_docstring(ast.parse((ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8"))) or name
    sentence = " ".join(text.split("\n\n")[0].split()).replace(":mod:", "").replace("``", "`")
    return re.split(r"\. +(?=[A-Z])", sentence)[0].rstrip(".").replace("|", "/")


def subject_of(name: str) -> str:
    """Return the subject of a benchmark's figures: its title without the verb, and without the form of the output."""
    without_verb = re.sub(r"^(?:Compare|Count|Measure|Simulate) (?:the )?", "", title_of(name))
    return re.sub(r", (?:as a|and print a|and compare the) .*", "", without_verb)


def write(benchmarks: Mapping[str, Place], stored: dict[str, Record]) -> None:
    """Write docs/measured.md, and the plots that it shows into docs/figures."""
    drawn = write_plots(PLOTS, stored, {})
    PAGE.write_text(page(benchmarks, stored, drawn), encoding="utf-8")
