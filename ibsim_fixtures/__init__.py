"""Run a real OpenSM on a fabric that ibsim simulates, inject faults, and provide small fixture fabrics for tests."""
