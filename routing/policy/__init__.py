"""Policies per port: rules for the head-of-queue lifetime of packets and for the handling of deadlocks at a port."""

from routing.policy.facts import PortFacts, loop_channels, port_facts
from routing.policy.model import Breaker, Policy, Rule, Selector, Speed, hoq_code, hoq_seconds
from routing.policy.ports import PortPolicies, lay_over
from routing.policy.rule_file import read_policy

__all__ = [
    "Breaker",
    "Policy",
    "PortFacts",
    "PortPolicies",
    "Rule",
    "Selector",
    "Speed",
    "hoq_code",
    "hoq_seconds",
    "lay_over",
    "loop_channels",
    "port_facts",
    "read_policy",
]
