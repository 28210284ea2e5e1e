"""Compare all engines on one fabric, and recommend an engine with a reason."""

from routing.advise.candidates import Candidate, Refused, try_engine, worst_loss
from routing.advise.kinds import describe_kind
from routing.advise.recommend import Recommendation, contenders, recommend

__all__ = [
    "Candidate", "Recommendation", "Refused", "contenders", "describe_kind", "recommend", "try_engine", "worst_loss",
]  # fmt: skip
