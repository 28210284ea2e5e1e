"""Read and write a folder of tables: the bundle, and the files for OpenSM and its tools."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from routing.errors import InputError, InputWarning, NotCollected, OptionError, file_problem
from routing.fabric import Fabric
from routing.formats import fdbs, guid_lists, lfts, lid_matrix, path_sl, sl2vl_dump
from routing.formats.atomic import atomic_directory, write_text_atomically
from routing.formats.bundle import bundle_routing, read_bundle, write_bundle
from routing.formats.lft_files import read_lft_file
from routing.formats.proven import Proven
from routing.formats.snapshot import Manifest, Part, first_of, read_manifest
from routing.formats.text import STANDARD_INPUT, standard_input
from routing.numerals import count_noun
from routing.tables import DATA_VLS, Provenance, Routing, Unknown, identity_sl2vl

BUNDLE = "ibnue.npz"
LFTS = "opensm-lfts.dump"
FDBS = ("opensm.fdbs", "ibdiagnet2.fdbs", "ibdiagnet.fdbs")
"""Names of dumps that state LFT entries with numbers of hops: one of OpenSM, and two of ibdiagnet.

A folder need not have any of these dumps.
"""
SL2VL = "opensm-sl2vl.dump"
PATH_RECORDS = "opensm-path-records.dump"
PSL = "ibdmchk.psl"
SLVL = "ibdmchk.slvl"

DEFAULT_VLS = 8
"""Number of data VLs in OpenSM's default configuration.  This number is assumed if no file states SL2VL tables."""

NAMED_ENTRIES = 1_000_000
"""Maximum number of LFT entries, of all switches together, in a dump that also names the port of each LID.

OpenSM's dump names these ports.  If there are more entries, the dump states only LIDs and out-ports.
"""


@dataclass(frozen=True)
class TableFormat:
    """One file in a folder of tables: its name, and the function that writes it.

    Attributes
    ----------
    file
        Name of the file.
    write
        Function that writes the file.
    size
        Function that estimates the size of the file in bytes.
    """

    file: str
    write: Callable[[Path, Fabric, Routing, Proven], None]
    size: Callable[[Fabric, Routing], int]


def _write_lfts(path: Path, fabric: Fabric, routing: Routing, _: Proven) -> None:
    lfts.write(path, fabric, routing.lft, named=routing.lft.size <= NAMED_ENTRIES)


def _write_guid2lid(path: Path, fabric: Fabric, _: Routing, __: Proven) -> None:
    guid_lists.write_guid2lid(path, fabric)


def _write_fdbs(path: Path, fabric: Fabric, routing: Routing, proof: Proven) -> None:
    lids = fabric.lids
    best = np.full(routing.lft.shape, 255, np.uint8)
    there = np.flatnonzero(lids.switch >= 0)
    best[:, there] = lid_matrix.switch_distance(fabric)[:, lids.switch[there]]
    fdbs.write(path, fabric, routing.lft, proof.hops, best)


def _write_lid_matrix(path: Path, fabric: Fabric, routing: Routing, proof: Proven) -> None:
    lid_matrix.write(path, fabric, lid_matrix.of_routing(fabric, routing.lft, proof.hops))


def _write_mcfdbs(path: Path, _: Fabric, __: Routing, ___: Proven) -> None:
    write_text_atomically(path, "")  # There are no multicast tables, but ibdmchk requires their file.


def _write_sl2vl(path: Path, fabric: Fabric, routing: Routing, _: Proven) -> None:
    sl2vl_dump.write(path, fabric, routing.sl2vl, identity_sl2vl(routing.vls))


def _write_slvl(path: Path, fabric: Fabric, routing: Routing, _: Proven) -> None:
    sl2vl_dump.write_slvl(path, fabric, routing.sl2vl)


def _write_psl(path: Path, fabric: Fabric, routing: Routing, _: Proven) -> None:
    path_sl.write_psl(path, fabric, routing.sl)


def _write_path_records(path: Path, fabric: Fabric, routing: Routing, proof: Proven) -> None:
    path_sl.write_path_records(path, fabric, routing.lft, proof.hops, routing.sl)


def _port_pairs(fabric: Fabric, _: Routing) -> int:
    pairs = sum(ports * ports for ports in fabric.switch_ports.tolist())
    return int(60 * pairs + 250 * fabric.endports)


def _paths(fabric: Fabric, _: Routing) -> int:
    return 25 * (fabric.switches + fabric.endports) * len(fabric.lids)


def _matrix(fabric: Fabric, _: Routing) -> int:
    each = 36 + 3 * int(fabric.switch_ports.max(initial=0))
    return each * fabric.switches * fabric.switches


