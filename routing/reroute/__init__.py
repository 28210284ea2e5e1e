"""Stable re-routing: what still holds stays, what broke is laid anew, and all of it is proven again."""

from routing.reroute.run import reroute
from routing.reroute.standing import prepare
from routing.reroute.translate import translate
from routing.reroute.values import How, Published, Rerouted, Stability

__all__ = ["How", "Published", "Rerouted", "Stability", "prepare", "reroute", "translate"]
