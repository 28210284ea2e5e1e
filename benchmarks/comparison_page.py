"""Write the tables and pictures of the comparison of all engines (:mod:`benchmarks.comparison`).

A *ledger* is the content of the JSON file with all results, by fabric and engine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality_table import line

SHARES = (0.0, 0.01, 0.05, 0.1)
"""Shares of the links between switches that are removed from each fabric."""
SHARES_OF_LARGE = SHARES[:2]
"""Shares of the links between switches that are removed from each large fabric."""
BEGIN, END = "<!-- tables: python -m benchmarks.comparison -->\n", "<!-- end of tables -->\n"
REFERENCE_PICTURE, FIXTURE_PICTURE = "comparison.svg", "comparison-fixtures.svg"
HEAD = ("engine", "loop-free", "VLs", "all-to-all", "bisection", "mean hops", "stretch", "seconds")
NO_TABLES = "-"
EQUAL = 0.005
"""Relative difference up to which two figures count as equal.  The bisection share is a mean over random patterns, so
small differences mean nothing.
"""
Ledger = Mapping[str, Mapping[str, Mapping[str, Any]]]
Results = Sequence[Mapping[str, Any]]


def write_page(ledger: Ledger, reference: Sequence[str], large: Sequence[str], page: Path) -> None:
    """Replace the tables in a documentation page by the tables of a ledger's results.

    Two comments in the page mark the begin and the end of the tables.  ``reference`` and ``large`` are the names of the
    reference fabrics and of the large fabrics.
    """
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(before + BEGIN + "\n".join(tables(ledger, reference, large)) + "\n" + END + after)


def write_pictures(ledger: Ledger, reference: Sequence[str], large: Sequence[str], folder: Path) -> None:
    """Write two pictures of the results: one of the reference fabrics, and one of the fixtures."""
    fixtures = [name for name in names_of(ledger) if name not in (*reference, *large)]
    (folder / REFERENCE_PICTURE).write_text(picture(ledger, [n for n in reference if n in names_of(ledger)], 24, True))
    (folder / FIXTURE_PICTURE).write_text(picture(ledger, fixtures, 6, False))


def names_of(ledger: Ledger) -> list[str]:
    """Return the names of the fabrics in a ledger (the results by fabric and engine)."""
    return list(dict.fromkeys(key.rpartition(" - ")[0] for key in ledger))


def engines_of(ledger: Ledger) -> list[str]:
    """Return the names of all engines in a ledger (the results by fabric and engine), the engines of OpenSM last."""
    found = dict.fromkeys(engine for results in ledger.values() for engine in results)
    return sorted(found, key=lambda name: name.startswith("OpenSM "))


def of_shares(ledger: Ledger, fabric: str, engine: str, shares: Sequence[float]) -> list[Mapping[str, Any]]:
    """Return the results of an engine on a fabric, one for each share of missing links.

    An element is empty if the engine was not measured with this share.
    """
    return [ledger.get(f"{fabric} - {share:.0%}", {}).get(engine, {}) for share in shares]


def tables(ledger: Ledger, reference: Sequence[str], large: Sequence[str]) -> Iterator[str]:
    """Yield the lines of all Markdown tables: one table for each reference fabric and for each large fabric, and one
    table for all fixtures.
    """
    measured = names_of(ledger)
    for fabric in (name for name in reference if name in measured):
        yield from fabric_table(ledger, fabric, SHARES)
    if any(name in measured for name in large):
        yield "\n## Large fabrics\n"
        yield "A cell has two values, for 0 and 1 % of the links missing, or one value if the two values are equal."
    for fabric in (name for name in large if name in measured):
        yield from fabric_table(ledger, fabric, SHARES_OF_LARGE)
    yield from fixture_table(ledger, [name for name in measured if name not in (*reference, *large)])
    yield from auto_table(ledger)


def fabric_table(ledger: Ledger, fabric: str, shares: Sequence[float]) -> Iterator[str]:
    """Yield the lines of the Markdown table of a fabric, and the reasons why engines have no tables.

    ``shares`` are the shares of missing links.
    """
    yield f"\n### {fabric}\n"
    rows = {engine: of_shares(ledger, fabric, engine, shares) for engine in engines_of(ledger)}
    yield from (line(HEAD), line(["---"] * len(HEAD)))
    for engine, row in rows.items():
        if any("vls" in each for each in row):
            yield line([engine, *cells(row)])
    refused: dict[str, list[str]] = {}
    for engine, row in rows.items():
        for reason in dict.fromkeys(each["refused"] for each in row if "refused" in each):
            those = [f"{s:.0%}" for s, each in zip(shares, row, strict=True) if each.get("refused") == reason]
            where = "" if len(those) == len(shares) else f" ({', '.join(those)})"
            refused.setdefault(reason, []).append(f"`{engine}`{where}")
    if refused:
        yield from ("", line(("engines without tables", "reason")), line(["---"] * 2))
        yield from (line((", ".join(engines), reason)) for reason, engines in refused.items())


def cells(row: Results) -> list[str]:
    """Return the cells of an engine's line in a table.

    ``row`` has the results of the engine, one for each share of missing links.  A cell has one value for each share of
    missing links.  If all values are equal, the cell has a single value.
    """
    formats: Sequence[tuple[str, Callable[[Any], str]]] = (
        ("certified", lambda value: "yes" if value else "no"),
        ("vls", str),
        ("all_to_all", "{:.3f}".format),
        ("bisection", "{:.3f}".format),
        ("hops", "{:.2f}".format),
        ("stretch", "{:.3f}".format),
        ("seconds", "{:.2g}".format),
    )
    found = []
    for name, written in formats:
        texts = [written(each[name]) if name in each else NO_TABLES for each in row]
        found.append(texts[0] if len(set(texts)) == 1 else " / ".join(texts))
    return found


def fixture_table(ledger: Ledger, fabrics: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the Markdown table that summarises the results on all fixtures."""
    if not fabrics:
        return
    yield f"\n## The {len(fabrics)} fixtures\n"
    head = ("engine", "routed", "loop-free", "relative all-to-all: mean", "least", "mean stretch", "seconds")
    yield from (line(head), line(["---"] * len(head)))
    best = {key: best_share(results) for key, results in ledger.items()}
    refused: Counter[tuple[str, str]] = Counter()
    for engine in engines_of(ledger):
        columns: list[list[str]] = []
        for share in SHARES:
            keys = [key for key in (f"{fabric} - {share:.0%}" for fabric in fabrics) if key in ledger]
            found = {key: ledger[key][engine] for key in keys if "vls" in ledger[key].get(engine, {})}
            refused.update(
                (engine, ledger[key][engine]["refused"]) for key in keys if "refused" in ledger[key].get(engine, {})
            )
            ratio = [each["all_to_all"] / best[key] for key, each in found.items() if "all_to_all" in each]
            stretch = [each["stretch"] for each in found.values() if "stretch" in each]
            columns.append(
                [
                    str(len(found)),
                    str(sum(each["certified"] for each in found.values())),
                    f"{np.mean(ratio):.3f}" if ratio else NO_TABLES,
                    f"{min(ratio):.3f}" if ratio else NO_TABLES,
                    f"{np.mean(stretch):.3f}" if stretch else NO_TABLES,
                    f"{sum(each.get('seconds', 0.0) for each in found.values()):.2g}",
                ]
            )
        texts = [" / ".join(column) if len(set(column)) > 1 else column[0] for column in zip(*columns, strict=True)]
        yield line([engine, *texts])
    yield from ("", line(("engine without tables", "reasons, with the number of cases")), line(["---"] * 2))
    for engine in engines_of(ledger):
        reasons = [f"{reason} ({count})" for (name, reason), count in refused.items() if name == engine]
        if reasons:
            yield line((f"`{engine}`", "; ".join(reasons)))


