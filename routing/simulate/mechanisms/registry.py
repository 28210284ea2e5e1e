"""List the mechanisms that cases of scenario files can use."""

from __future__ import annotations

from routing.simulate.mechanisms.base import CaseMechanism
from routing.simulate.mechanisms.bubble import Bubbles
from routing.simulate.mechanisms.congestion import CongestionControl
from routing.simulate.mechanisms.injection_limit import InjectionLimit
from routing.simulate.mechanisms.port_choice import PortChoice
from routing.simulate.mechanisms.qcn import Qcn
from routing.simulate.mechanisms.recn import Recn
from routing.simulate.mechanisms.replies import Replies
from routing.simulate.mechanisms.retransmission import Retransmission

IN_CASES: tuple[type[CaseMechanism], ...] = (
    CongestionControl, Qcn, Recn, Bubbles, InjectionLimit, PortChoice, Replies, Retransmission,
)  # fmt: skip
"""Mechanisms with a table of their own in cases of a scenario file."""

BESIDE_ADAPTIVE = tuple(mechanism for mechanism in IN_CASES if not mechanism.output_queues)
"""Mechanisms that cases with adaptive switches can use."""
