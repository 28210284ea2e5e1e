"""In which rounds a change of tables is written, so that it passes through no credit loop."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from osm_plugin.answer import HELD
from osm_plugin.state import Kept, fits
from routing.deadlock.staging import Stages, stage
from routing.fabric import NO_PORT, Fabric
from routing.numerals import number_of
from routing.reroute.ground import moved_masks
from routing.reroute.translate import lay_over
from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Change:
    """Tables that take the place of others.

    Attributes
    ----------
    before, after
        The tables; what ``after`` holds back is what later rounds are for.
    stages
        The rounds, each of which is free of credit loops; None: all at once, and it is not known to be.
    asked
        Whether rounds were looked for.
    """

    before: Kept
    after: Kept
    stages: Stages | None
    asked: bool

    def describe(self) -> str:
        """How it is written, in a few words for the log."""
        stages = self.stages
        if stages is None:
            return "written at once" + ", for which no safe rounds were found" * self.asked
        if len(stages) == 1:
            return "safe to write in any order"
        *sizes, last = [np.count_nonzero(stages.round == number) for number in range(1, len(stages) + 1)]
        pause = ", with a wait before each but the first" * stages.waits
        entries = f"{', '.join(map(str, sizes))} and {number_of(int(last), 'entry')}"
        return f"written in {len(stages)} rounds of {entries}{pause}"


def in_rounds(before: Kept, after: Kept, *, wanted: bool, thorough: bool = False, threads: int = 2) -> Change | None:
    """The change from tables to others, with its rounds if they are ``wanted``; None where nothing is to be written.

    ``thorough``: large tables are searched at length, too.

    Tables of which rounds may be missing count as if those entries led nowhere, and a round that makes it so comes
    before the others: where it was stopped, some switches have old entries and some new ones.
    """
    if not fits(before, after.fabric) or (before.routing is after.routing and before.held is None):
        return None
    if not wanted:
        return Change(before, after, None, asked=False)
    stages = find_stages(before, after, thorough=thorough, threads=threads)
    if stages is not None and before.held is not None and len(stages.round):
        stages = replace(stages, round=stages.round + np.uint8(1))
    if stages is None or len(stages) == 1:
        return Change(before, after, stages, asked=True)
    old = in_switches(before, after.fabric)
    return Change(before, replace(after, held=_held(stages, old)), stages, asked=True)


def find_stages(before: Kept, after: Kept, *, thorough: bool, threads: int) -> Stages | None:
    """Rounds for requests and replies if both tables are proven for both, else for requests alone."""
    fabric, waits = after.fabric, (before.proof.waits, after.proof.waits)
    known = None
    if waits[0] is not None and waits[1] is not None:
        known = moved_masks(waits[0], before.fabric, fabric) | waits[1]
    old = in_switches(before, fabric)
    strengths = {before.proof.strength, after.proof.strength}
    for replies in (True, False) if strengths == {"reversible"} else (False,):
        stages = stage(fabric, old, after.routing, known=known, replies=replies, thorough=thorough, threads=threads)
        if stages is not None:
            return stages
    return None


def in_switches(kept: Kept, fabric: Fabric) -> Routing:
    """Tables as the switches have them, laid over the fabric of now; what they may have or not leads nowhere."""
    routing = kept.routing
    if kept.held is not None:
        lft = routing.lft.copy()
        lft[kept.held["row"], kept.held["lid"]] = NO_PORT
        routing = replace(routing, lft=lft)
    return lay_over(routing, kept.fabric, fabric).routing


def _held(stages: Stages, old: Routing) -> npt.NDArray[np.void]:
    """The entries of all rounds but the first, as the shim takes them."""
    late = np.flatnonzero(stages.round > 1)
    held = np.zeros(len(late), HELD)
    held["row"], held["lid"], held["round"] = stages.switch[late], stages.lid[late], stages.round[late]
    held["port"] = old.lft[held["row"], held["lid"]]
    return held


def plan_number(kept: Kept) -> int:
    """A number for the rounds of some tables, by which the shim says how far they have got; 0 where there are none."""
    if kept.held is None:
        return 0
    text = kept.fabric.digest.encode() + kept.held.tobytes()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "little")


def as_written(kept: Kept, rounds: int) -> Kept:
    """The same, when so many of its rounds are in all switches."""
    if kept.held is None:
        return kept
    left = kept.held[kept.held["round"] > max(rounds, 1)]
    if rounds and not len(left):
        return replace(kept, held=None)
    return kept if len(left) == len(kept.held) else replace(kept, held=left)
