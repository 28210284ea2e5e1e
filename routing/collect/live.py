"""Collect a snapshot of a live fabric: topology, tables, SLs, settings of ports and counters.

The topology is the output of ibnetdiscover.  This package reads the other parts by queries, which change nothing in the
fabric.  Queries for SLs and counters are sent to LIDs.  The other queries are sent on directed routes.  Such queries
need no LFT, and show which devices do not answer.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing import __version__
from routing.collect import mads
from routing.collect.devices import Port, Progress, Reader, reachable_routes
from routing.collect.routes import directed_routes
from routing.collect.service_levels import UNKNOWN, Sa, path_sls, wanted_paths
from routing.collect.umad import Umad, directed
from routing.errors import EnvironmentProblem
from routing.fabric import NO_PORT, Fabric
from routing.formats import lfts, path_sl, sl2vl_dump, snapshot
from routing.formats.atomic import write_text_atomically
from routing.formats.csv_table import Cell, Table, csv_text
from routing.formats.fabric_files import read_fabric, with_names_of_folder
from routing.formats.snapshot import Manifest, PartState
from routing.formats.table_files import LFTS, NAMED_ENTRIES, PATH_RECORDS, SL2VL
from routing.numerals import count_noun
from routing.tables import DATA_VLS

LEFT_OUT = "left out, as was asked for"
_DISCOVERY_SECONDS = 1800


@dataclass(frozen=True)
class Request:
    """Parts of a live fabric to collect, and settings of the queries for these parts.

    Attributes
    ----------
    ca, port
        Name and port of the local CA that sends the queries.  None and 0 mean the first active port.
    without
        Names of the parts that are left out: any of ``SL``, ``VL arbitration`` and ``counters``.
    most_paths
        Limit of the number of paths whose SLs are queried.  If the fabric has more paths, no SLs are queried.
    timeout_ms
        Time in milliseconds after which an unanswered query is sent again.
    """

    ca: str | None = None
    port: int = 0
    without: Collection[str] = ()
    most_paths: int = 4_000_000
    timeout_ms: int = 1000


@dataclass
class _Writer:
    """Writes the files of a snapshot into a folder, and records for the manifest which parts were collected."""

    folder: Path
    parts: dict[str, PartState] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    clock: float = field(default_factory=time.monotonic)

    def note(self, part: str, file: str | None, amount: str, reasons: Sequence[str] = ()) -> None:
        """Record in the manifest the state of a part that has just been collected.

        Parameters
        ----------
        part
            Name of the part.
        file
            Name of the file with the part; None if the part is missing.
        amount
            Text that states how much data was collected, such as "3 of 4 switches".
        reasons
            Texts that state which data is missing, and why.
        """
        now = time.monotonic()
        state: snapshot.State = "missing" if file is None else "incomplete" if reasons else "collected"
        seconds = round(now - self.clock, 3)
        self.parts[part] = PartState(state, file, amount, "; ".join(reasons) or None, seconds)
        self.clock = now


def collect_live(folder: Path, request: Request, progress: Progress) -> Manifest:
    """Collect a live fabric into a folder.  Return the manifest, which this function does not write.

    Parameters
    ----------
    folder
        The folder for the snapshot.  The folder may contain a node name map, which gives the names of the devices.
        Otherwise the folder is empty.
    request
        The parts to collect, and the port that sends queries.
    progress
        Function that shows the progress of each phase.

    Raises
    ------
    EnvironmentProblem
        A program or a library is missing, the port cannot be used, or the fabric was changed during the collection.
    InputError
        The output of ibnetdiscover is not a valid fabric.
    """
    began, writer = _now(), _Writer(folder)
    umad = _open(request)
    try:
        fabric = _topology(writer, request)
        info = _local(umad)
        reader = _reader(umad, fabric, progress)
        lft, unread = reader.lfts()
        _write_lfts(writer, reader, lft, unread)
        ports = reader.ports()
        infos = reader.port_infos(ports)
        tables = _sl2vl(writer, reader, ports, infos)
        _settings(writer, reader, ports, infos, request)
        sl = _service_levels(writer, reader, lft, Sa(info.sm_lid, info.sm_sl), request)
        _note_unused_vls(writer, reader, (ports, infos), tables, sl)
        _counters(writer, reader, ports, sl, request)
        again, _ = reader.lfts()
        _refuse_changed(reader, lft, again)
    finally:
        umad.close()
    place = (request.ca, request.port or None, info.sm_lid or None)
    return Manifest(None, *place, began, _now(), _versions(), writer.parts, writer.remarks)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _open(request: Request) -> Umad:
    try:
        return Umad(request.ca, request.port, timeout_ms=request.timeout_ms)
    except OSError as problem:
        if "libibumad" in str(problem):
            raise EnvironmentProblem("libibumad is not installed", remedy="apt install libibumad3") from None
        place = [*([f"port {request.port}"] if request.port else []), *([request.ca] if request.ca else [])]
        where = " of ".join(place) or "an InfiniBand port"
        raise EnvironmentProblem(
            f"{where} cannot be opened: {problem.strerror or problem}",
            remedy="run it as root on a host with an active InfiniBand port; -C and -P name another one",
        ) from None


def _topology(writer: _Writer, request: Request) -> Fabric:
    """Run ibnetdiscover, store its output, and read it."""
    command = ["ibnetdiscover", *(["-C", request.ca] if request.ca else [])]
    command += ["-P", str(request.port)] if request.port else []
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_DISCOVERY_SECONDS)
    except FileNotFoundError:
        raise EnvironmentProblem("ibnetdiscover is not installed", remedy="apt install infiniband-diags") from None
    except subprocess.TimeoutExpired:
        raise EnvironmentProblem(
            f"ibnetdiscover does not end within {_DISCOVERY_SECONDS} s", remedy="run it by hand"
        ) from None
    errors = done.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
    if done.returncode:
        raise EnvironmentProblem(f"ibnetdiscover: {errors[-1] if errors else 'no message'}", remedy="run it by hand")
    path = writer.folder / snapshot.TOPOLOGY
    path.write_bytes(done.stdout)
    fabric = with_names_of_folder(read_fabric(path), writer.folder)
    amount = ", ".join(
        (count_noun(fabric.switches, "switch"), count_noun(fabric.terminals, "CA or router", "CAs and routers"),
         count_noun(fabric.links, "link"))
    )  # fmt: skip
    reasons = [f"ibnetdiscover printed {count_noun(len(errors), 'error')}, such as: {errors[0]}"] if errors else []
    writer.note("topology", snapshot.TOPOLOGY, amount, reasons)
    return fabric


def _local(umad: Umad) -> mads.PortInfo:
    """Return PortInfo of the local port that sends the queries."""
    info = umad.get(directed(b"", mads.PORT_INFO), mads.port_info)
    if info is None:
        raise EnvironmentProblem("the local InfiniBand port does not answer", remedy="is it active, and is this root?")
    return info


def _reader(umad: Umad, fabric: Fabric, progress: Progress) -> Reader:
    """Return an object that reads the devices.  The object has a directed route to every device that answers."""
    own = umad.get(directed(b"", mads.NODE_INFO), mads.node_info)
    guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
    if own is None or own.guid not in guids:
        raise EnvironmentProblem(
            "the sending CA is not in the output of ibnetdiscover", remedy="name its port with -C and -P"
        )
    routes = directed_routes(fabric, guids.index(own.guid), own.port)
    with progress("devices", len(routes)) as done:
        return Reader(umad, fabric, reachable_routes(umad, fabric, routes, done), progress)


def _write_lfts(writer: _Writer, reader: Reader, lft: npt.NDArray[np.uint8], unread: list[int]) -> None:
    switches = reader.fabric.switches
    if len(unread) == switches:
        writer.note("LFT", None, "", [f"none of {count_noun(switches, 'switch')} answered"])
        return
    path = writer.folder / LFTS
    lfts.write(path, reader.fabric, lft, named=lft.size <= NAMED_ENTRIES, without=unread)
    names = [reader.name(row) for row in unread]
    reasons = [f"{_some(names, 'switch')} did not answer"] if unread else []
    writer.note("LFT", LFTS, f"{switches - len(unread)} of {count_noun(switches, 'switch')}", reasons)


def _some(names: Sequence[str], what: str) -> str:
    """Format a list of names as a text: the number of names, and the first few names.

    ``what`` is the noun for one name, such as "port".
    """
    more = ", ..." if len(names) > 3 else ""
    return f"{count_noun(len(names), what)} ({', '.join(names[:3])}{more})"


def _sl2vl(
    writer: _Writer, reader: Reader, ports: Sequence[Port], infos: Sequence[mads.PortInfo | None]
) -> npt.NDArray[np.uint8]:
    """Collect the SL2VL tables, write them to the snapshot, and return the tables of switches.

    If a table of a switch is missing, no SL2VL file is written.

    ``infos`` has PortInfo of each port, or None if the port did not answer.
    """
    fabric = reader.fabric
    tables, own = reader.sl2vl(ports, infos)
    cabled = sl2vl_dump.cabled_ports(fabric)[:, : tables.shape[1]]
    enters = cabled.copy()
    enters[:, 0] = True
    needed = enters[:, :, None] & cabled[:, None, :]
    lost = np.argwhere(needed & (tables[..., 0] == UNKNOWN))
    count = int(needed.sum())
    amount = f"{count - len(lost)} of {count_noun(count, 'table')} of switches"
    if len(lost):
        row, entry, leave = lost[0].tolist()
        example = f"such as of {reader.name(row)} from port {entry} to port {leave}"
        reason = f"{count_noun(len(lost), 'table')} of switches {'was' if len(lost) == 1 else 'were'} not answered"
        writer.note("SL2VL", None, amount, [f"{reason}, {example}"])
        return tables
    sl2vl_dump.write(writer.folder / SL2VL, fabric, tables, own, cabled_only=True)
    silent = [reader.name(fabric.switches + row) for row in np.flatnonzero(own[:, 0] == UNKNOWN).tolist()]
    reasons = [f"tables of {_some(silent, 'CA or router')} were not answered"] if silent else []
    writer.note("SL2VL", SL2VL, amount, reasons)
    return tables


def _note_unused_vls(
    writer: _Writer,
    reader: Reader,
    ports: tuple[Sequence[Port], Sequence[mads.PortInfo | None]],
    tables: npt.NDArray[np.uint8],
    sl: npt.NDArray[np.uint8] | None,
) -> None:
    """Record switch ports whose SL2VL tables map the SL of some path to a VL that the port does not operate.

    ``ports`` are the ports and their PortInfo, ``tables`` the SL2VL tables of all switches, and ``sl`` the SLs of all
    paths (None: unknown).
    """
    used = np.arange(0) if sl is None else np.unique(sl[sl != UNKNOWN])
    found = []
    for port, info in zip(*ports, strict=True):
        if info is None or port.device >= reader.fabric.switches or not len(used):
            continue
        vls = tables[port.device, :, port.number][:, used]
        if ((vls >= info.operational_vls) & (vls < DATA_VLS)).any():
            found.append(f"{reader.name(port.device)} port {port.number}")
    if found:
        writer.remarks.append(
            f"{_some(found, 'port')} may discard packets: SLs of paths lead to VLs that the port does not operate"
        )


def _settings(
    writer: _Writer, reader: Reader, ports: Sequence[Port], infos: Sequence[mads.PortInfo | None], request: Request
) -> None:
    """Read the VL arbitration tables of all cabled ports, and write them with the VLs and timers of the ports."""
    left_out = "VL arbitration" in request.without
    tables = [None] * len(ports) if left_out else reader.arbitration(ports, infos)
    records: list[Mapping[str, Cell]] = []
    silent = [port for port, info in zip(ports, infos, strict=True) if info is None]
    lost = [
        port
        for port, info, table in zip(ports, infos, tables, strict=True)
        if info is not None and info.vl_cap != 1 and table is None
    ]
    for port, info, table in zip(ports, infos, tables, strict=True):
        low, high = ("", "") if table is None else map(_entries, table)
        values = None if info is None else info._asdict()
        records.append({
            **_port_cells(reader, port),
            **{name: None if values is None else values[name] for name in _SETTINGS},
            "low": low, "high": high,
        })  # fmt: skip
    columns = [*_PORT_COLUMNS, *_SETTINGS, "low", "high"]
    _write_csv(writer.folder / snapshot.PORTS, "ports", records, columns)
    reasons = [f"{count_noun(len(silent), 'port')} did not answer"] if silent else []
    reasons += [LEFT_OUT] if left_out else []
    if lost and not left_out:
        first = f"{reader.name(lost[0].device)} port {lost[0].number}"
        reasons.append(f"{count_noun(len(lost), 'port')} did not answer with VL arbitration tables, such as {first}")
    writer.note("VL arbitration", snapshot.PORTS, count_noun(len(ports), "port"), reasons)


_PORT_COLUMNS = ("guid", "name", "port")
_SETTINGS = ("state", "vl_cap", "operational_vls", "high_limit", "hoq_life", "vl_stall_count")


def _port_cells(reader: Reader, port: Port) -> dict[str, Cell]:
    fabric, device = reader.fabric, port.device
    switches = fabric.switches
    guid = fabric.switch_guid[device] if device < switches else fabric.terminal_guid[device - switches]
    name = fabric.switch_name[device] if device < switches else fabric.terminal_name[device - switches]
    return {"guid": f"{int(guid):#018x}", "name": name, "port": port.number}


def _entries(table: Sequence[tuple[int, int]]) -> str:
    return " ".join(f"{vl}:{weight}" for vl, weight in table)


def _write_csv(path: Path, title: str, records: Sequence[Mapping[str, Cell]], columns: Sequence[str]) -> None:
    write_text_atomically(path, csv_text(Table.of(title, records, columns)))


def _service_levels(
    writer: _Writer, reader: Reader, lft: npt.NDArray[np.uint8], sa: Sa, request: Request
) -> npt.NDArray[np.uint8] | None:
    """Query the SA for the SLs of all paths, store these SLs in the snapshot, and return them.

    Returns
    -------
    uint8[S + E, L] or None
        SLs by source (switches first, then end ports) and destination LID; 255: unknown.  None if the user left out
        the SLs, if no subnet manager is known, if there are more paths than the user allows, or if the SA answered no
        query.  The snapshot then has the reason instead of the SLs.
    """
    fabric = reader.fabric
    wanted = wanted_paths(fabric, lft)
    count = int(wanted.sum())
    if "SL" in request.without:
        reason = LEFT_OUT
    elif not sa.lid:
        reason = "no subnet manager has set up the local port"
    elif count > request.most_paths:
        reason = f"{count} paths are more than {request.most_paths} (--paths {count} asks for them)"
    else:
        with reader.progress("path SLs", count) as done:
            found, how = path_sls(reader.umad, sa, fabric, lft, done)
        unknown = int((wanted & (found == UNKNOWN)).sum())
        if unknown == count and count:
            writer.note("SL", None, "", [f"the SA (LID {sa.lid}) answered none of the queries"])
            return None
        path_sl.write_stated(writer.folder / PATH_RECORDS, fabric, found)
        reasons = [f"the SA stated no SL of {count_noun(unknown, 'path')}"] if unknown else []
        writer.note("SL", PATH_RECORDS, f"{count - unknown} of {count_noun(count, 'path')}, {how}", reasons)
        return found
    writer.note("SL", None, "", [reason])
    return None


def _counters(
    writer: _Writer, reader: Reader, ports: Sequence[Port], sl: npt.NDArray[np.uint8] | None, request: Request
) -> None:
    """Collect the counters of all cabled ports.

    ``sl`` has the SLs of all paths (None: unknown), from which the queries get their SLs.
    """
    if "counters" in request.without:
        writer.note("counters", None, "", [LEFT_OUT])
        return
    found = reader.counters(ports, _sl_to(reader, sl))
    records = [
        {**_port_cells(reader, port), **{name: values.get(name) for name in mads.ALL_COUNTERS}}
        for port, values in zip(ports, found, strict=True)
    ]
    silent = [port for port, values in zip(ports, found, strict=True) if not values]
    if len(silent) == len(ports):
        writer.note("counters", None, "", ["no port answered"])
        return
    _write_csv(writer.folder / snapshot.COUNTERS, "counters", records, [*_PORT_COLUMNS, *mads.ALL_COUNTERS])
    reasons = [f"{count_noun(len(silent), 'port')} did not answer"] if silent else []
    writer.note("counters", snapshot.COUNTERS, count_noun(len(ports) - len(silent), "port"), reasons)


def _sl_to(reader: Reader, sl: npt.NDArray[np.uint8] | None) -> Callable[[int], int]:
    """Return a function that returns the SL for queries from this machine's device to a LID.

    ``sl`` has the SLs that the SA has stated for all paths; None: unknown.  An unknown SL is replaced by 0.
    """
    sender = next((device for device, route in enumerate(reader.routes) if route == b""), -1)
    fabric = reader.fabric
    ends = np.flatnonzero(fabric.endport_terminal == sender - fabric.switches)
    row = sender if sender < fabric.switches else fabric.switches + int(ends[0]) if len(ends) else -1
    if sl is None or row < 0:
        return lambda _: 0
    own = np.where(sl[row] == UNKNOWN, 0, sl[row]).tolist()
    return lambda lid: own[lid] if lid < len(own) else 0


def _refuse_changed(reader: Reader, lft: npt.NDArray[np.uint8], again: npt.NDArray[np.uint8]) -> None:
    """Raise EnvironmentProblem if the LFTs have changed while the snapshot was collected.

    ``lft`` has the LFTs at the beginning of the collection, and ``again`` the LFTs at its end.  If the two differ, it
    is unknown to which LFTs the other data of the snapshot belongs.  A switch whose LFT was read only at the beginning,
    or only at the end, does not count as changed.
    """
    if lft.shape == again.shape:
        read = (lft != NO_PORT).any(axis=1) & (again != NO_PORT).any(axis=1)
        changed = np.flatnonzero(read & (lft != again).any(axis=1)).tolist()
        if not changed:
            return
        where = f"the tables of {_some([reader.name(row) for row in changed], 'switch')}"
    else:
        where = "the LIDs of the fabric"
    raise EnvironmentProblem(f"{where} changed while they were read", remedy="collect the snapshot again")


def _versions() -> dict[str, str]:
    versions = {"ibnue": __version__}
    if shutil.which("ibnetdiscover"):
        done = subprocess.run(["ibnetdiscover", "-V"], capture_output=True, text=True, check=False, timeout=60)
        lines = (done.stdout or done.stderr).strip().splitlines()
        versions["ibnetdiscover"] = lines[0] if lines else "unknown"
    return versions
