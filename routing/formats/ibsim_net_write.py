"""Write net files that ibsim can load, and that :mod:`routing.formats.ibsim_net` reads back as the same fabric."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from routing.errors import FabricError
from routing.fabric import Fabric, NodeKind
from routing.names import escape_control
from routing.rates import WIDTHS, speed_name

_WORDS = {NodeKind.SWITCH: ("Switch", "switchguid"), NodeKind.CA: ("Hca", "caguid"), NodeKind.ROUTER: ("Rt", "rtguid")}
_WIDTH_BIT = {1: 1, 2: 16, 4: 2, 8: 4, 12: 8}
_SPEED_BITS = {
    "SDR": (1, 0), "DDR": (2, 0), "QDR": (4, 0), "FDR10": (4, 0),
    "FDR": (4, 1), "EDR": (4, 2), "HDR": (4, 4), "NDR": (4, 4), "XDR": (4, 4),
}  # fmt: skip
_IN_COMMENT = {"FDR10": "# lid 0 {}xFDR10", "NDR": "# {}xNDR", "XDR": "# {}xXDR"}
_GENERATED_ID = re.compile(r"[SHR]-[0-9a-f]{16}")


def net_text(fabric: Fabric, *, port_guids: bool = True) -> str:
    """Return the fabric as the text of an ibsim net file.

    By default OpenSM attaches to the first port in ibsim.  The text begins with the CAs, so that this port belongs to a
    CA.

    ibsim numbers the GUIDs of nodes in the order of the file.  The text states the GUID of a node only if ibsim would
    assign another GUID.  The text states LIDs only if a reader of the text would otherwise assign other LIDs.

    The text states each port GUID that differs from node GUID + port number.  ibnue's reader uses these port GUIDs, and
    ibsim ignores them.  If ``port_guids`` is False, no port GUIDs are stated, and the reader numbers all ports as ibsim
    does.

    Raises
    ------
    FabricError
        A link has a width or speed that InfiniBand does not have.
    """
    return "\n".join(_Writer(fabric, port_guids=port_guids).lines()) + "\n"


class _Writer:
    """Generates the lines of a net file in order."""

    def __init__(self, fabric: Fabric, *, port_guids: bool) -> None:
        self.fabric = fabric
        self.names = [*fabric.switch_name, *fabric.terminal_name]
        self.guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
        self.kinds = [NodeKind.SWITCH] * fabric.switches + [NodeKind(k) for k in fabric.terminal_kind.tolist()]
        self.port_counts = [*fabric.switch_ports.tolist(), *fabric.terminal_ports.tolist()]
        self.ids = self._ids()
        self.odd = self._odd_ports() if port_guids else {}
        self.cables = self._cables()
        self.next_guid = {NodeKind.SWITCH: 0x200000, NodeKind.CA: 0x100000, NodeKind.ROUTER: 0}

    def lines(self) -> Iterator[str]:
        order = sorted(range(len(self.names)), key=lambda d: (self.kinds[d] is NodeKind.SWITCH, self.kinds[d], d))
        for device in order:
            yield from self._record(device)
        yield from self._lids()

    def _ids(self) -> list[str]:
        """Return the node id of each device for ibsim.  The id is the device's name if the name is valid and unique,
        otherwise it is made from the GUID.
        """
        count = Counter(self.names)
        ids = []
        for name, guid, kind in zip(self.names, self.guids, self.kinds, strict=True):
            made = f"{'SHR'[kind]}-{guid:016x}"
            good = count[name] == 1 and 0 < len(name.encode(errors="replace")) <= 63 and name.isprintable()
            good = good and not set(name) & set('"#@') and not _GENERATED_ID.fullmatch(name)
            ids.append(name if good else made)
        return ids

    def _odd_ports(self) -> dict[tuple[int, int], int]:
        """Return the port GUIDs that are not node GUID + port number, by device number and port.

        Without a statement in the file, a reader would give these end ports another GUID.
        """
        fabric = self.fabric
        expected = fabric.terminal_guid[fabric.endport_terminal] + fabric.endport_port.astype(np.uint64)
        rows = np.flatnonzero(expected != fabric.endport_guid)
        terminals, ports = fabric.endport_terminal[rows].tolist(), fabric.endport_port[rows].tolist()
        guids = fabric.endport_guid[rows].tolist()
        return {(fabric.switches + t, p): guid for t, p, guid in zip(terminals, ports, guids, strict=True)}

    def _cables(self) -> dict[int, list[tuple[int, int, int, str]]]:
        """Return the cables of each device as (port, remote device, remote port, text of the options)."""
        cables: dict[int, list[tuple[int, int, int, str]]] = {}
        for (a, b), (p, q), width, speed in self.fabric.cables():
            options = _options(width, speed, self.ids[a])
            cables.setdefault(a, []).append((p, b, q, options))
            cables.setdefault(b, []).append((q, a, p, options))
        return cables

    def _record(self, device: int) -> Iterator[str]:
        kind, guid, ports, own = self.kinds[device], self.guids[device], self.port_counts[device], self.ids[device]
        word, guid_word = _WORDS[kind]
        if guid != self.next_guid[kind]:
            yield f"{guid_word}={guid:#x}"
        self.next_guid[kind] = guid + (1 if kind is NodeKind.SWITCH else ports + 1)
        name = self.names[device]
        yield f'{word}\t{ports} "{own}"' + ("" if name == own else f'\t# "{_in_quotes(name)}"')
        for port, far, far_port, options in sorted(self.cables.get(device, ())):
            port_guid = self.odd.get((device, port))
            stated = "" if port_guid is None else f"({port_guid:x})"
            yield f'[{port}]{stated}\t"{self.ids[far]}"[{far_port}]{options}'
        yield ""

    def _lids(self) -> Iterator[str]:
        fabric = self.fabric
        count = fabric.switches + fabric.endports
        lids = [*fabric.switch_lid.tolist(), *fabric.endport_lid.tolist()]
        if lids == list(range(1, count + 1)) and not fabric.endport_lmc.any():
            return
        for device, lid in enumerate(fabric.switch_lid.tolist()):
            if lid:
                yield f'do Baselid "{self.ids[device]}"[0] {lid}'
        terminals, ports = fabric.endport_terminal.tolist(), fabric.endport_port.tolist()
        for terminal, port, lid, lmc in zip(
            terminals, ports, fabric.endport_lid.tolist(), fabric.endport_lmc.tolist(), strict=True
        ):
            if lid:
                lmc_text = f" {lmc}" if lmc else ""
                yield f'do Baselid "{self.ids[fabric.switches + terminal]}"[{port}] {lid}{lmc_text}'


def _in_quotes(name: str) -> str:
    """Return a name as the text between the quotation marks of a node description.

    Quotation marks in the name become apostrophes, and line ends are escaped.  The text is cut to the 63 bytes that
    ibsim keeps.
    """
    return escape_control(name.replace('"', "'")).encode()[:63].decode(errors="ignore")


def _options(width: int, speed: float, name: str) -> str:
    """Return the last part of a port line, which states the width and speed of the link.  For 4xSDR this text is empty.

    ibsim 0.10 has no option for FDR10, but reads this speed from a comment in the format of ibnetdiscover.  ibsim
    supports no speed above HDR.  Faster links are written as HDR, with a comment that states the true speed for ibnue's
    reader.
    """
    called = speed_name(speed)
    if width not in WIDTHS or called is None:
        raise FabricError(
            f"{name!r} has a {width}x link at {speed} Gb/s per lane", remedy="InfiniBand has no such link"
        )
    slow, fast = _SPEED_BITS[called]
    parts = [
        "" if width == 4 else f" w={_WIDTH_BIT[width]}",
        "" if slow == 1 else f" s={slow}",
        f" e={fast}" * bool(fast),
    ]
    return "".join(parts) + ("\t" + _IN_COMMENT[called].format(width) if called in _IN_COMMENT else "")
