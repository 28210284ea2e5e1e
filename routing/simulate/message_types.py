"""Run cases of a scenario file on message types, which may wait for one another (such as request and reply).

The cases compute how many VLs of a link a chain of message types needs, and how many VLs each type may use.  The keys
of the scenario file call these VLs channels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routing.deadlock.message_classes import AVOIDANCES, channel_budget, channels_needed
from routing.simulate.case_output import CaseOutput
from routing.simulate.scenario import Case, Scenario


def run_message_types(scenario: Scenario, case: Case) -> CaseOutput:
    """Compute how many VLs of a link each message type may use, by two methods against message-dependent deadlock.

    With the method ``strict``, no two types use the same VL.  With ``wide``, all types share all VLs but escape VLs.
    :mod:`routing.deadlock.message_classes` describes both methods.

    The table ``[case.chain]`` of the scenario file sets the number of VLs of the link (key ``channels``) and the number
    of escape VLs of each type (key ``escape``).  Figures of the result are:

    - ``needed``: number of escape VLs of all types together.
    - ``enough``: whether the link has at least ``needed`` VLs.
    - ``strict`` and ``wide`` (the two methods): for each type, the number of VLs from which a message may choose at a
      hop.  The list is empty if the link has too few VLs.
    - ``channels``: for each method, the smallest number of VLs of a link with which each message may choose among at
      least ``usable`` VLs at a hop.  ``usable`` is a key of ``[case.chain]``, with the default 1.
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
    usable_of = {how: list(channel_budget(channels, escape, how).usable) if enough else [] for how in AVOIDANCES}
    found: dict[str, Any] = {"needed": sum(escape), "enough": enough, "channels": fewest} | usable_of
    return CaseOutput(found, {"channels": channels, "types": len(escape)})
