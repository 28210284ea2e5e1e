"""In which rounds a change of tables is written, so that it passes through no credit loop."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from osm_plugin.answer import HELD
from osm_plugin.state import Kept, fits
from routing.deadlock.stages import Stages
from routing.deadlock.staging import stage
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
    replies
        Whether the rounds are for replies too, if both tables are.
    """

    before: Kept
    after: Kept
    stages: Stages | None
    asked: bool
    replies: bool = True

    def describe(self) -> str:
        """How it is written, in a few words for the log."""
        stages, aside = self.stages, "" if self.replies else ", replies aside"
        if stages is None:
            return "written at once" + ", for which no safe rounds were found" * self.asked
        if len(stages) == 1:
            return f"safe to write in any order{aside}"
        *sizes, last = [np.count_nonzero(stages.round == number) for number in range(1, len(stages) + 1)]
        entries = f"{', '.join(map(str, sizes))} and {number_of(int(last), 'entry')}"
        told = f"written in {len(stages)} rounds of {entries}{aside}"
        if stages.wait_from:
            told += f", with a wait before {_which(stages)}"
        if stages.drained:
            told += f", {stages.drained} of them out of use for so long"
        return told


def _which(stages: Stages) -> str:
    """The rounds before which packets leave, in words."""
    if stages.wait_from == 2:
        return "each but the first"
    return "the last" if stages.wait_from == len(stages) else f"each from round {stages.wait_from} on"


def in_rounds(before: Kept, after: Kept, *, wanted: bool, threads: int = 2) -> Change | None:
    """The change from tables to others, with its rounds if they are ``wanted``; None where nothing is to be written.

    Tables of which rounds may be missing count as if those entries led nowhere, and a round that makes it so comes
    before the others: where it was stopped, some switches have old entries and some new ones.
    """
    if not fits(before, after.fabric) or (before.routing is after.routing and before.held is None):
        return None
    if not wanted:
        return Change(before, after, None, asked=False)
    stages, replies = find_stages(before, after, threads=threads)
    if stages is not None and before.held is not None and len(stages.round):
        stages = _one_later(stages)
    if stages is None or len(stages) == 1:
        return Change(before, after, stages, asked=True, replies=replies)
    old = in_switches(before, after.fabric)
    return Change(before, replace(after, held=_held(stages, old)), stages, asked=True, replies=replies)


def _one_later(stages: Stages) -> Stages:
    """The same after another round."""
    off, wait_from = stages.off + (stages.off > 0).astype(np.uint8), stages.wait_from + bool(stages.wait_from)
    return replace(stages, round=stages.round + np.uint8(1), off=off, wait_from=wait_from)


def find_stages(before: Kept, after: Kept, *, threads: int) -> tuple[Stages | None, bool]:
    """Rounds for requests and replies if both tables are proven for both, else for requests alone; whether for all."""
    fabric, waits = after.fabric, (before.proof.waits, after.proof.waits)
    known = None
    if waits[0] is not None and waits[1] is not None:
        known = moved_masks(waits[0], before.fabric, fabric) | waits[1]
    old = in_switches(before, fabric)
    whole = {before.proof.strength, after.proof.strength} == {"reversible"}
    for replies in (True, False) if whole else (False,):
        stages = stage(fabric, old, after.routing, known=known, replies=replies, threads=threads)
        if stages is not None:
            return stages, replies or not whole
    return None, True


def in_switches(kept: Kept, fabric: Fabric) -> Routing:
    """Tables as the switches have them, laid over the fabric of now; what they may have or not leads nowhere."""
    routing = kept.routing
    if kept.held is not None:
        lft = routing.lft.copy()
        lft[kept.held["row"], kept.held["lid"]] = NO_PORT
        routing = replace(routing, lft=lft)
    return lay_over(routing, kept.fabric, fabric).routing


def _held(stages: Stages, old: Routing) -> npt.NDArray[np.void]:
    """The entries of all rounds but the first, as the shim takes them.

    One that is taken out before its round is there twice: with what it is until its round, then with what it is before
    it is taken out.
    """
    late, out = np.flatnonzero(stages.round > 1), np.flatnonzero(stages.off > 1)
    held = np.zeros(len(late) + len(out), HELD)
    which = np.append(late, out)
    held["row"], held["lid"] = stages.switch[which], stages.lid[which]
    held["round"] = np.append(stages.round[late], stages.off[out])
    held["port"] = old.lft[held["row"], held["lid"]]
    held["port"][: len(late)][stages.off[late] > 0] = NO_PORT
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
