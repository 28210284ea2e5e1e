"""What a re-route takes and gives."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from routing.deadlock.proof import Proof
from routing.fabric import Fabric
from routing.tables import Routing

How = Literal["unchanged", "home", "repaired", "relaid", "fresh"]
"""What it took: nothing; the tables of home; single entries; whole columns; a fresh run of the engine."""


class Stability(enum.Enum):
    """What a re-route changes where it need not."""

    FULL = "full"
    """Nothing: every entry that holds stays."""
    BALANCED = "balanced"
    """The columns of LIDs that lost an entry: they are laid anew as a whole, with short ways and an eye on load."""
    FRESH = "fresh"
    """Whatever the engine does on the fabric as it is now."""


@dataclass(frozen=True, eq=False)
class Published:
    """Tables that are, or were, in the switches: the fabric that they were made for, and their proof."""

    fabric: Fabric
    routing: Routing
    proof: Proof


@dataclass(frozen=True, eq=False)
class Rerouted:
    """New tables, proven, and what became of the old ones.

    Attributes
    ----------
    routing, proof
        The tables for the fabric as it is now.
    broken
        Entries of the old tables that no longer hold: the link is gone or leads elsewhere, the LID has moved.
    changed
        Entries that differ from the old tables, those of new switches and LIDs included.
    how
        What it took.
    reason
        Why it took that, in one line.
    counts
        Entries by what was done to them: "repaired", "moved" (they held, but had to give way), "healed" (back as at
        home), "levels" (SLs that changed), "by_parts" (trees that went over to several VLs), "searches" and the like.
    """

    routing: Routing
    proof: Proof
    broken: int
    changed: int
    how: How
    reason: str
    counts: Mapping[str, int] = field(default_factory=dict)
