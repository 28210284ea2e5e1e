"""Test lab: a real OpenSM on a fabric that ibsim simulates, injected faults, and small fixture fabrics for tests."""
