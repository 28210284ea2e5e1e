"""Wait for a state in tests.  The time limit is that of pytest (``--timeout``)."""

import time

AMPLE = 3600.0
"""Time limit in seconds for operations that need a limit, in tests where the limit must never expire."""


def until(ready):
    """Call ``ready`` until it returns a true value, and return the value."""
    while not (found := ready()):
        time.sleep(0.02)
    return found
