"""Write and read the state file, which passes the tables in force from one OpenSM process to the next.

The file is a bundle, which every command can read.  It also contains the fabric and the engine's options.  The tables
are used only after a check of their certificate on the fabric in the file.  After translation to the current fabric,
the tables are proven again, as all tables are.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from osm_plugin.answer import DEFERRED
from osm_plugin.snapshot import CABLE, DEVICE, ENDPORT, fabric_from_arrays, fabric_to_arrays
from routing.cdg.certificate import Certificate, Strength, check_certificate
from routing.deadlock.proof import prove
from routing.errors import IbnueError, TableError
from routing.fabric import Fabric
from routing.formats.atomic import atomic_write
from routing.formats.bundle import Bundle, bundle_in, bundle_routing, save_bundle
from routing.formats.npz import NpzReader
from routing.numerals import count_noun
from routing.reroute import Published
from routing.tables import Routing

VERSION = "ibnue-state/1"

_STRUCTURES = {"state_device": DEVICE, "state_endport": ENDPORT, "state_cable": CABLE}
_LONGEST_ABOUT = 1 << 16
_MOST_ROWS = 1 << 22


@dataclass(frozen=True, eq=False)
class SavedTables(Published):
    """Tables that OpenSM has received, with the engine and the options that computed them.

    Attributes
    ----------
    engine
        Name of the engine.
    options
        Options of the engine as a text (:func:`osm_plugin.route_or_reroute.options_key`).
    deferred
        Entries of later rounds, which may not be in the switches yet (:data:`~osm_plugin.answer.DEFERRED` [N]).  None:
        all entries are written.
    number
        Number of the state file from which the tables were read.  Of two state files of a subnet, the newer one has the
        higher number.  0: the tables were not read from a file, or an earlier version has written the file.
    """

    engine: str
    options: str
    deferred: npt.NDArray[np.void] | None = None
    number: int = 0


def baseline_path(path: Path) -> Path:
    """Return the path of the baseline tables (of the fabric without faults) that belong to a state file."""
    return path.with_name(f"{path.name.removesuffix('.npz')}.home.npz")


def write_state(path: Path, kept: SavedTables) -> None:
    """Write a state file atomically.  A state file is a bundle with fabric, engine and options.

    ``kept`` are the tables, with their fabric and engine.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.
    """
    with atomic_write(path) as file:
        save_state(file, kept)


def save_state(file: BinaryIO, kept: SavedTables, number: int = 0) -> None:
    """Write the content of a state file, with its ``number`` (:attr:`SavedTables.number`), into an open file."""
    arrays = fabric_to_arrays(kept.fabric)
    about = {"format": VERSION, "engine": kept.engine, "options": kept.options, "switches": kept.fabric.switches}
    about["number"] = number
    more: dict[str, npt.NDArray[Any]] = {"state_about": np.array(json.dumps(about, sort_keys=True))}
    for (name, dtype), part in zip(_STRUCTURES.items(), arrays, strict=True):
        more[name] = np.frombuffer(part.tobytes(), np.uint8).reshape(len(part), dtype.itemsize)
    if kept.deferred is not None:
        entries = np.frombuffer(kept.deferred.tobytes(), np.uint8)
        more["state_held"] = entries.reshape(len(kept.deferred), DEFERRED.itemsize)
    save_bundle(file, kept.fabric, kept.routing, kept.proof, more=more)


def read_state(path: Path, *, threads: int = 2, file: BinaryIO | None = None) -> SavedTables:
    """Read a state file, and check its format, its fabric, its tables on that fabric, and their certificate.

    Parameters
    ----------
    path
        Path of the file, also for error messages.
    threads
        Number of worker threads.
    file
        The open file; None to open ``path``.

    Raises
    ------
    TableError, FabricError
        The file is damaged, has another version, or contradicts itself.
    InputError, EnvironmentProblem
        The file does not exist or cannot be read.
    """
    with NpzReader(path, file) as archive:  # The file is opened only once, because another process may replace it.
        bundle = bundle_in(archive)
        if "state_about" not in archive.names():
            raise TableError("this is a bundle, but not a state file", path=path)
        about = _about(str(archive.read("state_about", _expect_about)[()]), path)
        device, endport, cable = (_structures(archive, name, dtype) for name, dtype in _STRUCTURES.items())
        deferred = _structures(archive, "state_held", DEFERRED) if "state_held" in archive.names() else None
    try:
        fabric = fabric_from_arrays(device, endport, cable, about["switches"])
        _check_fabric(fabric, bundle, path)
        routing = bundle_routing(bundle, fabric)
        if (
            deferred is not None
            and ((deferred["row"] >= fabric.switches) | (deferred["lid"] >= len(fabric.lids))).any()
        ):
            raise TableError("its update rounds belong to other tables", path=path)
        _check_certificate(fabric, routing, bundle, threads)
        proof = prove(fabric, routing, threads=threads)
    except IbnueError:
        raise
    except (ArithmeticError, LookupError, ValueError) as problem:
        raise TableError(f"contradicts itself: {problem}", path=path) from None
    return SavedTables(fabric, routing, proof, about["engine"], about["options"], deferred, about["number"])


def read_number(content: int) -> int:
    """Return the number (:attr:`SavedTables.number`) of a state file in memory; -1 if the file is damaged or empty.

    ``content`` is the descriptor of the file.
    """
    path = Path("memory")
    with suppress(IbnueError), open(content, "rb", closefd=False) as file, NpzReader(path, file) as archive:
        return int(_about(str(archive.read("state_about", _expect_about)[()]), path)["number"])
    return -1


def _expect_about(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str | None:
    good = dtype.kind == "U" and not shape and 0 < dtype.itemsize <= 4 * _LONGEST_ABOUT
    return None if good else "is not a short text"


def _about(text: str, path: Path) -> dict[str, Any]:
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise TableError("its description is not a JSON object", path=path)
    if about.get("format") != VERSION:
        raise TableError(f"is of format {str(about.get('format'))[:40]!r}, wanted {VERSION!r}", path=path)
    about = {"number": 0, **about}
    if [type(about.get(key)) for key in ("engine", "options", "switches", "number")] != [str, str, int, int]:
        raise TableError("its description is incomplete", path=path)
    return about


def _structures(archive: NpzReader, name: str, dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
    def expect(kind: np.dtype[Any], shape: tuple[int, ...]) -> str | None:
        good = kind == np.uint8 and len(shape) == 2 and shape[1] == dtype.itemsize and shape[0] <= _MOST_ROWS
        return None if good else f"has the shape {shape}, wanted [n, {dtype.itemsize}]"

    return np.frombuffer(archive.read(name, expect).tobytes(), dtype)


def _check_fabric(fabric: Fabric, bundle: Bundle, path: Path) -> None:
    ports = np.concatenate([fabric.switch_ports, fabric.terminal_ports])
    if (fabric.link_port > ports[fabric.link_device]).any() or (fabric.link_port == 0).any():
        raise TableError("a cable of its fabric is at a port that does not exist", path=path)
    if fabric.digest != bundle.meta.get("fabric_digest"):
        raise TableError("its fabric is not the one for which its tables were made", path=path)


def _check_certificate(fabric: Fabric, routing: Routing, bundle: Bundle, threads: int) -> None:
    if bundle.strength not in ("forward", "reversible"):
        # The file has no certificate, because the configuration allowed tables with a credit loop when the file was
        # written.  Tables without a certificate are proven again before they are used.
        return
    strength: Strength = "forward" if bundle.strength == "forward" else "reversible"
    check_certificate(fabric, routing, Certificate(bundle.order, strength, bundle.scope), threads=threads)


def needs_more_vls(kept: SavedTables, data_vls: int) -> str:
    """Return the reason, in words for the log, why tables cannot be used if OpenSM sets up ``data_vls`` data VLs."""
    return f"its tables use {count_noun(kept.routing.vls, 'VL')}, and OpenSM sets up only {data_vls}"


def fits(kept: SavedTables, fabric: Fabric) -> bool:
    """Return whether the tables ``kept`` belong to the subnet of ``fabric``.

    ``kept`` also has the fabric for which the tables were computed.  The tables belong to the subnet if at least half
    of the switches of the smaller fabric are in the other fabric, too.
    """
    common = len(np.intersect1d(kept.fabric.switch_guid, fabric.switch_guid, assume_unique=True))
    return 2 * common >= min(kept.fabric.switches, fabric.switches)
