"""Read the tables and the settings of switches and end ports from the devices of a live fabric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.collect import mads
from routing.collect.umad import Query, Umad, directed
from routing.errors import EnvironmentProblem
from routing.fabric import NO_PORT, Fabric

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Function that shows the progress of a phase.  Its arguments are the phase's name and number of queries.

The function returns a context manager.  Its ``with`` statement binds (``as``) another function, which the phase calls
with the number of queries since the last call.
"""


@dataclass(frozen=True)
class Port:
    """A cabled port of a device, and the port number by which queries name the port.

    Attributes
    ----------
    device
        Number of the device: switches first, then CAs and routers.
    number
        Port number.
    asked
        Port number that a query states.  For a CA or router, the number is 0, which stands for the port by which the
        query arrives.
    """

    device: int
    number: int
    asked: int


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads the devices of a fabric.

    Attributes
    ----------
    umad
        The local port through which queries are sent.
    fabric
        The fabric, as discovered.
    routes
        Directed route to every device; None where a device did not answer.
    progress
        See :data:`Progress`.
    """

    umad: Umad
    fabric: Fabric
    routes: Sequence[bytes | None]
    progress: Progress

    def name(self, device: int) -> str:
        """Return the label of a device, for messages."""
        return self.fabric.labels[device]

    def lfts(self) -> tuple[npt.NDArray[np.uint8], list[int]]:
        """Read the LFTs of all switches.

        Returns
        -------
        table : uint8[S, L]
            The LFTs; 255 means that there is no route.  L is at least the number of LIDs of the fabric.
        unread : list[int]
            Rows of the switches that did not answer.
        """
        known = [row for row in range(self.fabric.switches) if self.routes[row] is not None]
        tops = self.umad.get_all((self._query(row, mads.SWITCH_INFO) for row in known), mads.top_lid)
        top = dict(zip(known, tops, strict=True))
        blocks = [(row, block) for row in known for block in range((top[row] or -1) // mads.BLOCK + 1)]
        queries = (self._query(row, mads.LFT_BLOCK, block) for row, block in blocks)
        with self.progress("LFTs", len(blocks)) as done:
            answers = self.umad.get_all(queries, mads.lft_block, done)
        lids = max([len(self.fabric.lids), *(1 + (highest or 0) for highest in tops)])
        table = np.full((self.fabric.switches, -(-lids // mads.BLOCK) * mads.BLOCK), NO_PORT, np.uint8)
        lost = {row for row in range(self.fabric.switches) if top.get(row) is None}
        for (row, block), ports in zip(blocks, answers, strict=True):
            if ports is None:
                lost.add(row)
            else:
                table[row, mads.BLOCK * block :][: mads.BLOCK] = np.frombuffer(ports, np.uint8)
        for row in known:
            table[row, 1 + (top[row] or 0) :] = NO_PORT
        table[sorted(lost)] = NO_PORT
        return table[:, :lids], sorted(lost)

    def ports(self) -> list[Port]:
        """Return all cabled ports of devices that answer: first the ports of switches, then the ports of CAs and
        routers.
        """
        ends = {
            (device, port)
            for pair, ports in zip(self.fabric.link_device.tolist(), self.fabric.link_port.tolist(), strict=True)
            for device, port in zip(pair, ports, strict=True)
        }
        there = [(device, port) for device, port in sorted(ends) if self.routes[device] is not None]
        return [Port(device, port, port if device < self.fabric.switches else 0) for device, port in there]

    def port_infos(self, ports: Sequence[Port]) -> list[mads.PortInfo | None]:
        """Read PortInfo of each port.  The result has None for a port that did not answer."""
        queries = (self._query(port.device, mads.PORT_INFO, port.asked) for port in ports)
        with self.progress("ports", len(ports)) as done:
            return self.umad.get_all(queries, mads.port_info, done)

    def arbitration(
        self, ports: Sequence[Port], infos: Sequence[mads.PortInfo | None]
    ) -> list[tuple[list[tuple[int, int]], list[tuple[int, int]]] | None]:
        """Read the VL arbitration tables of ports.  A table is a list of entries (VL, weight); each port has a
        low-priority and a high-priority table.

        Entries with weight 0 are left out.  The result has None for a port that did not answer, and for a port with one
        data VL, which has no such tables.

        ``infos`` has PortInfo of each port, or None if the port did not answer.
        """
        asked = [k for k, info in enumerate(infos) if info is not None and info.vl_cap != 1]
        blocks = (*mads.LOW, *mads.HIGH)
        queries = (
            self._query(ports[k].device, mads.VL_ARBITRATION, block << 16 | ports[k].asked)
            for k in asked
            for block in blocks
        )
        with self.progress("VL arbitration", len(blocks) * len(asked)) as done:
            answers = self.umad.get_all(queries, mads.arbitration_block, done)
        found: list[tuple[list[tuple[int, int]], list[tuple[int, int]]] | None] = [None] * len(ports)
        for number, k in enumerate(asked):
            parts = [[entry for entry in part or () if entry[1]] for part in answers[4 * number : 4 * number + 4]]
            # Each of a port's two arbitration tables is read in two blocks of 32 entries.  A port whose tables have at
            # most 32 entries answers the query for the second block with an error.
            if answers[4 * number] is not None or answers[4 * number + 2] is not None:
                found[k] = (parts[0] + parts[1], parts[2] + parts[3])
        return found

    def sl2vl(
        self, ports: Sequence[Port], infos: Sequence[mads.PortInfo | None]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """Read the SL2VL tables of switches, for each cabled in-port and out-port, and of CAs and routers.

        A port with one data VL needs no such table, because every SL uses VL 0 at this port.

        ``infos`` has PortInfo of each port, or None if the port did not answer.

        Returns
        -------
        switches : uint8[S, P, P, 16]
            VLs by switch, in-port (0: the switch itself), out-port and SL; 255 where a table was not read.
        terminals : uint8[T, 16]
            VLs by row of the T CAs and routers, and by SL; 255 where a table was not read.
        """
        size = 1 + int(self.fabric.switch_ports.max(initial=0))
        tables = np.full((self.fabric.switches, size, size, 16), NO_PORT, np.uint8)
        own = np.full((self.fabric.terminals, 16), NO_PORT, np.uint8)
        one_vl = {(port.device, port.number) for port, info in zip(ports, infos, strict=True) if _has_one_vl(info)}
        entries: dict[int, list[int]] = {}
        for port in ports:
            entries.setdefault(port.device, [0]).append(port.number)
        rows: list[tuple[int, int, int]] = []
        for port in ports:
            device, leave = port.device, port.number
            if device >= self.fabric.switches:
                rows += [] if (device, leave) in one_vl else [(device, 0, 0)]
                if (device, leave) in one_vl:
                    own[device - self.fabric.switches] = 0
            elif (device, leave) in one_vl:
                tables[device, entries[device], leave] = 0
            else:
                rows += [(device, entry, leave) for entry in entries[device]]
        queries = (self._query(device, mads.SL2VL, entry << 8 | leave) for device, entry, leave in rows)
        with self.progress("SL2VL tables", len(rows)) as done:
            answers = self.umad.get_all(queries, mads.sl2vl_row, done)
        for (device, entry, leave), vls in zip(rows, answers, strict=True):
            if vls is not None and device < self.fabric.switches:
                tables[device, entry, leave] = list(vls)
            elif vls is not None:
                own[device - self.fabric.switches] = list(vls)
        return tables, own

    def counters(self, ports: Sequence[Port], sl: Callable[[int], int]) -> list[dict[str, int]]:
        """Read the counters of each port.  Counters that a port did not return are left out.

        The queries are sent to the LID of the end port, or of the switch with the port.  ``sl`` is a function that
        returns the SL of the path to a LID from the port that sends the queries.
        """
        lid = self._lids(ports)
        queries = (
            query
            for port, at in zip(ports, lid, strict=True)
            for query in mads.counter_queries(at, port.number, sl(at))
        )
        with self.progress("counters", 3 * len(ports)) as done:
            answers = self.umad.get_all(queries, bytes, done)
        triples = zip(answers[::3], answers[1::3], answers[2::3], strict=True)
        return [mads.port_counters(*triple) for triple in triples]

    def _lids(self, ports: Sequence[Port]) -> list[int]:
        fabric = self.fabric
        own = {
            (fabric.switches + terminal, port): lid
            for terminal, port, lid in zip(
                fabric.endport_terminal.tolist(), fabric.endport_port.tolist(), fabric.endport_lid.tolist(), strict=True
            )
        }
        return [
            int(fabric.switch_lid[port.device]) if port.device < fabric.switches else own[port.device, port.number]
            for port in ports
        ]

    def _query(self, device: int, attribute: int, modifier: int = 0) -> Query:
        route = self.routes[device]
        if route is None:
            raise ValueError(f"no route to {self.name(device)}")
        return directed(route, attribute, modifier)


def _has_one_vl(info: mads.PortInfo | None) -> bool:
    return info is not None and info.vl_cap == 1


def reachable_routes(
    umad: Umad, fabric: Fabric, routes: Sequence[bytes | None], done: Callable[[int], None]
) -> list[bytes | None]:
    """Query the GUID of every device.  Return the route of each device that answers, and None for each other device.

    Raises
    ------
    EnvironmentProblem
        The device that answers is not the expected device.  The reason is a change of the fabric since the discovery.
    """
    asked = [device for device, route in enumerate(routes) if route is not None]
    guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
    queries = (directed(routes[device] or b"", mads.NODE_INFO) for device in asked)
    found: list[bytes | None] = [None] * len(routes)
    for device, info in zip(asked, umad.get_all(queries, mads.node_info, done), strict=True):
        if info is not None and info.guid != guids[device]:
            raise EnvironmentProblem(
                f"{fabric.labels[device]} was replaced by {info.guid:#018x} while the fabric was read",
                remedy="run it again",
            )
        found[device] = None if info is None else routes[device]
    return found
