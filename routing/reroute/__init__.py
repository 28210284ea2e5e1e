"""Stable re-routing after a fault: keep the valid LFT entries, repair the others, and prove the new tables."""

from routing.reroute.precomputed import Precomputed, precompute
from routing.reroute.run import reroute, spread
from routing.reroute.translate import translate
from routing.reroute.values import Published, Rerouted, RerouteMethod, Stability

__all__ = [
    "Precomputed",
    "Published",
    "RerouteMethod",
    "Rerouted",
    "Stability",
    "precompute",
    "reroute",
    "spread",
    "translate",
]
