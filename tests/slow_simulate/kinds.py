"""Kinds of events, in the order in which the events of a tick are handled, and kinds of flows."""

FREE, CREDIT, FREED, ARRIVE, DELIVER, INJECT, EXPOSE, INPUT, PAUSE = range(9)
HEAD, UNSTALL, RULE_END, CONTROL, CLCM, SAMPLE, FCP, TIMER = range(9, 17)
PERSISTENT, POISSON, BERNOULLI, BURSTY, TRACE = range(5)
CYCLE, UNIFORM, HOTSPOT = range(3)
