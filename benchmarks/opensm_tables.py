"""Compute LFTs, SLs and SL2VL tables with OpenSM's own engines, by a real OpenSM on a simulated fabric."""

from __future__ import annotations

import os
import re
import resource
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.path_dump import path_dump_plugin
from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm import OpenSM, Setting
from ibsim_fixtures.processes import LabError, poll
from routing.fabric import Fabric
from routing.formats.fabric_files import read_fabric, write_net
from routing.formats.table_files import PATH_RECORDS, read_tables
from routing.tables import Routing

_VLS_NEEDED = re.compile(r"[Ll]anes needed: (\d+)")
_DUMPED = "lids dumped"
_ENDED = "OpenSM has ended"


@dataclass(frozen=True, eq=False)
class OpenSMTables:
    """Tables that an OpenSM engine has computed for a fabric, with the figures in its log.

    Attributes
    ----------
    fabric
        Fabric with the LIDs that OpenSM assigned, and with ibsim's port GUIDs (node GUID + port number).
    routing
        Tables that OpenSM wrote to the switches.
    vls_needed
        Number of VLs that the engine needs according to its log; None if the log does not state this number.
    seconds
        Seconds in the log from "building routing with" to "tables configured", which includes sending the tables.
    cpu_seconds
        CPU seconds of OpenSM up to the end of its first sweep.
    """

    fabric: Fabric
    routing: Routing
    vls_needed: int | None
    seconds: float | None
    cpu_seconds: float


def opensm_tables(
    net: Path,
    engine: str,
    *,
    vls: int,
    timeout: float = 60.0,
    cpu_limit: int | None = None,
    config: Mapping[str, Setting] | None = None,
) -> OpenSMTables:
    """Route a fabric file with an engine of a real OpenSM on ibsim, with QoS and ``vls`` data VLs.

    ``cpu_limit`` is the number of CPU seconds within which OpenSM must end its first sweep.  ``config`` contains
    further settings of opensm.conf.

    Raises
    ------
    LabError
        The engine gave up, or exceeded the timeout or the CPU limit.
    """
    settings: dict[str, Setting] = {"qos": True, "qos_max_vls": vls, "nue_max_num_vls": vls, **(config or {})}
    with tempfile.TemporaryDirectory(prefix="ibnue-simulated-") as folder:
        # ibsim ignores the port GUIDs of a file and assigns its own, which OpenSM's dumps contain.  If the file has no
        # port GUIDs, ibnue numbers the ports as ibsim does.
        simulated = Path(folder) / "fabric.net"
        write_net(read_fabric(net), simulated, port_guids=False)
        return _simulated_tables(simulated, engine, settings, timeout, cpu_limit)


def _simulated_tables(
    net: Path, engine: str, settings: Mapping[str, Setting], timeout: float, cpu_limit: int | None
) -> OpenSMTables:
    """Route the fabric of a file with an engine of OpenSM, with the given settings of opensm.conf.

    Port GUIDs in the file must equal the GUIDs that ibsim assigns, because OpenSM's dumps contain the latter.
    """
    with (
        tempfile.TemporaryDirectory(prefix="ibnue-path-dump-") as folder,
        Ibsim(net) as ibsim,
        OpenSM(
            ibsim,
            routing_engine=f"{engine},no_fallback",
            config=settings,
            plugin=path_dump_plugin(folder),
            wait=False,
            timeout=timeout,
        ) as opensm,
    ):
        sweep = _routed(opensm, cpu_limit)
        cpu = _cpu_seconds(opensm.pid)
        fabric = read_fabric(net, guid2lid=opensm.folder / "guid2lid")
        tables, paths = opensm.folder / "opensm-lfts.dump", opensm.folder / PATH_RECORDS
        whole = poll(lambda: tables.exists() and tables.read_text().count(_DUMPED) == fabric.switches, timeout)
        if not (whole and poll(paths.exists, timeout)):
            raise LabError(f"dumped no whole tables within {timeout:g} s")
        return OpenSMTables(fabric, read_tables(opensm.folder, fabric), _vls_needed(opensm), sweep, cpu)


def _routed(opensm: OpenSM, cpu_limit: int | None) -> float | None:
    """Wait for the end of OpenSM's first sweep, and return the routing seconds of this sweep; None if unknown.

    ``cpu_limit`` is the number of CPU seconds that the sweep may take.
    """
    try:
        _limit_cpu(opensm.pid, cpu_limit)
        sweep = opensm.wait_for_subnet_up(after=0)
        # OpenSM writes its dumps after the sweep.  The CPU limit ends here, because the time for dumps does not count.
        _limit_cpu(opensm.pid, None)
        return sweep.routing_seconds
    except LabError as error:
        if opensm.returncode == -signal.SIGXCPU:
            raise LabError(f"no tables within {cpu_limit} CPU seconds") from None
        needed = _vls_needed(opensm)
        if needed is None:
            raise
        raise LabError(f"{str(error).splitlines()[0]}; wants {needed} VLs") from None


def _limit_cpu(process: int, seconds: int | None) -> None:
    """Limit the CPU seconds of OpenSM's process.  None lifts the limit.

    Raises
    ------
    LabError
        OpenSM has ended.
    """
    try:
        _, hard = resource.prlimit(process, resource.RLIMIT_CPU)
        resource.prlimit(process, resource.RLIMIT_CPU, (hard if seconds is None else seconds, hard))
    except ProcessLookupError:
        raise LabError(_ENDED) from None


def _cpu_seconds(process: int) -> float:
    """Return the CPU seconds that OpenSM's process has used, by the kernel's fields utime and stime.

    Raises
    ------
    LabError
        OpenSM has ended.
    """
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        raise LabError(_ENDED) from None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _vls_needed(opensm: OpenSM) -> int | None:
    found = _VLS_NEEDED.search(opensm.log_path.read_text(errors="replace"))
    return int(found[1]) if found else None
