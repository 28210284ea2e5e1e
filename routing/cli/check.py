"""``ibnue check``: check whether tables are complete and free of credit loops."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

import click

from routing.cli import fabric_argument, proof_report
from routing.cli.command import FINDING, UNDECIDED
from routing.cli.output import echo_lines, fabric_object, json_option, print_json, print_rows, spinner
from routing.cli.param_types import threads_option
from routing.cli.report_options import report_options, write_reports
from routing.errors import FalseCertificate
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.deadlock.multicast import MulticastVerdict
    from routing.deadlock.verdict import Verdict
    from routing.draw.report import Report
    from routing.fabric import Fabric
    from routing.tables import Routing

STORED_CERTIFICATE = "valid"

PORT_VLS = (1, 2, 4, 8, 15)
"""Numbers of data VLs that InfiniBand allows a port to support."""


@click.command()
@fabric_argument.fabric_argument
@fabric_argument.tables_argument
@fabric_argument.sl_options
@click.option("--require", type=click.Choice(["forward", "reversible"]), default="forward", show_default=True,
              help="Required strength of the proof: forward covers requests, reversible also replies.")  # fmt: skip
@click.option("--message-types", "types", type=click.IntRange(1, 16), metavar="N",
              help="Number of message types that wait for one another, such as 2 for request and reply. Reports whether"
                   " a port has enough VLs to give each type its own copy of the tables.")  # fmt: skip
@click.option("--multicast", type=click.Path(path_type=Path), metavar="FILE",
              help="Multicast tables (OpenSM's opensm.mcfdbs), to be checked together with TABLES.")  # fmt: skip
@click.option("--multicast-sl", type=click.IntRange(0, 15), metavar="N", default=0, show_default=True,
              help="Service level of the multicast groups.")  # fmt: skip
@threads_option
@report_options
@json_option
def check(
    *,
    fabric: str,
    tables: Path,
    require: str,
    types: int | None,
    multicast: Path | None,
    multicast_sl: int,
    threads: int,
    as_json: bool,
) -> int:
    """Check whether TABLES are complete and free of credit loops on FABRIC, and name a loop if there is one.

    \b
    ibnue check ibnetdiscover.txt dump_fts.txt --sl saquery-PR.txt
    ibnue check ibnetdiscover.txt tables
    ibnue check snapshot

    TABLES is a bundle, a folder that ibnue wrote, a folder with OpenSM's dump files, or a dump of LFTs.  If FABRIC is a
    snapshot of ibnue collect, TABLES may be left out.  Exit status 1: the tables are incomplete or have a credit loop,
    the stored certificate is not valid, or no port has enough VLs for --message-types.  Exit status 3: unknown service
    levels or SL2VL tables decide the question.
    """
    from routing.deadlock.offset_replies import replies_need_offset
    from routing.deadlock.verdict import decide

    with spinner(f"reading {fabric} and {tables}"):
        subnet = fabric_argument.read(fabric)
        routing = fabric_argument.tables(tables, subnet)
    with spinner("proving"):
        verdict = decide(subnet, routing, threads=threads)
        at_offset = verdict.loops == "none" and replies_need_offset(subnet, routing, verdict.proof)
        carried = carried_certificate(tables, subnet, routing, threads)
        groups = None if multicast is None else multicast_verdict(multicast, subnet, routing, verdict, multicast_sl)
    chain = None if types is None else chain_of(verdict, types)
    status = status_of(verdict, require, carried, chain, groups)
    rows = summary(subnet, verdict, carried, chain, groups)
    if at_offset:
        rows.append(proof_report.REPLIES_AT_OFFSET)
    write_reports(lambda: report_of(subnet, routing, verdict, rows, threads))
    if as_json:
        more = {
            "replies_at_offset": at_offset,
            "bundle_certificate": carried,
            "required": require,
            "ok": status == 0,
            "message_types": chain,
            "multicast": None if groups is None else multicast_object(groups),
        }
        shown = {"fabric": fabric_object(subnet, fabric), **proof_report.verdict_object(verdict), **more}
        print_json("ibnue-check/1", shown)
        return status
    print_rows(rows)
    proof_report.print_verdict(verdict)
    if groups is not None:
        echo_lines(*groups.loop)
    proof = verdict.proof
    if require == "reversible" and verdict.loops == "none" and proof.reversible_loop is not None:
        echo_lines(*proof.reversible_loop.describe())
    return status


def summary(
    fabric: Fabric,
    verdict: Verdict,
    carried: str | None = None,
    chain: Mapping[str, Any] | None = None,
    groups: MulticastVerdict | None = None,
) -> list[tuple[str, str]]:
    """Return the verdict on tables as rows of a name and a text.

    ``carried`` states whether the stored certificate is valid (:func:`carried_certificate`).  ``chain`` is the number
    of VLs for several message types (:func:`chain_of`), and ``groups`` the verdict on multicast
    (:func:`multicast_verdict`).  An argument of None adds no row.
    """
    rows = [("fabric", proof_report.fabric_line(fabric)), *proof_report.verdict_rows(verdict)]
    if chain is not None:
        rows.append(("message types", chain_text(chain)))
    if carried is not None:
        rows.append(("certificate", f"in the bundle: {'verified' if carried == STORED_CERTIFICATE else carried}"))
    if groups is not None:
        rows.append(("multicast", multicast_text(groups)))
    return rows


def report_of(
    fabric: Fabric, routing: Routing, verdict: Verdict, rows: list[tuple[str, str]], threads: int = 2
) -> Report:
    """Return the report on tables: the verdict, the channels of a credit loop, and a picture of the fabric."""
    from routing.draw.fabric_report import loop_table
    from routing.draw.picture import picture_of
    from routing.draw.report import Report

    loop = verdict.possible_loop or verdict.proof.credit_loop
    return Report(
        f"{fabric.name}: check",
        tuple(rows),
        (loop_table(loop),),
        lambda: picture_of(fabric, routing, loop=loop, threads=threads),
    )


def status_of(
    verdict: Verdict,
    require: str,
    carried: str | None,
    chain: Mapping[str, Any] | None,
    groups: MulticastVerdict | None,
) -> int:
    """Return the exit status of ``ibnue check``.

    A finding, such as a credit loop, gives status 1, even if another question is undecided.  Without a finding, an
    undecided question gives status 3, for example if unknown SLs leave open whether there is a credit loop.  The
    parameters after ``require`` are those of :func:`summary`.
    """
    wrong = not verdict.proof.complete or verdict.loops == "yes" or carried not in (None, STORED_CERTIFICATE)
    wrong |= verdict.loops == "none" and require == "reversible" and verdict.proof.strength != "reversible"
    known = verdict.vls is not None
    wrong |= known and chain is not None and chain["port_vls"] is None
    undecided = verdict.loops == "unknown" or (chain is not None and not known)
    if groups is not None and not groups.good:
        groups_unknown = groups.loops == "unknown" and not groups.looping
        wrong, undecided = wrong or not groups_unknown, undecided or groups_unknown
    return FINDING if wrong else UNDECIDED if undecided else 0


def multicast_verdict(path: Path, fabric: Fabric, routing: Routing, verdict: Verdict, sl: int) -> MulticastVerdict:
    """Check the multicast groups of a dump (``opensm.mcfdbs``) together with unicast tables."""
    from routing.cdg.trace import uniform_sl2vl
    from routing.deadlock.multicast import check_groups
    from routing.formats.mcfdbs import read_mcfdbs

    groups = read_mcfdbs(path, fabric)
    return check_groups(fabric, verdict.proof.cdg, uniform_sl2vl(routing), groups, sl=sl)


def multicast_object(groups: MulticastVerdict) -> dict[str, Any]:
    """Return the verdict about multicast groups as an object for ``--json``."""
    return {
        "groups": groups.groups,
        "vl": groups.vl,
        "verdict": groups.loops,
        "credit_loop_lines": groups.loop,
        "circling_mlids": groups.looping,
    }


def multicast_text(groups: MulticastVerdict) -> str:
    """Format the verdict about multicast groups as one line."""
    number = count_noun(groups.groups, "group")
    if groups.looping:
        names = ", ".join(f"0x{mlid:04X}" for mlid in groups.looping[:4])
        return f"{number}: a FORWARDING LOOP of {names}"
    if groups.loops == "unknown":
        return f"{number}: unknown, as unicast alone is not proven or the VL of the groups is not known"
    found = "a CREDIT LOOP together with unicast" if groups.loops == "yes" else "no credit loop together with unicast"
    return f"{number} on VL {groups.vl}: {found}"


def chain_of(verdict: Verdict, types: int) -> dict[str, Any]:
    """Return how many VLs a chain of ``types`` message types needs, such as requests and replies.

    Each message type uses the paths of the tables on VLs of its own.

    Keys of the result are:
    - ``types``: number of message types.
    - ``vls_each``: number of VLs of the tables, which each message type needs; None if unknown.
    - ``vls_needed``: number of VLs that all message types need together.
    - ``port_vls``: the smallest element of :data:`PORT_VLS` that is at least ``vls_needed``; None if every
      element is smaller, or if the tables have no certificate.
    - ``strict``: number of VLs from which a message can choose at each hop, if the switches route adaptively and each
      port has ``port_vls`` VLs.  No two message types share a VL.  If the number differs between types, this is the
      smallest number.
    - ``wide``: like ``strict``, but the message types share all VLs except their escape VLs.  (Escape VLs: the
      ``vls_each`` VLs on which messages of a type follow the proven tables.)

    ``strict`` and ``wide`` are None if ``port_vls`` is None.
    """
    from routing.deadlock.message_classes import AVOIDANCES, channel_budget, channels_needed

    if verdict.vls is None:
        return {"types": types, **dict.fromkeys(("vls_each", "vls_needed", "port_vls", *AVOIDANCES))}
    escape = [verdict.vls] * types
    needed = channels_needed(escape, "strict")
    ports = next((count for count in PORT_VLS if count >= needed), None) if verdict.certified else None
    chain: dict[str, Any] = {"types": types, "vls_each": verdict.vls, "vls_needed": needed, "port_vls": ports}
    for how in AVOIDANCES:
        chain[how] = None if ports is None else min(channel_budget(ports, escape, how).usable)
    return chain


def chain_text(chain: Mapping[str, Any]) -> str:
    """Format the VLs that several message types need (:func:`chain_of`) as one line."""
    if chain["vls_each"] is None:
        return "unknown, because the VLs of the tables are unknown"
    needs = f"{chain['types']} need {chain['vls_needed']} VLs, {chain['vls_each']} each"
    if chain["port_vls"] is not None:
        return f"{needs}; ports with {chain['port_vls']} data VLs are enough"
    if chain["vls_needed"] > PORT_VLS[-1]:
        return f"{needs}: MORE than the {PORT_VLS[-1]} that a port can have"
    return "NO number of VLs is enough, because these tables are not proven free of credit loops"


def carried_certificate(tables: Path, fabric: Fabric, routing: Routing, threads: int) -> str | None:
    """Check the certificate that a bundle of tables stores, by following every path once.

    Returns
    -------
    str or None
        :data:`STORED_CERTIFICATE` if the certificate is valid, otherwise the reason why the certificate is not valid.
        None if ``tables`` stores no certificate.
    """
    from routing.cdg.certificate import Certificate, Strength, check_certificate
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
        return f"NOT valid: {error}"
    return STORED_CERTIFICATE
