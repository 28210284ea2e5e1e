"""Read and write fabric files.  A reader recognises the format by the content, and a writer by the suffix."""

from __future__ import annotations

import dataclasses
import gc
import gzip
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from routing.errors import InputWarning, OptionError, ParseError
from routing.fabric import Fabric
from routing.formats.atomic import atomic_write
from routing.formats.fabric_dot import dot_text, is_dot, parse_dot
from routing.formats.fabric_graphml import graphml_text, parse_graphml
from routing.formats.fabric_json import json_text, parse_json
from routing.formats.guid_files import apply_guid2lid, apply_node_names, read_guid2lid, read_node_name_map
from routing.formats.ibdiagnet_csv import is_ibdiagnet_csv, parse_ibdiagnet_csv
from routing.formats.ibdm_topo import is_ibdm_topo, parse_ibdm_topo
from routing.formats.iblinkinfo import is_iblinkinfo, parse_iblinkinfo
from routing.formats.ibnetdiscover import is_ibnetdiscover, parse_ibnetdiscover
from routing.formats.ibnetdiscover_ports import is_ports_report, parse_ports_report
from routing.formats.ibsim_net import is_net, parse_net
from routing.formats.ibsim_net_write import net_text
from routing.formats.known_kinds import kind_of
from routing.formats.ndt import is_ndt, parse_ndt
from routing.formats.snapshot import NAMES, fabric_file, read_manifest
from routing.formats.subnet_lst import is_subnet_lst, parse_subnet_lst
from routing.formats.subnet_lst_write import lst_text
from routing.formats.text import STANDARD_INPUT, read_text

__all__ = ["read_fabric", "with_names_of_folder", "write_fabric", "write_net"]

KNOWN = (
    "ibsim net files, ibnetdiscover, iblinkinfo, ibdiagnet2.db_csv, opensm-subnet.lst, .topo, cabling plans (CSV), JSON"
    " and GraphML of ibnue, and DOT"
)
"""Names of the known formats of fabrics, for error messages."""

_READERS: tuple[tuple[Callable[[str], object], Callable[..., Fabric]], ...] = (
    (re.compile(r"\s*\{(?! \S+ Ports:)").match, parse_json),
    (re.compile(r"\s*<").match, parse_graphml),
    (is_dot, parse_dot),
    (is_subnet_lst, parse_subnet_lst),
    (is_ibnetdiscover, parse_ibnetdiscover),
    (is_ports_report, parse_ports_report),
    (is_iblinkinfo, parse_iblinkinfo),
    (is_ibdiagnet_csv, parse_ibdiagnet_csv),
    (is_ndt, parse_ndt),
    (is_ibdm_topo, parse_ibdm_topo),
    (is_net, parse_net),
)
"""For each format: a function that returns whether a text has this format, and the reader of the format.  The formats
are tried in this order.
"""

_WRITERS = {".net": net_text, ".json": json_text, ".graphml": graphml_text, ".dot": dot_text, ".lst": lst_text}


