"""Build the input arrays of a simulation: channels with their rates, delays and buffers, and the routing tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.simulation_arrays import NetworkArrays
from routing.endports import find_device
from routing.errors import OptionError, TableError
from routing.fabric import NO_PORT, Fabric
from routing.simulate.bounds import is_float_in, is_int_in
from routing.tables import DATA_VLS, Routing, SlToVl

BLOCK = 64
"""Size in bytes of a block, the unit of credits and buffers."""
MOST_BLOCKS = 2048
"""Largest size of a buffer in blocks, because InfiniBand permits no larger credit.  FCCL (the blocks up to which a port
may send) exceeds FCTBS (the blocks sent) by at most 2048.
"""
COST_BITS = 20
LONGEST_TICKS = 1 << 30
LEAST_TICK = 1e-15
LEAST_BLOCK = BLOCK / (1 << COST_BITS)
"""Shortest time of a block, in ticks.  The time of a byte is stored as a whole number of units of 2^-20 ticks, so it is
at least one unit.
"""


@dataclass(frozen=True)
class Timing:
    """Time unit of a simulation, delays of cables and switches, and size of the input buffers.

    Attributes
    ----------
    tick
        Length of a tick in seconds.
    wire
        Delay of a cable from one end to the other in ticks, at least 1.
    switch
        Ticks from the arrival of a packet's head at a switch until the switch can forward it.
    block
        Ticks that 64 bytes take on every link; None: computed from each link's data rate.
    buffer
        Size of each VL's input buffer at switches and CAs, in blocks of 64 bytes.
    """

    tick: float = 1e-9
    wire: int = 25
    switch: int = 100
    block: float | None = None
    buffer: int = 128

    def __post_init__(self) -> None:
        most = LONGEST_TICKS - 1
        block = self.block is None or is_float_in(self.block, LEAST_BLOCK, most)
        for value, what, fits, remedy in (
            (self.tick, "length of a tick in seconds", is_float_in(self.tick, LEAST_TICK, 1), "use 1e-9"),
            (self.wire, "delay of a cable in ticks", is_int_in(self.wire, 1, most), f"use 1 to {most}"),
            (self.switch, "delay of a switch in ticks", is_int_in(self.switch, 0, most), f"use 0 to {most}"),
            (self.block, "number of ticks for a block", block, f"use {LEAST_BLOCK:g} to {most}"),
            (
                self.buffer,
                "number of blocks of a buffer",
                is_int_in(self.buffer, 1, MOST_BLOCKS),
                f"use 1 to {MOST_BLOCKS}",
            ),
        ):
            if not fits:
                raise OptionError(f"{value!r} is not a valid {what}", remedy=remedy)


@dataclass(frozen=True, eq=False)
class Network:
    """Fabric and tables as input of the simulator, made by :func:`build_network`.

    Attributes
    ----------
    fabric, routing, timing
        Arguments of :func:`build_network`.
    arrays
        Arrays for the C kernel.  The N channels are both directions of all cables, including cables of CAs.  They are
        sorted by sending device and out-port.
    """

    fabric: Fabric
    routing: Routing
    timing: Timing
    arrays: NetworkArrays

    @property
    def channels(self) -> int:
        """Return the number of channels of the network (N)."""
        return len(self.arrays.src)

    @property
    def vls(self) -> int:
        """Return the number of data VLs that are simulated (V)."""
        return self.arrays.vls

    def channel_name(self, channel: int) -> str:
        """Return the name of a channel, such as ``sw1[3] -> sw2[4]``."""
        arrays, labels = self.arrays, self.fabric.labels
        near = f"{labels[arrays.src[channel]]}[{arrays.src_port[channel]}]"
        return f"{near} -> {labels[arrays.dst[channel]]}[{arrays.dst_port[channel]}]"

    def path_name(self, channel: int) -> str:
        """Return the names of the two devices at the ends of a channel, such as ``sw1 > sw2``."""
        near, far = int(self.arrays.src[channel]), int(self.arrays.dst[channel])
        return f"{self.fabric.labels[near]} > {self.fabric.labels[far]}"

    def vc_name(self, vc: int) -> str:
        """Return the name of a virtual channel, such as ``sw1[3] -> sw2[4] VL 0``."""
        return f"{self.channel_name(vc // self.vls)} VL {vc % self.vls}"

    def channel_between(self, near: str, far: str) -> int:
        """Return the first channel from one device to another.  ``near`` and ``far`` are names or GUIDs.

        Raises
        ------
        OptionError
            There is no such device or cable.
        """
        ends = find_device(self.fabric, near), find_device(self.fabric, far)
        found = np.flatnonzero((self.arrays.src == ends[0]) & (self.arrays.dst == ends[1]))
        if not len(found):
            raise OptionError(f"there is no cable between {near} and {far}")
        return int(found[0])

    def vcs_of_path(self, endport: int, lid: int) -> list[int]:
        """Follow the tables from an end port to a LID, and return the virtual channels between switches on the path.

        A virtual channel has the number channel x V + VL.  The channels from and to the CAs are left out.

        Raises
        ------
        TableError
            The path does not reach the LID.
        """
        arrays, fabric = self.arrays, self.fabric
        sls = self.routing.service_levels.from_sender(
            int(fabric.endport_switch[endport]), int(fabric.endport_lid[endport])
        )
        sl = int(sls[lid])
        channel = self.endport_channel(endport)
        vcs: list[int] = []
        for _ in range(arrays.switches + 1):
            device, in_port = int(arrays.dst[channel]), int(arrays.dst_port[channel])
            if device >= arrays.switches:
                return vcs[:-1]
            port = int(arrays.lft[device, lid])
            out = np.flatnonzero((arrays.src == device) & (arrays.src_port == port))
            if not len(out):
                break
            channel = int(out[0])
            vl = int(SlToVl(arrays.sl2vl).vl(device, in_port, port, sl))
            if vl >= self.vls:
                break  # The VL does not exist (for example VL 15), so the switch drops the packet.
            vcs.append(channel * self.vls + vl)
        raise TableError(f"LID {lid} is not reached from {fabric.endport_label[endport]}")

    def endport_channel(self, endport: int) -> int:
        """Return the number of the channel by which an end port sends."""
        device = self.fabric.switches + int(self.fabric.endport_terminal[endport])
        here = (self.arrays.src == device) & (self.arrays.src_port == self.fabric.endport_port[endport])
        return int(np.flatnonzero(here)[0])


def data_vls(routing: Routing) -> int:
    """Return the number of data VLs that tables use: one more than the highest data VL that an SL in use can get."""
    used = np.unique(routing.sl)
    vls = routing.sl2vl[..., used[used < 16]]
    vls = vls[vls < 15]
    return int(vls.max(initial=0)) + 1


def _channels(fabric: Fabric) -> dict[str, npt.NDArray[np.int64]]:
    """Return source, destination, ports, reverse channel and link of every channel, int64[N] each.

    Channels are both directions of all cables, sorted by sending device and port.
    """
    ends, ports = fabric.link_device.astype(np.int64), fabric.link_port.astype(np.int64)
    src, dst = np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]])
    src_port, dst_port = np.concatenate([ports[:, 0], ports[:, 1]]), np.concatenate([ports[:, 1], ports[:, 0]])
    order = np.lexsort((src_port, src))
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    link = np.tile(np.arange(fabric.links), 2)
    return {
        "src": src[order],
        "dst": dst[order],
        "src_port": src_port[order],
        "dst_port": dst_port[order],
        "reverse": np.roll(position, fabric.links)[order],
        "link": link[order],
    }


def _cost(fabric: Fabric, timing: Timing, link: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the time that a byte takes on each channel, in units of 2^-20 ticks; ``link`` is the link of each
    channel.
    """
    if timing.block is not None:
        ticks_per_byte = np.full(len(link), timing.block / BLOCK)
    else:
        ticks_per_byte = 8.0 / (fabric.link_capacity[link] * 1e9) / timing.tick
        least, most = (float(found(initial=1.0)) * BLOCK for found in (ticks_per_byte.min, ticks_per_byte.max))
        if not LEAST_BLOCK <= least <= most < LONGEST_TICKS:
            raise OptionError(
                f"a tick of {timing.tick:g} s does not fit links on which a block takes {least:g} to {most:g} ticks",
                remedy="use 1e-9",
            )
    return np.asarray(np.maximum(np.rint(ticks_per_byte * (1 << COST_BITS)), 1), np.int64)


