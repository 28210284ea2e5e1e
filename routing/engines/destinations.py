"""Convert a fabric to the input of the balancing kernel, and the trees of the kernel to forwarding tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Balanced, Targets, balance
from routing.engines.base import EngineOptions
from routing.fabric import NO_PORT, Channels, Fabric


@dataclass(frozen=True, eq=False)
class Destinations:
    """All LIDs of a fabric that switches deliver, grouped by the port that owns the LID: end ports first, then
    switches.

    Attributes
    ----------
    lid, root
        int32[D] each: the LIDs, and the switches that deliver them.
    lmc_group_first
        int32[F+1]: the LIDs of port ``f`` are ``lid[lmc_group_first[f]:lmc_group_first[f+1]]``.
    share
        float64[D]: flow towards each LID.  The port's weight as a destination is divided equally among its LIDs.  The
        flow is 0 for a switch or an aggregation node.
    """

    lid: npt.NDArray[np.int32]
    root: npt.NDArray[np.int32]
    lmc_group_first: npt.NDArray[np.int32]
    share: npt.NDArray[np.float64]

    @classmethod
    def of(cls, fabric: Fabric) -> Destinations:
        """Return all destinations of a fabric."""
        lids = fabric.lids
        own = np.flatnonzero((lids.endport >= 0) & (lids.switch >= 0))
        lmc_group = lids.endport[own]
        own = own[np.argsort(lmc_group, kind="stable")]
        lmc_group = lids.endport[own]
        starts = np.flatnonzero(np.diff(lmc_group, prepend=-1))
        sizes = np.diff(starts, append=len(own))
        switches = np.flatnonzero(lids.port == 0)
        lid = np.concatenate([own, switches])
        share = fabric.endport_weight[lids.endport[own], 1] * np.repeat(1.0 / sizes, sizes)
        return cls(
            lid=lid.astype(np.int32),
            root=lids.switch[lid],
            lmc_group_first=np.concatenate([starts, np.arange(len(own), len(lid) + 1)]).astype(np.int32),
            share=np.concatenate([share, np.zeros(len(switches))]),
        )

    @cached_property
    def port(self) -> npt.NDArray[np.int64]:
        """Number of the port that owns each LID, int64[D]."""
        sizes = np.diff(self.lmc_group_first)
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def offset(self) -> npt.NDArray[np.int64]:
        """Offset of each LID from the base LID of its port, int64[D]."""
        return np.arange(len(self.lid)) - self.lmc_group_first[self.port]

    def base(self) -> Destinations:
        """Return the base LIDs alone, each with all the flow towards its port."""
        first = self.lmc_group_first[:-1]
        share = np.asarray(np.bincount(self.port, self.share, len(first)), np.float64)
        return Destinations(self.lid[first], self.root[first], np.arange(len(first) + 1, dtype=np.int32), share)

    def targets(self, layer: npt.NDArray[np.int32] | None = None) -> Targets:
        """Return the destinations in the form that the balancing kernel takes.

        ``layer`` (int32[D]) is the layer of each destination.  None means that all destinations are in layer 0.
        """
        return Targets(self.lmc_group_first, self.root, self.share, np.zeros_like(self.lid) if layer is None else layer)


def inverse_capacity(fabric: Fabric, link_weights: Sequence[tuple[int, int, float]] = ()) -> npt.NDArray[np.float64]:
    """Return float64[C], the inverse capacity of each channel: 1 on the slowest kind of link, less on faster links.

    ``link_weights`` has weights of channels by GUID of the switch and out-port.  The inverse capacities of these
    channels are multiplied by their weights.
    """
    channels = fabric.channels
    capacity = channels.capacity
    found = np.ascontiguousarray(capacity.min(initial=np.inf) / capacity)
    if link_weights:
        row_of = {guid: row for row, guid in enumerate(fabric.switch_guid.tolist())}
        for guid, port, weight in link_weights:
            row = row_of.get(guid, -1)
            channel = channels.at_port[row, port] if row >= 0 and port < channels.at_port.shape[1] else -1
            if channel >= 0:
                found[channel] *= weight
    return found


def forwarding_tables(
    fabric: Fabric, destinations: Destinations, next_channel: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """Return the LFTs of trees, uint8[S, L].

    ``next_channel`` (uint8[D, S]) has the index of each switch's next channel among the channels of the switch.
    An entry is an out-port.  At the switch that delivers the LID, the entry is the port of the CA or router, or 0 for
    the switch's own LID.  The entry is 255 if there is no path.
    """
    lids, ports = fabric.lids, ports_by_index(fabric.channels)
    lft = np.full((fabric.switches, len(lids)), NO_PORT, np.uint8)
    for switch, chosen in enumerate(np.ascontiguousarray(next_channel.T)):
        lft[switch, destinations.lid] = ports[switch].take(chosen)
    lft[destinations.root, destinations.lid] = lids.port[destinations.lid]
    return lft


def balanced_trees(fabric: Fabric, options: EngineOptions, targets: Targets, **rules: Any) -> Balanced:
    """Return balanced trees of the targets.  ``rules`` are further arguments of
    :func:`~routing._kernels.balance.balance`.
    """
    return balance(
        fabric.channels, inverse_capacity(fabric, options.link_weights), fabric.source_weight_at.astype(np.float64),
        targets, seed=options.seed, threads=options.threads, **rules,
    )  # fmt: skip


def ports_by_index(channels: Channels) -> npt.NDArray[np.uint8]:
    """Return uint8[S, 256], the out-port by switch and index among the channels of the switch; 255 for no channel."""
    ports = np.full((len(channels.first) - 1, 256), NO_PORT, np.uint8)
    ports[channels.src, np.arange(len(channels)) - channels.first[channels.src]] = channels.port
    return ports
