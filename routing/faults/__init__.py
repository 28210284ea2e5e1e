"""Faults of a fabric: single named faults, faults listed in a file, every possible single fault, or random faults.

A :class:`Fault` identifies its ports and devices by GUID and port number.  So it can be stored, sent to another
process, and applied to any state of its fabric.  :func:`apply_faults` returns the fabric that remains.
"""

from routing.faults.choose import Lottery, every_ca, every_link, every_switch, random_faults
from routing.faults.model import Fault, FaultKind, apply_faults
from routing.faults.text import parse_fault, read_faults

__all__ = [
    "Fault",
    "FaultKind",
    "Lottery",
    "apply_faults",
    "every_ca",
    "every_link",
    "every_switch",
    "parse_fault",
    "random_faults",
    "read_faults",
]