def distances(fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Return the number of hops between switches, uint8[S, S].  255 means that there is no path, or that it has 255
    hops or more.
    """
    hops = np.asarray(fabric.graph.distances(), float).reshape(fabric.switches, fabric.switches)
    return np.asarray(np.minimum(hops, 255), np.uint8)


def _lid_device(fabric: Fabric) -> npt.NDArray[np.int32]:
    """Return int32[L]: the device number of the CA or router that owns each LID; -1 if no such device owns it."""
    device = np.full(len(fabric.lids), -1, np.int32)
    owned = fabric.lids.endport >= 0
    device[owned] = fabric.switches + fabric.endport_terminal[fabric.lids.endport[owned]]
    return device


def build_network(fabric: Fabric, routing: Routing, timing: Timing = Timing(), *, vls: int | None = None) -> Network:
    """Convert a fabric and its tables to the input of the simulator.

    Parameters
    ----------
    fabric, routing
        Fabric, and tables whose shapes fit the fabric.  The function does not check whether the tables deliver packets.
        :func:`routing.simulate.run.simulate` checks this for the pairs that send traffic.
    timing
        Length of a tick, delays and buffer sizes.
    vls
        Number of data VLs; None: as many as the tables use.

    Raises
    ------
    TableError
        The tables do not fit the fabric.
    OptionError
        The number of VLs is invalid, or ticks are too long or too short for the links.

    Notes
    -----
    Cost: O(N log N) for N channels; O(S^2) memory for the distances between S switches.
    """
    routing.check_shapes(fabric)
    count = data_vls(routing) if vls is None else vls
    if not is_int_in(count, 1, DATA_VLS):
        raise OptionError(f"{count!r} is not a number of VLs", remedy=f"use 1 to {DATA_VLS}")
    channels = _channels(fabric)
    number = len(channels["src"])
    if number and int(channels["src_port"].max()) >= NO_PORT:
        raise TableError("a port number is over 254")
    ca_sl2vl = routing.sl2vl if routing.sl_to_vl.uniform else (np.arange(16) % count).astype(np.uint8)
    arrays = NetworkArrays(
        devices=fabric.switches + fabric.terminals,
        switches=fabric.switches,
        vls=count,
        src=channels["src"].astype(np.int32),
        dst=channels["dst"].astype(np.int32),
        src_port=channels["src_port"].astype(np.uint8),
        dst_port=channels["dst_port"].astype(np.uint8),
        reverse=channels["reverse"].astype(np.int32),
        cost=_cost(fabric, timing, channels["link"]),
        wire=np.full(number, timing.wire, np.int32),
        buffer=np.full((number, count), timing.buffer, np.int32),
        switch_delay=np.full(fabric.switches + fabric.terminals, timing.switch, np.int32),
        lft=routing.lft,
        sl2vl=routing.sl2vl,
        ca_sl2vl=np.where(ca_sl2vl < count, ca_sl2vl, 0).astype(np.uint8),
        sl=routing.service_levels.matrix,
        distance=distances(fabric),
        lid_switch=fabric.lids.switch,
        lid_device=_lid_device(fabric),
    )
    return Network(fabric, routing, timing, arrays)
