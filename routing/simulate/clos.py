"""Build Clos networks of switches with input and output queues, and their tables with one LID for each path.

Source: Chrysos, Chen, Minkenberg, Kachris, Katevenis, "End-to-End Congestion Management for Non-Blocking, Multi-Stage
Switching Fabrics using Commodity Switches", sections 2.1 and 3.1.  Differences: a switch with queues at its inputs and
outputs (CIOQ) is built from simpler switches, each with one queue at every input.  A crossbar feeds one small switch
for each output.  The input buffer of the small switch is the output queue.  An adapter is a CA with two ports, one to
send and one to receive.  As InfiniBand requires, the destination LID of a packet selects its path: with LMC m, a CA has
2^m LIDs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.fabric import MAX_UNICAST_LID, NO_PORT, Fabric, NodeKind
from routing.fabric_builder import FabricBuilder
from routing.simulate.bounds import is_int_in
from routing.simulate.network import BLOCK, COST_BITS, Network, Timing, build_network
from routing.tables import Provenance, Routing

Ints = npt.NDArray[np.int64]

MOST_LMC = 7
SEND_PORT, RECEIVE_PORT = 1, 2
CROSSBAR_GUID, OUTPUT_GUID, ADAPTER_GUID = 0x100000, 0x200000, 0x300000


@dataclass(frozen=True)
class ClosTiming:
    """Rates, delays and queues of a Clos network.  A tick is the time of one byte on the external lines.

    Attributes
    ----------
    speedup
        Rate of the links of the fabric, relative to the external lines.
    crossbar
        Rate of a crossbar, relative to the links.
    wire
        Delay of a link in ticks.  Credits take this time, too.
    crossbar_delay, output_delay
        Ticks for which the head of a packet waits at least: at a crossbar (``crossbar_delay``), and at an output queue
        (``output_delay``).  The sum of ``wire`` and ``crossbar_delay`` should be at least the time of a packet on a
        link.  A packet is then complete before it takes the crossbar.
    input_blocks, output_blocks
        Size of an input queue and of an output queue, in blocks of 64 bytes.
    """

    speedup: float = 1.0
    crossbar: float = 2.0
    wire: int = 260
    crossbar_delay: int = 10
    output_delay: int = 9
    input_blocks: int = 128
    output_blocks: int = 960


@dataclass(frozen=True, eq=False)
class Clos:
    """Clos network as input of the simulator.

    Attributes
    ----------
    network
        Fabric, tables and arrays of the network.
    first_lid
        int64[N]: first LID of the receiving port of each adapter.
    sender
        int64[N]: row of the sending port of each adapter in the fabric's end-port arrays.
    output_channel
        int64[N]: channel from the small switch in front of each adapter to the adapter.
    output_queue
        int64[N]: channel from a crossbar to the small switch in front of each adapter.  The input buffer of this
        channel is the output queue in front of the adapter.
    paths
        Number of paths between two adapters.
    """

    network: Network
    first_lid: Ints
    sender: Ints
    output_channel: Ints
    output_queue: Ints
    paths: int


@dataclass(frozen=True)
class _Crossbar:
    """Crossbar of a switch: its device, the devices of its output queues, and the rule that selects an output.

    Let n be the number of a packet's path if ``by_path`` is true (the switch spreads packets over paths), and the
    number of its destination adapter otherwise.  The packet leaves by output ``n // unit % radix``, where ``radix`` is
    the number of outputs of the switch.  So each output serves ``unit`` consecutive numbers, and the next ``unit``
    numbers belong to the next output.
    """

    handle: int
    outputs: tuple[int, ...]
    by_path: bool
    unit: int


class _Builder:
    """Clos network under construction."""

    def __init__(self, adapters: int, radix: int) -> None:
        self.radix = radix
        self.fabric = FabricBuilder(f"clos-{adapters}-{radix}")
        self.crossbars: list[_Crossbar] = []

    def switch(self, by_path: bool, unit: int) -> _Crossbar:
        """Add one switch: a crossbar with its output queues.

        ``by_path`` is whether the switch spreads packets over paths.  ``unit`` is the divisor in the rule by which the
        switch selects an output (see :class:`_Crossbar`).
        """
        number, radix = len(self.crossbars), self.radix
        crossbar = self.fabric.add_device(NodeKind.SWITCH, CROSSBAR_GUID + number, f"s{number}", 2 * radix)
        outputs = []
        for output in range(radix):
            guid = OUTPUT_GUID + number * radix + output
            outputs.append(self.fabric.add_device(NodeKind.SWITCH, guid, f"s{number}.{output}", 2))
            self.fabric.connect(crossbar, radix + 1 + output, outputs[-1], 1)
        self.crossbars.append(_Crossbar(crossbar, tuple(outputs), by_path, unit))
        return self.crossbars[-1]

    def network(self, size: int, unit: int, level: int) -> tuple[list[tuple[int, int]], list[int]]:
        """Add a Clos network with ``size`` inputs and outputs.  It may be a part of a larger Clos network.

        Return the inputs as pairs (crossbar, port), and the devices of the output queues.  Adapter n is at output n of
        the largest network.  A packet to adapter n leaves the added network by output n // ``unit``.  ``level`` is the
        number of larger networks that contain the added network.
        """
        radix = self.radix
        if size == radix:
            middle = self.switch(False, unit)
            return [(middle.handle, 1 + n) for n in range(radix)], list(middle.outputs)
        first = [self.switch(True, radix**level) for _ in range(size // radix)]
        inner = [self.network(size // radix, unit * radix, level + 1) for _ in range(radix)]
        last = [self.switch(False, unit) for _ in range(size // radix)]
        for path, (inputs, outputs) in enumerate(inner):
            for number in range(size // radix):
                self.fabric.connect(first[number].outputs[path], 2, *inputs[number])
                self.fabric.connect(outputs[number], 2, last[number].handle, 1 + path)
        free = [(switch.handle, 1 + n) for switch in first for n in range(radix)]
        return free, [output for switch in last for output in switch.outputs]


def _levels(adapters: int, radix: int) -> int:
    """Return the number k of stages that spread packets over several paths.

    The Clos network then has 2 k + 1 stages of switches.
    """
    levels, size = 0, radix
    while 1 < radix <= size < adapters:
        levels, size = levels + 1, size * radix
    if not is_int_in(radix, 2, 64) or size != adapters:
        raise OptionError(
            f"no Clos network has {adapters} adapters and switches of {radix} ports",
            remedy="use a power of the number of ports, such as 64 adapters and 8 ports",
        )
    return levels


def build_clos(adapters: int, radix: int, timing: ClosTiming) -> Clos:
    """Build a Clos network of 2 k + 1 stages for n = ``radix``^(k + 1) adapters; k follows from n and ``radix``.

    Raises
    ------
    OptionError
        The number of adapters is not a power of the radix, the radix is not a power of two, or an adapter would need
        more than 128 LIDs.

    Notes
    -----
    Cost: O(S L) for S switches and L LIDs.  Each output queue of a switch is a separate switch of two ports in the
    fabric, and counts in S.
    """
    levels = _levels(adapters, radix)
    lmc = levels * (radix.bit_length() - 1)
    if radix & (radix - 1) or lmc > MOST_LMC or 2 * adapters << lmc > MAX_UNICAST_LID:
        raise OptionError(
            f"{adapters} adapters cannot have a LID for each of {radix**levels} paths (LMC {lmc})",
            remedy=f"use a power of two as radix, up to {1 << MOST_LMC} paths, and up to {MAX_UNICAST_LID} LIDs",
        )
    builder = _Builder(adapters, radix)
    inputs, outputs = builder.network(adapters, 1, 0)
    for number in range(adapters):
        handle = builder.fabric.add_device(NodeKind.CA, ADAPTER_GUID + 16 * number, f"a{number}", 2)
        builder.fabric.connect(handle, SEND_PORT, *inputs[number])
        builder.fabric.connect(outputs[number], 2, handle, RECEIVE_PORT)
    fabric = builder.fabric.build(lmc=lmc)
    rows = {(int(fabric.endport_terminal[row]), int(fabric.endport_port[row])): row for row in range(fabric.endports)}
    of_name = {label: device - fabric.switches for device, label in enumerate(fabric.labels)}
    terminals = [of_name[f"a{number}"] for number in range(adapters)]
    sender, receiver = (np.asarray([rows[t, port] for t in terminals], np.int64) for port in (SEND_PORT, RECEIVE_PORT))
    first_lid = fabric.endport_lid[receiver].astype(np.int64)
    routing = _tables(fabric, builder, first_lid, radix**levels)
    network = _with_timing(build_network(fabric, routing, Timing(buffer=2048)), radix, timing)
    arrays = network.arrays
    to = np.asarray([fabric.switches + t for t in terminals])
    output_channel = np.asarray([
        int(np.flatnonzero((arrays.dst == device) & (arrays.dst_port == RECEIVE_PORT))[0]) for device in to
    ], np.int64)  # fmt: skip
    into = {int(dst): c for c, (dst, port) in enumerate(zip(arrays.dst, arrays.dst_port, strict=True)) if port == 1}
    output_queue = np.asarray([into[int(arrays.src[c])] for c in output_channel], np.int64)
    return Clos(network, first_lid, sender, output_channel, output_queue, radix**levels)


def _tables(fabric: Fabric, builder: _Builder, first_lid: Ints, paths: int) -> Routing:
    """Return tables with a path for each LID of the receiving ports.  Other LIDs have no path."""
    radix, count = builder.radix, len(fabric.lids)
    row = {label: device for device, label in enumerate(fabric.labels[: fabric.switches])}
    lids = (first_lid[:, None] + np.arange(paths)).ravel()
    adapter, path = np.repeat(np.arange(len(first_lid)), paths), np.tile(np.arange(paths), len(first_lid))
    lft = np.full((fabric.switches, count), NO_PORT, np.uint8)
    for number, crossbar in enumerate(builder.crossbars):
        output = (path if crossbar.by_path else adapter) // crossbar.unit % radix
        lft[row[f"s{number}"], lids] = radix + 1 + output
        for queue in range(radix):
            lft[row[f"s{number}.{queue}"], lids] = 2
    return Routing(lft, np.zeros(count, np.uint8), np.zeros(16, np.uint8), 1, 1, Provenance("clos"))


def _with_timing(network: Network, radix: int, timing: ClosTiming) -> Network:
    """Give the channels of a network their rates, delays and buffers."""
    arrays, fabric = network.arrays, network.fabric
    # The mask `wide` marks the devices that are crossbars ("s0"), as opposed to output queues ("s0.3").
    wide = np.zeros(arrays.devices, bool)
    wide[: fabric.switches] = ["." not in name for name in fabric.labels[: fabric.switches]]
    # The mask `inner` marks the channels from a crossbar to an output queue.
    inner = wide[arrays.src] & (arrays.src_port > radix)
    back = inner[arrays.reverse]
    internal = inner | back
    to_crossbar, to_adapter = wide[arrays.dst] & ~internal, arrays.dst >= fabric.switches
    rate = np.where(internal, timing.speedup * timing.crossbar, timing.speedup)
    buffer = np.full(len(arrays.src), 2048, np.int32)
    buffer[inner], buffer[to_crossbar] = timing.output_blocks, timing.input_blocks
    buffer[to_adapter] = 2048
    delay = np.where(wide, timing.crossbar_delay, timing.output_delay)
    return replace(
        network,
        arrays=replace(
            arrays,
            cost=np.maximum(np.rint((1 << COST_BITS) / rate), 1).astype(np.int64),
            wire=np.where(internal, 1, timing.wire).astype(np.int32),
            buffer=buffer.reshape(-1, 1),
            switch_delay=delay.astype(np.int32),
        ),
    )


def blocks_of(bytes: int, packet: int) -> int:  # noqa: A002
    """Return the size in blocks of a buffer for ``bytes`` bytes.

    All packets in the buffer have ``packet`` bytes, and each packet occupies whole blocks.
    """
    return max(1, bytes // packet) * -(-packet // BLOCK)
