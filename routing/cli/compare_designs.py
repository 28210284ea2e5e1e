"""``ibnue compare-designs``: compare fabrics that do not exist yet by cost, rates, hops and the loss of a link."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from routing.cli import engine_options, fabric_argument
from routing.cli.command import FINDING
from routing.cli.output import echo_lines, fabric_object, json_option, print_json, print_table, spinner
from routing.cli.param_types import Number, seed_option, threads_option
from routing.cli.report_options import report_options, write_reports
from routing.engines import DEFAULT, ENGINES
from routing.errors import OptionError
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.advise.designs import Design, Prices
    from routing.draw.report import Report

COLUMNS = ("design", "cost", "per host", "all-to-all", "bisection", "hops", "most", "worst link")
PRICE = Number(0, 1e12)


@click.command()
@click.argument("designs", nargs=-1, required=True, metavar="FABRIC...", shell_complete=fabric_argument.complete)
@click.option("-e", "--engine", "engine_name", default=DEFAULT, show_default=True, metavar="ENGINE",
              shell_complete=engine_options.complete, help="Engine that routes each design.")  # fmt: skip
@click.option("--hosts", type=click.IntRange(2, 49151), metavar="N",
              help="Keep N CAs of each design, spread evenly, so that all designs have N hosts.")  # fmt: skip
@click.option("--ports", type=click.IntRange(1, 254), metavar="P",
              help="Refuse designs with a switch of more than P ports.")  # fmt: skip
@click.option("--switch-price", type=PRICE, default=100.0, show_default=True, metavar="X", help="Price of a switch.")
@click.option("--cable-price", type=PRICE, default=5.0, show_default=True, metavar="X",
              help="Price of a cable between switches.")  # fmt: skip
@click.option("--ca-cable-price", type=PRICE, default=2.0, show_default=True, metavar="X",
              help="Price of a cable to a CA.")  # fmt: skip
@click.option("--links", type=click.IntRange(0), default=8, show_default=True, metavar="N",
              help="Number of links between switches to lose one by one in each design.")  # fmt: skip
@seed_option
@threads_option
@fabric_argument.name_map_option
@report_options
@json_option
def compare_designs(
    *, designs: tuple[str, ...], engine_name: str, hosts: int | None, ports: int | None, switch_price: float,
    cable_price: float, ca_cable_price: float, links: int, seed: int, threads: int, as_json: bool,
) -> int:  # fmt: skip
    """Compare designs by cost, all-to-all rate, bisection and hops, and by how much the loss of one link lowers the
    all-to-all rate at worst.

    \b
    ibnue compare-designs dragonfly:4,2,2 torus:6x6,cas=2
    ibnue compare-designs xgft:18x36,1x18 torus:6x6x6,cas=3 --hosts 600 --ports 36

    ibnue routes every design, proves its tables, and measures them.  The default prices are relative: a switch costs
    100.  Exit status 1 if a design has no tables.
    """
    from routing.advise.designs import Prices, evaluate_design, with_hosts
    from routing.engines.base import EngineOptions
    from routing.topologies.ranges import expand_ranges

    engine = ENGINES[engine_name]
    options = EngineOptions(seed=seed, threads=threads)
    prices = Prices(switch_price, cable_price, ca_cable_price)
    fabrics = []
    for text in (each for design in designs for each in expand_ranges(design)):
        with spinner(f"reading {text}"):
            fabric = fabric_argument.read(text)
            check_ports(text, int(fabric.switch_ports.max(initial=0)), ports)
            fabrics.append((text, fabric if hosts is None else with_hosts(fabric, hosts)))
    found = []
    for text, fabric in fabrics:
        with spinner(f"routing {fabric.name}"):
            found.append(evaluate_design(text, fabric, engine, options, prices=prices, links=links))
    write_reports(lambda: report_of(found, prices))
    if as_json:
        print_json("ibnue-compare-designs/1", as_object(found, prices, engine_name))
    else:
        show(found, prices)
    return FINDING if any(record(design)["refused"] is not None for design in found) else 0


def check_ports(text: str, most: int, ports: int | None) -> None:
    """Check that no switch of a design has more than ``ports`` ports (None: any number).

    ``text`` is the design, and ``most`` the largest number of ports of its switches.

    Raises
    ------
    OptionError
        A switch has more ports.
    """
    if ports is not None and most > ports:
        raise OptionError(f"{text} needs switches of {most} ports", remedy=f"take a design for {ports} ports")


def record(design: Design) -> dict[str, Any]:
    """Return the figures of a design by name, for JSON and CSV."""
    from routing.advise import Candidate

    routed, reason = (design.result, None) if isinstance(design.result, Candidate) else (None, design.result.reason)
    quality = None if routed is None else routed.quality
    return {
        "design": design.text,
        "fabric": design.fabric.name,
        "hosts": design.hosts,
        "switches": design.fabric.switches,
        "cables": design.cables,
        "ca_cables": design.ca_cables,
        "switch_ports_max": int(design.fabric.switch_ports.max(initial=0)),
        "cost": design.cost,
        "cost_per_host": design.cost_per_host,
        "all_to_all": None if quality is None else quality.all_to_all,
        "bisection": None if quality is None else quality.bisection_mean,
        "hops_mean": None if quality is None else quality.hops_mean,
        "hops_max": None if quality is None else quality.hops_max,
        "worst_link_loss": None if routed is None else routed.worst_loss,
        "refused": reason,
    }


def as_object(found: Sequence[Design], prices: Prices, engine: str) -> dict[str, Any]:
    """Return the comparison as an object for ``--json``."""
    stated = {"switch_price": prices.switch, "cable_price": prices.cable, "ca_cable_price": prices.ca_cable}
    return {"engine": engine, "prices": stated, "designs": [design_object(design) for design in found]}


def design_object(design: Design) -> dict[str, Any]:
    """Return a design as an object for ``--json``: its fabric and its figures."""
    figures = record(design)
    del figures["fabric"], figures["switches"]
    refusal = figures.pop("refused")
    return {"fabric": fabric_object(design.fabric, design.text), **figures, "refusal": refusal}


def prices_line(prices: Prices) -> str:
    """Return the prices as one text."""
    return f"switch {prices.switch:g}, cable between switches {prices.cable:g}, cable to a CA {prices.ca_cable:g}"


def report_of(found: Sequence[Design], prices: Prices) -> Report:
    """Return the report on the comparison: the prices, and a table with a row for each design."""
    from routing.draw.report import Report
    from routing.formats.csv_table import Table

    table = Table.of("Designs", [record(design) for design in found])
    return Report("Comparison of designs", (("prices", prices_line(prices)),), (table,))


def show(found: Sequence[Design], prices: Prices) -> None:
    """Print the numbers of switches, cables and CAs of each design, the table of figures (at most 80 columns wide), and
    the prices.
    """
    for number, design in enumerate(found, 1):
        switches = count_noun(design.fabric.switches, "switch")
        parts = f"{switches}, {design.cables} cables between them, {design.hosts} CAs"
        echo_lines(f"{number}  {design.text}: {parts}")
    print_table(COLUMNS, [cells(number, record(design)) for number, design in enumerate(found, 1)], texts=1)
    for number, design in enumerate(found, 1):
        if reason := record(design)["refused"]:
            echo_lines(f"design {number} has no tables: {reason}")
    if len({design.hosts for design in found}) > 1:
        echo_lines("the designs have different numbers of CAs: --hosts N makes them equal")
    echo_lines(f"prices: {prices_line(prices)}")


def cells(number: int, figures: dict[str, Any]) -> list[str]:
    """Return the row of design ``number`` in the printed table; "-" for a figure that is not known."""

    def shown(name: str, form: str) -> str:
        value = figures[name]
        return "-" if value is None or not math.isfinite(value) else format(value, form)

    loss = figures["worst_link_loss"]
    return [
        str(number),
        shown("cost", ".0f"),
        shown("cost_per_host", ".2f"),
        shown("all_to_all", ".3f"),
        shown("bisection", ".3f"),
        shown("hops_mean", ".2f"),
        shown("hops_max", "d"),
        "-" if loss is None else f"{100 * loss + 0.0:.1f} %",
    ]
