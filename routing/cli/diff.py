"""``ibnue diff``: report the differences between two sets of tables."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import fabric_argument
from routing.cli.command import FINDING
from routing.cli.output import fabric_object, json_option, print_json, print_rows, print_table, spinner
from routing.errors import OptionError

if TYPE_CHECKING:
    from routing.difference import Difference, Tables

NAMED_SWITCHES = 10


@click.command()
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--fabric", metavar="FABRIC", help="Fabric of the tables A, and of B unless --fabric-b is given.")
@click.option("--fabric-b", metavar="FABRIC", help="Fabric of the tables B, if it differs from --fabric.")
@fabric_argument.device_options
@json_option
def diff(*, a: Path, b: Path, fabric: str | None, fabric_b: str | None, as_json: bool) -> int:
    """Report the differences between the tables A and B: entries and service levels.  With the fabric, also paths and
    load.

    \b
    ibnue diff before after
    ibnue diff tables dump_fts.txt --fabric ibnetdiscover.txt

    A and B are bundles, folders that ibnue wrote, or snapshots; with --fabric also dump files.  Switches and LIDs are
    matched by GUID.  Exit status 1 if anything differs.
    """
    from routing.difference import compare

    if fabric is None and fabric_b is not None:
        raise OptionError("--fabric-b needs --fabric", remedy="name the fabric of A too")
    flags = {"lmc": "--lmc", "guid2lid": "--guid2lid", "node_name_map": "--node-name-map", "classes": "--class"}
    for name, flag in flags.items():
        if fabric is None and name in fabric_argument.given():
            raise OptionError(f"{flag} has no effect without --fabric", remedy="add --fabric FABRIC, or leave it out")
    with spinner("comparing"):
        before = load(a, fabric)
        after = load(b, fabric_b or fabric)
        found = compare(before, after)
    if as_json:
        fabrics = (fabric_object_of(before, fabric), fabric_object_of(after, fabric_b or fabric))
        shown = {"fabric": fabrics[0], "fabric_b": fabrics[1], **as_object(found)}
        print_json("ibnue-diff/1", shown)
    else:
        print_rows(facts(found))
        if found.changed_by_switch:
            rows = [(name, str(count)) for name, count in found.changed_by_switch[:NAMED_SWITCHES]]
            print_table(["most changed switches", "entries"], rows)
    return 0 if found.same else FINDING


def load(path: Path, fabric: str | None) -> Tables:
    """Return the tables at a path, with their fabric if ``fabric`` names it or the folder at the path contains it.

    Raises
    ------
    InputError
        The path has no bundle, and no fabric is known.  OpenSM's dumps do not name the owners of LIDs.
    """
    from routing.difference import tables_of_bundle, tables_of_fabric
    from routing.formats.bundle import read_bundle
    from routing.formats.table_files import BUNDLE, read_tables

    if fabric is None and has_fabric(path):
        fabric = str(path)
    if fabric is not None:
        subnet = fabric_argument.read(fabric)
        return tables_of_fabric(subnet, read_tables(path, subnet))
    bundle = path / BUNDLE if path.is_dir() else path
    if path.is_dir() and not bundle.exists():
        raise OptionError(f"{path} has no bundle", remedy="name the fabric with --fabric")
    if bundle.is_file() and not zipfile.is_zipfile(bundle):
        raise OptionError(f"{bundle}: is not a bundle", remedy="name a bundle; for dumps of OpenSM also --fabric")
    return tables_of_bundle(read_bundle(bundle))


def fabric_object_of(tables: Tables, source: str | None) -> dict[str, Any] | None:
    """Return the fabric of tables as an object for ``--json``; None if no fabric is known."""
    return None if tables.fabric is None else fabric_object(tables.fabric, source)


def as_object(found: Difference) -> dict[str, Any]:
    """Return the differences as an object for ``--json``."""
    load = (None, None) if found.loads is None else found.loads.most
    rate = (None, None) if found.loads is None else found.loads.all_to_all
    return {
        "same": found.same,
        "unknown": found.unknown,
        "entries": found.entries,
        "entries_changed": found.entries_changed,
        "entries_changed_by_switch": [
            {"switch": switch, "entries_changed": count} for switch, count in found.changed_by_switch
        ],
        "blocks": found.blocks,
        "blocks_changed": found.blocks_changed,
        "sls_changed": found.sls_changed,
        "sl2vl_differ": found.sl2vl_changed,
        "vls_before": found.vls[0],
        "vls_after": found.vls[1],
        "switches_gone": found.switches_gone,
        "switches_new": found.switches_new,
        "lids_gone": found.owners_gone,
        "lids_new": found.owners_new,
        "lids_moved": found.lids_moved,
        "paths": found.paths,
        "paths_changed": found.paths_changed,
        "load_max_before": load[0],
        "load_max_after": load[1],
        "all_to_all_before": rate[0],
        "all_to_all_after": rate[1],
    }


def has_fabric(path: Path) -> bool:
    """Return whether a path is a folder that contains a fabric file and no bundle, such as a snapshot of ``ibnue
    collect``.
    """
    from routing.formats.snapshot import FABRIC_FILES, first_of
    from routing.formats.table_files import BUNDLE

    return path.is_dir() and not (path / BUNDLE).exists() and first_of(path, FABRIC_FILES) is not None


def facts(found: Difference) -> Iterator[tuple[str, str]]:
    """Yield one row for each kind of difference between tables: its name, and the difference as text."""
    yield "entries", of(found.entries_changed, found.entries)
    yield "LFT blocks", f"{of(found.blocks_changed, found.blocks)}; one SMP each"
    sls = (
        "cannot be compared: only one of the two sets of SLs depends on the source LID"
        if found.sls_changed is None
        else f"{found.sls_changed} differ"
    )
    yield "SLs", "unknown, because the files do not state them" if "SL" in found.unknown else sls
    sl2vl = "differ" if found.sl2vl_changed else "same"
    yield "SL2VL", "unknown, because the files do not state them" if "SL2VL" in found.unknown else sl2vl
    yield "VLs", "unknown" if found.unknown else arrow(*found.vls)
    for name, switches in (("switches gone", found.switches_gone), ("switches new", found.switches_new)):
        if switches:
            yield name, ", ".join(switches[:NAMED_SWITCHES]) + (", ..." if len(switches) > NAMED_SWITCHES else "")
    if found.owners_gone or found.owners_new or found.lids_moved:
        yield "LIDs", f"{found.owners_gone} gone, {found.owners_new} new, {found.lids_moved} moved"
    if found.paths is not None and found.paths_changed is not None:
        yield "paths", of(found.paths_changed, found.paths)
    if found.loads is not None:
        yield "highest load", arrow(*found.loads.most)
        yield "all-to-all", arrow(*found.loads.all_to_all)


def of(changed: int, whole: int) -> str:
    """Format a number of changed items with the total number of items and the percentage."""
    return f"{changed} of {whole} differ ({changed / max(whole, 1):.1%})"


def arrow(before: float, after: float) -> str:
    """Format a value before and after a change, as "1.2 -> 3.4", or as one value if there is no change."""
    first, second = (f"{value:.4g}" if math.isfinite(value) else "no limit" for value in (before, after))
    return first if first == second else f"{first} -> {second}"
