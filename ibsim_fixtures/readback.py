"""Read back tables from OpenSM's dump files, and from the switches of a running fabric by diagnostic programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ibsim_fixtures import mad_client
from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.processes import LabError
from routing.fabric import NO_PORT

_SWITCH = re.compile(r"^Unicast lids .* guid 0x([0-9a-f]+)", re.MULTILINE)
_ROUTE = re.compile(r"^0x([0-9a-fA-F]+) (\d+)\b", re.MULTILINE)
_RANGE = re.compile(
    r"^Unicast lids \[0x0-0x([0-9a-f]+)\] of switch .*?(?:Lid (\d+)|; ([0-9,]+)) guid 0x([0-9a-f]+)", re.M
)
_SL2VL = re.compile(r"^ports: in\s+(\d+), out\s+(\d+): \|(.*)\|\s*$", re.MULTILINE)
_OWNER = re.compile(r"\{ (SW|CA|Rt)\S* [^{]*?NodeGUID:(\w+) [^{]*\{.*?\} LID:(\w+) PN:(\w+) \}")
_FIELD = re.compile(r"^\s*([A-Za-z_]\w*):?\.{2,}(.*)$", re.MULTILINE)


def parse_lfts(text: str) -> dict[int, dict[int, int]]:
    """Parse LFTs in the formats of opensm-lfts.dump, dump_fts and ibroute.

    Returns
    -------
    dict
        Out-port by switch GUID and LID.  LIDs without a route are omitted.
    """
    tables: dict[int, dict[int, int]] = {}
    # The tables of all switches have the same LIDs.  To save time, each LID is converted to a number only once.
    number: dict[str, int] = {}
    heads = list(_SWITCH.finditer(text))
    for head, end in zip(heads, [*(h.start() for h in heads[1:]), len(text)], strict=False):
        routes = _ROUTE.findall(text, head.end(), end)
        number.update((lid, int(lid, 16)) for lid, _ in routes if lid not in number)
        tables[int(head[1], 16)] = {number[lid]: int(port) for lid, port in routes}
    return tables


def dumped_lfts(folder: Path) -> dict[int, dict[int, int]]:
    """Return the LFTs that OpenSM dumped after its last sweep: out-port by switch GUID and LID.

    Raises
    ------
    LabError
        OpenSM has not dumped any LFTs.
    """
    path = folder / "opensm-lfts.dump"
    if not path.exists():
        raise LabError(f"OpenSM has dumped no tables: {path.name} is not in {folder}")
    return parse_lfts(path.read_text(errors="replace"))


def switch_lfts(ibsim: Ibsim, switches: Mapping[int, int] | None = None) -> dict[int, dict[int, int]]:
    """Read the LFTs of switches from the switches themselves.

    Parameters
    ----------
    ibsim
        Running ibsim with the fabric.
    switches
        LID of each switch by its GUID.  None: the program dump_fts discovers all reachable switches and reads their
        LFTs.  dump_fts takes several times as long, because it sends a query only after the answer to the query before.

    Returns
    -------
    dict
        Out-port by switch GUID and LID.  LIDs without a route are omitted.
    """
    # Switches forward the queries of mad_client by their LFTs.  So a query may stay unanswered if an LFT is wrong.  In
    # this case, dump_fts reads the LFTs by directed routes, which do not depend on LFTs.
    found = None if switches is None else mad_client.lfts(ibsim, switches)
    if found is None:
        return _whole_tables(ibsim, ibsim.run("dump_fts", "-n"))
    return {guid: {lid: port for lid, port in enumerate(table) if port != NO_PORT} for guid, table in found.items()}


def _whole_tables(ibsim: Ibsim, text: str) -> dict[int, dict[int, int]]:
    """Parse LFTs in the output of dump_fts, and add the entries that this program omits.

    If the highest LID of a table is the first LID of an LFT block, dump_fts omits this block.  The program smpdump then
    reads the entry of this LID.
    """
    tables = parse_lfts(text)
    for top, lid, path, guid in _RANGE.findall(text):
        block, rest = divmod(int(top, 16), 64)
        if block and not rest:
            where = ["-D", path] if path else [lid]
            port = int(ibsim.run("smpdump", *where, "0x19", block)[:2], 16)
            if port != NO_PORT:
                tables[int(guid, 16)][int(top, 16)] = port
    return tables


def sl2vl(ibsim: Ibsim, lid: int, out_ports: Iterable[int]) -> dict[tuple[int, int], tuple[int, ...]]:
    """Read the SL2VL rows of a switch or CA with smpquery: 16 VLs by (in-port, out-port).  A CA has only in-port 0.

    Cost: one process (8 ms) for each out-port.

    ``out_ports`` are the out-ports whose rows are read.
    """
    rows: dict[tuple[int, int], tuple[int, ...]] = {}
    for port in out_ports:
        for entry, leave, row in _SL2VL.findall(ibsim.run("smpquery", "sl2vl", lid, port)):
            vls = tuple(int(vl) for vl in row.split("|"))
            rows[int(entry), port if int(leave) == 0 else int(leave)] = vls
    return rows


def portinfo(ibsim: Ibsim, lid: int, port: int = 0) -> dict[str, str]:
    """Read the PortInfo attribute of a port with smpquery, as text by field name."""
    return {name: value.strip(". ") for name, value in _FIELD.findall(ibsim.run("smpquery", "portinfo", lid, port))}


@dataclass(frozen=True)
class Owner:
    """Owner of a base LID: kind of device ("SW", "CA" or "Rt"), node GUID, port (0 for a switch), and the LID."""

    kind: str
    guid: int
    port: int
    lid: int


def owners(folder: Path) -> list[Owner]:
    """Return the owner of every base LID in OpenSM's dump opensm-subnet.lst, sorted by LID.  Ports without a link are
    omitted.
    """
    text = (folder / "opensm-subnet.lst").read_text(errors="replace")
    found = {
        Owner(kind, int(guid, 16), 0 if kind == "SW" else int(port, 16), int(lid, 16))
        for kind, guid, lid, port in _OWNER.findall(text)
    }
    return sorted(found, key=lambda owner: owner.lid)


@dataclass(frozen=True)
class PathRecord:
    """Answer of the SA about the path from one LID to another LID."""

    source: int
    destination: int
    sl: int
    reversible: bool


def path_record(ibsim: Ibsim, source: int, destination: int) -> PathRecord:
    """Query the SA for the path between two LIDs with the program saquery.

    Raises
    ------
    LabError
        The SA has no such path.
    """
    # By default, saquery waits one second for the answer.  On a busy machine, OpenSM may need more time.
    output = ibsim.run("saquery", "-t", 60_000, "-p", "--slid", source, "--dlid", destination)
    fields = dict(_FIELD.findall(output))
    if "sl" not in fields:
        raise LabError(f"the SA has no path from LID {source} to LID {destination}: {' '.join(output.split())[:200]}")
    return PathRecord(
        source=int(fields["slid"]),
        destination=int(fields["dlid"]),
        sl=int(fields["sl"], 0),
        reversible=bool(int(fields["num_path_revers"], 0) & 0x80),
    )
