"""The routing engines inside a running OpenSM."""
