"""Policies per port: rules for the head-of-queue lifetime of packets and for the handling of deadlocks at a port."""

from routing.policy.facts import PortFacts, loop_channels, port_facts
from routing.policy.model import Breaker, Policy, Rule, Selector, Speed, hoq_code, hoq_seconds
from routing.policy.ports import PortPolicies, apply_rules
from routing.policy.rule_file import read_policy

__all__ = [
    "Breaker",
    "Policy",
    "PortFacts",
    "PortPolicies",
    "Rule",
    "Selector",
    "Speed",
    "apply_rules",
    "hoq_code",
    "hoq_seconds",
    "loop_channels",
    "port_facts",
    "read_policy",
]
