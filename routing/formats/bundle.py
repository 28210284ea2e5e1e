"""Read and write bundles: an ``.npz`` file with a fabric's tables, their certificate and data to recognise the fabric.

A bundle stores data that OpenSM's ``file`` engine cannot load: service levels, SL2VL tables and the proof.  NumPy reads
bundles with pickling disabled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from routing.errors import DamagedBundle, TableError
from routing.fabric import NO_PORT, Fabric
from routing.formats.atomic import atomic_write
from routing.formats.bundle_check import KINDS, OWNERS, BundleChecker
from routing.formats.lid_map import lid_owner, old_columns, take_columns
from routing.formats.npz import NpzReader, write_npz
from routing.formats.proven import Order, Proven
from routing.tables import Provenance, Routing

FORMAT = "ibnue-bundle/1"
MORE = "state_"
"""Prefix of the names of additional arrays in the file, which :func:`read_bundle` ignores."""


@dataclass(frozen=True, eq=False)
class Bundle:
    """Contents of a bundle.  ``docs/formats.md`` describes the arrays of the file.

    Attributes
    ----------
    switch_guid, switch_name, switch_lid
        uint64[S] (ascending), str and uint16[S]: GUID, name and LID of each switch, in the order of the rows of the
        tables.
    endport_guid, endport_name, endport_port
        uint64[E] (ascending), str and uint8[E]: port GUID, name of the CA or router, and port number of each end port.
    endport_lid, endport_lmc
        uint16[E] and uint8[E]: base LID and LMC of each end port.
    routing
        The tables.  Their columns are the LIDs that the fabric had when the bundle was written.
    channel_switch, channel_port
        int32[C], uint8[C]: row of the source switch and out-port of each channel.
    order
        int32[V, C], the certificate: position of each channel in a topological order for each of V VLs.  V = 0 if there
        is no certificate.
    strength
        "forward", "reversible", or None if there is no certificate.
    scope
        "endports" if the certificate excludes switch-to-switch traffic, otherwise "all".
    meta
        JSON object with the engine, its options and all other recorded information.
    path
        File from which the bundle was read.
    """

    switch_guid: npt.NDArray[np.uint64]
    switch_name: tuple[str, ...]
    switch_lid: npt.NDArray[np.uint16]
    endport_guid: npt.NDArray[np.uint64]
    endport_name: tuple[str, ...]
    endport_port: npt.NDArray[np.uint8]
    endport_lid: npt.NDArray[np.uint16]
    endport_lmc: npt.NDArray[np.uint8]
    routing: Routing
    channel_switch: npt.NDArray[np.int32]
    channel_port: npt.NDArray[np.uint8]
    order: npt.NDArray[np.int32]
    strength: str | None
    scope: Literal["all", "endports"] = "all"
    meta: Mapping[str, object] = field(default_factory=dict)
    path: Path | None = None


def write_bundle(
    path: str | Path,
    fabric: Fabric,
    routing: Routing,
    proof: Proven,
    *,
    more: Mapping[str, npt.NDArray[Any]] | None = None,
) -> None:
    """Write a bundle.  Equal input gives a file with equal bytes.

    Parameters
    ----------
    path
        The file to write.  It is written to a temporary name and then renamed.
    fabric, routing, proof
        The fabric, its tables, and the proof of the tables.  The certificate is written if the proof has one.
    more
        Additional arrays, whose names begin with :data:`MORE`.  :func:`read_bundle` ignores them.

    Raises
    ------
    TableError
        The tables do not fit the fabric.
    EnvironmentProblem
        The file cannot be written.

    Notes
    -----
    Cost: O(S L), mostly for the compression at about 6 ns per byte.
    """
    with atomic_write(path) as file:
        save_bundle(file, fabric, routing, proof, more=more)


def save_bundle(
    file: BinaryIO,
    fabric: Fabric,
    routing: Routing,
    proof: Proven,
    *,
    more: Mapping[str, npt.NDArray[Any]] | None = None,
) -> None:
    """Write a bundle into an open file, as :func:`write_bundle` does."""
    routing.check_shapes(fabric)
    certificate, channels = proof.certificate, fabric.channels
    order = np.empty((0, len(channels)), np.int32) if certificate is None else certificate.order
    arrays: dict[str, npt.NDArray[Any]] = {
        "format": np.array(FORMAT),
        "switch_guid": fabric.switch_guid,
        "switch_name": _names(fabric.switch_name),
        "switch_lid": fabric.switch_lid,
        "endport_guid": fabric.endport_guid,
        "endport_name": _names(fabric.endport_name),
        "endport_port": fabric.endport_port,
        "endport_lid": fabric.endport_lid,
        "endport_lmc": fabric.endport_lmc,
        "lft": routing.lft,
        "sl": routing.sl,
        "sl2vl": routing.sl2vl,
        "vls": np.array(routing.vls, np.int64),
        "vls_needed": np.array(routing.vls_needed, np.int64),
        "channel_switch": channels.src,
        "channel_port": channels.port,
        "order": order,
        "meta": np.array(_meta(fabric, routing, certificate)),
    }
    for name, array in (more or {}).items():
        if not name.startswith(MORE):
            raise ValueError(f"{name!r} does not begin with {MORE!r}")
        arrays[name] = array
    write_npz(file, arrays)


def _names(names: tuple[str, ...]) -> npt.NDArray[np.str_]:
    """Return the names as a NumPy array of strings.

    NUL characters are escaped, because NumPy drops them at the end of a string.
    """
    return np.array([name.replace("\0", "\\x00") for name in names], np.str_) if names else np.empty(0, "<U1")


def _meta(fabric: Fabric, routing: Routing, certificate: Order | None) -> str:
    made = routing.provenance
    meta = {
        "engine": made.engine,
        "options": dict(made.options),
        "versions": dict(made.versions),
        "seconds": dict(made.seconds),
        "fabric": fabric.name,
        "fabric_digest": fabric.digest,
        "switch_cabling": switch_cabling(fabric),
        "strength": None if certificate is None else certificate.strength,
        "scope": None if certificate is None else certificate.scope,
    }
    return json.dumps(meta, sort_keys=True, default=str)


def switch_cabling(fabric: Fabric) -> str:
    """Return a hash that identifies the cabling between switches: SHA-256 of GUIDs, ports and cables, in hex.

    The hash does not depend on LIDs, names, end ports or link widths.
    """
    channels = fabric.channels
    state = hashlib.sha256(b"ibnue-cabling/1")
    for part in (fabric.switch_guid, channels.src, channels.port, channels.dst, channels.dst_port):
        state.update(np.ascontiguousarray(part).tobytes())
    return state.hexdigest()


def read_bundle(path: str | Path) -> Bundle:
    """Read a bundle, and check its contents as far as this is possible without the fabric.

    Raises
    ------
    DamagedBundle
        The file is not a bundle, has another version or is truncated.  A missing array, an array that does not belong
        in a bundle, or an array of an invalid dtype, shape or value is an error, too.
    InputError, EnvironmentProblem
        The file is missing or cannot be read.
    """
    with NpzReader(path) as archive:
        return bundle_in(archive)


def bundle_in(archive: NpzReader) -> Bundle:
    """Read and check a bundle from an open archive.  Additional arrays whose names begin with :data:`MORE` are ignored.

    Raises
    ------
    DamagedBundle
        The archive is not a bundle, has another version, or has a missing, unknown or invalid array.
    """
    path = archive.path
    checker = BundleChecker(path)
    names = archive.names()
    found = str(archive.read("format", checker.expect("format"))[()]) if "format" in names else None
    if found != FORMAT:
        raise DamagedBundle(
            f"this is {'not a bundle' if found is None else f'a bundle of format {found[:40]!r}'}, wanted {FORMAT!r}",
            path=path, remedy="make it again with this version",
        )  # fmt: skip
    extra = sorted(name for name in set(names) - set(KINDS) if not name.startswith(MORE))
    extra = extra or sorted(name for name in set(names) if names.count(name) > 1)
    if extra:
        raise DamagedBundle(f"array {extra[0]!r} does not belong in a bundle", path=path, remedy="make it again")
    arrays = {name: archive.read(name, checker.expect(name)) for name in OWNERS}
    checker.check_owners(arrays)
    arrays |= {name: archive.read(name, checker.expect(name)) for name in KINDS if name not in arrays}
    checker.check_tables(arrays)
    return _bundle(arrays, checker.meta(str(arrays["meta"][()])), Path(path))


def _bundle(arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, object], path: Path) -> Bundle:
    def noted(name: str) -> dict[str, Any]:
        value = meta.get(name)
        return dict(value) if isinstance(value, dict) else {}

    made = Provenance(
        engine=str(meta.get("engine")),
        options=noted("options"),
        fabric_digest=str(meta.get("fabric_digest")),
        versions=noted("versions"),
        seconds=noted("seconds"),
    )
    vls, needed = int(arrays["vls"]), int(arrays["vls_needed"])
    strength = meta.get("strength")
    return Bundle(
        switch_guid=arrays["switch_guid"],
        switch_name=tuple(arrays["switch_name"].tolist()),
        switch_lid=arrays["switch_lid"],
        endport_guid=arrays["endport_guid"],
        endport_name=tuple(arrays["endport_name"].tolist()),
        endport_port=arrays["endport_port"],
        endport_lid=arrays["endport_lid"],
        endport_lmc=arrays["endport_lmc"],
        routing=Routing(arrays["lft"], arrays["sl"], arrays["sl2vl"], vls, needed, made),
        channel_switch=arrays["channel_switch"],
        channel_port=arrays["channel_port"],
        order=arrays["order"],
        strength=strength if isinstance(strength, str) and len(arrays["order"]) else None,
        scope="endports" if meta.get("scope") == "endports" else "all",
        meta=meta,
        path=path,
    )


def bundle_routing(bundle: Bundle, fabric: Fabric) -> Routing:
    """Return the tables of a bundle, with rows and columns renumbered for a fabric as it is now.

    The fabric must have the switches of the bundle, with the same cables between them.  The bundle must contain all end
    ports of the fabric.  End ports of the bundle may be missing in the fabric, for example because a host is off.  LIDs
    may have changed, because columns are matched by GUID.

    Raises
    ------
    TableError
        The bundle belongs to another fabric.  The message states the first difference.
    """
    _refuse_other_switches(bundle, fabric)
    _refuse_other_endports(bundle, fabric)
    column = old_columns(_owners(bundle), lid_owner(fabric))
    old = bundle.routing
    lft = take_columns(old.lft, column, NO_PORT)
    sl = take_columns(old.sl, column, 0)
    if old.service_levels.by_source_lid:
        sl = np.ascontiguousarray(take_columns(sl.T, column, 0).T)
    routing = replace(old, lft=lft, sl=sl)
    _refuse_other_ports(bundle, fabric, routing)
    routing.check_shapes(fabric)
    return routing


def _owners(bundle: Bundle) -> npt.NDArray[np.uint64]:
    owner = np.zeros(bundle.routing.lft.shape[1], np.uint64)
    own = bundle.switch_lid > 0
    owner[bundle.switch_lid[own]] = bundle.switch_guid[own]
    for guid, base, lmc in zip(bundle.endport_guid, bundle.endport_lid, bundle.endport_lmc, strict=True):
        if base:
            owner[int(base) : int(base) + (1 << int(lmc))] = guid
    return owner


def _refuse(bundle: Bundle, what: str) -> TableError:
    return TableError(f"the bundle is for another fabric: {what}", path=bundle.path, remedy="route this fabric again")


def _refuse_other_switches(bundle: Bundle, fabric: Fabric) -> None:
    for guid in np.setdiff1d(bundle.switch_guid, fabric.switch_guid)[:1]:
        name = bundle.switch_name[int(np.searchsorted(bundle.switch_guid, guid))]
        raise _refuse(bundle, f"its switch {int(guid):#018x} ({name!r}) is not in this fabric")
    for guid in np.setdiff1d(fabric.switch_guid, bundle.switch_guid)[:1]:
        name = fabric.switch_name[int(np.searchsorted(fabric.switch_guid, guid))]
        raise _refuse(bundle, f"it lacks switch {int(guid):#018x} ({name!r})")
    channels = fabric.channels
    here = channels.src.astype(np.int64) * 256 + channels.port
    there = bundle.channel_switch.astype(np.int64) * 256 + bundle.channel_port
    for keys, other, state in (
        (there, here, "leads to no switch in this fabric"),
        (here, there, "led to no switch in the bundle's fabric"),
    ):
        for key in np.setdiff1d(keys, other)[:1].tolist():
            raise _refuse(bundle, f"port {key % 256} of switch {fabric.labels[key // 256]!r} {state}")
    if bundle.meta.get("switch_cabling") != switch_cabling(fabric):
        raise _refuse(bundle, "cables lead to other switches or ports than before")


def _refuse_other_endports(bundle: Bundle, fabric: Fabric) -> None:
    position = np.searchsorted(bundle.endport_guid, fabric.endport_guid)
    for row, (guid, at) in enumerate(zip(fabric.endport_guid.tolist(), position.tolist(), strict=True)):
        if at == len(bundle.endport_guid) or int(bundle.endport_guid[at]) != guid:
            raise _refuse(bundle, f"it lacks end port {guid:#018x} ({fabric.endport_name[row]!r})")
        if bundle.endport_lid[at] and fabric.endport_lid[row] and bundle.endport_lmc[at] != fabric.endport_lmc[row]:
            raise _refuse(
                bundle,
                f"the LMC of {fabric.endport_label[row]!r} is {fabric.endport_lmc[row]}, was {bundle.endport_lmc[at]}",
            )


def _refuse_other_ports(bundle: Bundle, fabric: Fabric, routing: Routing) -> None:
    """Raise TableError if the ports in the tables do not fit the fabric.

    The switch of an end port must deliver the end port's LIDs by the port to which the end port is cabled.  Missing
    entries are allowed.  Every out-port in the tables must exist.
    """
    lids = fabric.lids
    known = np.flatnonzero(lids.switch >= 0)
    port = routing.lft[lids.switch[known], known]
    for lid in known[(port != lids.port[known]) & (port != NO_PORT)][:1].tolist():
        row = int(lids.endport[lid])
        name = fabric.endport_label[row] if row >= 0 else fabric.labels[lids.switch[lid]]
        raise _refuse(bundle, f"{name!r} (LID {lid}) is cabled to another port of {fabric.labels[lids.switch[lid]]!r}")
    ports = routing.lft.max(axis=1, initial=0, where=routing.lft != NO_PORT)
    for row in np.flatnonzero(ports > fabric.switch_ports)[:1].tolist():
        raise _refuse(
            bundle,
            f"it uses port {int(ports[row])} of {fabric.labels[row]!r}, which has {int(fabric.switch_ports[row])}",
        )
