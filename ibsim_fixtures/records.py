"""Read all SLs and SL2VL rows of a running lab from the file that the record plugin writes.

ibsim does not transport answers of several packets, so each query to the SA can ask only for one path.  For 600 end
ports such queries take half a minute.  The file has the answers that OpenSM would give.  Queries check only a sample of
these answers.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ibsim_fixtures import mad_client
from ibsim_fixtures.opensm import Plugin
from ibsim_fixtures.opensm_log import EventKind
from ibsim_fixtures.processes import LabError, find_program, poll
from routing.errors import EnvironmentProblem

if TYPE_CHECKING:
    from ibsim_fixtures.lab import Lab

NAME = "ibnue-records"
FILE = "ibnue-records.bin"
INCLUDE = Path("/usr/include")
SAMPLE = 2000
"""Largest number of paths, and of SL2VL rows, that are queried to check the file of the record plugin."""

_HEAD = np.dtype([("magic", "S8"), ("sweeps", "<u4"), ("ports", "<u4"), ("rows", "<u4"), ("zero", "<u4")])
_ROW = np.dtype([("guid", "<u8"), ("in", "u1"), ("out", "u1"), ("vl", "u1", 16), ("zero", "V6")])


@dataclass(frozen=True, eq=False)
class Records:
    """SLs and SL2VL rows that OpenSM has after a sweep.

    Attributes
    ----------
    sweeps
        Number of sweeps that have reached SUBNET UP so far.
    lids
        int64[N], the base LIDs.
    sl
        uint8[N, N], the SL by source and destination in the order of ``lids``.  No packet uses the SL from a LID to
        itself, so these values have no meaning.
    rows
        SL2VL rows of switches, from port 0 and each cabled port to each cabled port.  The fields are ``guid`` (of the
        switch), ``in`` (in-port), ``out`` (out-port) and ``vl`` (VL of each of the 16 SLs).
    """

    sweeps: int
    lids: npt.NDArray[np.int64]
    sl: npt.NDArray[np.uint8]
    rows: npt.NDArray[np.void]


def compile_plugin(source: Path, name: str, folder: Path) -> None:
    """Compile an OpenSM plugin, which consists of one C file, to a library in a folder.

    ``source`` is the C file, and ``name`` the name of the plugin.

    Raises
    ------
    EnvironmentProblem
        There is no compiler, or the headers of OpenSM are missing.
    """
    if not (INCLUDE / "infiniband/opensm/osm_event_plugin.h").is_file():
        raise EnvironmentProblem("the headers of OpenSM are missing", remedy="apt install libopensm-dev")
    command: list[str | Path] = [
        find_program("cc"), "-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wno-unused-function",
        "-Wno-unused-parameter", f"-I{INCLUDE / 'infiniband'}", f"-I{INCLUDE}", source,
        "-o", folder.resolve() / f"lib{name}.so", "-lopensm", "-losmcomp",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentProblem(f"{name} does not compile: {(done.stderr.splitlines() or ['no message'])[0]}",
                                 remedy="install the headers of this OpenSM")  # fmt: skip


def record_plugin(folder: str | Path) -> Plugin:
    """Compile the record plugin into a folder, and return it for use with OpenSM.

    With this plugin, OpenSM writes :data:`FILE` to the folder of its dumps after each sweep.

    Raises
    ------
    EnvironmentProblem
        There is no compiler, or the headers of OpenSM are missing.
    """
    compile_plugin(Path(__file__).with_name("record_dump.c"), NAME, Path(folder))
    return Plugin(NAME, folder=Path(folder))


def with_records(plugin: Plugin | None, folder: Path) -> Plugin:
    """Compile the record plugin and combine it with another plugin (or None), so that OpenSM loads both.

    The libraries of both plugins must be in one folder, which is ``folder``.
    """
    own = record_plugin(folder)
    if plugin is None:
        return own
    return Plugin(f"{plugin.name} {own.name}", plugin.options, plugin.folder, plugin.environment)


def parse_records(data: bytes) -> Records:
    """Parse the bytes of a file that the record plugin has written.

    Raises
    ------
    LabError
        The file is incomplete or damaged.
    """
    if len(data) < _HEAD.itemsize or not data.startswith(b"ibnue-r1"):
        raise LabError(f"{FILE} is damaged")
    head = np.frombuffer(data, _HEAD, 1)
    count = int(head["ports"][0])
    sls, rows = _HEAD.itemsize + 2 * count, _HEAD.itemsize + 2 * count + count * count
    if len(data) != rows + int(head["rows"][0]) * _ROW.itemsize:
        raise LabError(f"{FILE} is damaged")
    return Records(
        sweeps=int(head["sweeps"][0]),
        lids=np.frombuffer(data[_HEAD.itemsize : sls], "<u2").astype(np.int64),
        sl=np.frombuffer(data[sls:rows], np.uint8).reshape(count, count),
        rows=np.frombuffer(data[rows:], _ROW),
    )


def checked_records(lab: Lab) -> Records | None:
    """Read the SLs and SL2VL rows that the record plugin wrote after the last sweep, and check a random sample of them.

    The check queries the SA for SLs and the switches for SL2VL rows.  Each sweep has a different sample.  The result is
    None if an answer differs from the file.

    Raises
    ------
    LabError
        The file was not written in time, or is damaged.
    """
    path = lab.opensm.folder / FILE
    up = sum(event.kind is EventKind.SUBNET_UP for event in lab.opensm.events())
    found: list[Records] = []

    def written() -> bool:
        if path.exists():
            found[:] = [parse_records(path.read_bytes())]
        return bool(found) and found[0].sweeps >= up

    if not poll(written, lab.opensm.timeout):
        raise LabError(f"{FILE} was not written after the sweep")
    return found[0] if _sample_agrees(lab, found[0]) else None


def _sample_agrees(lab: Lab, records: Records) -> bool:
    """Query the SA for a sample of paths, and the switches for a sample of SL2VL rows.  Return whether all answers
    equal ``records``.
    """
    rng = random.Random(records.sweeps)
    pairs = [divmod(position, len(records.lids)) for position in _some(rng, records.sl.size)]
    pairs = [(a, b) for a, b in pairs if a != b]
    rows = records.rows[_some(rng, len(records.rows))]
    owners = lab.owners()
    lid = {owner.guid: owner.lid for owner in owners if owner.kind == "SW"}
    lids = records.lids.tolist()
    sls, vls = mad_client.ask(
        lab.ibsim,
        sm_lid=lab.sm_lid(owners),
        paths=[(lids[a], lids[b]) for a, b in pairs],
        sl2vl=[(lid.get(int(row["guid"]), 0), int(row["in"]), int(row["out"])) for row in rows],
    )
    return sls == [int(records.sl[a, b]) for a, b in pairs] and vls == [tuple(row["vl"].tolist()) for row in rows]


def _some(rng: random.Random, count: int) -> Sequence[int]:
    return sorted(rng.sample(range(count), min(count, SAMPLE)))
