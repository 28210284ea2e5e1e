"""``ibnue collect``: collect a snapshot of a live fabric, or of a folder of dumps."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from routing.cli.output import echo_lines, fabric_object, json_option, print_json, print_rows, progress_bar
from routing.errors import InputWarning, OptionError

if TYPE_CHECKING:
    from routing.formats.snapshot import Manifest


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="SNAPSHOT",
              help="Folder to write.  It may be new, empty, or an earlier snapshot.")  # fmt: skip
@click.option("--from", "source", type=click.Path(path_type=Path), metavar="DIR",
              help="Read the files of OpenSM or ibdiagnet in this folder instead of a live fabric.")  # fmt: skip
@click.option("-C", "--ca", metavar="CA", help="Send from this CA, such as mlx5_0.")
@click.option("-P", "--port", type=click.IntRange(1, 254), metavar="PORT", help="Send from this port of the CA.")
@click.option("--without", type=click.Choice(["path-sls", "vl-arbitration", "counters"]), multiple=True,
              help="Leave out a part; repeatable.")  # fmt: skip
@click.option("--paths", type=click.IntRange(0), metavar="N", default=4_000_000, show_default=True,
              help="Ask the SA for the SLs of at most N paths; if there are more, collect no path SLs.")  # fmt: skip
@click.option("--timeout", type=click.IntRange(10, 60_000), default=1000, show_default=True, metavar="MS",
              help="Send a query again after this time; after three attempts it counts as unanswered.")  # fmt: skip
@click.option("--node-name-map", "names", type=click.Path(path_type=Path), metavar="FILE",
              help="Keep these names of devices by GUID in the snapshot; every command then prints them.")  # fmt: skip
@json_option
def collect(
    *,
    output: Path,
    source: Path | None,
    ca: str | None,
    port: int | None,
    without: tuple[str, ...],
    paths: int,
    timeout: int,
    names: Path | None,
    as_json: bool,
) -> int:
    """Collect what a proof needs from a live fabric: topology, LFTs, SL2VL, VL arbitration, path SLs, counters.

    \b
    ibnue collect -o snapshot && ibnue check snapshot
    ibnue collect --from /var/log -o snapshot

    The command only reads: no query changes the fabric.  Run it as root on a host with an active InfiniBand port.
    Every command takes the folder SNAPSHOT as FABRIC, and as TABLES; `ibnue check SNAPSHOT` uses it for both.  The
    report names the parts that could not be collected; these parts stay unknown.
    """
    from routing.collect.files import collect_files
    from routing.collect.live import Request, collect_live
    from routing.formats.atomic import atomic_directory, make_parents, write_text_atomically
    from routing.formats.fabric_files import read_fabric
    from routing.formats.guid_files import read_node_name_map
    from routing.formats.snapshot import FILES, MANIFEST, NAMES, manifest_text
    from routing.formats.text import read_text

    if source is not None and (ca or port or without):
        raise OptionError("--from reads only files", remedy="leave out -C, -P and --without")
    if names is not None:
        read_node_name_map(names)
    make_parents(output)
    with atomic_directory(output, marker=MANIFEST, known=FILES) as folder:
        if names is not None:
            write_text_atomically(folder / NAMES, read_text(names))
        if source is None:
            parts = [{"path-sls": "SL", "vl-arbitration": "VL arbitration"}.get(name, name) for name in without]
            manifest = collect_live(folder, Request(ca, port or 0, parts, paths, timeout), progress_bar)
        else:
            manifest = collect_files(source, folder)
        write_text_atomically(folder / MANIFEST, manifest_text(manifest))
    if as_json:
        with warnings.catch_warnings():
            # Reading the snapshot repeats warnings that were printed when ibnue collected the files.  So warnings are
            # ignored here.
            warnings.simplefilter("ignore", InputWarning)
            subnet = fabric_object(read_fabric(output), str(output))
        print_json("ibnue-collect/1", {"fabric": subnet, "snapshot": str(output), **manifest.as_object()})
    else:
        print_manifest(output, manifest)
    return 0


def print_manifest(output: Path, manifest: Manifest) -> None:
    """Print the parts of a snapshot, and the reasons why parts are unknown."""
    print_rows([
        ("snapshot", str(output)),
        *((name, f"{part.amount} ({part.file})" if part.file else "NOT collected")
          for name, part in manifest.parts.items()),
    ])  # fmt: skip
    for name, part in manifest.parts.items():
        if part.reason:
            echo_lines(f"unknown: {name}: {part.reason}")
    for remark in manifest.remarks:
        echo_lines(f"note: {remark}")
