"""Check and apply rules for packet lifetimes and deadlock breakers of single ports: ``ibnue policy``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from routing.cli import fabric_argument, proof_report
from routing.cli.output import echo_lines, fabric_object, json_option, print_json, print_rows, print_table, spinner
from routing.errors import OptionError
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.fabric import Fabric
    from routing.policy import PortFacts, PortPolicies

Command = TypeVar("Command", bound=Callable[..., Any])
PolicyInputs = tuple["Fabric", "PortFacts", "PortPolicies"]


def inputs(command: Command) -> Command:
    """Add the inputs of a command: the arguments POLICY and FABRIC, and the options ``--tables``, ``--sl``,
    ``--sl2vl``.
    """
    command = click.option(
        "--tables",
        type=click.Path(path_type=Path),
        metavar="TABLES",
        help="A bundle or a folder of tables, for rules about ports on credit loops.",
    )(command)
    command = fabric_argument.sl_options(command)
    command = fabric_argument.class_options(command)
    command = fabric_argument.name_map_option(
        click.argument("fabric", shell_complete=fabric_argument.complete)(command)
    )
    return click.argument("policy_file", metavar="POLICY", type=click.Path(path_type=Path))(command)


@click.group()
def policy() -> None:
    """Rules for head-of-queue lifetimes and deadlock breakers, port by port.

    POLICY is a TOML file of [[rule]] tables.  Each rule selects ports (switch, ports, role, speed), and sets hoq_life,
    vl_stall_count, loop_breaker or deadlock_breaker for them.
    """


def apply_policy(policy_file: Path, fabric: str, tables: Path | None) -> PolicyInputs:
    """Read the policy, the fabric and the tables, and find the rules that apply to each port of a switch.

    Returns
    -------
    Fabric
        The fabric.
    PortFacts
        The properties of each port to which rules can refer: role, speed, and whether the port is on a credit loop.
    PortPolicies
        The rules that apply to each port.

    Raises
    ------
    InputError
        The policy, the fabric or the tables are invalid.
    """
    from routing.deadlock.verdict import worst_case
    from routing.policy import apply_rules, loop_channels, port_facts, read_policy

    if tables is None and fabric_argument.has_sl_files():
        raise OptionError("--sl and --sl2vl have no effect without --tables", remedy="add --tables, or leave them out")
    with spinner("reading"):
        rules, subnet = read_policy(policy_file), fabric_argument.read(fabric)
        routing = None if tables is None else fabric_argument.tables(tables, subnet)
    if routing is not None and (note := proof_report.vl_note(routing)) is not None:
        echo_lines(f"assumed: {note}", err=True)
    with spinner("applying the rules to the fabric"):
        facts = port_facts(subnet, None if routing is None else loop_channels(subnet, worst_case(routing)))
        return subnet, facts, apply_rules(rules, subnet, facts)


@policy.command(short_help="Check a policy, and count the ports to which it applies.")
@inputs
@json_option
def check(*, policy_file: Path, fabric: str, tables: Path | None, as_json: bool) -> int:
    """Check POLICY against FABRIC: unknown ports, rules that contradict one another, impossible values.

    All errors in the values of POLICY are reported together (exit status 2), with file, lines and remedies.  If POLICY
    does not fit FABRIC, the first problem is reported.  If there is no problem, the command prints the number of ports
    of each rule.
    """
    subnet, facts, found = apply_policy(policy_file, fabric, tables)
    rows = [
        (rule, len(found.selected[number]), found.decides(number)) for number, rule in enumerate(found.policy.rules)
    ]
    touched, cabled = int(found.touched.sum()), int(facts.cabled.sum())
    if as_json:
        rules = [{"name": r.name, "line": r.line, "ports": ports, "ports_decided": own} for r, ports, own in rows]
        shown = {"fabric": fabric_object(subnet, fabric), "ports": cabled, "ports_with_rule": touched, "rules": rules}
        print_json("ibnue-policy-check/1", shown)
        return 0
    print_rows(
        [
            ("fabric", proof_report.fabric_line(subnet)),
            ("ports", f"{count_noun(cabled, 'cabled port')} of switches, {touched} with a rule"),
        ]
    )
    if not rows:
        echo_lines("the policy has no rule, so every port keeps its values")
        return 0
    print_table(["rule", "line", "ports", "decides"], [(r.name, str(r.line), str(n), str(own)) for r, n, own in rows])
    for rule, ports, own in rows:
        if not own:
            why = "later rules override it everywhere" if ports else f"it selects no cabled port of {subnet.name}"
            echo_lines(f"{rule.name} (line {rule.line}) has no effect: {why}")
    return 0


@policy.command(short_help="Show the values of one port, and the rules that set these values.")
@inputs
@click.argument("switch")
@click.argument("port", type=click.IntRange(1, 254))
@json_option
def explain(*, policy_file: Path, fabric: str, tables: Path | None, switch: str, port: int, as_json: bool) -> int:
    """Show what POLICY sets at PORT of SWITCH (name or GUID), and which rule sets it."""
    from routing.policy.explain import explain_port

    subnet, facts, found = apply_policy(policy_file, fabric, tables)
    report = explain_port(found, subnet, facts, switch, port)
    if not facts.exists[report.row, port]:
        raise OptionError(f"{report.switch} has no port {port}", remedy=f"it has {subnet.switch_ports[report.row]}")
    if as_json:
        print_json("ibnue-policy-explain/1", {"fabric": fabric_object(subnet, fabric), **report.as_object()})
        return 0
    rows = [
        ("port", f"{report.switch} port {port}"),
        ("cable", report.cable),
        ("roles", ", ".join(report.roles) or "-"),
    ]
    path = found.policy.path
    for setting in report.settings:
        by = f", by {setting.rule} ({path}:{setting.line})" if setting.rule else ""
        rows.append((setting.what, f"{setting.text}{by}"))
        rows += [("", f"instead of {text}, by {name} ({path}:{line})") for name, line, text in setting.overridden]
    print_rows(rows)
    return 0


@policy.command(short_help="Propose rules from tables.")
@click.argument("fabric", shell_complete=fabric_argument.complete)
@fabric_argument.tables_argument
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the rules to this file.")
@click.option("--mtu", type=click.IntRange(256, 10240), default=4096, show_default=True, metavar="BYTES",
              help="Size of the largest packet.")  # fmt: skip
@click.option("--burst", type=click.IntRange(256, 1 << 30), default=65536, show_default=True, metavar="BYTES",
              help="Burst that every CA may send to one CA at the same time.")  # fmt: skip
@click.option("--breaker/--no-breaker", default=True, show_default=True, help="Propose a Deadlock Breaker on loops.")
@fabric_argument.name_map_option
@fabric_argument.class_options
@fabric_argument.sl_options
@json_option
def suggest(
    *, fabric: str, tables: Path, output: Path | None, mtu: int, burst: int, breaker: bool, as_json: bool
) -> int:
    """Propose a policy from TABLES: lifetimes that congestion alone never exceeds, and deadlock breakers on credit
    loops.

    The lifetimes follow from the longest wait without a deadlock.  This longest wait occurs if all CAs send a burst to
    one CA through switches that serve their inputs in turn.
    """
    import dataclasses

    from routing.deadlock.verdict import worst_case
    from routing.formats.atomic import write_text_atomically
    from routing.policy.suggest import rules_text
    from routing.policy.suggest import suggest as propose

    with spinner("reading"):
        subnet = fabric_argument.read(fabric)
        routing = fabric_argument.tables(tables, subnet)
        note = proof_report.vl_note(routing)
    with spinner("looking for the longest waits"):
        found = propose(subnet, worst_case(routing), packet_bytes=mtu, burst_bytes=burst, breaker=breaker)
    text = rules_text(found, subnet, assumed=note)
    if output is not None:
        write_text_atomically(output, text)
    if as_json:
        rules = [dataclasses.asdict(one) for one in found]
        shown = {"fabric": fabric_object(subnet, fabric), "rules": rules, "assumed": proof_report.assumed(note)}
        print_json("ibnue-policy-suggest/1", shown)
    elif output is None:
        click.echo(text, nl=False)
    else:
        print_rows([("rules", str(len(found))), ("file", str(output)), *([("assumed", note)] if note else [])])
    return 0


@policy.command(short_help="Write a policy for switch agents or for opensm.conf.")
@inputs
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
              help="Folder for one JSON file per switch, for the switch's agent.")  # fmt: skip
@click.option("--opensm", is_flag=True, help="Print the values for opensm.conf that suit most ports.")
def export(*, policy_file: Path, fabric: str, tables: Path | None, output: Path | None, opensm: bool) -> int:
    """Export POLICY as one JSON file per switch for switch agents (-o), as four global values for opensm.conf
    (--opensm), or as both.

    The four values are HOQLife and VLStallCount of ports to CAs, and of ports to switches.
    """
    from routing.policy.export import opensm_lines, write_switch_files

    if output is None and not opensm:
        raise click.UsageError("give -o DIR, --opensm, or both", click.get_current_context())
    subnet, facts, found = apply_policy(policy_file, fabric, tables)
    if output is not None:
        written = write_switch_files(found, subnet, output)
        print_rows([("files", f"{len(written)} in {output}")])
    if opensm:
        click.echo("\n".join(opensm_lines(found, facts)))
    return 0
