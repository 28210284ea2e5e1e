"""Wrapper of the kernel that measures the longest way."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, pointer
from routing.fabric import Channels


def longest_way(channels: Channels, next_channel: npt.NDArray[np.uint8]) -> int:
    """Hops of the longest way in trees (uint8[D, S] as :class:`~routing._kernels.balance.Balanced` has them).

    Cost: O(D S).
    """
    trees, switches = next_channel.shape
    longest = ffi.new("int32_t *")
    check(
        lib.ibn_longest_way(
            switches, pointer(channels.first), pointer(channels.dst), trees, pointer(next_channel), longest
        )
    )
    return int(longest[0])
