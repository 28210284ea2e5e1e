"""Check the plugin's configuration, show what runs, and remove the plugin: ``ibnue plugin check``, ``status``,
``remove``.
"""

from __future__ import annotations

import dataclasses
import json
import time
import warnings
from pathlib import Path
from typing import Any

import click

from routing.cli.output import echo_lines, json_option, print_json, print_rows
from routing.errors import EnvironmentProblem, InputError, InputWarning

_LIBDIR = click.option("--libdir", type=click.Path(path_type=Path), metavar="DIR",
                       help="Folder of libibnue.so (default: the system's library folder).")  # fmt: skip
_PREFIX = click.option("--prefix", type=click.Path(path_type=Path), metavar="DIR",
                       help="Where OpenSM is installed (default: /usr).")  # fmt: skip


@click.command(short_help="Check the plugin's configuration and opensm.conf.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--opensm-conf", type=click.Path(path_type=Path), metavar="FILE",
              help="OpenSM's configuration (default: /etc/opensm/opensm.conf if it exists).")  # fmt: skip
@_LIBDIR
@_PREFIX
@json_option
def check(
    *, file: Path | None, opensm_conf: Path | None, libdir: Path | None, prefix: Path | None, as_json: bool
) -> int:
    """Check a configuration of the plugin (TOML), the files that it names, opensm.conf, and the library.

    Without FILE, the configuration that opensm.conf names is checked.

    Exit status 0: nothing is wrong.  1: OpenSM or the plugin would reject something.  2: a file cannot be read.
    """
    from osm_plugin.check_conf import CREATE_CONF, OPENSM_CONF, Finding, check_configuration, named_configuration
    from osm_plugin.install import installed_library, opensm_version
    from osm_plugin.installed import inspect

    conf = opensm_conf or (OPENSM_CONF if OPENSM_CONF.is_file() else None)
    findings = check_configuration(file, conf, prefix or Path("/usr"))
    if conf is None:
        findings.append(Finding(False, f"{OPENSM_CONF} does not exist, so no opensm.conf is checked ({CREATE_CONF})"))
    checked = file or named_configuration(conf)
    if checked is None:
        remedy = "name a file, or write event_plugin_options --config FILE"
        findings.append(Finding(False, f"no configuration of the plugin is named, so its defaults apply ({remedy})"))
    try:
        there = inspect(installed_library(prefix, libdir), opensm_version(prefix))
        findings += [Finding(True, f"{there.library}: {problem}") for problem in there.problems]
    except EnvironmentProblem as problem:
        findings.append(Finding(True, str(problem)))
    wrong = any(finding.wrong for finding in findings)
    if as_json:
        shown = [dataclasses.asdict(finding) for finding in findings]
        found = {"configuration": checked, "opensm_conf": conf, "ok": not wrong, "findings": shown}
        print_json("ibnue-plugin-check/1", found)
    else:
        lines = [f"{'wrong' if finding.wrong else 'note '}  {finding.text}" for finding in findings]
        files = ", ".join([str(path) for path in (checked, conf) if path is not None] + ["the library"])
        echo_lines(*lines, *([] if wrong else [f"nothing is wrong in {files}"]))
    return int(wrong)


@click.command(short_help="Show the installed plugin, and which OpenSM processes run it.")
@_LIBDIR
@_PREFIX
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE",
              help="The plugin's configuration (TOML) (default: the one that opensm.conf names).")  # fmt: skip
