"""Mechanisms that can be attached to a simulation with fixed tables."""
