"""``ibnue check``: are these tables complete and free of credit loops?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

import click

from routing.cli import fabrics, findings
from routing.cli.command import FINDING
from routing.cli.output import json_option, phase, print_facts, print_json, tell
from routing.errors import FalseCertificate

if TYPE_CHECKING:
    from routing.deadlock.proof import Proof
    from routing.fabric import Fabric
    from routing.tables import Routing

HOLDS = "holds"

PORT_VLS = (1, 2, 4, 8, 15)
"""Numbers of data VLs that a port can have."""


@click.command()
@fabrics.fabric_argument
@click.argument("tables", type=click.Path(path_type=Path))
@click.option("--require", type=click.Choice(["forward", "reversible"]), default="forward", show_default=True,
              help="The proof to ask for; reversible takes the replies' way back into account too.")  # fmt: skip
@click.option("--message-types", "types", type=click.IntRange(1, 16), metavar="N",
              help="Messages are of N types that wait for one another, such as request and reply: are there VLs for a"
                   " copy of these tables for each of them?")  # fmt: skip
@click.option("--threads", type=click.IntRange(1, 256), default=2, show_default=True, help="Worker threads.")
@json_option
def check(
    *,
    fabric: str,
    tables: Path,
    lmc: int,
    guid2lid: Path | None,
    require: str,
    types: int | None,
    threads: int,
    as_json: bool,
) -> int:
    """Say whether TABLES are complete and free of credit loops on FABRIC, and which loop there is if not.

    TABLES is a bundle, a folder that ibnue wrote, or a folder with OpenSM's dump files.  Exit status 1 if they are not
    complete or have a credit loop, if the certificate that they came with does not hold, or if no port has the VLs for
    --message-types.
    """
    from routing.deadlock.proof import prove
    from routing.formats.table_files import read_tables

    with phase(f"reading {fabric} and {tables}"):
        subnet = fabrics.read(fabric, lmc=lmc, guid2lid=guid2lid)
        routing = read_tables(tables, subnet)
    with phase("proving"):
        proof = prove(subnet, routing, threads=threads)
        carried = carried_certificate(tables, subnet, routing, threads)
    strong = require == "forward" or proof.strength == "reversible"
    chain = None if types is None else chain_of(proof, types)
    good = proof.certified and strong and carried in (None, HOLDS) and (chain is None or chain["port_vls"] is not None)
    assumed = routing.provenance.options.get("assumed", [])
    if as_json:
        verdict = {
            "vls": proof.vls,
            "assumed": assumed,
            "bundle_certificate": carried,
            "required": require,
            "good": good,
            **({} if chain is None else {"message_types": chain}),
        }
        print_json({**findings.as_object(subnet, proof), **verdict})
        return 0 if good else FINDING
    rows = [("fabric", findings.fabric_line(subnet)), *findings.facts(proof), ("VLs", str(proof.vls))]
    if chain is not None:
        rows.append(("message types", chain_text(chain)))
    print_facts([*rows, *([] if carried is None else [("certificate", f"that in the bundle {carried}")])])
    for assumption in assumed if isinstance(assumed, list) else ():
        tell(f"the files do not say, so it is assumed: {assumption}")
    findings.print_findings(proof)
    if require == "reversible" and proof.credit_loop is None and proof.reversible_loop is not None:
        tell(*proof.reversible_loop.describe())
    return 0 if good else FINDING


def chain_of(proof: Proof, types: int) -> dict[str, Any]:
    """What so many message types take, a copy of the tables in VLs of its own for each; port_vls: None, if too many.

    ``strict`` and ``wide``: the fewest VLs of these ports that a message of a type could choose from, if switches were
    adaptive on all VLs but a copy for each type.
    """
    from routing.deadlock.freedom import AVOIDANCES, channels_needed, message_freedom

    escape = [proof.vls] * types
    needed = channels_needed(escape, "strict")
    ports = next((count for count in PORT_VLS if count >= needed), None) if proof.certified else None
    chain: dict[str, Any] = {"types": types, "vls_each": proof.vls, "vls_needed": needed, "port_vls": ports}
    if ports is not None:
        chain |= {how: min(message_freedom(ports, escape, how).usable) for how in AVOIDANCES}
    return chain


def chain_text(chain: Mapping[str, Any]) -> str:
    """The same in a line."""
    needs = f"{chain['types']} need {chain['vls_needed']} VLs, {chain['vls_each']} each"
    if chain["port_vls"] is not None:
        return f"{needs}, with ports of {chain['port_vls']}"
    if chain["vls_needed"] > PORT_VLS[-1]:
        return f"{needs}: MORE than the {PORT_VLS[-1]} that a port can have"
    return "NO number of VLs is enough, as these tables are not proven"


def carried_certificate(tables: Path, fabric: Fabric, routing: Routing, threads: int) -> str | None:
    """Whether the certificate in a bundle holds, checked by a walk over the tables; None where there is none."""
    from routing.deadlock.certificate import Certificate, Strength, check_certificate
    from routing.formats.bundle import read_bundle
    from routing.formats.table_files import BUNDLE

    path = tables / BUNDLE if tables.is_dir() else tables
    if not is_zipfile(path):
        return None
    bundle = read_bundle(path)
    if bundle.strength not in ("forward", "reversible"):
        return None
    strength: Strength = "forward" if bundle.strength == "forward" else "reversible"
    certificate = Certificate(bundle.order, strength, bundle.scope)
    try:
        check_certificate(fabric, routing, certificate, threads=threads)
    except FalseCertificate as error:
        return f"does NOT hold: {error}"
    return HOLDS
