"""Stable re-routing: keep valid entries, repair the others, and prove the result again."""

from routing.reroute.precomputed import Precomputed, precompute
from routing.reroute.run import reroute, spread
from routing.reroute.translate import translate
from routing.reroute.values import How, Published, Rerouted, Stability

__all__ = ["How", "Precomputed", "Published", "Rerouted", "Stability", "precompute", "reroute", "spread", "translate"]
