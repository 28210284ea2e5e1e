"""The tables in force, kept from sweep to sweep and, in a file, from one OpenSM to the next.

The file is a bundle, so that every command that takes one takes it, with the fabric and the engine's options beside the
tables.  It is believed after its certificate has been checked, on the fabric that it came with; what is then laid over
the fabric of the day is proven again like all tables.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from osm_plugin.answer import HELD
from osm_plugin.snapshot import CABLE, DEVICE, ENDPORT, fabric_from_arrays, fabric_to_arrays
from routing.deadlock.certificate import Certificate, Strength, check_certificate
from routing.deadlock.proof import prove
from routing.errors import IbnueError, TableError
from routing.fabric import Fabric
from routing.formats.bundle import Bundle, bundle_in, bundle_routing, write_bundle
from routing.formats.npz import NpzReader
from routing.reroute import Published
from routing.tables import Routing

VERSION = "ibnue-state/1"

_STRUCTURES = {"state_device": DEVICE, "state_endport": ENDPORT, "state_cable": CABLE}
_LONGEST_ABOUT = 1 << 16
_MOST_ROWS = 1 << 22


@dataclass(frozen=True, eq=False)
class Kept(Published):
    """Tables that were published.

    Attributes
    ----------
    engine, options
        The engine's name, and :func:`osm_plugin.plan.options_key` of its options.
    held
        :data:`~osm_plugin.answer.HELD` [N], entries that may not be in the switches yet; None: all are.
    """

    engine: str
    options: str
    held: npt.NDArray[np.void] | None = None


def home_path(path: Path) -> Path:
    """Where the home tables of a state are."""
    return path.with_name(f"{path.name.removesuffix('.npz')}.home.npz")


def write_state(path: Path, kept: Kept) -> None:
    """Write a bundle with all that belongs to a state; it appears complete or not at all.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.
    """
    arrays = fabric_to_arrays(kept.fabric)
    about = {"format": VERSION, "engine": kept.engine, "options": kept.options, "switches": kept.fabric.switches}
    more: dict[str, npt.NDArray[Any]] = {"state_about": np.array(json.dumps(about, sort_keys=True))}
    for (name, dtype), part in zip(_STRUCTURES.items(), arrays, strict=True):
        more[name] = np.frombuffer(part.tobytes(), np.uint8).reshape(len(part), dtype.itemsize)
    if kept.held is not None:
        more["state_held"] = np.frombuffer(kept.held.tobytes(), np.uint8).reshape(len(kept.held), HELD.itemsize)
    write_bundle(path, kept.fabric, kept.routing, kept.proof, more=more)


def read_state(path: Path, *, threads: int = 2) -> Kept:
    """Read a state and check it: format, fabric against its digest, tables against the fabric, certificate.

    Raises
    ------
    TableError, FabricError
        It is damaged, of another version, or does not hold together.
    InputError, EnvironmentProblem
        It is not there or cannot be read.
    """
    with NpzReader(path) as archive:  # once: the file may be replaced at any time
        bundle = bundle_in(archive)
        if "state_about" not in archive.names():
            raise TableError("this is a bundle, but no state", path=path)
        about = _about(str(archive.read("state_about", _expect_about)[()]), path)
        device, endport, cable = (_structures(archive, name, dtype) for name, dtype in _STRUCTURES.items())
        held = _structures(archive, "state_held", HELD) if "state_held" in archive.names() else None
    try:
        fabric = fabric_from_arrays(device, endport, cable, about["switches"])
        _check_fabric(fabric, bundle, path)
        routing = bundle_routing(bundle, fabric)
        if held is not None and ((held["row"] >= fabric.switches) | (held["lid"] >= len(fabric.lids))).any():
            raise TableError("its rounds are of other tables", path=path)
        _check_certificate(fabric, routing, bundle, threads)
        proof = prove(fabric, routing, threads=threads)
    except IbnueError:
        raise
    except (ArithmeticError, LookupError, ValueError) as problem:
        raise TableError(f"does not hold together: {problem}", path=path) from None
    return Kept(fabric, routing, proof, about["engine"], about["options"], held)


def _expect_about(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str | None:
    good = dtype.kind == "U" and not shape and 0 < dtype.itemsize <= 4 * _LONGEST_ABOUT
    return None if good else "is no short text"


def _about(text: str, path: Path) -> dict[str, Any]:
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise TableError("its description is no JSON object", path=path)
    if about.get("format") != VERSION:
        raise TableError(f"is of format {str(about.get('format'))[:40]!r}, wanted {VERSION!r}", path=path)
    if [type(about.get(key)) for key in ("engine", "options", "switches")] != [str, str, int]:
        raise TableError("its description lacks something", path=path)
    return about


def _structures(archive: NpzReader, name: str, dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
    def expect(kind: np.dtype[Any], shape: tuple[int, ...]) -> str | None:
        good = kind == np.uint8 and len(shape) == 2 and shape[1] == dtype.itemsize and shape[0] <= _MOST_ROWS
        return None if good else f"has the shape {shape}, wanted [n, {dtype.itemsize}]"

    return np.frombuffer(archive.read(name, expect).tobytes(), dtype)


def _check_fabric(fabric: Fabric, bundle: Bundle, path: Path) -> None:
    ports = np.concatenate([fabric.switch_ports, fabric.terminal_ports])
    if (fabric.link_port > ports[fabric.link_device]).any() or (fabric.link_port == 0).any():
        raise TableError("a cable of its fabric is in a port that is not there", path=path)
    if fabric.digest != bundle.meta.get("fabric_digest"):
        raise TableError("its fabric is not the one that its tables are for", path=path)


def _check_certificate(fabric: Fabric, routing: Routing, bundle: Bundle, threads: int) -> None:
    if bundle.strength not in ("forward", "reversible"):
        return  # tables with a credit loop, which were allowed; they are proven again, and may be refused then
    strength: Strength = "forward" if bundle.strength == "forward" else "reversible"
    check_certificate(fabric, routing, Certificate(bundle.order, strength, bundle.scope), threads=threads)


def fits(kept: Kept, fabric: Fabric) -> bool:
    """Whether a state is of this subnet: at least half of the switches of the smaller one are the other's too."""
    common = len(np.intersect1d(kept.fabric.switch_guid, fabric.switch_guid, assume_unique=True))
    return 2 * common >= min(kept.fabric.switches, fabric.switches)


