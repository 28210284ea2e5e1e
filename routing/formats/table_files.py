"""A folder of tables: the bundle and everything that OpenSM and its tools read, written at once and read back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from routing.errors import InputError, OptionError
from routing.fabric import Fabric
from routing.formats import guid_lists, lfts
from routing.formats.atomic import atomic_directory
from routing.formats.bundle import bundle_routing, read_bundle, write_bundle
from routing.formats.proven import Proven
from routing.tables import Provenance, Routing, identity_sl2vl

BUNDLE = "ibnue.npz"
LFTS = "opensm-lfts.dump"

NAMED_ENTRIES = 4_000_000
"""Up to so many table entries the LFTs are written as OpenSM dumps them, with names; above, LIDs and ports alone."""


@dataclass(frozen=True)
class TableFormat:
    """One file of the folder.

    Attributes
    ----------
    file
        Its name.
    write
        Writes it.
    size
        About how many bytes it will have.
    """

    file: str
    write: Callable[[Path, Fabric, Routing, Proven], None]
    size: Callable[[Fabric, Routing], int]


def _write_lfts(path: Path, fabric: Fabric, routing: Routing, _: Proven) -> None:
    lfts.write(path, fabric, routing.lft, named=routing.lft.size <= NAMED_ENTRIES)


def _write_guid2lid(path: Path, fabric: Fabric, _: Routing, __: Proven) -> None:
    guid_lists.write_guid2lid(path, fabric)


FORMATS: Mapping[str, TableFormat] = MappingProxyType(
    {
        "bundle": TableFormat(BUNDLE, write_bundle, lambda _, routing: routing.lft.nbytes + routing.sl.nbytes),
        "lfts": TableFormat(LFTS, _write_lfts, lambda _, routing: 11 * routing.lft.size),
        "guid2lid": TableFormat("guid2lid", _write_guid2lid, lambda fabric, _: 35 * fabric.endports),
    }
)
"""What may be written, by the name that :func:`write_tables` takes."""

ALWAYS = ("bundle", "lfts", "guid2lid")
AUTO_BYTES = 1 << 26
"""Any other file is written by itself only if it stays under this size."""


def write_tables(
    directory: str | Path,
    fabric: Fabric,
    routing: Routing,
    proof: Proven,
    *,
    formats: Collection[str] | None = None,
) -> tuple[str, ...]:
    """Write a folder of tables; it appears as a whole or not at all.

    Parameters
    ----------
    directory
        The folder; it may be missing, empty or one that was written by this function.
    fabric, routing, proof
        What is written.
    formats
        Names out of :data:`FORMATS`; the bundle is always among them.  None: those of :data:`ALWAYS`, and the others as
        far as each stays under :data:`AUTO_BYTES`.

    Returns
    -------
    The names of the formats that were written.

    Raises
    ------
    OptionError
        A format that does not exist.
    TableError
        The tables do not fit the fabric.
    InputError
        The folder holds something else.
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


def read_tables(path: str | Path, fabric: Fabric) -> Routing:
    """Read tables for a fabric: a bundle, a folder of ours, a folder of OpenSM's dumps, or one dump of LFTs.

    Where dumps say nothing of service levels, every path is taken to have SL 0; where they say nothing of SL2VL tables,
    SL n to ride VL n.  ``provenance.options["assumed"]`` says so.

    Raises
    ------
    ParseError, TableError
        A file is damaged, or the tables belong to another fabric.
    InputError, EnvironmentProblem
        Nothing there, or unreadable.
    """
    path = Path(path)
    if not path.exists():
        raise InputError("there is no such file or folder", path=path, remedy="name a bundle or a folder of tables")
    if path.is_dir():
        if (path / BUNDLE).exists():
            return bundle_routing(read_bundle(path / BUNDLE), fabric)
        if not (path / LFTS).exists():
            raise InputError(f"holds neither {BUNDLE} nor {LFTS}", path=path, remedy="OpenSM dumps with -D 0x43")
        return _from_dumps(path / LFTS, fabric)
    if _is_zip(path):
        return bundle_routing(read_bundle(path), fabric)
    return _from_dumps(path, fabric)


def _is_zip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"PK"
    except OSError:
        return False  # the reader of LFTs says why


def _from_dumps(lft_file: Path, fabric: Fabric) -> Routing:
    lft = lfts.read(lft_file, fabric)
    sl = np.zeros(lft.shape[1], np.uint8)
    assumed = ["SL 0", "SL n rides VL n"]
    made = Provenance("file", {"assumed": assumed, "file": str(lft_file)}, fabric.digest)
    return Routing(lft, sl, identity_sl2vl(15), 1, 1, made)
