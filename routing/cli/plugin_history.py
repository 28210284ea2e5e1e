"""List the proven tables that the plugin has stored, and return to one of them: ``ibnue plugin history``,
``rollback``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from routing.cli.output import json_option, print_json
from routing.errors import OptionError

_config_option = click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE",
    help="The plugin's configuration (TOML), which names the state file (default: the one that opensm.conf names).",
)  # fmt: skip
SIGNAL = "kill -HUP $(pidof opensm)"


def _folder(config: Path | None) -> Path:
    from osm_plugin.check_conf import named_configuration
    from osm_plugin.config import read_config
    from osm_plugin.historian import folder_of

    folder = folder_of(read_config(config or named_configuration(None)))
    if folder is None:
        raise OptionError("state_file is false, so there is no history", remedy="name a state file")
    return folder


@click.command(short_help="List the last proven tables.")
@_config_option
@json_option
def history(*, config: Path | None, as_json: bool) -> int:
    """List the proven tables that the plugin has stored, the oldest first.

    `*` marks tables that are pinned.  The plugin stores equal tables only once.
    """
    from osm_plugin.history import entries, pinned_name

    folder = _folder(config)
    pinned = pinned_name(folder)
    rows: list[dict[str, Any]] = [
        {
            "number": entry.number, "date": entry.date, "engine": entry.engine, "digest": entry.digest,
            "bytes": entry.path.stat().st_size, "pinned": entry.path.name == pinned, "file": os.fspath(entry.path),
        }
        for entry in entries(folder)
    ]  # fmt: skip
    if as_json:
        print_json("ibnue-plugin-history/1", {"folder": os.fspath(folder), "stored_tables": rows})
        return 0
    if not rows:
        click.echo(f"{folder} has no tables")
    for row in rows:
        mark = "*" if row["pinned"] else " "
        click.echo(
            f"{mark} {row['number']:6d}  {row['date']}  {row['engine']:10s} {row['digest']}  {row['bytes']:,} bytes"
        )
    return 0


@click.command(short_help="Go back to earlier tables.")
@click.argument("number", type=click.IntRange(1), required=False)
@click.option("--off", is_flag=True, help="Remove the pin, so that tables change again as faults require.")
@_config_option
@json_option
def rollback(*, number: int | None, off: bool, config: Path | None, as_json: bool) -> int:
    """Pin the tables with this NUMBER of `ibnue plugin history`.  From the next sweep on, the plugin publishes the
    pinned tables.

    The plugin first proves the pinned tables on the fabric of the next sweep, and repairs broken routes.  The tables
    stay pinned until `ibnue plugin rollback --off`.
    """
    from osm_plugin.history import pin, unpin

    if off == (number is not None):
        raise OptionError("give a number or --off", remedy="ibnue plugin history lists the numbers")
    folder = _folder(config)
    if number is None:
        removed = unpin(folder)
        if as_json:
            print_json("ibnue-plugin-rollback/1", {"pinned_number": None, "file": None, "unpinned": removed})
        else:
            click.echo(
                "the pin is removed, so that tables change again as faults require" if removed else "nothing was pinned"
            )
        return 0
    entry = pin(folder, number)
    if as_json:
        shown = {"pinned_number": entry.number, "file": os.fspath(entry.path), "unpinned": False}
        print_json("ibnue-plugin-rollback/1", shown)
    else:
        click.echo(
            f"tables {entry.number} of {entry.date} ({entry.engine}) are pinned, and used from the next sweep on;"
            f" to sweep now: {SIGNAL}"
        )
    return 0
