"""Faults: what breaks in a fabric, by name, from a list, every single one, or at random.

A :class:`Fault` names what it hits by GUID and port, so that it can be put on paper, sent to another process and
applied to any state of the fabric that it was made for; :func:`apply_faults` gives the fabric that is left.
"""

from routing.faults.choose import Lottery, every_ca, every_link, every_switch, random_faults
from routing.faults.flapping import Event, Flapping, flapping
from routing.faults.model import Fault, FaultKind, apply_faults
from routing.faults.text import parse_fault, read_faults

__all__ = [
    "Event",
    "Fault",
    "FaultKind",
    "Flapping",
    "Lottery",
    "apply_faults",
    "every_ca",
    "every_link",
    "every_switch",
    "flapping",
    "parse_fault",
    "random_faults",
    "read_faults",
]
