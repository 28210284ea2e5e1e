"""Run ibnue's routing engines in a running OpenSM, as a plugin."""
