"""Policies per port: rules that set the head-of-queue lifetime, VL stall count and deadlock breaker of switch ports.

A deadlock breaker is a protocol by which ports detect and resolve a deadlock.
"""

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