def read_fabric(path: str | Path, *, lmc: int = 0, guid2lid: str | Path | None = None) -> Fabric:
    """Read a fabric file in any known format.

    Parameters
    ----------
    path
        The file, plain or compressed by gzip; ``-`` is standard input.  The reader recognises the format by the
        content: ibsim net file, output of ``ibnetdiscover`` (also with ``-p``) or ``iblinkinfo``,
        ``opensm-subnet.lst``, ``ibdiagnet2.db_csv``, topology file of IBDM, cabling plan as CSV, ibnue's JSON or
        GraphML, or a graph in DOT.  ``path`` may also be a folder: a snapshot of ``ibnue collect``, or a folder with
        dumps of OpenSM or ibdiagnet.  The function then reads the fabric file in the folder, and applies the names in
        the folder's file ``node-name-map`` if this file exists.
    lmc
        LMC (0 to 7) of the end ports for which the file states no LID.  For formats that have base LIDs only, such as
        ``opensm-subnet.lst``, ``lmc`` is the LMC of all end ports.
    guid2lid
        OpenSM's LID file, or None.  The LIDs in this file take precedence over the LIDs in the fabric file.

    Raises
    ------
    InputError
        The file is invalid.  The message names file, line and remedy.
    EnvironmentProblem
        The file cannot be read.
    """
    if not 0 <= lmc <= 7:
        raise OptionError(f"LMC {lmc} is out of range", remedy="LMC is 0 to 7")
    if str(path) != STANDARD_INPUT and Path(path).is_dir():
        return _from_folder(Path(path), lmc, guid2lid)
    shown = "standard input" if str(path) == STANDARD_INPUT else path
    with _without_collector():
        fabric = _parse(read_text(path), shown, lmc)
    return fabric if guid2lid is None else apply_guid2lid(fabric, read_guid2lid(guid2lid), lmc=lmc)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the garbage collector while a file is read.

    A reader allocates some million small objects, and the collector would scan all of them many times.  None of the
    objects is in a reference cycle, so the collector would find nothing to free.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _from_folder(folder: Path, lmc: int, guid2lid: str | Path | None) -> Fabric:
    """Read the fabric file of a folder.  The fabric has the name of the folder."""
    fabric = read_fabric(fabric_file(folder), lmc=lmc, guid2lid=guid2lid)
    fabric = with_names_of_folder(fabric, folder)
    manifest = read_manifest(folder)
    reason = None if manifest is None else manifest.reason("topology")
    if reason is not None:
        warnings.warn(f"{folder}: the topology may be incomplete: {reason}", InputWarning, stacklevel=2)
    return dataclasses.replace(fabric, name=folder.resolve().name)


def with_names_of_folder(fabric: Fabric, folder: Path) -> Fabric:
    """Return a fabric with the names in the file ``node-name-map`` of a folder.  Without this file, return the fabric
    unchanged.

    Raises
    ------
    ParseError, EnvironmentProblem
        The node name map is invalid or cannot be read.
    """
    path = folder / NAMES
    return apply_node_names(fabric, read_node_name_map(path)) if path.is_file() else fabric


def _parse(text: str, path: str | Path, lmc: int) -> Fabric:
    if "src/query_smp.c:" in text:
        problem = f"{path}: requests of the discovery have no answer; the file may lack devices and links"
        warnings.warn(problem, InputWarning, stacklevel=2)
    for is_format, parse in _READERS:
        if is_format(text):
            return parse(text, path, lmc=lmc)
    kind = kind_of(text)
    if kind is not None and kind.as_fabric is not None:
        raise ParseError(f"this is {kind.name}", path=path, remedy=kind.as_fabric)
    raise ParseError(
        "not a fabric file of a known format" if text.strip() else "an empty file", path=path, remedy=f"known: {KNOWN}"
    )


def write_fabric(fabric: Fabric, path: str | Path) -> None:
    """Write a fabric to a file.  The suffix of ``path`` selects the format: ``.net``, ``.json``, ``.graphml``, ``.dot``
    or ``.lst``.  If ``.gz`` follows the suffix, the file is compressed.

    Raises
    ------
    OptionError
        The suffix is unknown.
    FabricError
        The format cannot represent the fabric.  For example, a net file can have only the link speeds of InfiniBand.
    EnvironmentProblem
        The file cannot be written.
    """
    suffixes = Path(path).suffixes
    packed = suffixes[-1:] == [".gz"]
    suffix = "".join(suffixes[-2:-1] if packed else suffixes[-1:])
    if suffix not in _WRITERS:
        raise OptionError(
            f"{path}: no fabric format has the suffix {suffix!r}",
            remedy=f"use {', '.join(_WRITERS)}, or one of them + .gz",
        )
    _write(_WRITERS[suffix](fabric), path, packed=packed)


def write_net(fabric: Fabric, path: str | Path, *, port_guids: bool = True) -> None:
    """Write a fabric as an ibsim net file, whatever the suffix of ``path`` is.  If ``path`` ends with ``.gz``, the file
    is compressed.

    :func:`routing.formats.ibsim_net_write.net_text` describes ``port_guids`` and the limits of ibsim.

    Raises
    ------
    FabricError
        A link has a width or speed that InfiniBand does not have.
    EnvironmentProblem
        The file cannot be written.
    """
    _write(net_text(fabric, port_guids=port_guids), path, packed=Path(path).suffix == ".gz")


def _write(text: str, path: str | Path, *, packed: bool) -> None:
    data = text.encode("utf-8", "backslashreplace")
    with atomic_write(path) as file:
        file.write(gzip.compress(data, mtime=0) if packed else data)
