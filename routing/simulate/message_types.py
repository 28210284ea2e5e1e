"""Cases about message types: how many channels a chain of them needs, and how many a message may choose from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routing.deadlock.freedom import AVOIDANCES, channels_needed, message_freedom
from routing.simulate.played import Played
from routing.simulate.scenario import Case, Scenario


def play_message_types(scenario: Scenario, case: Case) -> Played:
    """Deal out the channels of a link (:mod:`routing.deadlock.freedom`), both ways of avoidance beside each other.

    Figures: escape channels ``needed``, whether the link has ``enough``, what messages of each type may choose from
    (``strict`` and ``wide``, empty without enough), and by the same names the fewest channels with which every type
    may choose from ``usable`` (``channels``).
    """
    table: Mapping[str, Any] | None = case.table.get("chain")
    if table is None:
        raise scenario.error(f"case {case.name!r} needs a chain", *case.where, remedy="add [case.chain]")
    escape, channels = table["escape"], int(table["channels"])
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in escape):
        raise scenario.error(f"escape of case {case.name!r} has to be whole numbers", *case.where, "chain", "escape")
    usable = int(table.get("usable", 1))
    fewest = {how: channels_needed(escape, how, usable) for how in AVOIDANCES}
    enough = channels >= sum(escape)
    usable_of = {how: list(message_freedom(channels, escape, how).usable) if enough else [] for how in AVOIDANCES}
    found: dict[str, Any] = {"needed": sum(escape), "enough": enough, "channels": fewest} | usable_of
    return Played(found, {"channels": channels, "types": len(escape)})
