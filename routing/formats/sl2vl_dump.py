"""Read and write SL2VL tables as text: ``opensm-sl2vl.dump``, and the format of ``ibdmchk -d``."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.errors import ParseError, TableError
from routing.fabric import Fabric
from routing.formats.atomic import atomic_write
from routing.formats.dump_lines import numbered_lines
from routing.formats.opensm_order import encode, endport_kind, opensm_order
from routing.formats.switch_rows import SwitchRows
from routing.tables import SlToVl

SLS = 16

_RULE = b"#--------------------------------------------------------\n"
_HEAD = b"#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15\n" + _RULE
_NODE = re.compile(r"(Switch|Channel Adapter|Router) 0x([0-9a-fA-F]{1,16}), base LID [0-9]+, ")
_ROW = re.compile(r"([0-9]{1,3})\s+([0-9]{1,3})\s*:((?:\s+[0-9]{1,2}){16})\s*$")
_SLVL = re.compile(r"0x([0-9a-fA-F]{1,16}) ([0-9]{1,3}) ([0-9]{1,3})((?: 0x[0-9a-fA-F]{2}){8})\s*$")
_NOISE = re.compile(r"\s*(?:#|$)")
_PORT = np.frombuffer(b"".join(b"%-4d" % port for port in range(256)), np.uint8).reshape(256, 4)
_VL = np.frombuffer(b"".join(b" %-2d" % vl for vl in range(SLS)), np.uint8).reshape(SLS, 3)


def write(
    path: str | Path,
    fabric: Fabric,
    sl2vl: npt.NDArray[np.uint8],
    ca_sl2vl: npt.NDArray[np.uint8],
    *,
    cabled_only: bool = False,
) -> None:
    """Write the SL2VL tables of switches, CAs and routers in OpenSM's format.

    Parameters
    ----------
    path
        The file to write.
    fabric
        Fabric with GUIDs, names and cables.
    sl2vl
        uint8[16] for all switches, or uint8[S, P, P, 16] by switch, in-port, out-port and SL.
    ca_sl2vl
        uint8[16], one table for all CAs and routers; or uint8[T, 16], one table for each CA and router.  A table that
        contains 255 is unknown, and is not written.
    cabled_only
        False writes the tables from all in-ports to each out-port with a cable, as OpenSM does.  True leaves out the
        in-ports without a cable, except port 0.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.

    Notes
    -----
    The file has 58 bytes of text per pair of ports of a switch.
    """
    guid = np.concatenate([fabric.switch_guid, fabric.endport_guid])
    cabled = cabled_ports(fabric)
    of_terminal = np.broadcast_to(ca_sl2vl, (fabric.terminals, SLS))
    with atomic_write(path) as file:
        for row in opensm_order(guid).tolist():
            end = row - fabric.switches
            if end >= 0:
                kind, lid, name = endport_kind(fabric, end), fabric.endport_lid[end], fabric.endport_name[end]
                text = _own_row(of_terminal[fabric.endport_terminal[end]])
            else:
                kind, lid, name = "Switch", fabric.switch_lid[row], fabric.switch_name[row]
                ports = int(fabric.switch_ports[row])
                out = np.flatnonzero(cabled[row, : ports + 1])
                ins = np.concatenate([[0], out]) if cabled_only else np.arange(ports + 1)
                text = _rows(SlToVl(sl2vl).of_switch(row, ports), ins, out)
            file.write(b'%s 0x%016x, base LID %d, "%s"\n' % (kind.encode(), guid[row], lid, encode(name)))
            file.write(_HEAD + text + _RULE + b"\n")


def cabled_ports(fabric: Fabric) -> npt.NDArray[np.bool_]:
    """Return which ports of each switch have a cable, bool[S, 256]."""
    cabled = np.zeros((fabric.switches, 256), bool)
    for end in (0, 1):
        on_switch = fabric.link_device[:, end] < fabric.switches
        cabled[fabric.link_device[on_switch, end], fabric.link_port[on_switch, end]] = True
    return cabled


def _own_row(vls: npt.NDArray[np.uint8]) -> bytes:
    """Return the line with the table of a CA or router; an empty text if the table is unknown."""
    if vls.max() >= SLS:
        return b""
    return b"0   0   :" + b"".join(b" %-2d" % vl for vl in vls.tolist()) + b"\n"


def _rows(table: npt.NDArray[np.uint8], ins: npt.NDArray[np.int64], out: npt.NDArray[np.int64]) -> bytes:
    """Return the lines with the SL2VL tables of a switch: one line for each pair of an in-port of ``ins`` and an
    out-port of ``out``.
    """
    text = np.empty((len(out), len(ins), 9 + 3 * SLS + 1), np.uint8)
    text[..., 0:4], text[..., 4:8] = _PORT[ins][None], _PORT[out][:, None]
    text[..., 8], text[..., -1] = ord(":"), ord("\n")
    text[..., 9:-1] = _VL[table[ins][:, out].swapaxes(0, 1)].reshape(len(out), len(ins), 3 * SLS)
    return text.tobytes()


def write_slvl(path: str | Path, fabric: Fabric, sl2vl: npt.NDArray[np.uint8]) -> None:
    """Write the SL2VL tables of switches, from all in-ports to each out-port with a cable, for ``ibdmchk -d``.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.

    Notes
    -----
    The file has about 62 bytes of text per pair of ports of a switch.
    """
    cabled = cabled_ports(fabric)
    with atomic_write(path) as file:
        for row, guid in enumerate(fabric.switch_guid.tolist()):
            ports = int(fabric.switch_ports[row])
            table = SlToVl(sl2vl).of_switch(row, ports)
            head = b"0x%016x" % guid
            for out in np.flatnonzero(cabled[row]).tolist():
                packed = (table[:, out, 0::2] << 4 | table[:, out, 1::2]).tolist()
                file.write(
                    b"".join(
                        b"%s %d %d 0x%02x 0x%02x 0x%02x 0x%02x 0x%02x 0x%02x 0x%02x 0x%02x\n" % (head, port, out, *vls)
                        for port, vls in enumerate(packed)
                    )
                )


def read(path: str | Path, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Read the SL2VL tables of a fabric's switches, in OpenSM's format or in the format of ``ibdmchk``.

    Tables of CAs and routers in the file are ignored.

    Returns
    -------
    uint8[16] or uint8[S, P, P, 16]
        One table, uint8[16], if all tables that packets use are equal.  Otherwise uint8[S, P, P, 16]: the tables by
        switch, in-port, out-port and SL.  Packets enter a switch by port 0 or a port with a cable, and leave by another
        port with a cable.  Other pairs of ports may lack a table in the file: then SL n gets VL n for such a pair.

    Raises
    ------
    ParseError
        A line is invalid, a line names a port that the switch does not have, or a VL is over 15.
    TableError
        A switch is not in the fabric, or the file lacks a pair of ports that packets use.
    InputError, EnvironmentProblem
        The file is missing or unreadable.
    """
    reader = _Reader(path, fabric)
    for number, text in numbered_lines(path):
        reader.take(text, number)
    return reader.finish()