def auto_table(ledger: Ledger) -> Iterator[str]:
    """Yield the lines of the Markdown table that compares ``auto`` with the certified tables of all other engines."""
    keys = [key for key, results in ledger.items() if "bisection" in results.get("auto", {})]
    if not keys:
        return
    rows = [
        line([f"{key} {engine}", *(f"{ratio:.3f}" for ratio in ratios)])
        for key in keys
        for engine, ratios in better_than_auto(ledger[key]).items()
    ]
    beaten = sum(bool(better_than_auto(ledger[key])) for key in keys)
    yield "\n## `auto` beside all other engines\n"
    yield f"In {len(keys) - beaten} of {len(keys)} cases, no other engine has better certified tables than `auto`."
    yield "Tables are better if neither all-to-all nor bisection is lower, and one of the two figures is more than"
    yield "half a percent higher. Bisection is a mean over random patterns, so differences below half a percent depend"
    yield "on the seed of the patterns."
    if rows:
        yield "\nThe exceptions, with the figures of the other engine relative to those of `auto`:\n"
        yield from (line(["case and engine", "all-to-all", "bisection"]), line(["---"] * 3), *rows)
    yield from trade_off_table(ledger, keys)


def trade_off_table(ledger: Ledger, keys: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the Markdown table of engines with a better all-to-all or bisection than ``auto``, but not
    both.

    For each of the two figures and each case (``keys`` of the ledger), the table has only the engine with the highest
    value.  This value has to exceed the value of ``auto`` by more than half a percent.  Engines that
    :func:`better_than_auto` returns are left out.
    """
    rows = []
    for key in keys:
        better = better_than_auto(ledger[key])
        found = {engine: ratios for engine, ratios in certified_ratios(ledger[key]).items() if engine not in better}
        best = [max(found, key=lambda engine: found[engine][figure], default=None) for figure in (0, 1)]
        rows += [
            line([f"{key} {engine}", *(f"{ratio:.3f}" for ratio in found[engine])])
            for figure, engine in enumerate(best)
            if engine is not None and found[engine][figure] > 1 + EQUAL
        ]
    if rows:
        yield "\nIn the following cases, one figure of another engine's certified tables is more than half a percent"
        yield "higher than that of `auto`, and the other figure is lower. The table has the engine with the highest"
        yield "figure of each case. On trees, `auto` counts all-to-all shares above 1 as 1, because the links of the"
        yield "CAs limit the rate.\n"
        yield from (line(["case and engine", "all-to-all", "bisection"]), line(["---"] * 3), *rows)


def better_than_auto(results: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """Return the engines whose certified tables are better than the tables of ``auto`` on a fabric.

    Tables are better if neither all-to-all nor bisection is lower, and one of the two figures is higher by more than
    :data:`EQUAL`.  The values of the result are all-to-all and bisection relative to ``auto``.
    """
    return {
        engine: ratios
        for engine, ratios in certified_ratios(results).items()
        if min(ratios) >= 1 and max(ratios) > 1 + EQUAL
    }


def certified_ratios(results: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """Return all-to-all and bisection relative to ``auto``, for each engine with certified tables."""
    auto = results["auto"]
    return {
        engine: (relative(each["all_to_all"], auto["all_to_all"]), relative(each["bisection"], auto["bisection"]))
        for engine, each in results.items()
        if each.get("certified") and each.keys() >= {"all_to_all", "bisection"}
    }


def relative(value: float, reference: float) -> float:
    """Return the quotient of two figures.  If ``reference`` is 0, return 1 for two equal figures, else infinity."""
    if reference == 0:
        return 1.0 if value == 0 else math.inf
    return value / reference


def best_share(results: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the largest all-to-all share of any engine on a fabric; 1 if no engine has a positive share."""
    return max((each["all_to_all"] for each in results.values() if "all_to_all" in each), default=1.0) or 1.0


STYLE = """
text{font:10px sans-serif;fill:#222}
.n{font-size:9px;text-anchor:middle}
.d{fill:#fff}
.h{font-weight:bold}
@media (prefers-color-scheme:dark){text{fill:#ddd}.n{fill:#222}.n.d{fill:#fff}}
"""
PROVEN, LOOPS, NONE = ((225, 238, 247), (11, 72, 125)), ((253, 232, 208), (176, 72, 6)), "#d7d7d7"
LEFT, TOP, ROW, GAP = 130, 150, 15, 8


def picture(ledger: Ledger, fabrics: Sequence[str], width: int, numbers: bool) -> str:
    """Return a picture of the results as SVG, with a row for each engine and a cell for each fabric.

    A cell has four boxes, one for each share of missing links.  A box is blue if the tables are certified, orange if
    they have a credit loop, and grey if there are no tables.  Darker boxes mean a larger all-to-all share, relative to
    the best engine on this fabric.

    Parameters
    ----------
    ledger, fabrics
        Results, and the names of the fabrics to show.
    width
        Width of a box in pixels.
    numbers
        Whether boxes contain the relative all-to-all share in percent.
    """
    engines, step = engines_of(ledger), len(SHARES) * width + GAP
    best = {key: best_share(results) for key, results in ledger.items()}
    body = []
    for row, engine in enumerate(engines):
        y = TOP + row * ROW + (GAP if engine.startswith("OpenSM ") else 0)
        body.append(f'<text x="4" y="{y + 11}">{escape(engine)}</text>')
        for column, fabric in enumerate(fabrics):
            for part, share in enumerate(SHARES):
                key, x = f"{fabric} - {share:.0%}", LEFT + column * step + part * width
                body += _part(ledger.get(key, {}).get(engine, {}), best.get(key, 1.0), (x, y, width), numbers)
    for column, fabric in enumerate(fabrics):
        x = LEFT + column * step + len(SHARES) * width // 2
        body.append(f'<text class="h" transform="translate({x + 4},{TOP - 20}) rotate(-55)">{escape(fabric)}</text>')
        if numbers:
            body += [
                f'<text class="n" x="{LEFT + column * step + part * width + width // 2}" y="{TOP - 5}">{text}</text>'
                for part, text in enumerate(f"{share:.0%}" for share in SHARES)
            ]
    wide, high = LEFT + len(fabrics) * step + 90, TOP + len(engines) * ROW + GAP + 24
    title = "All-to-all share of each engine relative to the best engine, with 0, 1, 5 and 10 % of the links failed"
    key = "blue: proven free of credit loops; orange: credit loop; grey: no tables; darker: more traffic"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">\n'
        f"<title>{title}</title><style>{STYLE}</style>\n" + "\n".join(body)
        + f'\n<text x="4" y="{high - 8}">{key}</text>\n</svg>\n'
    )  # fmt: skip


def _part(result: Mapping[str, Any], best: float, place: tuple[int, int, int], numbers: bool) -> list[str]:
    """Return the SVG elements of one box of the picture: the result of one engine on one fabric.

    Parameters
    ----------
    result, best
        Result of the engine, and the largest all-to-all share of any engine on this fabric.
    place
        x and y of the upper left corner, and the width, in pixels.
    numbers
        Whether the box contains the relative all-to-all share in percent.
    """
    x, y, width = place
    box = f'<rect x="{x}" y="{y}" width="{width - 1}" height="{ROW - 2}"'
    if "vls" not in result:
        return [f'{box} fill="{NONE}"/>']
    ratio = min(1.0, result.get("all_to_all", best) / best)
    light, dark = PROVEN if result["certified"] else LOOPS
    colour = "#" + "".join(f"{round(a + (b - a) * ratio):02x}" for a, b in zip(light, dark, strict=True))
    found = [f'{box} fill="{colour}"/>']
    if numbers:
        dark_text = " d" if ratio > 0.5 else ""
        found.append(f'<text class="n{dark_text}" x="{x + width // 2}" y="{y + 10}">{100 * ratio:.0f}</text>')
    return found
