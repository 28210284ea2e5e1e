"""Build and manage the plugin for the installed OpenSM: ``ibnue plugin``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from routing.cli import engine_options
from routing.cli.output import echo_lines, input_warnings, json_option, print_json, spinner
from routing.cli.plugin_history import history, rollback
from routing.cli.plugin_state import check, remove, status
from routing.engines import ENGINES, IN_OPENSM

if TYPE_CHECKING:
    from osm_plugin.install import InstalledPlugin

_SHOWN = 3
"""Maximum number of warnings that are printed; further warnings are only counted."""


@click.group()
def plugin() -> None:
    """Build and manage the plugin for the installed OpenSM."""


plugin.add_command(history)
plugin.add_command(rollback)
plugin.add_command(check)
plugin.add_command(status)
plugin.add_command(remove)


@plugin.command(short_help="Build libibnue.so, and print the lines for opensm.conf.")
@engine_options.engine_option("The engine to name in the printed line for opensm.conf.", IN_OPENSM)
@click.option("--libdir", type=click.Path(path_type=Path), metavar="DIR",
              help="Folder for libibnue.so (default: the system's library folder, which needs root).")  # fmt: skip
@click.option(
    "--prefix", type=click.Path(path_type=Path), metavar="DIR", help="Where OpenSM is installed (default: /usr)."
)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE",
              help="The plugin's configuration (TOML) to name in opensm.conf.")  # fmt: skip
@click.option("--allow-writable", is_flag=True,
              help="Install even if users other than root may write files that root's OpenSM will run.")  # fmt: skip
@json_option
def install(
    *,
    engine_name: str,
    libdir: Path | None,
    prefix: Path | None,
    config: Path | None,
    allow_writable: bool,
    as_json: bool,
) -> int:
    """Build libibnue.so for the OpenSM that is installed, and print the lines for opensm.conf.

    This command needs the Debian packages opensm, libopensm-dev, libibumad-dev, gcc and the headers of this Python.  If
    the library belongs to a Debian package, the command builds nothing, and only prints the lines.
    """
    from osm_plugin.bundle_engine import plugin_engines
    from osm_plugin.install import install as build

    if engine_name not in plugin_engines():
        _ = ENGINES[engine_name]
    with spinner("building"):
        built = build(prefix, libdir=libdir, config=config, engine=engine_name, allow_writable=allow_writable)
    absent = f"There is no {config}: create it before OpenSM starts. In an empty file, each setting has its default."
    missing = [] if config is None or config.exists() else [absent]
    if as_json:
        input_warnings().extend([*(f"{line}, and root's OpenSM would run it" for line in built.warnings), *missing])
        shown = {"library": built.library, "opensm_version": built.opensm_version, "conf_lines": built.conf_lines}
        more = {"environment": built.environment, "package": built.package}
        print_json("ibnue-plugin-install/1", {**shown, **more})
    else:
        print_installed(built, engine_name, missing)
    return 0


def print_installed(built: InstalledPlugin, engine_name: str, missing: Sequence[str]) -> None:
    """Print the lines for opensm.conf, and what else an administrator has to know or to do.

    ``missing`` has a line for each file that is needed but does not exist yet.
    """
    from osm_plugin.check_conf import CREATE_CONF, OPENSM_CONF
    from osm_plugin.install import second_engine
    from osm_plugin.installed import running

    if built.package is not None:
        echo_lines(f"{built.library} belongs to the Debian package {built.package}, so nothing is built.")
    click.echo(f"{built.library} is built for {built.opensm_version}. Write into opensm.conf:\n")
    for line in built.conf_lines:
        click.echo(f"    {line}")
    if not OPENSM_CONF.is_file():
        echo_lines("", f"There is no {OPENSM_CONF}: {CREATE_CONF}.")
    if missing:
        echo_lines("", *missing)
    second = second_engine(engine_name)
    echo_lines(
        "",
        f"If ibnue-{engine_name} fails, OpenSM tries ibnue-{second}, which routes any fabric with one VL.",
        "If both fail, the plugin publishes the entries of the last proven tables that are still valid.",
        "no_fallback: OpenSM does not try its own minhop, whose tables may have credit loops.",
    )
    for process in running(built.library.name):
        if process.outdated and Path(process.library) == built.library:
            echo_lines("", f"OpenSM {process.pid} still runs the previous library. Restart OpenSM.")
    for line in built.warnings[:_SHOWN]:
        echo_lines(f"warning: {line}, and root's OpenSM would run it", err=True)
    if len(built.warnings) > _SHOWN:
        echo_lines(f"warning: and {len(built.warnings) - _SHOWN} more", err=True)
    for name, value in built.environment.items():
        click.echo(f"\nand start OpenSM with {name}={value} in its environment.")
