"""Check that memory of freed arrays serves later arrays."""

import ctypes
import subprocess
import sys

import pytest

ARRAYS = """
import resource
import sys
import numpy as np
from routing.memory import keep_freed_memory

if sys.argv[1] == "keep":
    keep_freed_memory()
for turn in range(10):
    if turn == 2:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(1 << 20, np.uint8) for _ in range(16)]
    del arrays
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 8)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library has no mallopt")
def test_memory_of_freed_arrays_serves_later_arrays():
    """Each of the 16 arrays has 256 pages, and each page of returned memory costs a page fault."""
    default, kept = (int(subprocess.check_output([sys.executable, "-c", ARRAYS, how])) for how in ("default", "keep"))
    assert kept < 100 and kept < default / 4
