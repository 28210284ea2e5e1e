"""An object that answers the queries of :mod:`loop_check` from a fabric and its tables, without a running lab."""

from collections import namedtuple
from types import SimpleNamespace

Device = namedtuple("Device", "id kind guid")
Port = namedtuple("Port", "device port peer")
Owner = namedtuple("Owner", "kind guid port lid")

KINDS = {1: "CA", 2: "Switch", 3: "Router"}


class PaperLab:
    """The devices, cables, owners of LIDs and tables of a fabric, with the methods of a running lab."""

    def __init__(self, fabric, routing):
        self._fabric, self._routing = fabric, routing
        guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
        kinds = ["Switch"] * fabric.switches + [KINDS[int(kind)] for kind in fabric.terminal_kind]
        owned = enumerate(zip(kinds, guids, strict=True))
        self._devices = [Device(f"d{row}", kind, guid) for row, (kind, guid) in owned]
        self.ibsim = SimpleNamespace(devices=self._devices, ports=self._ports)

    def _ports(self):
        for ends, ports in zip(self._fabric.link_device.tolist(), self._fabric.link_port.tolist(), strict=True):
            for near, far in ((0, 1), (1, 0)):
                peer = self._devices[ends[far]].id, ports[far]
                yield Port(self._devices[ends[near]].id, ports[near], peer)

    def owners(self):
        fabric = self._fabric
        for guid, lid in zip(fabric.switch_guid.tolist(), fabric.switch_lid.tolist(), strict=True):
            yield Owner("SW", guid, 0, lid)
        for row in range(fabric.endports):
            if fabric.endport_switch[row] < 0:
                continue
            terminal = fabric.endport_terminal[row]
            kind = KINDS[int(fabric.terminal_kind[terminal])]
            guid, port = int(fabric.terminal_guid[terminal]), int(fabric.endport_port[row])
            yield Owner(kind, guid, port, int(fabric.endport_lid[row]))

    def switch_lfts(self):
        lft = self._routing.lft.tolist()
        return {
            guid: {lid: port for lid, port in enumerate(row) if port != 255}
            for guid, row in zip(self._fabric.switch_guid.tolist(), lft, strict=True)
        }

    def switch_sl2vl(self):
        rows = self._routing.sl2vl.tolist()
        return {
            (guid, into, out): rows
            for guid, ports in zip(self._fabric.switch_guid.tolist(), self._fabric.switch_ports.tolist(), strict=True)
            for into in range(ports + 1)
            for out in range(ports + 1)
        }

    def requests(self):
        """Yield each request between end ports of one connected component.

        A request is (row of the sender, row of the receiver, destination LID, offset of this LID, SL).
        """
        fabric, sl = self._fabric, self._routing.sl
        rows = [row for row in range(fabric.endports) if fabric.endport_switch[row] >= 0]
        for source in rows:
            at = fabric.endport_switch[source]
            for target in rows:
                to = fabric.endport_switch[target]
                if source == target or fabric.component[at] != fabric.component[to]:
                    continue
                for offset in range(1 << int(fabric.endport_lmc[target])):
                    lid = int(fabric.endport_lid[target]) + offset
                    yield source, target, lid, offset, int(sl[at, lid])

    def requested_sls(self):
        """Return the SL of each request, by GUID of the sender and destination LID, as the SA returns it."""
        return {(self._guid(source), lid): sl for source, _, lid, _, sl in self.requests()}

    def reply_sls(self, shift):
        """Return the SL of each reply, by GUID of the sender and destination LID.

        A reply goes to the LID of the requester with the offset of the request plus ``shift``, and has the request's
        SL.
        """
        fabric, found = self._fabric, {}
        for source, target, _, offset, sl in self.requests():
            count = 1 << int(fabric.endport_lmc[source])
            key = self._guid(target), int(fabric.endport_lid[source]) + (offset + shift) % count
            if found.setdefault(key, sl) != sl:
                raise AssertionError(f"replies to LID {key[1]} have several SLs")
        return found

    def _guid(self, endport):
        return int(self._fabric.terminal_guid[self._fabric.endport_terminal[endport]])
