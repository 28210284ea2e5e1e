"""Explain a port's policy: which rules set its values, and which values later rules have replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.names import guids_text
from routing.policy.facts import PortFacts
from routing.policy.model import OPENSM_STALL, PROPERTIES, Property, value_text
from routing.policy.ports import PortPolicies
from routing.policy.selection import SwitchNames


@dataclass(frozen=True)
class Setting:
    """Value of one property of a port, such as its head-of-queue lifetime, and the rules that set this property.

    Attributes
    ----------
    what
        Name of the property.
    text
        Value of the property and its meaning.
    rule, line
        Name and line of the rule that sets the property.  None if no rule sets it.
    overridden
        Name, line and value of each earlier rule whose value a later rule replaces.
    """

    what: Property
    text: str
    rule: str | None
    line: int | None
    overridden: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True)
class Explanation:
    """Explanation of all policy values of one port of a switch.

    Attributes
    ----------
    row, switch, port
        Row and label of the switch, and the port number.
    cable
        Device and port at the other end of the cable, and the data rate of the link.
    roles
        Roles of the port (such as "leaf" or "ca-facing"), by which rules can select it.
    settings
        Value of each property, with the rules that set the property.
    """

    row: int
    switch: str
    port: int
    cable: str
    roles: tuple[str, ...]
    settings: tuple[Setting, ...]

    def as_object(self) -> dict[str, Any]:
        """Return the explanation of a port's policy as plain values for JSON."""
        return {
            "switch": self.switch,
            "port": self.port,
            "cable": self.cable,
            "roles": list(self.roles),
            "properties": [
                {
                    "property": setting.what,
                    "text": setting.text,
                    "rule": setting.rule,
                    "line": setting.line,
                    "overridden": [
                        {"rule": name, "line": line, "text": text} for name, line, text in setting.overridden
                    ],
                }
                for setting in self.settings
            ],
        }


def explain_port(found: PortPolicies, fabric: Fabric, facts: PortFacts, switch: str, port: int) -> Explanation:
    """Explain which rules set the policy values of one port.

    ``found`` has the values of all ports, and ``facts`` the properties by which rules select ports.  ``switch`` is the
    name or the GUID of the port's switch.

    Raises
    ------
    OptionError
        No switch or several switches have that name or GUID.
    """
    names, give = SwitchNames(fabric), "give the name or the GUID of one"
    rows = names.fitting(switch)
    if not rows:
        raise OptionError(f"no switch is called {switch!r}", remedy=names.remedy(switch, give))
    if len(rows) > 1:
        guids = guids_text(fabric.switch_guid[rows].tolist())
        raise OptionError(f"{len(rows)} switches fit {switch!r}", remedy=f"{give}: {guids}")
    row = rows[0]
    return Explanation(
        row=row,
        switch=fabric.labels[row],
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
            return f"to {fabric.labels[device]} port {there}, {facts.rate[row, port]:.4g} Gb/s"
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
    changed = tuple(message for message in earlier if message[2] != value_text(what, value))
    return Setting(what, value_text(what, value), rule.name, rule.line, changed)


def _default(facts: PortFacts, what: Property, row: int, port: int) -> str:
    if what == "breaker":
        return "none, as no rule sets one"
    usual = int(facts.opensm_hoq[row, port]) if what == "hoq_life" else OPENSM_STALL
    return f"left to OpenSM, whose default is {value_text(what, usual)}"
