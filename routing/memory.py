"""Keep the memory of freed arrays in a process that computes many re-routes."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Numbers of two parameters of glibc's function ``mallopt``, from ``malloc.h``."""
KEPT_BYTES = 64 << 20
"""Number of freed bytes that the process keeps."""
LARGEST_KEPT = 32 << 20
"""Size in bytes of the largest array whose memory is kept.  glibc allows no larger value."""


def keep_freed_memory() -> None:
    """Make this process keep the memory of freed arrays for later arrays, instead of returning it to the system.

    A re-route allocates and frees arrays of about a megabyte again and again.  By default, glibc returns the memory to
    the system, which then clears each page of the next array.  On the 16-ary 3-tree, this takes a third of the CPU time
    of a re-route.  Without glibc, this function changes nothing.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
