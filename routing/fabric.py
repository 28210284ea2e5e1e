"""The fabric: switches, channel adapters (CAs), routers and the links between them, as an immutable value.

CAs and routers together are called *terminals*.  Devices are numbered: switches first (0..S-1), then terminals
(S..S+T-1), each sorted by GUID.  So a fabric gives the same arrays, whatever file it was read from.

A *link* is a cable between two ports.  A *channel* is one direction of a link between two different switches.
"""

from __future__ import annotations

import copy
import enum
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from routing.class_settings import PortClass
from routing.edges import Edges
from routing.errors import FabricError
from routing.names import labels_of
from routing.numerals import count_noun
from routing.port_classes import PortClasses
from routing.rows import without_rows

if TYPE_CHECKING:
    import igraph
    import networkx

MAX_UNICAST_LID = 0xBFFF
NO_PORT = 255
"""Value of an LFT entry without a route."""
OF_ENDPORTS = (
    "labels", "endport_label", "endport_name", "terminals_at", "endport_class", "aggregation", "aggregation_nodes",
    "endport_weight", "counted", "senders_at", "source_weight_at",
)  # fmt: skip
"""Names of cached properties of :class:`Fabric` that do not depend on the links between switches.  If only links
between switches are removed from a fabric, the new fabric takes the values of these properties from the old fabric.
"""


class NodeKind(enum.IntEnum):
    """Kind of a device: switch, channel adapter or router."""

    SWITCH = 0
    CA = 1
    ROUTER = 2


@dataclass(frozen=True, eq=False)
class Channels:
    """The directed links between switches, sorted by source switch, then by out-port.

    Attributes
    ----------
    src, dst
        int32[C], rows of the source and the destination switch.
    port, dst_port
        uint8[C], out-port at the source, in-port at the destination.
    reverse
        int32[C], the channel of the same cable in the other direction.
    capacity
        float64[C], data rate in Gb/s.
    link
        int32[C], row of the cable of each channel.
    first
        int32[S+1]; the channels out of switch ``s`` are ``first[s]:first[s+1]``.
    into, into_first
        int32[C] and int32[S+1]; the channels into switch ``s`` are ``into[into_first[s]:into_first[s+1]]``.
    at_port
        int32[S, 256], the channel that leaves switch ``s`` by port ``p``, or -1.
    """

    src: npt.NDArray[np.int32]
    dst: npt.NDArray[np.int32]
    port: npt.NDArray[np.uint8]
    dst_port: npt.NDArray[np.uint8]
    reverse: npt.NDArray[np.int32]
    capacity: npt.NDArray[np.float64]
    link: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]
    into: npt.NDArray[np.int32]
    into_first: npt.NDArray[np.int32]
    at_port: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.src)

    @cached_property
    def edges(self) -> Edges:
        """Edge numbers of the channel dependency graph (CDG).  The CDG can have an edge from each channel to each
        channel that may follow this channel.
        """
        return Edges.of(self.first, self.dst)

    def without_links(self, keep: npt.NDArray[np.bool_]) -> Channels:
        """Return the channels of the fabric that has only the links marked in ``keep`` (bool[K] for K links)."""
        stays = keep.take(self.link)
        gone, gone_into = np.flatnonzero(~stays), np.flatnonzero(~stays.take(self.into))
        number, link_number = (np.cumsum(kept, dtype=np.int32) - np.int32(1) for kept in (stays, keep))
        at_port = self.at_port.copy()
        at_port[self.src[gone], self.port[gone]] = -1
        src, port = without_rows(self.src, gone), without_rows(self.port, gone)
        # The array is flattened, because an access with one index needs less time than an access with two indices.
        at_port.reshape(-1)[src.astype(np.intp) << 8 | port] = np.arange(len(src), dtype=np.int32)
        return Channels(
            src=src,
            dst=without_rows(self.dst, gone),
            port=port,
            dst_port=without_rows(self.dst_port, gone),
            reverse=number.take(without_rows(self.reverse, gone)),
            capacity=without_rows(self.capacity, gone),
            link=link_number.take(without_rows(self.link, gone)),
            first=self.first - np.searchsorted(gone, self.first).astype(np.int32),
            into=number.take(without_rows(self.into, gone_into)),
            into_first=self.into_first - np.searchsorted(gone_into, self.into_first).astype(np.int32),
            at_port=at_port,
        )


