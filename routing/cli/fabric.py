"""``ibnue fabric``: generate or read a fabric, describe it, or write it in another format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import fabric_argument
from routing.cli.output import fabric_object, json_option, print_json, print_rows, print_table, spinner
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
@click.option("--speed", metavar="SPEED", help="Speed of every link, such as NDR (SDR to XDR), 4xNDR or 400G.")
@click.option("--seed", type=int, help="Seed of random topologies.")
@click.option("--name", help="Name of the fabric.")
@fabric_argument.device_options
@fabric_argument.fault_options
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the fabric; the suffix names the format: .net, .json, .graphml, .dot or .lst.")  # fmt: skip
@json_option
def fabric(
    *, source: str | None, arguments: tuple[str, ...], as_list: bool, output: Path | None, as_json: bool, **given: Any
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
        subnet = fabric_argument.broken(load(source, list(arguments), chosen))
    if output is not None:
        from routing.formats.atomic import make_parents
        from routing.formats.fabric_files import write_fabric

        with spinner(f"writing {output}"):
            make_parents(output)
            write_fabric(subnet, output)
    described = describe(subnet)
    if as_json:
        file = None if output is None else str(output)
        shown = {"fabric": fabric_object(subnet, source_text(source, arguments, given)), **described, "file": file}
        print_json("ibnue-fabric-figures/1", shown)
    else:
        rows = [*facts(subnet, described), ("file", str(output or ""))]
        print_rows([row for row in rows if row[1]])
    return 0


def source_text(source: str, arguments: Sequence[str], given: Mapping[str, Any]) -> str:
    """Return a generator with its arguments and options as one word, such as "torus:4x4,cas=2".

    ``source`` is a generator, such as "torus:4x4".  ``arguments`` are its other arguments, and ``given`` its options by
    name.  If ``source`` is the name of a file, the result is this name.
    """
    made = fabric_argument.generator_of(source)
    if made is None:
        return source
    name, words = made
    options = [f"{option}={value}" for option, value in given.items() if value is not None]
    every = [*words, *arguments, *options]
    return f"{name}:{','.join(every)}" if every else name


def load(source: str, arguments: list[str], chosen: dict[str, Any]) -> Fabric:
    """Return the fabric that a generator makes, or that a file contains.

    ``source`` is a file, or a generator such as "torus:4x4".  ``arguments`` are other arguments of the generator, and
    ``chosen`` are its options by name.

    Raises
    ------
    OptionError
        Options of a generator were given together with a file.
    """
    if (arguments or chosen) and fabric_argument.generator_of(source) is None:
        what = arguments[0] if arguments else "--" + next(iter(chosen))
        raise OptionError(f"{what} is for generators, and {source!r} is not a generator", remedy="ibnue fabric --list")
    return fabric_argument.read(source, arguments, **chosen)


def describe(fabric: Fabric) -> dict[str, Any]:
    """Return an object for ``--json`` with numbers that describe a fabric beyond those in :func:`fabric_object`."""
    import numpy as np

    from routing.fabric_figures import fabric_figures

    rates, counts = np.unique(fabric.link_capacity, return_counts=True)
    figures = fabric_figures(fabric)
    bound = figures.bound
    return {
        "switch_links": len(fabric.channels.link) // 2,
        "end_ports_by_class": fabric.port_classes.counts(fabric.endport_class),
        "lids": int((fabric.lids.switch >= 0).sum()),
        "switch_ports_max": int(fabric.switch_ports.max(initial=0)),
        "switch_ports_cabled": figures.ports_used,
        "switch_ports_free": figures.ports - figures.ports_used,
        "links_by_rate": [
            {"rate_gbps": rate, "links": count} for rate, count in zip(rates.tolist(), counts.tolist(), strict=True)
        ],
        "cables_by_kind": dict(figures.cables),
        "diameter": figures.diameter,
        "switches_by_level": list(figures.levels),
        "oversubscription": list(figures.oversubscription),
        "all_to_all_bound": None if bound is None else bound.all_to_all,
        "bound_reason": None if bound is None else bound.reason,
    }


def facts(fabric: Fabric, described: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the description of a fabric (:func:`describe`) as rows of a name and a text."""
    shown = fabric_object(fabric, None)
    yield "name", fabric.name
    yield "switches", str(fabric.switches)
    yield "CAs", str(shown["cas"])
    yield "routers", str(shown["routers"])
    if shown["aggregation_nodes"]:
        yield "aggregation nodes", str(shown["aggregation_nodes"])
    yield "links", str(fabric.links)
    yield "links between switches", str(described["switch_links"])
    yield "end ports", str(fabric.endports)
    yield "end ports by class", _by_kind(described["end_ports_by_class"])
    yield "LIDs", str(described["lids"])
    yield "connected parts", str(shown["parts"])
    yield "most switch ports", str(described["switch_ports_max"])
    yield "switch ports cabled", str(described["switch_ports_cabled"])
    yield "switch ports free", str(described["switch_ports_free"])
    rates = (f"{each['rate_gbps']:g} ({count_noun(each['links'], 'link')})" for each in described["links_by_rate"])
    yield "link rates in Gb/s", ", ".join(rates)
    yield "cables by kind", _by_kind(described["cables_by_kind"])
    if described["diameter"] is not None:
        yield "diameter", str(described["diameter"])
    if described["switches_by_level"]:
        levels, ratios = described["switches_by_level"], described["oversubscription"]
        yield "switches by level", f"{', '.join(map(str, levels))}, from the lowest level up"
        yield "oversubscription", f"{', '.join(f'{ratio:.2f}' for ratio in ratios)}, from the lowest level up"
    if described["all_to_all_bound"] is not None:
        bound = f"{described['all_to_all_bound']:.3f} of the CAs' rate for any tables"
        yield "all-to-all bound", f"{bound}: {described['bound_reason']}"


def _by_kind(numbers: dict[str, int]) -> str:
    """Format numbers with the names of the counted things, such as "12 compute, 4 storage"."""
    return ", ".join(f"{number} {kind}" for kind, number in numbers.items())


def list_generators(as_json: bool) -> None:
    """Print every generator with its arguments."""
    from routing.topologies import TOPOLOGIES

    if as_json:
        known = [{"name": t.name, "arguments": t.usage, "description": t.summary} for t in TOPOLOGIES.values()]
        print_json("ibnue-fabric-list/1", {"generators": known})
        return
    rows = [(t.name, t.usage, t.summary, f"ibnue fabric {t.example_word}") for t in TOPOLOGIES.values()]
    print_table(["generator", "arguments", "what it makes", "example"], rows, texts=4)
