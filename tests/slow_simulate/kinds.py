"""Kinds of events, in the order in which those of a tick are handled, and of flows."""

FREE, CREDIT, FREED, ARRIVE, DELIVER, INJECT, EXPOSE, PAUSE = range(8)
HEAD, UNSTALL, RULE_END, CONTROL, CLCM, SAMPLE, FCP = range(8, 15)
PERSISTENT, POISSON, BERNOULLI, BURSTY, TRACE = range(5)
CYCLE, UNIFORM, HOTSPOT = range(3)
