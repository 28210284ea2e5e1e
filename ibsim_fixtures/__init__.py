"""The lab: real ibsim, real OpenSM, injected faults, and the fixture fabrics."""
