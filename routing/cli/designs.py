"""``ibnue designs``: list the topologies that connect a number of hosts with switches of a given number of ports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from routing.cli.output import echo_lines, json_option, print_json, print_table, spinner

if TYPE_CHECKING:
    from routing.advise.proposals import Proposal

COLUMNS = ("design", "hosts", "switches", "cables", "oversub.", "diameter", "bisection")


@click.command()
@click.argument("hosts", type=click.IntRange(2, 49150))
@click.option("--ports", type=click.IntRange(2, 254), default=36, show_default=True, metavar="P",
              help="Number of ports of each switch.")  # fmt: skip
@json_option
def designs(*, hosts: int, ports: int, as_json: bool) -> int:
    """List designs that connect HOSTS hosts with switches of one size.

    \b
    ibnue designs 600 --ports 36
    ibnue compare-designs xgft:24x25,1x12 hyperx:7x7,cas=13 --hosts 600 --ports 36

    For trees, HyperX, tori, dragonflies and Slim Flies, ibnue proposes the design with the fewest switches for a full,
    a half and a quarter bisection.  Each design is a generator, which every command accepts as FABRIC.  The bisection
    is an upper bound for any tables; ibnue compare-designs routes and measures the designs.
    """
    from routing.advise.proposals import evaluate_shape, propose

    found = []
    for shape in propose(hosts, ports):
        with spinner(f"building {shape.design}"):
            found.append(evaluate_shape(shape))
    if as_json:
        print_json("ibnue-designs/1", as_object(found, hosts, ports))
    else:
        show(found, hosts, ports)
    return 0


def as_object(found: Sequence[Proposal], hosts: int, ports: int) -> dict[str, Any]:
    """Return the proposals as an object for ``--json``."""
    return {"hosts": hosts, "switch_ports": ports, "designs": [record(proposal) for proposal in found]}


def record(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal as an object for ``--json``."""
    return {
        "design": proposal.shape.design,
        "topology": proposal.shape.family,
        "hosts": proposal.hosts,
        "switches": proposal.switches,
        "cables": proposal.cables,
        "switch_ports_max": proposal.ports,
        "leaf_oversubscription": proposal.oversubscription,
        "diameter": proposal.diameter,
        "bisection_bound": proposal.bisection,
    }


def show(found: Sequence[Proposal], hosts: int, ports: int) -> None:
    """Print a row for each proposal, and the next command."""
    print_table(COLUMNS, [cells(proposal) for proposal in found], texts=1)
    echo_lines(
        "cables: between switches; bisection: upper bound for any tables, as a share of the hosts' rate",
        f"compare the rates that tables reach: ibnue compare-designs DESIGN... --hosts {hosts} --ports {ports}",
    )


def cells(proposal: Proposal) -> list[str]:
    """Return the row of a proposal in the printed table; "-" for a figure that is not known."""

    def shown(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    return [
        proposal.shape.design,
        str(proposal.hosts),
        str(proposal.switches),
        str(proposal.cables),
        shown(proposal.oversubscription, ".2f"),
        shown(proposal.diameter, "d"),
        shown(proposal.bisection, ".2f"),
    ]