@dataclass(frozen=True, eq=False)
class LidTable:
    """The switch, port and end port of each LID.

    The index of every array is the LID, from 0 to the highest LID in use.

    Attributes
    ----------
    switch
        int32[L], row of the switch that delivers the LID, or -1 if no switch delivers it.
    port
        uint8[L], port by which that switch delivers the LID (0: the switch itself, 255: no switch delivers it).
    endport
        int32[L], row of the end port that owns the LID, or -1 (LIDs of switches and unassigned LIDs).
    """

    switch: npt.NDArray[np.int32]
    port: npt.NDArray[np.uint8]
    endport: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.switch)


@dataclass(frozen=True, eq=False, repr=False)
class Fabric:
    """An InfiniBand subnet at one moment.  :class:`routing.fabric_builder.FabricBuilder` builds it.

    Attributes
    ----------
    name
        Name for display.
    switch_guid, switch_name, switch_ports, switch_lid
        uint64[S], str[S], uint8[S] and uint16[S]: node GUID, name, number of external ports and LID (0: none) of each
        switch.
    terminal_guid, terminal_name, terminal_ports, terminal_kind
        uint64[T], str[T], uint8[T] and uint8[T]: node GUID, name, number of ports and :class:`NodeKind` of each of the
        T CAs and routers.
    endport_terminal, endport_port
        int32[E] and uint8[E]: row of the terminal, and port number, of each end port.  The end ports are the cabled
        ports of terminals, sorted by port GUID.
    endport_guid, endport_lid, endport_lmc
        uint64[E], uint16[E] and uint8[E]: GUID, base LID (0: none) and LMC of each end port.
    link_device, link_port
        int32[K, 2] and uint8[K, 2]: device numbers and port numbers at both ends of each of the K cables.
    link_width, link_speed
        uint8[K] and float64[K]: link width of each cable, and signalling rate of one physical lane in Gb/s (2.5, 5,
        10, 14.0625, 25.78125, ...).
    port_classes
        Rules for the classes of end ports, and weights of the classes in traffic.
    """

    name: str
    switch_guid: npt.NDArray[np.uint64]
    switch_name: tuple[str, ...]
    switch_ports: npt.NDArray[np.uint8]
    switch_lid: npt.NDArray[np.uint16]
    terminal_guid: npt.NDArray[np.uint64]
    terminal_name: tuple[str, ...]
    terminal_ports: npt.NDArray[np.uint8]
    terminal_kind: npt.NDArray[np.uint8]
    endport_terminal: npt.NDArray[np.int32]
    endport_port: npt.NDArray[np.uint8]
    endport_guid: npt.NDArray[np.uint64]
    endport_lid: npt.NDArray[np.uint16]
    endport_lmc: npt.NDArray[np.uint8]
    link_device: npt.NDArray[np.int32]
    link_port: npt.NDArray[np.uint8]
    link_width: npt.NDArray[np.uint8]
    link_speed: npt.NDArray[np.float64]
    port_classes: PortClasses = field(default_factory=PortClasses)

    def __repr__(self) -> str:
        counts = (
            count_noun(self.switches, "switch", "switches"),
            count_noun(self.terminals, "CA or router", "CAs and routers"),
            count_noun(self.links, "link"),
        )
        return f"<{type(self).__name__} {self.name}: {', '.join(counts)}>"

    @property
    def switches(self) -> int:
        """Number of switches (S)."""
        return len(self.switch_guid)

    @property
    def terminals(self) -> int:
        """Number of CAs and routers (T)."""
        return len(self.terminal_guid)

    @property
    def endports(self) -> int:
        """Number of cabled ports of CAs and routers (E)."""
        return len(self.endport_guid)

    @property
    def links(self) -> int:
        """Number of cables (K)."""
        return len(self.link_width)

    @cached_property
    def link_capacity(self) -> npt.NDArray[np.float64]:
        """Data rate of each of the K links in Gb/s, float64[K].

        The data rate is link width x signalling rate x coding, where coding is 8b/10b up to 10 Gb/s and 64b/66b above.
        """
        coding = np.where(self.link_speed <= 10.0, 0.8, 64.0 / 66.0)
        return np.asarray(self.link_width * self.link_speed * coding)

    @cached_property
    def channels(self) -> Channels:
        """The links between different switches, one channel for each direction.  Cost: O(K log K)."""
        switch_link = np.flatnonzero(
            (self.link_device < self.switches).all(axis=1) & (self.link_device[:, 0] != self.link_device[:, 1])
        ).astype(np.int32)
        ends, ports = self.link_device[switch_link], self.link_port[switch_link]
        link = np.concatenate([switch_link, switch_link])
        src, dst = np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]])
        port, dst_port = np.concatenate([ports[:, 0], ports[:, 1]]), np.concatenate([ports[:, 1], ports[:, 0]])
        # A table of all ports gives the order of the channels, by switch and port, in less time than a sort.
        at_port = np.full((self.switches, 256), -1, np.int32)
        at_port[src, port] = np.arange(len(src), dtype=np.int32)
        cabled = at_port >= 0
        order = at_port[cabled]
        at_port[cabled] = np.arange(len(order), dtype=np.int32)
        position = np.empty(len(order), np.int32)
        position[order] = np.arange(len(order), dtype=np.int32)
        other_path = np.roll(position, len(switch_link))
        src, dst, port = src[order].astype(np.int32), dst[order].astype(np.int32), port[order]
        rows = np.arange(self.switches + 1)
        # NumPy sorts numbers of 16 bits by radix sort, which takes a fraction of the time of a sort of 32-bit numbers.
        into = np.argsort(dst.astype(np.uint16) if self.switches <= 1 << 16 else dst, kind="stable").astype(np.int32)
        return Channels(
            src=src,
            dst=dst,
            port=port,
            dst_port=dst_port[order],
            reverse=other_path[order],
            capacity=self.link_capacity[link[order]],
            link=link[order],
            first=np.searchsorted(src, rows).astype(np.int32),
            into=into,
            into_first=np.searchsorted(dst[into], rows).astype(np.int32),
            at_port=at_port,
        )

    @cached_property
    def _endport_attachment(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
        """Return three arrays [E] for the end ports: row of the switch to which each end port is cabled (or -1), port
        of this switch (or 255), and row of the cable.
        """
        switch = np.full(self.endports, -1, np.int32)
        port = np.full(self.endports, NO_PORT, np.uint8)
        link = np.full(self.endports, -1, np.int32)
        row_of = np.full((self.terminals, 256), -1, np.int32)
        row_of[self.endport_terminal, self.endport_port] = np.arange(self.endports, dtype=np.int32)
        for near, far in ((0, 1), (1, 0)):
            cable = np.flatnonzero(self.link_device[:, near] >= self.switches)
            row = row_of[self.link_device[cable, near] - self.switches, self.link_port[cable, near]]
            link[row] = cable
            to_switch = self.link_device[cable, far] < self.switches
            switch[row[to_switch]] = self.link_device[cable[to_switch], far]
            port[row[to_switch]] = self.link_port[cable[to_switch], far]
        return switch, port, link

    @property
    def endport_switch(self) -> npt.NDArray[np.int32]:
        """Row of the switch to which each end port is cabled, int32[E]; -1 if the end port is cabled to another
        terminal.
        """
        return self._endport_attachment[0]

    @property
    def endport_switch_port(self) -> npt.NDArray[np.uint8]:
        """Port of the switch to which each end port is cabled, uint8[E]; 255 if the end port is cabled to another
        terminal.
        """
        return self._endport_attachment[1]

    @property
    def endport_link(self) -> npt.NDArray[np.int32]:
        """Index of the cable of each end port, int32[E]."""
        return self._endport_attachment[2]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Name of each device for reports, followed by the GUID where the name is empty or not unique."""
        guids = np.concatenate([self.switch_guid, self.terminal_guid]).tolist()
        return labels_of((*self.switch_name, *self.terminal_name), guids)

    @cached_property
    def endport_label(self) -> tuple[str, ...]:
        """Name of each end port's CA or router for reports, with the GUID where the name is empty or not unique."""
        return tuple(self.labels[self.switches + t] for t in self.endport_terminal.tolist())

    @cached_property
    def endport_name(self) -> tuple[str, ...]:
        """Name of the CA or router of each end port, as the fabric states it."""
        return tuple(self.terminal_name[t] for t in self.endport_terminal.tolist())

    @cached_property
    def terminals_at(self) -> npt.NDArray[np.int64]:
        """Number of end ports cabled to each switch, int64[S]."""
        attached = self.endport_switch[self.endport_switch >= 0]
        return np.bincount(attached, minlength=self.switches).astype(np.int64)

    @cached_property
    def endport_class(self) -> npt.NDArray[np.uint8]:
        """uint8[E], the :class:`~routing.port_classes.PortClass` of each end port."""
        by_device = self.port_classes.of_devices(self.terminal_name, self.terminal_guid)
        return self.port_classes.of_endports(by_device, self.endport_terminal, self.endport_guid)

    @cached_property
    def aggregation(self) -> npt.NDArray[np.bool_]:
        """bool[E], which end ports belong to an aggregation node (SHARP) inside a switch.

        An aggregation node has a LID and needs routes, but sends to its own reduction trees only.
        """
        return np.asarray(self.endport_class == PortClass.AGGREGATION)

    @cached_property
    def aggregation_nodes(self) -> npt.NDArray[np.bool_]:
        """bool[T], which of the T CAs and routers are aggregation nodes (SHARP) inside a switch.

        The result includes aggregation nodes whose switch is not in the fabric.
        """
        inside = self.port_classes.of_devices(self.terminal_name, self.terminal_guid) == PortClass.AGGREGATION
        inside[self.endport_terminal[self.aggregation]] = True
        return np.asarray(inside)

    @cached_property
    def endport_weight(self) -> npt.NDArray[np.int64]:
        """int64[E, 2], weight of each end port as source and as destination of traffic."""
        return self.port_classes.factors(self.endport_class)

    @cached_property
    def counted(self) -> npt.NDArray[np.bool_]:
        """bool[E], whether each end port counts in traffic patterns: its weight as source or as destination is
        positive.

        A switch is a leaf only if at least one of its end ports counts.  A switch whose only end port is an aggregation
        node is not a leaf.
        """
        return np.asarray((self.endport_weight > 0).any(axis=1))

    @cached_property
    def senders_at(self) -> npt.NDArray[np.int64]:
        """int64[S], for each switch the number of its end ports that count in traffic."""
        here = self.endport_switch[(self.endport_switch >= 0) & self.counted]
        return np.bincount(here, minlength=self.switches).astype(np.int64)

    @cached_property
    def source_weight_at(self) -> npt.NDArray[np.int64]:
        """int64[S], traffic that the end ports of each switch send: the sum of their weights as sources."""
        found = np.zeros(self.switches, np.int64)
        cabled = self.endport_switch >= 0
        np.add.at(found, self.endport_switch[cabled], self.endport_weight[cabled, 0])
        return found

    @cached_property
    def lids(self) -> LidTable:
        """The switch, port and end port of each LID.

        Raises
        ------
        FabricError
            If two ports have the same LID.
        """
        base = self.endport_lid.astype(np.int64)
        count = np.where(base > 0, 1 << self.endport_lmc.astype(np.int64), 0)
        endport = np.repeat(np.arange(self.endports), count)
        offset = np.arange(len(endport)) - np.repeat(np.cumsum(count) - count, count)
        lid = base[endport] + offset
        own = np.flatnonzero(self.switch_lid > 0)
        every = np.concatenate([lid, self.switch_lid[own].astype(np.int64)])
        if np.bincount(every).max(initial=0) > 1:
            raise FabricError(self._clash(every))
        top = int(every.max(initial=0)) + 1
        table = LidTable(np.full(top, -1, np.int32), np.full(top, NO_PORT, np.uint8), np.full(top, -1, np.int32))
        table.switch[lid], table.port[lid] = self.endport_switch[endport], self.endport_switch_port[endport]
        table.endport[lid] = endport
        table.switch[self.switch_lid[own]], table.port[self.switch_lid[own]] = own, 0
        return table

    def with_lids(self, count: int) -> Fabric:
        """Return this fabric with a LID table of at least ``count`` rows, so that tables with higher LIDs fit it.

        Earlier tables can have columns for LIDs above the highest LID in use now.  The added LIDs belong to no port.
        The new fabric shares all other data with this fabric.
        """
        more = count - len(self.lids)
        if more <= 0:
            return self
        wider, lids = copy.copy(self), self.lids
        rows = [
            np.concatenate([column, np.full(more, filler, column.dtype)])
            for column, filler in ((lids.switch, -1), (lids.port, NO_PORT), (lids.endport, -1))
        ]
        wider.__dict__["lids"] = LidTable(*rows)
        return wider

    @staticmethod
    def _clash(lids: npt.NDArray[np.int64]) -> str:
        values, counts = np.unique(lids, return_counts=True)
        return f"LID {int(values[counts > 1][0])} belongs to more than one port"

    @cached_property
    def graph(self) -> igraph.Graph:
        """The switches as a directed graph of the library igraph.  Its edges are the channels, in the order of their
        numbers.
        """
        import igraph  # noqa: PLC0415 - the start of a command without graphs would take a tenth more time

        pairs = np.column_stack([self.channels.src, self.channels.dst])
        return igraph.Graph(n=self.switches, edges=pairs, directed=True)

    @cached_property
    def component(self) -> npt.NDArray[np.int32]:
        """Number of the connected component of each switch, int32[S]; the first switch is in component 0.

        Notes
        -----
        Cost: O(C) for each round of label propagation.  A label is the row of a switch.  At first, each switch has its
        own row as label.  A round has two steps.  In the first step, each switch takes the lowest label among its own
        and its neighbours' labels.  In the second step, each switch with label ``r`` takes the label of switch ``r``.
        """
        channels, label = self.channels, np.arange(self.switches, dtype=np.int32)
        linked = np.flatnonzero(np.diff(channels.first))
        while len(linked):
            lower = label.copy()
            nearby = np.minimum.reduceat(label.take(channels.dst), channels.first[linked])
            lower[linked] = np.minimum(label[linked], nearby)
            lower = lower[lower]
            if np.array_equal(lower, label):
                break
            label = lower
        return np.unique(label, return_inverse=True)[1].astype(np.int32)

    def cables(self) -> Iterator[tuple[list[int], list[int], int, float]]:
        """Return an iterator over all cables: both devices, both ports, width and speed of each cable."""
        ends, ports = self.link_device.tolist(), self.link_port.tolist()
        return zip(ends, ports, self.link_width.tolist(), self.link_speed.tolist(), strict=True)

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hexadecimal digits, of all data of the fabric on which routing depends.  The digest identifies a
        fabric; names are left out.
        """
        state = hashlib.sha256(b"ibnue-fabric/1")
        order, ends = self._sorted_cables
        parts: tuple[npt.NDArray[Any], ...] = (
            self.switch_guid, self.switch_lid, self.terminal_guid, self.terminal_kind, self.endport_guid,
            self.endport_lid, self.endport_lmc, ends, self.link_width[order], self.link_speed[order],
        )  # fmt: skip
        for part in parts:
            state.update(str(part.shape).encode())
            state.update(np.ascontiguousarray(part).data)
        return state.hexdigest()

    @cached_property
    def _sorted_cables(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """Return the rows of the cables (int64[K]), sorted by the GUIDs and ports of their ends.

        The second array, uint64[K, 4], has in the same order the ends of each cable: GUID, port, GUID, port.
        """
        guids = np.concatenate([self.switch_guid, self.terminal_guid])
        # `ends` is uint64[K, 2, 2], by cable and end: GUID of the device, and port.
        ends = np.stack([guids[self.link_device], self.link_port.astype(np.uint64)], axis=2)
        swap = ends[:, 0, 0] > ends[:, 1, 0]
        swap |= (ends[:, 0, 0] == ends[:, 1, 0]) & (ends[:, 0, 1] > ends[:, 1, 1])
        ends[swap] = ends[swap][:, ::-1]
        flat = ends.reshape(-1, 4)
        order = np.lexsort(flat.T[::-1])
        return order, flat[order]

    def device_name(self, device: int) -> str:
        """Return the name of the switch or terminal with a device number."""
        if device < self.switches:
            return self.switch_name[device]
        return self.terminal_name[device - self.switches]

    def without_links(self, links: Iterable[int]) -> Fabric:
        """Return the fabric without the given cables.

        All devices and GUIDs stay.  An end port that loses its cable is no longer an end port, so that its LIDs are not
        delivered.
        """
        keep = np.ones(self.links, bool)
        keep[np.fromiter(links, np.int64)] = False
        gone = np.flatnonzero(~keep)
        stay = keep[self.endport_link]
        ends = ("endport_terminal", "endport_port", "endport_guid", "endport_lid", "endport_lmc")
        less = replace(
            self,
            link_device=without_rows(self.link_device, gone),
            link_port=without_rows(self.link_port, gone),
            link_width=without_rows(self.link_width, gone),
            link_speed=without_rows(self.link_speed, gone),
            **({} if stay.all() else {name: getattr(self, name)[stay] for name in ends}),
        )
        if stay.all():
            switch, port, link = self._endport_attachment
            less.__dict__["_endport_attachment"] = switch, port, link - np.cumsum(~keep, dtype=np.int32)[link]
            less.__dict__.update({name: self.__dict__[name] for name in OF_ENDPORTS if name in self.__dict__})
            # The new fabric must not have rows that the method with_lids has added to the LID table.  Added rows come
            # last and have no switch.  So if the last row has a switch, the new fabric can share the LID table.
            if self.lids.switch[-1] >= 0:
                less.__dict__["lids"] = self.lids
        if "channels" in self.__dict__:
            less.__dict__["channels"] = self.channels.without_links(keep)
        if "_sorted_cables" in self.__dict__:
            order, sorted_ends = self._sorted_cables
            gone, number = np.flatnonzero(~keep[order]), np.cumsum(keep, dtype=np.int64) - 1
            less.__dict__["_sorted_cables"] = number[without_rows(order, gone)], without_rows(sorted_ends, gone)
        return less

    def to_networkx(self) -> networkx.MultiGraph:
        """Return the devices and cables as a networkx multigraph.

        The vertices are the device numbers, with GUID, name and kind as attributes.  The edges are the cables, with
        the ports as an attribute.
        """
        import networkx  # noqa: PLC0415 - only this method needs networkx, and no command calls it

        graph = networkx.MultiGraph(name=self.name)
        for row, guid in enumerate(self.switch_guid.tolist()):
            graph.add_node(row, guid=guid, name=self.switch_name[row], kind=NodeKind.SWITCH)
        for row, guid in enumerate(self.terminal_guid.tolist()):
            kind = NodeKind(int(self.terminal_kind[row]))
            graph.add_node(self.switches + row, guid=guid, name=self.terminal_name[row], kind=kind)
        for (a, b), (p, q), _, _ in self.cables():
            graph.add_edge(a, b, ports={a: p, b: q})
        return graph
