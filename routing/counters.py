"""Read switch counters with perfquery, and find the channels on which packets seem to be stalled."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.errors import FabricError
from routing.fabric import Fabric
from routing.formats.perf_counters import parse_counters

COUNTERS = ("PortSwHOQLifetimeLimitDiscards", "PortXmitWait", "PortXmitData")
_WIDTH = {"PortSwHOQLifetimeLimitDiscards": 16, "PortXmitWait": 32, "PortXmitData": 32}
"""Width in bits of each counter in PortCounters.  A counter that reaches its maximum keeps this value.

PortCountersExtended has counters of 64 bits.
"""
_FULL, _LARGEST = (1 << 64) - 1, (1 << 63) - 1
"""Value of a saturated 64-bit counter, and the largest value that fits into an int64.

A port that does not count at all returns the saturated value, too.
"""
_EXTENDED = 0x0600
"""Bits of CapMask that announce PortCountersExtended: IsExtendedWidthSupported and IsExtendedWidthSupportedNoIETF."""
STALLED = 100
"""Threshold in ticks of PortXmitWait per 32-bit word sent.  A port at or above the threshold counts as stalled.

A stalled port still sends management packets on VL 15, so the number of words sent is small but not always 0.
"""

_GUID = re.compile(r"^Guid:\.*(0x[0-9a-fA-F]+)$", re.MULTILINE)

Run = Callable[[Sequence[str]], str]
"""Function that runs a command and returns its standard output."""


@dataclass(frozen=True, eq=False)
class CounterDeltas:
    """Values of three counters at the out-ports of channels, or the increase of these values between two readings.

    Attributes
    ----------
    channel
        int32[N], channel numbers.
    hoq_discards, xmit_wait, xmit_data
        int64[N] each.  Packets discarded at the head of a queue; ticks in which data was ready but not sent; 32-bit
        words sent.
    full
        bool[3, N], rows in the order of :data:`COUNTERS`: whether the counter is saturated.  The true value of a
        saturated counter may be larger.
    """

    channel: npt.NDArray[np.int32]
    hoq_discards: npt.NDArray[np.int64]
    xmit_wait: npt.NDArray[np.int64]
    xmit_data: npt.NDArray[np.int64]
    full: npt.NDArray[np.bool_]

    def since(self, before: CounterDeltas) -> CounterDeltas:
        """Return how much each counter has grown since ``before``, an earlier reading of the same channels.

        A counter with a lower value than before was reset between both readings, so that its present value is the
        increase.
        """

        def added(now: npt.NDArray[np.int64], then: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            return np.where(now < then, now, now - then)

        return CounterDeltas(
            self.channel,
            added(self.hoq_discards, before.hoq_discards),
            added(self.xmit_wait, before.xmit_wait),
            added(self.xmit_data, before.xmit_data),
            self.full,
        )

    @property
    def suspected(self) -> npt.NDArray[np.int32]:
        """Channels that seem to be stalled, as ascending int32 numbers.

        Such a channel discarded packets at the head of a queue, or waited for a long time and sent almost nothing.
        """
        return np.sort(self.channel[(self.hoq_discards > 0) | (self._rate_of_waits & ~self.full[2])])

    @property
    def unclassified(self) -> npt.NDArray[np.int32]:
        """Channels that cannot be classified because counters are saturated, as ascending int32 numbers.

        These channels are not in :attr:`suspected`, but with the true values of their counters the channels might be
        suspected.
        """
        dropped = self.full[0] | (self.hoq_discards > 0)
        maybe = dropped | self.full[1] | self._rate_of_waits
        return np.setdiff1d(self.channel[maybe], self.suspected)

    @property
    def _rate_of_waits(self) -> npt.NDArray[np.bool_]:
        return (self.xmit_wait > 0) & (self.xmit_wait // STALLED >= self.xmit_data)


def check_lids(fabric: Fabric, channels: npt.NDArray[np.int32], run: Run) -> None:
    """Check that each switch still has the LID that the fabric states, before counters are read by LID.

    A stale LID would return the counters of another device.  ``run`` is the function that runs a command.

    Raises
    ------
    FabricError
        A LID belongs to another device.

    Notes
    -----
    Cost: one process for each switch.
    """
    for switch in np.unique(fabric.channels.src[channels]).tolist():
        lid, guid = int(fabric.switch_lid[switch]), f"0x{int(fabric.switch_guid[switch]):016x}"
        found = _GUID.search(run(["smpquery", "nodeinfo", str(lid)]))
        if found is None or int(found[1], 16) != int(guid, 16):
            raise FabricError(
                f"LID {lid} belongs to {found[1] if found else 'no device'}, and not to"
                f" {fabric.switch_name[switch]} ({guid})",
                remedy="use a new output of ibnetdiscover",
            )


def read_channels(fabric: Fabric, channels: npt.NDArray[np.int32], run: Run) -> CounterDeltas:
    """Read the counters of channels with perfquery.

    Parameters
    ----------
    fabric
        The fabric with the current LIDs of its switches.
    channels
        int32[N], channel numbers.
    run
        Function that runs a command.

    Raises
    ------
    ParseError
        A port does not answer, or does not have one of the counters.

    Notes
    -----
    Cost: one process for each channel and two for each switch, about 10 ms each.
    """
    src, port = fabric.channels.src[channels], fabric.channels.port[channels]
    values = np.zeros((len(COUNTERS), len(channels)), np.int64)
    full = np.zeros(values.shape, bool)
    for switch in np.unique(src).tolist():
        lid, at = str(fabric.switch_lid[switch]), np.flatnonzero(src == switch)
        found = _switch_counters(lid, sorted(port[at].tolist()), run)
        for number in at.tolist():
            for row, counter in enumerate(COUNTERS):
                values[row, number], full[row, number] = found[int(port[number])][counter]
    return CounterDeltas(channels, values[0], values[1], values[2], full)


def _switch_counters(lid: str, ports: list[int], run: Run) -> dict[int, dict[str, tuple[int, bool]]]:
    """Return the counters of the given ports of a switch.

    The result gives for each port and each name in :data:`COUNTERS` the value, and whether the counter is saturated.
    """
    discards, *others = COUNTERS
    plain = parse_counters(run(["perfquery", "-l", lid, ",".join(map(str, ports))]), ports, *others)
    wide = [port for port in ports if plain[port].get("CapMask", 0) & _EXTENDED]
    extended: dict[int, Mapping[str, int]] = {}
    if wide:
        extended = parse_counters(run(["perfquery", "-x", "-l", lid, ",".join(map(str, wide))]), wide, others[-1])
    found = {}
    for port in ports:
        drops = parse_counters(run(["perfquery", "--xmtdisc", lid, str(port)]), [port], discards)
        narrow = {**plain[port], **drops[port]}
        values = {name: (narrow[name], narrow[name] >= (1 << _WIDTH[name]) - 1) for name in COUNTERS}
        wider = {name: value for name, value in extended.get(port, {}).items() if name in COUNTERS}
        values |= {name: (min(value, _LARGEST), value >= _FULL) for name, value in wider.items()}
        found[port] = values
    return found


def empty_counters(fabric: Fabric, found: CounterDeltas, run: Run) -> None:
    """Reset all counters of each channel that has a saturated counter in ``found``, an earlier reading."""
    for channel in found.channel[found.full.any(axis=0)].tolist():
        where = [str(fabric.switch_lid[fabric.channels.src[channel]]), str(fabric.channels.port[channel])]
        run(["perfquery", "-R", *where])
        run(["perfquery", "--xmtdisc", "-R", *where])
