"""Stable re-routing after a fault: keep the valid LFT entries, repair all other entries, and prove the new tables."""

from routing.reroute.capacity_kept import CapacityKept, FreshRoute, capacity_kept, kept_by_reroute
from routing.reroute.precomputed import Precomputed, precompute
from routing.reroute.run import reroute, spread
from routing.reroute.translate import translate
from routing.reroute.values import Published, Rerouted, RerouteMethod, Stability

__all__ = [
    "CapacityKept",
    "FreshRoute",
    "Precomputed",
    "Published",
    "RerouteMethod",
    "Rerouted",
    "Stability",
    "capacity_kept",
    "kept_by_reroute",
    "precompute",
    "reroute",
    "spread",
    "translate",
]
