"""Mechanisms that can be attached to a simulation."""
