"""Choose among the candidates of a comparison of engines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from routing.advise.candidates import Candidate

EQUAL = 0.01
"""Fraction within which the throughput of two candidates counts as equal."""
FAST = 1.0
"""CPU seconds of an engine up to which the CPU time has no influence."""
REPLIES = 0.05
"""Largest fraction of throughput that a recommendation gives up for a certificate that covers replies."""


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The recommended candidate, and the reason in words."""

    candidate: Candidate
    reason: str


def recommend(candidates: Sequence[Candidate]) -> Recommendation | None:
    """Return the recommended candidate with the reason; None if there are no candidates.

    A candidate's all-to-all share and its bisection bandwidth are each divided by the highest value of all candidates.
    The smaller of the two quotients is the throughput of the candidate.

    Candidates count as equal if their throughput is at most a hundredth below the highest throughput.  Among these
    candidates, the following criteria decide, in this order: a certificate that covers replies, fewer VLs, a smaller
    worst loss (``Candidate.worst_loss``), fewer changed entries, less CPU time, the order of the candidates.  CPU
    time is rounded to a power of two, because CPU time differs from run to run.  CPU times up to :data:`FAST` count as
    equal.

    If the certificate of the chosen candidate does not cover replies, candidates with such a certificate are compared
    in the same manner.  The best of these candidates is recommended if its throughput is within :data:`REPLIES` of the
    best throughput.
    """
    if not candidates:
        return None
    throughput = {each.engine: _throughput(each, candidates) for each in candidates}
    chosen, equal = _best(candidates, throughput)
    if chosen.reversible:
        return Recommendation(chosen, _reason(chosen, equal, candidates))
    safe = [each for each in candidates if each.reversible]
    if safe:
        instead, _ = _best(safe, throughput)
        less = 1 - throughput[instead.engine] / throughput[chosen.engine]
        if less <= REPLIES:
            reason = (
                f"replies are safe too; {chosen.engine} carries {100 * less:.1f} % more, but only requests are safe"
            )
            return Recommendation(instead, reason)
    return Recommendation(chosen, _reason(chosen, equal, candidates))


def contenders(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates among which :func:`recommend` may have to decide by their worst losses
    (``Candidate.worst_loss``).

    These are the best candidate, and all candidates that equal the best candidate in the three criteria before the
    worst loss: the throughput, whether the certificate covers replies, and the number of VLs.

    If the certificate of the best candidate does not cover replies, the list also has a second group.  The second group
    is chosen in the same manner, but only among the candidates whose certificate covers replies.

    Of several candidates with equal paths, which lose the same traffic, the list has only the first.
    """
    throughput = {each.engine: _throughput(each, candidates) for each in candidates}
    found: list[Candidate] = []
    for group in ([*candidates], [each for each in candidates if each.reversible]):
        if group and not any(each.reversible for each in found):
            chosen, others = _best(group, throughput)
            found += [each for each in (chosen, *others) if _rank(each)[:2] == _rank(chosen)[:2]]
    return [each for n, each in enumerate(found) if not any(each.has_paths_of(other) for other in found[:n])]


def _best(candidates: Sequence[Candidate], throughput: Mapping[str, float]) -> tuple[Candidate, list[Candidate]]:
    """Return the best candidate by the criteria of :func:`recommend`, and all others of equal throughput.

    The throughput counts as equal if it is at most the fraction :data:`EQUAL` below the highest throughput.
    """
    most = max(throughput[each.engine] for each in candidates)
    equal = [each for each in candidates if throughput[each.engine] >= (1 - EQUAL) * most]
    chosen = min(equal, key=_rank)
    return chosen, [each for each in equal if each is not chosen]


def _throughput(candidate: Candidate, candidates: Sequence[Candidate]) -> float:
    shares = [(_finite(c.quality.all_to_all), _finite(c.quality.bisection_mean)) for c in candidates]
    own = _finite(candidate.quality.all_to_all), _finite(candidate.quality.bisection_mean)
    best = [max(column) for column in zip(*shares, strict=True)]
    return min(value / most if most else 1.0 for value, most in zip(own, best, strict=True))


def _finite(share: float) -> float:
    """Return a share as a number that can be compared and divided.  A share that was not measured (NaN) becomes 0, and
    infinity becomes a large number.
    """
    return 0.0 if math.isnan(share) else min(share, 1e9)


def _rank(candidate: Candidate) -> tuple[bool, int, float, int, int]:
    loss = 0.0 if candidate.worst_loss is None else round(candidate.worst_loss, 2)
    octave = round(math.log2(max(candidate.seconds, FAST)))
    vls = candidate.routing.vls_needed
    return not candidate.reversible, vls, loss, candidate.changed or 0, octave


def _reason(chosen: Candidate, others: Sequence[Candidate], candidates: Sequence[Candidate]) -> str:
    safe = "replies are safe too" if chosen.reversible else "only requests are safe, not replies on the SL of a request"
    if len(candidates) == 1:
        return f"the only engine that routes this fabric without a credit loop; {safe}"
    if not others:
        return f"the best of all-to-all and bisection together; {safe}"
    vls, names = chosen.routing.vls_needed, ", ".join(each.engine for each in others)
    return f"as good as {names} within a hundredth, with {vls} VL{'s' * (vls != 1)} needed; {safe}"
