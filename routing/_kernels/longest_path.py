"""Kernel wrapper: compute the length of the longest path in forwarding trees."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, ffi, lib
from routing.fabric import Channels


def longest_path(channels: Channels, next_channel: npt.NDArray[np.uint8]) -> int:
    """Return the number of hops of the longest path in any of several forwarding trees.

    ``next_channel`` is uint8[D, S]: the channel of each switch towards the root of each tree (see
    :class:`~routing._kernels.balance.Balanced`).  Cost: O(D S).
    """
    trees, switches = next_channel.shape
    longest = ffi.new("int32_t *")
    call(lib.ibn_core_digraph_longest_path, switches, channels.first, channels.dst, trees, next_channel, longest)
    return int(longest[0])
