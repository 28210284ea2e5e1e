"""Strategies of a re-route: each takes the data of the fault and limits, and returns proven tables or a refusal."""