FORMATS: Mapping[str, TableFormat] = MappingProxyType(
    {
        "bundle": TableFormat(BUNDLE, write_bundle, lambda _, routing: routing.lft.nbytes + routing.sl.nbytes),
        "lfts": TableFormat(LFTS, _write_lfts, lambda _, routing: 11 * routing.lft.size),
        "fdbs": TableFormat("opensm.fdbs", _write_fdbs, lambda _, routing: 28 * routing.lft.size),
        "mcfdbs": TableFormat("opensm.mcfdbs", _write_mcfdbs, lambda _, __: 0),
        "lid-matrix": TableFormat("opensm-lid-matrix.dump", _write_lid_matrix, _matrix),
        "sl2vl": TableFormat(SL2VL, _write_sl2vl, _port_pairs),
        "slvl": TableFormat(SLVL, _write_slvl, _port_pairs),
        "psl": TableFormat(PSL, _write_psl, _paths),
        "path-records": TableFormat(PATH_RECORDS, _write_path_records, _paths),
        "guid2lid": TableFormat("guid2lid", _write_guid2lid, lambda fabric, _: 35 * fabric.endports),
    }
)
"""All files of a folder of tables, by the format names that :func:`write_tables` accepts."""

ALWAYS = ("bundle", "lfts", "guid2lid")
AUTO_BYTES = 1 << 26
"""Maximum estimated size in bytes of a file that is written by default, besides the files in :data:`ALWAYS`."""


def write_tables(
    directory: str | Path, fabric: Fabric, routing: Routing, proof: Proven, *, formats: Collection[str] | None = None
) -> tuple[str, ...]:
    """Write a folder of tables atomically: the bundle, and the files for OpenSM and its tools.

    Parameters
    ----------
    directory
        The folder.  It may be missing, empty, or written by this function before.
    fabric, routing, proof
        The fabric, its tables, and their proof.
    formats
        Names from :data:`FORMATS`; the bundle is always written.  With None, the formats in :data:`ALWAYS` are written,
        and all other formats with an estimated size of at most :data:`AUTO_BYTES`.

    Returns
    -------
    tuple[str, ...]
        Names of the formats that were written.

    Raises
    ------
    OptionError
        There is no format of this name.
    TableError
        The tables do not fit the fabric.
    InputError
        The folder contains files that this function does not write.
    EnvironmentProblem
        The folder cannot be written.
    """
    chosen = _chosen(fabric, routing, formats)
    known = {form.file for form in FORMATS.values()}
    routing.check_shapes(fabric)
    with atomic_directory(directory, marker=BUNDLE, known=known) as folder:
        for name in chosen:
            FORMATS[name].write(folder / FORMATS[name].file, fabric, routing, proof)
    return chosen


def _chosen(fabric: Fabric, routing: Routing, formats: Collection[str] | None) -> tuple[str, ...]:
    if formats is None:
        return tuple(
            name for name, form in FORMATS.items() if name in ALWAYS or form.size(fabric, routing) <= AUTO_BYTES
        )
    unknown = sorted(set(formats) - set(FORMATS))
    if unknown:
        raise OptionError(f"there is no table format {unknown[0]!r}", remedy=f"there are {', '.join(FORMATS)}")
    return tuple(name for name in FORMATS if name in formats or name == "bundle")


@dataclass(frozen=True)
class SlFiles:
    """Names of the files with the SLs and the SL2VL tables, which a dump of LFTs does not contain.

    Attributes
    ----------
    sl
        SLs, as path records or in ``ibdmchk``'s format.  None: the file in the folder of the dump is used.
    sl2vl
        SL2VL tables, as OpenSM's dump or in ``ibdmchk``'s format.  None: the file in the folder of the dump is used.
    """

    sl: Path | None = None
    sl2vl: Path | None = None


def read_tables(path: str | Path, fabric: Fabric, given: SlFiles | None = None) -> Routing:
    """Read the tables of a fabric from a bundle, from a folder of tables, or from a dump of LFTs.

    The folder may be written by ibnue, or have dumps of OpenSM or ibdiagnet.  The path ``-`` is standard input.  For
    LFTs in a folder, SL2VL tables are read from ``opensm-sl2vl.dump`` or ``ibdmchk.slvl``.  SLs are read from
    ``opensm-path-records.dump`` or ``ibdmchk.psl``.  ``given`` may name other files.

    Without such files, every path is assumed to have SL 0, and SL n is assumed to use VL n modulo 8, as in OpenSM's
    default configuration.  ``provenance.assumptions`` of the result records the assumptions.

    Raises
    ------
    OptionError
        ``given`` names files for a bundle, which already has SLs and SL2VL tables.
    ParseError, TableError
        A file is damaged, or the tables belong to another fabric.
    InputError, EnvironmentProblem
        The path is missing or unreadable.
    """
    path, given = Path(path), given or SlFiles()
    if str(path) == STANDARD_INPUT:
        return _from_standard_input(fabric, given)
    if not path.exists():
        raise InputError("there is no such file or folder", path=path, remedy="name a bundle or a folder of tables")
    if path.is_dir():
        if (path / BUNDLE).exists():
            return _from_bundle(path / BUNDLE, fabric, given)
        manifest = read_manifest(path)
        _refuse_incomplete(path, manifest)
        dump = first_of(path, (LFTS, *FDBS))
        if dump is None:
            raise InputError(
                f"has neither {BUNDLE} nor {LFTS}", path=path, remedy="run OpenSM with -D 0x43 to dump its tables"
            )
        for remark in () if manifest is None else manifest.remarks:
            warnings.warn(f"{path}: {remark}", InputWarning, stacklevel=2)
        return _from_dumps(dump, path, fabric, given, manifest)
    if not path.is_file():  # The tables are read more than once, which a pipe does not allow.
        raise InputError("is not a regular file", path=path, remedy="copy it into a regular file")
    if _is_zip(path):
        return _from_bundle(path, fabric, given)
    return _from_dumps(path, None, fabric, given)


