"""How tests wait: for a state, for as long as pytest lets them (``--timeout``)."""

import time

AMPLE = 3600.0
"""Seconds for what has a limit by its nature, in a test where nothing is to reach it."""


def until(ready):
    """Look until something is there; what was found."""
    while not (found := ready()):
        time.sleep(0.005)
    return found
