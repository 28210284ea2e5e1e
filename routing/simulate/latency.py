"""Count latencies of packets and messages in histograms, and compute percentiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.simulation_arrays import LATENCY_BUCKETS
from routing.errors import OptionError
from routing.simulate.bounds import is_float_in

SINGLE = 64
"""Number of buckets that are one tick wide.  Each latency of fewer ticks than this number has a separate bucket."""
PER_POWER = 32
"""For latencies of SINGLE ticks or more: number of buckets, all of one width, between a power of two and the next power
of two.
"""

Ints = npt.NDArray[np.int64]


def bucket_bounds() -> Ints:
    """Return int64[2049]: the lowest latency of each bucket in ticks, and then the end of the last bucket."""
    number = np.arange(LATENCY_BUCKETS + 1 - SINGLE)
    # A simulation has at most 2^62 ticks, so the buckets for latencies of more than 2^62 ticks stay empty.  The true
    # bounds of these buckets can exceed an int64.  So `power` is limited to 56, which keeps all bounds below 2^63.
    power = np.minimum(number // PER_POWER, 56)
    return np.concatenate([np.arange(SINGLE), (PER_POWER + number % PER_POWER) << (power + 1)]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Latencies:
    """Histograms of latencies, from the due time of a message to the arrival of the last byte.

    Attributes
    ----------
    packets, messages
        int64[2048] each: number of packets, and number of complete messages, in each bucket of latencies.  Each latency
        up to 63 ticks has a separate bucket.  For longer latencies, the width of a bucket is at most 1/32 of the lowest
        latency in the bucket.
    """

    packets: Ints
    messages: Ints

    def since(self, earlier: Latencies) -> Latencies:
        """Return the latencies of packets and messages that were delivered after an earlier moment.

        ``earlier`` has the latencies of the same simulation up to that moment.
        """
        return Latencies(self.packets - earlier.packets, self.messages - earlier.messages)

    def packet_percentile(self, percent: float) -> float | None:
        """Return the latency in ticks that ``percent`` percent of the packets do not exceed; None if there are no
        packets.

        The result is the middle of a bucket, so it differs from the exact percentile by at most 1.6 %.
        """
        return _percentile(self.packets, percent)

    def message_percentile(self, percent: float) -> float | None:
        """Return the latency in ticks that ``percent`` percent of the messages do not exceed; None if there are no
        messages.
        """
        return _percentile(self.messages, percent)


def _percentile(counts: Ints, percent: float) -> float | None:
    if not is_float_in(percent, 0, 100):
        raise OptionError(f"{percent!r} is not a percentile", remedy="use 0 to 100")
    total = int(counts.sum())
    if not total:
        return None
    rank = max(1, int(np.ceil(total * percent / 100)))
    bucket = int(np.searchsorted(np.cumsum(counts), rank))
    bounds = bucket_bounds()
    return float(bounds[bucket] + bounds[bucket + 1] - 1) / 2
