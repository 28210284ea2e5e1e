"""Select the switch ports to which a policy rule applies."""

from __future__ import annotations

import difflib
import fnmatch
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.names import did_you_mean, guid_in, guid_text
from routing.policy.facts import PORTS, PortFacts
from routing.policy.model import Policy, Rule, Speed

_SIGNS = frozenset("*?[")
_LONG = 60
"""Maximum number of characters of a pattern that an error message shows."""


class SwitchNames:
    """Index of the switches of a fabric, to find them by name, GUID or pattern.

    Parameters
    ----------
    fabric
        The fabric.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._name = fabric.switch_name
        self._guid = fabric.switch_guid.tolist()

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for row, name in enumerate(self._name):
            found.setdefault(name, []).append(row)
        return found

    @cached_property
    def _by_guid(self) -> dict[int, int]:
        return {guid: row for row, guid in enumerate(self._guid)}

    @cached_property
    def _guid_text(self) -> list[str]:
        return [guid_text(guid) for guid in self._guid]

    def fitting(self, pattern: str) -> list[int]:
        """Return the rows of the switches that match a text, ascending.

        The text is a name, a GUID such as 0x0123, or a pattern with ``*``, ``?`` or ``[...]``.  A pattern is compared
        with the name and with the GUID as 0x and 16 digits.  A text that equals the name of a switch is not treated as
        a pattern.
        """
        if pattern in self._by_name:
            return self._by_name[pattern]
        lower, guid = pattern.lower(), guid_in(pattern)
        if guid is not None:
            row = self._by_guid.get(guid)
            return [] if row is None else [row]
        if _SIGNS.isdisjoint(pattern):
            return []
        fits = (
            fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(guid, lower)
            for name, guid in zip(self._name, self._guid_text, strict=True)
        )
        return [row for row, fit in enumerate(fits) if fit]

    def remedy(self, pattern: str, otherwise: str) -> str:
        """Return advice for an unknown switch name: similar names, or the text ``otherwise`` if no name is similar."""
        alike = {name.lower(): name for name in self._by_name}
        near = difflib.get_close_matches(pattern.lower(), alike, 3, 0.5)
        return did_you_mean([alike[name] for name in near]) if near else otherwise


def ports_of(
    rule: Rule, policy: Policy, names: SwitchNames, facts: PortFacts, *, strict: bool
) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Return the cabled ports that a rule selects.

    ``policy`` is the policy of the rule, ``names`` the index of the switches, and ``facts`` has the properties of all
    ports.

    Returns
    -------
    places : int64[N]
        Selected ports as ``switch * 256 + port``, ascending.
    missing
        Without ``strict``: one text for each pattern that matches no switch.  Another text names the first port number
        of the rule that none of the selected switches has.  With ``strict``, each of these mismatches is an error.

    Raises
    ------
    OptionError
        The rule selects ports on credit loops but there are no tables; or, with ``strict``, a pattern or port number
        matches nothing.
    """
    select, missing = rule.select, list[str]()
    if "loop" in select.roles and not facts.loops_known:
        raise OptionError(
            f"{rule.name} is for ports on credit loops, but there are no tables that show credit loops",
            path=policy.path,
            line=rule.line_of("role"),
            remedy="give --tables",
        )
    rows = np.arange(len(facts.cabled))
    if select.switches:
        fits = {pattern: names.fitting(pattern) for pattern in select.switches}
        rows = np.unique(np.array([row for some in fits.values() for row in some], np.int64))
        missing += [f"no switch fits {pattern[:_LONG]!r}" for pattern, some in fits.items() if not some]
        if strict and missing:
            nowhere = next(pattern for pattern, some in fits.items() if not some)
            remedy = names.remedy(nowhere, "patterns are compared with names, or with GUIDs as 0x and 16 digits")
            raise OptionError(missing[0], path=policy.path, line=rule.line_of("switch"), remedy=remedy)
    found = facts.cabled[rows]
    if select.ports:
        missing += _missing_ports(rule, policy, facts.exists[rows], strict=strict)
        found = found & np.isin(np.arange(PORTS), select.ports)
    for role in select.roles:
        found = found & facts.role[role][rows]
    if select.speed is not None:
        found = found & _of_speed(facts, select.speed, rows)
    at, port = np.nonzero(found)
    return rows[at] * PORTS + port, tuple(missing)


def _missing_ports(rule: Rule, policy: Policy, exists: npt.NDArray[np.bool_], *, strict: bool) -> list[str]:
    there = np.asarray(exists.any(axis=0))
    missing = [port for port in rule.select.ports if not there[port]]
    if not missing or not len(exists):
        return []
    whose = f"none of its {len(exists)} switches has" if len(exists) > 1 else "its switch lacks"
    problem = f"{rule.name} names port {missing[0]}, which {whose}"
    if strict:
        remedy = f"ports go up to {int(np.flatnonzero(there).max(initial=0))} there"
        raise OptionError(problem, path=policy.path, line=rule.line_of("ports"), remedy=remedy)
    return [problem]


def _of_speed(facts: PortFacts, speed: Speed, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return whether each port of the switches ``rows`` has a link of the required speed, bool[rows, 256].

    ``facts`` has the speeds of all ports.  Data rates within 4 % count as equal, so that a rule with 56 Gb/s matches
    links of 4xFDR (54.5 Gb/s).
    """
    if speed.lane_speed is not None:
        return np.asarray(np.abs(facts.lane_speed[rows] - speed.lane_speed) <= 0.01 * speed.lane_speed)
    rate = facts.rate[rows]
    near = np.abs(rate - speed.gigabits) <= 0.04 * speed.gigabits
    below, above = rate < speed.gigabits, rate > speed.gigabits
    table = {"=": near, "<": below & ~near, "<=": below | near, ">": above & ~near, ">=": above | near}
    return np.asarray(table[speed.relation])