class _Reader:
    def __init__(self, path: str | Path, fabric: Fabric) -> None:
        self._path, self._fabric = path, fabric
        self._switches = SwitchRows(path, fabric, "tables")
        self._vls_of: dict[str, bytes] = {}
        ports = 1 + int(fabric.switch_ports.max(initial=0))
        self._number: dict[bytes, int] = {}
        self._found = np.full((fabric.switches, ports, ports), -1, np.int32)
        self._row: int | None = None
        self._in_terminal = False

    def take(self, text: str, number: int) -> None:
        if match := _ROW.match(text):
            if self._in_terminal:
                return
            if self._row is None:
                raise ParseError("this row is before the first node", path=self._path, line=number)
            self._put(self._row, int(match[1]), int(match[2]), self._decimal(match[3], number), number)
        elif match := _SLVL.match(text):
            row = self._switches.row(match[1], number)
            self._put(row, int(match[2]), int(match[3]), self._packed(match[4]), number)
        elif match := _NODE.match(text):
            self._in_terminal = match[1] != "Switch"
            self._row = None if self._in_terminal else self._switches.row(match[2], number)
        elif not _NOISE.match(text):
            raise ParseError(
                f"this is not a line of SL2VL tables: {text[:60]!r}",
                path=self._path, line=number, remedy="wanted: 'in out : VL VL ...' or '0xGUID in out 0xVV ...'",
            )  # fmt: skip

    def _decimal(self, text: str, number: int) -> bytes:
        """Return the VLs in a row of text, whose line number is ``number``.  Each distinct text is decoded only once,
        because most tables are equal.
        """
        known = self._vls_of.get(text)
        if known is None:
            vls = [int(vl) for vl in text.split()]
            if max(vls) > 15:
                raise ParseError(f"VL {max(vls)} is over 15", path=self._path, line=number)
            known = self._vls_of.setdefault(text, bytes(vls))
        return known

    def _packed(self, text: str) -> bytes:
        known = self._vls_of.get(text)
        if known is None:
            digits = text.replace(" 0x", "")
            known = self._vls_of.setdefault(text, bytes(int(digit, 16) for digit in digits))
        return known

    def _put(self, row: int, in_port: int, out_port: int, vls: bytes, number: int) -> None:
        ports = int(self._fabric.switch_ports[row])
        if max(in_port, out_port) > ports:
            raise ParseError(
                f"{self._fabric.labels[row]!r} has no port {max(in_port, out_port)}, it has {ports}",
                path=self._path, line=number,
            )  # fmt: skip
        known, table = int(self._found[row, in_port, out_port]), self._number.setdefault(vls, len(self._number))
        self._found[row, in_port, out_port] = table
        if known not in {-1, table}:
            raise ParseError("this pair of ports has another table already", path=self._path, line=number)

    def finish(self) -> npt.NDArray[np.uint8]:
        cabled = cabled_ports(self._fabric)[:, : self._found.shape[1]]
        enters = cabled.copy()
        enters[:, :1] = True
        needed = enters[:, :, None] & cabled[:, None, :] & ~np.eye(cabled.shape[1], dtype=bool)
        for row, in_port, out_port in np.argwhere(needed & (self._found < 0))[:1].tolist():
            raise TableError(
                f"the file has no table of {self._fabric.labels[row]!r} from port {in_port} to port {out_port}",
                path=self._path, remedy="the tables belong to another fabric, or the file was cut short",
            )  # fmt: skip
        tables = np.array([list(vls) for vls in self._number] + [list(range(SLS))], np.uint8)
        used = np.unique(self._found[needed])
        number = self._found if len(used) > 1 else used[0] if len(used) else -1
        whole: npt.NDArray[np.uint8] = tables[number]
        return whole
