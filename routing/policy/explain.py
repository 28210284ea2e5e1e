"""Why a port has what it has."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.policy.facts import PortFacts
from routing.policy.model import OPENSM_STALL, PROPERTIES, Property, value_text
from routing.policy.ports import PortPolicies
from routing.policy.selection import SwitchNames


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
    names, give = SwitchNames(fabric), "give the name or the GUID of one"
    rows = names.fitting(switch)
    if not rows:
        raise OptionError(f"no switch is called {switch!r}", remedy=names.remedy(switch, give))
    if len(rows) > 1:
        raise OptionError(f"{len(rows)} switches fit {switch!r}", remedy=give)
    row = rows[0]
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
    number = int(found.number[what][row, port])
    earlier = [
        (other.name, other.line, value_text(what, dict(other.values)[what]))
        for index, other in enumerate(found.policy.rules[:number])
        if found.selects(index, row, port) and what in dict(other.values)
    ]
    value = dict(rule.values)[what]
    changed = tuple(told for told in earlier if told[2] != value_text(what, value))
    return Setting(what, value_text(what, value), rule.name, rule.line, changed)


def _default(facts: PortFacts, what: Property, row: int, port: int) -> str:
    if what == "breaker":
        return "none, as no rule sets one"
    usual = int(facts.opensm_hoq[row, port]) if what == "hoq_life" else OPENSM_STALL
    return f"left to OpenSM, whose default is {value_text(what, usual)}"
