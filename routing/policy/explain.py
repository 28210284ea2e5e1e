"""Why a port has what it has."""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.policy.model import OPENSM_HOQ, OPENSM_LEAF_HOQ, OPENSM_STALL, PROPERTIES, Property, value_text
from routing.policy.ports import PortFacts, PortPolicies, matching_switches


@dataclass(frozen=True)
class Setting:
    """One property of a port.

    Attributes
    ----------
    what
        Its name.
    text
        The value and what it means.
    rule, line
        Who set it; None where no rule does.
    overridden
        Name, line and value of each rule that a later one has overridden.
    """

    what: Property
    text: str
    rule: str | None
    line: int | None
    overridden: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True)
class Explanation:
    """A port, what it is, and where its values come from.

    Attributes
    ----------
    row, switch, port
        The switch, and the number of the port.
    cable
        What is at the other end, and the data rate.
    roles
        What rules can call it.
    settings
        One for each property.
    """

    row: int
    switch: str
    port: int
    cable: str
    roles: tuple[str, ...]
    settings: tuple[Setting, ...]

    def as_object(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self)


def explain_port(found: PortPolicies, fabric: Fabric, facts: PortFacts, switch: str, port: int) -> Explanation:
    """Explain a port of a switch.

    Raises
    ------
    OptionError
        No switch of that name or GUID, or several.
    """
    rows = np.flatnonzero(matching_switches(fabric, (switch,)))
    if len(rows) != 1:
        told = f"{len(rows)} switches fit {switch!r}" if len(rows) else f"no switch is called {switch!r}"
        near = [] if len(rows) else difflib.get_close_matches(switch, fabric.switch_name, 3, 0.5)
        raise OptionError(
            told, remedy=f"did you mean {' or '.join(near)}?" if near else "give the name or the GUID of one"
        )
    row = int(rows[0])
    return Explanation(
        row=row,
        switch=fabric.switch_name[row],
        port=port,
        cable=_cable(fabric, facts, row, port),
        roles=tuple(role for role, ports in facts.role.items() if ports[row, port]),
        settings=tuple(_setting(found, facts, what, row, port) for what in PROPERTIES),
    )


def _cable(fabric: Fabric, facts: PortFacts, row: int, port: int) -> str:
    if not facts.cabled[row, port]:
        return "none"
    for near, far in ((0, 1), (1, 0)):
        here = (fabric.link_device[:, near] == row) & (fabric.link_port[:, near] == port)
        for cable in np.flatnonzero(here).tolist():
            device, there = int(fabric.link_device[cable, far]), int(fabric.link_port[cable, far])
            names = fabric.switch_name + fabric.terminal_name
            return f"to {names[device]} port {there}, {facts.rate[row, port]:.4g} Gb/s"
    return "none"


def _setting(found: PortPolicies, facts: PortFacts, what: Property, row: int, port: int) -> Setting:
    rule = found.rule(what, row, port)
    if rule is None:
        return Setting(what, _default(facts, what, row, port), None, None, ())
    number = found.policy.rules.index(rule)
    earlier = [
        (other.name, other.line, value_text(what, dict(other.values)[what]))
        for index, other in enumerate(found.policy.rules[:number])
        if found.selected[index, row, port] and what in dict(other.values)
    ]
    value = dict(rule.values)[what]
    changed = tuple(told for told in earlier if told[2] != value_text(what, value))
    return Setting(what, value_text(what, value), rule.name, rule.line, changed)


def _default(facts: PortFacts, what: Property, row: int, port: int) -> str:
    if what == "breaker":
        return "none, as no rule sets one"
    usual = OPENSM_STALL
    if what == "hoq_life":
        usual = OPENSM_LEAF_HOQ if facts.role["ca-facing"][row, port] else OPENSM_HOQ
    return f"left to OpenSM, whose default is {value_text(what, usual)}"
