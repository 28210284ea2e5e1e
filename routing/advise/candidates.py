"""Candidates of a comparison of engines: the proven tables of one engine, with all figures on which the choice
depends.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.deadlock.proof import Proof
from routing.engines.base import Engine, EngineOptions
from routing.errors import IbnueError
from routing.fabric import Fabric
from routing.faults import random_faults
from routing.publish import verify
from routing.quality import Quality, measure
from routing.tables import Routing
from routing.whatif import Baseline, explore, single_faults

PATTERNS = 100
"""Number of random bisections, and of random permutations, with which each candidate is measured."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Proven tables of one engine, and their figures.

    Attributes
    ----------
    engine
        Name of the engine.
    routing, proof
        The tables of the engine, and the proof of the tables.
    quality
        Hops, stretch, all-to-all share, bisections and permutations of the tables, in total and for each class of end
        ports.
    seconds
        CPU time of the engine alone.
    changed
        Number of LFT entries that differ from the tables in force; None if no such tables were given.
    worst_loss
        Result of :func:`worst_loss`: the largest share of the all-to-all traffic that is lost if one link of a sample
        is removed and the fabric is re-routed.  None if no removed link leads to new tables with a proof.
    """

    engine: str
    routing: Routing
    proof: Proof
    quality: Quality
    seconds: float
    changed: int | None
    worst_loss: float | None

    @property
    def reversible(self) -> bool:
        """Whether the certificate also covers replies on the SL of their request."""
        return self.proof.strength == "reversible"

    def has_paths_of(self, other: Candidate) -> bool:
        """Return whether the tables of another candidate have equal LFTs and need equally many VLs."""
        own, given = self.routing, other.routing
        return own.vls_needed == given.vls_needed and np.array_equal(own.lft, given.lft)


@dataclass(frozen=True)
class Refused:
    """An engine that has no tables for this fabric, with the reason."""

    engine: str
    reason: str


def try_engine(
    engine: Engine, options: EngineOptions, fabric: Fabric, *, now: npt.NDArray[np.uint8] | None = None, links: int = 0
) -> Candidate | Refused:
    """Route a fabric with an engine, prove the tables, and measure them.

    Parameters
    ----------
    engine, options
        The engine and its options.
    fabric
        The fabric.
    now
        uint8[S, L], LFTs in force, to count changed entries; None: not counted.
    links
        Number of links that :func:`worst_loss` removes, one at a time.  The seed of the options determines the links.

    Returns
    -------
    Candidate or Refused
        Refused if the engine, or the proof of its tables, fails.
    """
    started = time.process_time()
    try:
        routing = engine.route(fabric, options)
        seconds = time.process_time() - started
        proof = verify(fabric, routing, engine, threads=options.threads, explain=False).proof
    except IbnueError as problem:
        return Refused(engine.name, str(problem))
    quality = measure(
        fabric, routing, bisections=PATTERNS, shifts=0, permutations=PATTERNS, stretches=True, threads=options.threads
    )
    changed = None if now is None else int(np.count_nonzero(routing.lft != now))
    worst = worst_loss(engine, options, fabric, routing, links)
    return Candidate(engine.name, routing, proof, quality, seconds, changed, worst)


def worst_loss(engine: Engine, options: EngineOptions, fabric: Fabric, routing: Routing, links: int) -> float | None:
    """Return the worst loss of all-to-all traffic after a re-route, over a random sample of links.

    Each link of the sample is removed alone, and the fabric is re-routed.  The result is the largest share of the
    traffic that is lost.  The sample has at most ``links`` links between switches.  A link does not count if the proof
    of the new tables fails.  The result is None if no link counts.  As many processes work in parallel as ``options``
    has threads.
    """
    between = int(np.count_nonzero(fabric.channels.src >= 0)) // 2
    faults = random_faults(fabric, seed=options.seed, count=min(links, between), kinds=("link",)) if between else []
    if not faults or links <= 0:
        return None
    baseline = Baseline.of(fabric, engine, options, routing=routing)
    effects = explore(baseline, single_faults(faults), jobs=options.threads)
    return max((effect.loss for effect in effects if effect.certified and effect.loss is not None), default=None)