def _is_zip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"PK"
    except OSError:
        return False  # If the file cannot be read, the reader of LFTs reports the reason.


def _from_bundle(path: Path, fabric: Fabric, given: SlFiles) -> Routing:
    if given != SlFiles():
        raise OptionError(
            f"{path} has service levels and SL2VL tables of its own", remedy="name a dump of LFTs, or leave them out"
        )
    return bundle_routing(read_bundle(path), fabric)


def _refuse_incomplete(folder: Path, manifest: Manifest | None) -> None:
    """Raise NotCollected if a snapshot lacks LFTs or devices.  Without LFTs or devices, a credit loop may exist that
    the snapshot does not show.
    """
    parts: tuple[tuple[Part, str], ...] = (("topology", "the topology may be incomplete"), ("LFT", "LFTs are missing"))
    for part, problem in parts:
        reason = None if manifest is None else manifest.reason(part)
        if reason is not None:
            raise NotCollected(
                f"not decidable, as {problem}: {reason}",
                path=folder,
                remedy="collect the snapshot again, or name its files one by one",
            )


def _from_dumps(
    lft_file: Path, folder: Path | None, fabric: Fabric, given: SlFiles, manifest: Manifest | None = None
) -> Routing:
    lft = read_lft_file(lft_file, fabric)
    assumed: dict[Unknown, str] = {}
    sl_file = given.sl or (folder and first_of(folder, (PATH_RECORDS, PSL)))
    sl2vl_file = given.sl2vl or (folder and first_of(folder, (SL2VL, SLVL)))
    sl, sl2vl = np.zeros(lft.shape[1], np.uint8), identity_sl2vl(DEFAULT_VLS)
    if sl_file is None:
        assumed["SL"] = "SL 0 for every path" + _why(manifest, "SL")
    else:
        stated = path_sl.read_stated(sl_file, fabric)
        sl, missing = path_sl.smallest_form(fabric, stated), path_sl.unstated_pairs(fabric, lft, stated)
        if missing:
            paths = count_noun(missing, "path")
            assumed["SL"] = (
                f"{paths} without a stated SL in {sl_file.name} use the SLs of other paths, or SL 0 if there are none"
            )
    if sl2vl_file is None:
        assumed["SL2VL"] = f"SL n uses VL n modulo {DEFAULT_VLS}" + _why(manifest, "SL2VL")
    else:
        sl2vl = sl2vl_dump.read(sl2vl_file, fabric)
    used = sl2vl[..., np.unique(sl)]
    vls = 1 + int(used.max(initial=0, where=used < DATA_VLS))
    options = {"file": str(lft_file), "unknown": list(assumed), "assumed": list(assumed.values())}
    return Routing(lft, sl, sl2vl, vls, vls, Provenance("file", options, fabric.digest))


def _from_standard_input(fabric: Fabric, given: SlFiles) -> Routing:
    """Read the tables of a fabric from standard input.  The input is copied to a file first, because it is read more
    than once.

    Raises
    ------
    InputError, EnvironmentProblem
        See :func:`read_tables`.
    """
    with tempfile.TemporaryDirectory(prefix="ibnue-") as folder:
        path = Path(folder) / "tables"
        try:
            with path.open("wb") as file:
                shutil.copyfileobj(standard_input(), file)
        except OSError as error:
            raise file_problem("copied", "standard input", error) from None
        if not path.stat().st_size:
            raise InputError("standard input is empty", remedy="it can be read once: name a file for other arguments")
        try:
            routing = read_tables(path, fabric, given)
        except InputError as error:
            where = "standard input" if error.path == str(path) else error.path
            raise type(error)(error.problem, path=where, line=error.line, remedy=error.remedy) from None
    if routing.provenance.options.get("file") != str(path):
        return routing
    options = {**routing.provenance.options, "file": STANDARD_INPUT}
    return dataclasses.replace(routing, provenance=dataclasses.replace(routing.provenance, options=options))


def _why(manifest: Manifest | None, part: Part) -> str:
    """Return the reason why a snapshot lacks a part, in parentheses; an empty text if the reason is not known."""
    reason = None if manifest is None else manifest.reason(part)
    return "" if reason is None else f" (not collected: {reason})"
