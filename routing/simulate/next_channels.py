"""List the channels by which packets may leave each switch under adaptive routing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.cdg.trace import uniform_sl2vl
from routing.deadlock.port_groups import compute_port_groups
from routing.deadlock.proof import prove
from routing.errors import OptionError
from routing.port_groups import Rule
from routing.simulate.escape import FAR
from routing.simulate.network import Network


@dataclass(frozen=True, eq=False)
class NextChannels:
    """Channels by which packets may leave each switch.

    A *column* stands for one LID, or for several LIDs with the same channels at all switches.  The channels of switch
    ``s`` and column ``k`` are ``channel[first[i]:first[i + 1]]``, with i = s x columns + k.

    Attributes
    ----------
    columns
        Number of columns.
    lid_column
        int32[L], the column of each LID, or -1 if the LID has no column.
    first
        int32[S x columns + 1], for each switch and column: index in ``channel`` of the first channel.
    channel
        int32[...], numbers of channels of the simulation, sorted by switch and column.
    """

    columns: int
    lid_column: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]
    channel: npt.NDArray[np.int32]


def shortest_channels(network: Network) -> NextChannels:
    """List the channels on shortest paths.  LIDs whose paths end at the same switch share a column.

    For the last switch of a path the list has no channel, because the packet has no choice at this switch.
    """
    arrays, hops = network.arrays, network.arrays.distance.astype(np.int64)
    inside = np.flatnonzero((arrays.src < arrays.switches) & (arrays.dst < arrays.switches))
    near, far = hops[arrays.src[inside]], hops[arrays.dst[inside]]
    channel, goal = np.nonzero((far + 1 == near) & (near < FAR))
    key = arrays.src[inside[channel]].astype(np.int64) * arrays.switches + goal
    return _sorted(key, inside[channel], arrays.switches, arrays.switches, arrays.lid_switch)


def grouped_channels(network: Network, rule: Rule) -> NextChannels:
    """List the channels of the port groups of the network's tables.  Each LID has a separate column.

    Parameters
    ----------
    network
        Network with the tables.
    rule
        Whether a packet that has to wait keeps its port (``COMMIT``), or takes the first port with room (``ESCAPE``).

    Raises
    ------
    OptionError
        The SL depends on the sender's LID, or the SL2VL tables differ between ports.
    RoutingError
        The tables have a credit loop.
    """
    fabric, routing, arrays = network.fabric, network.routing, network.arrays
    if routing.service_levels.by_source_lid:
        raise OptionError("the SL depends on the sender's LID", remedy="use tables with SLs by LID or by switch")
    if uniform_sl2vl(routing) is None:
        raise OptionError("SL2VL tables differ between ports", remedy="use tables of nue or updn")
    groups = compute_port_groups(fabric, routing, prove(fabric, routing), rule)
    number = {at: c for c, at in enumerate(zip(arrays.src.tolist(), arrays.src_port.tolist(), strict=True))}
    channels = fabric.channels
    ports = zip(channels.src.tolist(), channels.port.tolist(), strict=True)
    own = np.array([number[at] for at in ports], np.int32)
    keys, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    for row, lid in enumerate(groups.lids.tolist()):
        chosen = np.flatnonzero(groups.channels(row))
        keys.append(channels.src[chosen].astype(np.int64) * len(fabric.lids) + lid)
        values.append(own[chosen])
    lids = len(fabric.lids)
    return _sorted(np.concatenate(keys), np.concatenate(values), fabric.switches, lids, np.arange(lids, dtype=np.int32))


def _sorted(
    key: npt.NDArray[np.int64],
    channel: npt.NDArray[np.int32] | npt.NDArray[np.int64],
    switches: int,
    columns: int,
    lid_column: npt.NDArray[np.int32],
) -> NextChannels:
    """Return the channels sorted by their key (switch x columns + column), then by number."""
    order = np.lexsort((channel, key))
    first = np.searchsorted(key[order], np.arange(switches * columns + 1))
    return NextChannels(columns, lid_column, first.astype(np.int32), channel[order].astype(np.int32))
