"""List the mechanisms that cases of scenario files can use."""

from __future__ import annotations

from routing.simulate.mechanisms.base import CaseMechanism
from routing.simulate.mechanisms.congestion import CongestionControl

IN_CASES: tuple[type[CaseMechanism], ...] = (CongestionControl,)
"""Mechanisms with a table of their own in cases of a scenario file."""
