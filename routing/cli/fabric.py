"""``ibnue fabric``: generate or read a fabric, describe it, or write it in another format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import fabric_argument
from routing.cli.output import json_option, print_json, print_rows, print_table, spinner
from routing.errors import OptionError
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.fabric import Fabric


@click.command()
@click.argument("source", required=False, shell_complete=fabric_argument.complete)
@click.argument("arguments", nargs=-1)
@click.option("--list", "as_list", is_flag=True, help="List the generators and their arguments.")
@click.option("--cas", type=int, metavar="N", help="Number of CAs on each switch that has CAs.")
@click.option("--redundancy", type=int, metavar="N", help="Number of parallel links in place of each link.")
@click.option("--width", type=int, metavar="LANES", help="Width of every link in physical lanes: 1, 2, 4, 8 or 12.")
@click.option("--speed", metavar="SPEED", help="Speed of every link: SDR to XDR, or such as 4xNDR or 400G.")
@click.option("--seed", type=int, help="Seed of random topologies.")
@click.option("--name", help="Name of the fabric.")
@click.option(
    "--lmc", type=click.IntRange(0, 7), default=0, show_default=True, help="LMC of the LIDs that are assigned."
)
@click.option(
    "--guid2lid", type=click.Path(path_type=Path), metavar="FILE", help="Take LIDs from this guid2lid file of OpenSM."
)
@fabric_argument.fault_options
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the fabric; the suffix names the format: .net (ibsim), .json or .graphml.")  # fmt: skip
@fabric_argument.name_map_option
@fabric_argument.class_options
@json_option
def fabric(
    *,
    source: str | None,
    arguments: tuple[str, ...],
    as_list: bool,
    lmc: int,
    guid2lid: Path | None,
    failed: tuple[str, ...],
    fault_lists: tuple[Path, ...],
    output: Path | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Generate a fabric or read one from a file, describe it, and write it with -o.

    \b
    ibnue fabric torus:10x10x10,cas=4 -o torus.net
    ibnue fabric torus 10x10x10 --cas 4 -o torus.net
    ibnue fabric ibnetdiscover.out -o fabric.net
    ibnue fabric fabric.net --fail 'leaf1/36 - spine1/1' -o degraded.net
    ibnue fabric --list
    """
    if as_list:
        if source is not None:
            raise click.UsageError(f"give either {source!r} or --list", click.get_current_context())
        list_generators(as_json)
        return 0
    if source is None:
        raise click.UsageError("Missing argument 'SOURCE': a generator (--list) or a file", click.get_current_context())
    chosen = {name: value for name, value in given.items() if value is not None}
    with spinner(f"reading {source}"):
        subnet = fabric_argument.broken(load(source, list(arguments), chosen, lmc, guid2lid), failed, fault_lists)
    if output is not None:
        from routing.formats.atomic import make_parents
        from routing.formats.fabric_files import write_fabric

        with spinner(f"writing {output}"):
            make_parents(output)
            write_fabric(subnet, output)
    described = describe(subnet)
    if as_json:
        print_json({**described, "digest": subnet.digest, "file": None if output is None else str(output)})
    else:
        print_rows([*facts(described), *([("file", str(output))] if output is not None else [])])
    return 0


def load(source: str, arguments: list[str], chosen: dict[str, Any], lmc: int, guid2lid: Path | None) -> Fabric:
    """Return the fabric that a generator makes, or that a file contains.

    Raises
    ------
    OptionError
        Options of a generator were given together with a file.
    """
    made = fabric_argument.generator_of(source)
    if made is not None:
        name, words = made
        return fabric_argument.generated(name, [*words, *arguments], guid2lid, lmc=lmc, **chosen)
    if arguments or chosen:
        what = arguments[0] if arguments else "--" + next(iter(chosen))
        raise OptionError(f"{what} is for generators, and {source!r} is not a generator", remedy="ibnue fabric --list")
    return fabric_argument.read(source, lmc=lmc, guid2lid=guid2lid)


def describe(fabric: Fabric) -> dict[str, Any]:
    """Return the numbers that describe a fabric, by name."""
    import numpy as np

    from routing.fabric_figures import fabric_figures

    inside = int(fabric.aggregation_nodes.sum())
    kinds = np.bincount(fabric.terminal_kind[~fabric.aggregation_nodes], minlength=3)
    between = fabric.channels.link
    rates, counts = np.unique(fabric.link_capacity, return_counts=True)
    figures = fabric_figures(fabric)
    bound = figures.bound
    return {
        "name": fabric.name,
        "switches": fabric.switches,
        "CAs": int(kinds[1]),
        "routers": int(kinds[2]),
        **({"aggregation nodes": inside} if inside else {}),
        "links": fabric.links,
        "links between switches": len(between) // 2,
        "end ports": fabric.endports,
        "end ports by class": fabric.port_classes.counts(fabric.endport_class),
        "LIDs": int((fabric.lids.switch >= 0).sum()),
        "connected parts": 1 + int(fabric.component.max(initial=-1)) if fabric.switches else 0,
        "most switch ports": int(fabric.switch_ports.max(initial=0)),
        "switch ports cabled": figures.ports_used,
        "switch ports free": figures.ports - figures.ports_used,
        "link rates in Gb/s": {f"{rate:g}": count for rate, count in zip(rates.tolist(), counts.tolist(), strict=True)},
        "cables by kind": dict(figures.cables),
        **({} if figures.diameter is None else {"diameter": figures.diameter}),
        **({"switches by level": list(figures.levels)} if figures.levels else {}),
        **({"oversubscription": list(figures.oversubscription)} if figures.levels else {}),
        "all-to-all bound": None if bound is None else bound.all_to_all,
        "bound by": None if bound is None else bound.reason,
    }


def facts(described: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the description of a fabric as rows of name and text."""
    for name, value in described.items():
        if name == "all-to-all bound":
            if value is not None:
                yield name, f"{value:.3f} of the CAs' rate for any tables: {described['bound by']}"
        elif isinstance(value, dict):
            yield name, ", ".join(_with_number(name, kind, number) for kind, number in value.items())
        elif isinstance(value, list):
            each = (f"{number:.2f}" if isinstance(number, float) else str(number) for number in value)
            yield name, f"{', '.join(each)}, from the leaves up"
        elif name != "bound by":
            yield name, str(value)


def _with_number(name: str, kind: str, number: int) -> str:
    """Format one kind of links, cables or end ports with its number."""
    return f"{kind} ({count_noun(number, 'link')})" if name.startswith("link") else f"{number} {kind}"


def list_generators(as_json: bool) -> None:
    """Print every generator with its arguments."""
    from routing.topologies import TOPOLOGIES

    if as_json:
        print_json({t.name: {"arguments": t.usage, "summary": t.summary} for t in TOPOLOGIES.values()})
        return
    rows = [(t.name, t.usage, t.summary, f"ibnue fabric {t.example_word}") for t in TOPOLOGIES.values()]
    print_table(["generator", "arguments", "what it makes", "example"], rows, texts=4)
