"""Send many management packets from one process, to read the tables and SLs of a whole fabric in a second.

The diagnostic programs saquery and smpquery need one process for each query, at least 8 ms.  Only a program that
preloads libumad2sim can send queries to ibsim.  So :func:`ask` runs this module as a separate program.  The options -I
and -S of Python hide installed packages from the program, so this module and its imports need only the standard
library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from routing.collect import mads
from routing.collect.mads import Request
from routing.collect.umad import SUBNET, Query, Umad

if TYPE_CHECKING:
    from ibsim_fixtures.ibsim import Ibsim

Path = tuple[int, int]
Row = tuple[int, int, int]

_SECONDS_EACH = 0.005
"""Seconds by which each query extends the time limit of the program that sends the queries.

The value suffices on a busy machine.  The limit has to grow with the number of queries, because a fabric with 1000 CAs
needs a million queries.
"""
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from ibsim_fixtures import mad_client; mad_client.main()"


def ask(
    ibsim: Ibsim,
    *,
    sm_lid: int = 0,
    paths: Sequence[Path] = (),
    sl2vl: Sequence[Row] = (),
    request: Request = (None, None, None),
) -> tuple[list[int | None], list[tuple[int, ...] | None]]:
    """Query SLs from the SA and SL2VL rows from the devices of a running fabric.

    Parameters
    ----------
    ibsim
        Running ibsim with the fabric.
    sm_lid
        LID of OpenSM, which answers path queries.  This LID is not needed without ``paths``.
    paths
        Paths whose SL is queried, as (source LID, destination LID).
    sl2vl
        SL2VL rows to read, as (LID, in-port, out-port).
    request
        SL, P_Key and service ID to put into every path query.  None: any value.

    Returns
    -------
    sls
        SL of each path.  None if there was no answer, or if the answer was an error.
    rows
        16 VLs of each row.  None if there was no answer, or if the answer was an error.
    """
    wanted = {"sm_lid": sm_lid, "paths": list(paths), "sl2vl": list(sl2vl), "request": request}
    output = _run(ibsim, wanted, len(paths) + len(sl2vl))
    return output["paths"], [None if row is None else tuple(row) for row in output["sl2vl"]]


def _run(ibsim: Ibsim, wanted: Mapping[str, Any], queries: int = 0) -> Any:
    """Run this module as a program that is connected to ibsim, and return its output, parsed from JSON.

    ``wanted`` is the input of the program.  ``queries`` is the number of queries that extend the time limit.
    """
    root = FilePath(__file__).parents[1]
    command = (sys.executable, "-I", "-S", "-c", _PROGRAM, str(root))
    return json.loads(ibsim.run(*command, stdin=json.dumps(wanted), timeout=ibsim.timeout + _SECONDS_EACH * queries))


def lfts(ibsim: Ibsim, switches: Mapping[int, int]) -> dict[int, bytes] | None:
    """Read the LFTs of switches with many queries at a time.

    Parameters
    ----------
    ibsim
        Running ibsim with the fabric.
    switches
        LID of each switch by its GUID.

    Returns
    -------
    dict[int, bytes] or None
        By switch GUID: out-port of each LID, one byte for each LID up to the highest LID of the table.  None if a query
        was not answered, or if another device answered.
    """
    order = list(switches)
    output = _run(ibsim, {"lfts": [switches[guid] for guid in order]})["lfts"]
    if output is None or [guid for guid, _ in output] != order:
        return None
    return {guid: bytes.fromhex(table) for guid, table in output}


def _tables(umad: Umad, lids: Sequence[int]) -> list[tuple[int, str]] | None:
    """Read the GUID and the LFT of each switch whose LID is given.  An LFT is returned as hexadecimal text.

    The result is None if a query was not answered.
    """
    nodes = umad.get_all((_smp(lid, mads.NODE_INFO) for lid in lids), mads.node_info)
    tops = umad.get_all((_smp(lid, mads.SWITCH_INFO) for lid in lids), mads.top_lid)
    if None in nodes or None in tops:
        return None
    owners = [
        (lid, block) for lid, top in zip(lids, tops, strict=True) for block in range((top or 0) // mads.BLOCK + 1)
    ]
    blocks = umad.get_all((_smp(lid, mads.LFT_BLOCK, block) for lid, block in owners), mads.lft_block)
    tables = dict.fromkeys(lids, "")
    for (lid, _), ports in zip(owners, blocks, strict=True):
        if ports is None:
            return None
        tables[lid] += ports.hex()
    found = zip(lids, nodes, tops, strict=True)
    return [(node.guid if node else 0, tables[lid][: 2 * (top or 0) + 2]) for lid, node, top in found]


def _smp(lid: int, attribute: int, modifier: int = 0) -> Query:
    return Query(SUBNET, lid, attribute, modifier)


def arbitration(ibsim: Ibsim, ports: Sequence[tuple[int, int]]) -> list[dict[int, int] | None]:
    """Query the VL arbitration weights of ports, which are pairs (LID, port).

    The result has, for each port, a dictionary with the weight of each VL.  The weight is summed over the first 32
    entries of the low-priority and of the high-priority VLArb table.  A port has None instead if it did not answer, or
    answered with an error.
    """
    output = _run(ibsim, {"arbitration": list(ports)}, 2 * len(ports))
    found: list[dict[int, int] | None] = []
    for low, high in zip(output["arbitration"][::2], output["arbitration"][1::2], strict=True):
        weights: dict[int, int] = {}
        for vl, weight in (*(low or ()), *(high or ())):
            weights[vl] = weights.get(vl, 0) + weight
        found.append(None if low is None or high is None else weights)
    return found


def main() -> None:
    """Send the queries that standard input lists as JSON, and print their answers as JSON."""
    wanted: dict[str, Any] = json.load(sys.stdin)
    umad = Umad()
    if "lfts" in wanted:
        json.dump({"lfts": _tables(umad, wanted["lfts"])}, sys.stdout)
        return
    if "arbitration" in wanted:
        blocks = [
            _smp(lid, mads.VL_ARBITRATION, block << 16 | port)
            for lid, port in wanted["arbitration"]
            for block in (mads.LOW[0], mads.HIGH[0])
        ]
        json.dump({"arbitration": umad.get_all(blocks, mads.arbitration_block)}, sys.stdout)
        return
    sm_lid, request = wanted["sm_lid"], wanted["request"]
    asked = (mads.path_query(sm_lid, source, lid, request) for source, lid in wanted["paths"])
    paths = umad.get_all(asked, mads.path_record)
    rows = (_smp(lid, mads.SL2VL, entry << 8 | leave) for lid, entry, leave in wanted["sl2vl"])
    vls = [None if row is None else list(row) for row in umad.get_all(rows, mads.sl2vl_row)]
    json.dump({"paths": [None if path is None else path.sl for path in paths], "sl2vl": vls}, sys.stdout)
