"""Settings of Hypothesis for all tests: fixed examples, whose number the environment variable ``IBNUE_EXAMPLES``
scales.
"""

import os

from hypothesis import settings

SHARE = float(os.environ.get("IBNUE_EXAMPLES", "1"))


def examples(count, **more):
    """Return the decorator that limits a Hypothesis test to ``count`` examples, times the share ``IBNUE_EXAMPLES``."""
    return settings(deadline=None, derandomize=True, max_examples=max(2, round(count * SHARE)), **more)
