"""How many examples hypothesis takes: always the same ones, and fewer of them where ``IBNUE_EXAMPLES`` is a share."""

import os

from hypothesis import settings

SHARE = float(os.environ.get("IBNUE_EXAMPLES", "1"))


def examples(count, **more):
    """The settings of a test, as its decorator."""
    return settings(deadline=None, derandomize=True, max_examples=max(5, round(count * SHARE)), **more)
