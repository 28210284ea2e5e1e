"""Distribute the end ports of a switch over parallel links, for trees that all of these end ports share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.engines.destinations import Destinations
from routing.fabric import Fabric

MOST_SLOTS = 1024
"""Maximum length of a list by which the end ports of a switch use parallel links of different rates in turn.  Each link
is in this list in proportion to its rate.  If the list would be longer, only links of equal rate are used in turn.
"""


def spread_over_bundles(
    fabric: Fabric, destinations: Destinations, next_channel: npt.NDArray[np.uint8], *, by_rate: bool
) -> npt.NDArray[np.uint8]:
    """Return next channels by which paths to the end ports of a switch use parallel links in turn.

    In the given trees, all end ports of a switch have equal paths.  On the paths to the n-th end port of a switch, this
    function replaces each link by the n-th link after it, counted cyclically among the parallel links.  Without
    ``by_rate``, two paths to one end port that share no link share no link after the replacement, either.  The changed
    paths close no cycle, because an order of the switches allows either all of several parallel links or none of them.

    Parameters
    ----------
    fabric, destinations
        The fabric and its destinations.
    next_channel
        uint8[D, S], index of the next channel of each switch, 255: none.
    by_rate
        Whether a link may be replaced by a link of another rate.  If so, links are used in proportion to their rates,
        and two LIDs of an end port may share a link.

    Notes
    -----
    Cost: O(D S), and O(end ports of a switch) for each channel.
    """
    channels = fabric.channels
    pair = channels.src.astype(np.int64) * fabric.switches + channels.dst
    if len(np.unique(pair)) == len(pair):
        return next_channel
    rank = _rank_at_switch(fabric, destinations)
    result = next_channel.copy()
    for switch in range(fabric.switches):
        first, last = int(channels.first[switch]), int(channels.first[switch + 1])
        turned = np.tile(np.arange(256, dtype=np.uint8)[:, None], (1, int(rank.max(initial=0)) + 1))
        for neighbour in np.unique(channels.dst[first:last]):
            _turn(fabric, first + np.flatnonzero(channels.dst[first:last] == neighbour), first, turned, by_rate=by_rate)
        result[:, switch] = turned[next_channel[:, switch], rank]
    return result


def _turn(
    fabric: Fabric, bundle: npt.NDArray[np.int64], first: int, turned: npt.NDArray[np.uint8], *, by_rate: bool
) -> None:
    """Choose the channel that replaces each channel of a bundle on paths to each end port.

    A bundle is all parallel channels from one switch to another switch.  ``bundle`` lists these channels, and ``first``
    is the first channel of the switch.  With ``by_rate``, a link may be replaced by a link of another rate.  The result
    is written to ``turned`` (uint8[256, ranks]), by channel and rank: the index of the channel that replaces it.  The
    rank of an end port is its number among the end ports of its switch.
    """
    channels = fabric.channels
    # The bundle is sorted by links, so that both channels of a link have the same index in their bundles.  Two paths
    # that use different links in one direction then use different links in the other direction, too.
    bundle = bundle[np.argsort(channels.link[bundle], kind="stable")]
    rates = channels.capacity[bundle]
    ranks = np.arange(turned.shape[1])
    slots = np.maximum(np.round(rates / rates.min()), 1).astype(np.int64)
    groups = [bundle[rates == rate] for rate in np.unique(rates)]
    if by_rate and slots.sum() <= MOST_SLOTS:
        groups = [np.repeat(bundle, slots)]
    for group in groups:
        for channel in np.unique(group):
            position = int(np.flatnonzero(group == channel)[0])
            turned[channel - first] = group[(position + ranks) % len(group)] - first


def _rank_at_switch(fabric: Fabric, destinations: Destinations) -> npt.NDArray[np.int64]:
    """Return int64[D], the number of each destination's end port among the end ports of its switch; 0 for LIDs of
    switches.
    """
    switch = fabric.endport_switch
    order = np.argsort(switch, kind="stable")
    rank = np.zeros(fabric.endports, np.int64)
    rank[order] = np.arange(fabric.endports) - np.searchsorted(switch[order], switch[order])
    endport = fabric.lids.endport[destinations.lid]
    return np.where(endport >= 0, rank[endport] if fabric.endports else 0, 0)