class State:
    """The last tables published and the home tables, in memory and in the files.

    Attributes
    ----------
    last, home
        What there is.
    remarks
        What to tell in OpenSM's log at the next occasion.
    """

    def __init__(self) -> None:
        self.last: Kept | None = None
        self.home: Kept | None = None
        self.remarks: list[str] = []
        self._path: Path | None = None
        self._stamps: dict[Path, tuple[int, ...] | None] = {}
        self._saved: dict[Path, Kept] = {}

    def take_remarks(self) -> list[str]:
        """The remarks, which are then told."""
        told, self.remarks = self.remarks, []
        return told

    def refresh(self, path: Path | None, *, threads: int) -> None:
        """Take over what somebody else has written since.

        What is in memory stays where the file is not there or cannot be used.
        """
        self._path = path
        if path is None:
            return
        for place, home in ((path, False), (home_path(path), True)):
            stamp = _stamp(place)
            if stamp is None or stamp == self._stamps.get(place):
                continue
            self._stamps[place] = stamp
            try:
                kept = read_state(place, threads=threads)
            except IbnueError as problem:
                self._saved.pop(place, None)
                self.remarks.append(f"state ignored: {problem}")
                continue
            self._saved[place] = kept
            if home:
                self.home = kept
            else:
                self.last = kept
                self.remarks.append(f"state taken from {place}")

    def before(self, engine: str, options: str, fabric: Fabric) -> Kept | None:
        """The last tables if they are of this subnet, engine and options; otherwise None, with a remark."""
        last = self.last
        if last is None:
            return None
        if not fits(last, fabric):
            why = "it is of another fabric"
        elif last.engine != engine:
            why = f"it is of engine {last.engine}"
        elif last.options != options:
            why = "the engine's options are others now"
        else:
            return last
        self.remarks.append(f"state ignored: {why}")
        return None

    def home_of(self, kept: Kept) -> Kept | None:
        """The home tables, if they belong to those."""
        home = self.home
        same = home is not None and home.engine == kept.engine and home.options == kept.options
        return home if home is not None and same and fits(home, kept.fabric) else None

    def put(self, kept: Kept, *, reset: bool) -> None:
        """Note what was published; ``reset``: it is the home from now on, whatever that was."""
        home = self.home_of(kept)
        if reset or home is None or _grown(home.fabric, kept.fabric):
            self.home = kept
        self.last = kept

    def save(self) -> None:
        """Write what is not in the files yet.

        Raises
        ------
        EnvironmentProblem
            A file cannot be written.
        """
        if self._path is None:
            return
        for place, kept in ((self._path, self.last), (home_path(self._path), self.home)):
            written = self._saved.get(place)
            if kept is None or (written is kept and _stamp(place) == self._stamps.get(place)):
                continue
            write_state(place, kept)
            self._stamps[place], self._saved[place] = _stamp(place), kept


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return (about.st_mtime_ns, about.st_size, about.st_ino)


def _grown(home: Fabric, fabric: Fabric) -> bool:
    """Whether a fabric has all switches, cables between them and end ports that home had, and is not home itself."""
    if home.digest == fabric.digest:
        return False
    return all(
        np.isin(old, new).all()
        for old, new in (
            (home.switch_guid, fabric.switch_guid),
            (home.endport_guid, fabric.endport_guid),
            (_cables(home), _cables(fabric)),
        )
    )


def _cables(fabric: Fabric) -> npt.NDArray[np.void]:
    """One value for each channel between switches: both ends, by GUID and port."""
    channels = fabric.channels
    ends = np.zeros(len(channels), [("a", "u8"), ("b", "u8"), ("p", "u1"), ("q", "u1"), ("unused", "V6")])
    ends["a"], ends["b"] = fabric.switch_guid[channels.src], fabric.switch_guid[channels.dst]
    ends["p"], ends["q"] = channels.port, channels.dst_port
    return ends.view("V24").ravel()
