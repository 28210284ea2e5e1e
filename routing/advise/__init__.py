"""Compare all engines on one fabric, and recommend an engine with a reason."""

from routing.advise.candidates import Candidate, Refused, try_engine
from routing.advise.kinds import describe_kind
from routing.advise.recommend import Recommendation, recommend

__all__ = ["Candidate", "Recommendation", "Refused", "describe_kind", "recommend", "try_engine"]