@json_option
def status(*, libdir: Path | None, prefix: Path | None, config: Path | None, as_json: bool) -> int:
    """Show the library, the OpenSM processes that have loaded it, and the age of the state file and the status file.

    Exit status 0: the library fits the installed OpenSM.  1: it does not.  2: there is no library.
    """
    from osm_plugin.check_conf import named_configuration
    from osm_plugin.config import PluginConfig, read_config
    from osm_plugin.install import LIBRARY, installed_library, opensm_version
    from osm_plugin.installed import inspect, running

    try:
        settings = read_config(config or named_configuration(None))
    except InputError as problem:
        # A user may call this command to find out why the plugin fails.  So an error in the configuration that
        # opensm.conf names does not end the command.  Only a configuration named on the command line must be valid.
        if config is not None:
            raise
        warnings.warn(f"{problem}; the files at the default paths are shown", InputWarning, stacklevel=2)
        settings = PluginConfig()
    processes = running(LIBRARY)
    try:
        there = inspect(installed_library(prefix, libdir), opensm_version(prefix))
    except EnvironmentProblem as problem:
        users = "".join(f"; OpenSM {process.pid} runs {process.library}" for process in processes)
        raise EnvironmentProblem(f"{problem.problem}{users}", path=problem.path, remedy=problem.remedy) from None
    files = {"state file": settings.state_path, "status file": settings.status_path}
    ages = {name: _age(path) for name, path in files.items()}
    last = _read(settings.status_path)
    if as_json:
        found = {
            "library": there.library, "opensm_version": there.build.opensm, "package": there.build.package,
            "protocol": there.build.protocol, "layout": there.build.layout, "python": there.build.python,
            "problems": there.problems, "running": [dataclasses.asdict(process) for process in processes],
            "age_seconds": {name.replace(" ", "_"): age for name, age in ages.items()}, "status": last,
        }  # fmt: skip
        print_json("ibnue-plugin-status/1", found)
        return int(bool(there.problems))
    rows = [("library", str(there.library)), ("built for", f"{there.build.opensm}, layout {there.build.layout}")]
    rows += [("wrong", problem) for problem in there.problems]
    for process in processes:
        old = ", whose file has changed since: restart OpenSM" if process.outdated else ""
        workers = ", ".join(map(str, process.workers)) or "none"
        rows.append(("running", f"OpenSM {process.pid} with {process.library}{old}; worker {workers}"))
    if not processes:
        rows.append(("running", "no OpenSM has loaded it, as far as processes can be inspected"))
    if (routes := _in_force(last)) is not None:
        rows.append(("in force", routes))
    rows += [(name, _describe(files[name], age)) for name, age in ages.items()]
    print_rows(rows)
    return int(bool(there.problems))


@click.command(short_help="Remove libibnue.so, and print the lines to take out of opensm.conf.")
@_LIBDIR
@_PREFIX
@click.option("--force", is_flag=True, help="Remove the library even if a running OpenSM has loaded it.")
@json_option
def remove(*, libdir: Path | None, prefix: Path | None, force: bool, as_json: bool) -> int:
    """Remove libibnue.so, and print the lines to remove from opensm.conf.

    State files and configurations stay.  Switches keep their tables until OpenSM starts again with another engine.  A
    running OpenSM keeps the plugin until it ends.
    """
    from osm_plugin.install import installed_library
    from osm_plugin.installed import remove as take_away

    library = installed_library(prefix, libdir)
    take_away(library, force=force)
    lines = ("event_plugin_name ibnue", "event_plugin_options --config ...", "routing_engine ibnue-...")
    if as_json:
        print_json("ibnue-plugin-remove/1", {"library": library, "conf_lines": lines})
        return 0
    echo_lines(f"{library} is removed. Take these lines out of opensm.conf, and name another routing_engine:", "")
    echo_lines(*(f"    {line}" for line in lines))
    echo_lines(
        "", "A running OpenSM keeps the plugin until it ends. The next OpenSM replaces the tables in the switches."
    )
    return 0


def _describe(path: Path | None, age: float | None) -> str:
    """Describe a file of the plugin by its path and its age in seconds.

    If ``path`` is None, the configuration turns the file off.  If only ``age`` is None, the file does not exist.
    """
    if path is None:
        return "turned off"
    return f"{path} does not exist" if age is None else f"{path}, {age:.0f} s old"


def _in_force(status: Any) -> str | None:
    """Describe the engine whose tables OpenSM uses.  Return None if no engine routes, or if OpenSM has ended.

    ``status`` is the content of the status file; None: the file is missing or cannot be read.
    """
    from osm_plugin.installed import is_opensm
    from osm_plugin.status import SCHEMA

    if not isinstance(status, dict) or status.get("schema") != SCHEMA:
        return None
    opensm, engine = status["opensm"], status["in_force"]["engine"]
    if opensm["state"] == "ended" or not is_opensm(opensm["pid"]) or engine == "none":
        return None
    tables, check = status["tables"], status["shadow"]
    if tables is not None:
        words = {True: "proven free of credit loops", None: "whose worker has not reported a proof yet"}
        return f"{engine}, {words.get(tables['certified'], 'not proven')}"
    verdicts = {"loop": "its tables have a credit loop", "no loop": "its tables have no credit loop"}
    verdict = "" if check is None else verdicts.get(check["verdict"], "")
    return f"{engine}, an engine of OpenSM; {verdict or 'its tables are not proven'}"


def _age(path: Path | None) -> float | None:
    try:
        return None if path is None else max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return None


def _read(path: Path | None) -> Any:
    try:
        return None if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
