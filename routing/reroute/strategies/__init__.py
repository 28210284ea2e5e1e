"""Strategies of a re-route: each takes a context and a budget, and returns a candidate or a refusal with its reason."""
