"""Test lab with real ibsim, real OpenSM, injected faults, and the fixture fabrics."""
