"""Check the plugin's configuration together with opensm.conf, before OpenSM reads these files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osm_plugin.bundle_engine import plugin_engines
from osm_plugin.config import ENGINE_OPTIONS, PluginConfig, config_path, read_config
from osm_plugin.opensm_conf import OpensmConf, take_over
from osm_plugin.options import port_classes
from routing.engines import ENGINES
from routing.engines.base import offers_of
from routing.errors import IbnueError, InputError, OptionError
from routing.formats.bundle import read_bundle
from routing.formats.guid_files import read_guid_list
from routing.formats.text import read_text
from routing.policy import read_policy

PLUGIN = "ibnue"
OPENSM_CONF = Path("/etc/opensm/opensm.conf")
"""The file that OpenSM reads if no other one is named."""
CREATE_CONF = f"'opensm -c {OPENSM_CONF}' writes one with OpenSM's defaults"
"""How to get :data:`OPENSM_CONF`, which Debian does not install."""
UNSET = "(null)"
"""Value of options without a value in the opensm.conf that OpenSM writes."""
BUILTIN = ("minhop", "updn", "dnup", "file", "ftree", "lash", "dor", "torus-2QoS", "nue", "dfsssp", "sssp")
_READERS: dict[str, Callable[[Path], Any]] = {
    "root_guid_file": read_guid_list,
    "guid_file": read_guid_list,
    "policies": read_policy,
    "bundle": read_bundle,
}


@dataclass(frozen=True)
class Finding:
    """One line in the result of a check.

    Attributes
    ----------
    wrong
        Whether the line reports an error: OpenSM or the plugin would reject the option or ignore it.  Otherwise the
        line is a hint.
    text
        The line, which names the file and a remedy.
    """

    wrong: bool
    text: str


def check_configuration(path: Path | None, opensm_conf: Path | None) -> list[Finding]:
    """Check a configuration file of the plugin and an opensm.conf together.

    Without a configuration file (None) the defaults apply.  Without an opensm.conf (None) only the configuration is
    checked.

    Raises
    ------
    EnvironmentProblem
        One of the two files cannot be read.
    """
    findings: list[Finding] = []
    config = PluginConfig()
    if path is not None:
        read_text(path)
        try:
            config = read_config(path)
        except InputError as problem:
            return [Finding(True, str(problem))]
        findings += _named_files(config)
        findings += _engine_values(config, path)
        findings += _class_values(config, path)
    if opensm_conf is not None:
        findings += _opensm_conf(config, path, opensm_conf)
    return findings


def _named_files(config: PluginConfig) -> Iterator[Finding]:
    for keys, path in config.files.items():
        try:
            _READERS[keys[-1]](path)
        except IbnueError as problem:  # noqa: PERF203  (each file has its own error)
            yield Finding(True, f"{'.'.join(filter(None, keys))}: {problem}")


def _engine_values(config: PluginConfig, path: Path) -> Iterator[Finding]:
    for name, table in config.engine.items():
        where = f"{path}: [engine{'.' if name else ''}{name}]"
        if name and name not in ENGINES:
            yield Finding(True, f"{where}: unknown engine (known are {', '.join(ENGINES)})")
        try:
            for key, option in ENGINE_OPTIONS.items():
                option.convert(table.get(key))
        except OptionError as problem:
            yield Finding(True, f"{where}: {problem}")
        if "effort" in table and "budget" in table:
            yield Finding(True, f"{where}: effort and budget both set the effort (leave one out)")


def _class_values(config: PluginConfig, path: Path) -> Iterator[Finding]:
    try:
        port_classes(config)
    except OptionError as problem:
        yield Finding(True, f"{path}: [classes]: {problem}")
    except IbnueError:
        return  # The error is that a file of GUIDs cannot be read, which another check reports.


def _opensm_conf(config: PluginConfig, path: Path | None, conf_path: Path) -> Iterator[Finding]:
    text = read_text(conf_path)
    lines = [line.strip().partition(" ") for line in text.splitlines() if line.strip() and line.strip()[0] != "#"]
    answer = {key: value.strip() for key, _, value in lines if value.strip() != UNSET}
    if PLUGIN not in answer.get("event_plugin_name", "").replace(",", " ").split():
        yield Finding(True, f"{conf_path}: event_plugin_name does not name {PLUGIN} (event_plugin_name {PLUGIN})")
    yield from _options_line(answer.get("event_plugin_options", ""), path, conf_path)
    names = answer.get("routing_engine", "").replace(",", " ").split()
    yield from _engine_names(names, config, conf_path)
    yield from _qos(answer, names, config, conf_path)
    if answer.get("use_ucast_cache", "").upper() == "TRUE":
        yield Finding(
            False, f"{conf_path}: use_ucast_cache TRUE: OpenSM does not call the engine when a leaf switch or CA is "
            "lost or comes back, so the tables are then not proven (set use_ucast_cache FALSE)"
        )  # fmt: skip
    for name in dict.fromkeys(name.removeprefix(f"{PLUGIN}-") for name in names if name.startswith(f"{PLUGIN}-")):
        own = config.options_of(name)
        _, verdicts = take_over(OpensmConf.of(text), name, own)
        yield from (Finding(False, f"{conf_path}, {PLUGIN}-{name}: {v}") for v in verdicts if not v.honoured)


def _options_line(options: str, path: Path | None, conf_path: Path) -> Iterator[Finding]:
    try:
        named = config_path(options)
    except InputError as problem:
        yield Finding(True, f"{conf_path}: {problem}")
        return
    if path is not None and named is None:
        yield Finding(True, f"{conf_path}: {path} is not named (event_plugin_options --config {path.absolute()})")
    elif path is not None and named is not None and named.resolve() != path.resolve():
        yield Finding(True, f"{conf_path}: event_plugin_options names {named}, not {path}")


def _engine_names(names: list[str], config: PluginConfig, conf_path: Path) -> Iterator[Finding]:
    ours = {f"{PLUGIN}-{name}" for name in plugin_engines()}
    if not ours & set(names):
        yield Finding(True, f"{conf_path}: routing_engine names no engine of the plugin (routing_engine {PLUGIN}-updn)")
    for name in names:
        if name not in ours and name not in BUILTIN and name != "no_fallback":
            yield Finding(True, f"{conf_path}: unknown engine {name!r} (known are {', '.join(sorted(ours))})")
    if f"{PLUGIN}-bundle" in names and config.bundle is None:
        yield Finding(True, f'{conf_path}: {PLUGIN}-bundle needs a bundle (set bundle = "FILE" in the configuration)')
    if "no_fallback" not in names:
        yield Finding(
            False, f"{conf_path}: without no_fallback OpenSM uses its own minhop when all engines fail; its tables "
            "may have credit loops"
        )  # fmt: skip


def _qos(answer: dict[str, str], names: list[str], config: PluginConfig, conf_path: Path) -> Iterator[Finding]:
    if answer.get("qos", "").upper() == "TRUE":
        return
    for name in (name.removeprefix(f"{PLUGIN}-") for name in names if name.startswith(f"{PLUGIN}-")):
        vls = config.options_of(name).get("vls", "auto")
        if isinstance(vls, int) and vls > 1:
            only = "but without QoS OpenSM sets up only one (qos TRUE, or vls = 1)"
            text = f"{PLUGIN}-{name} is configured with {vls} VLs, {only}"
            yield Finding(True, f"{conf_path}: {text}")
        elif offers_of(ENGINES.get(name)).needs_vls:
            text = f"{PLUGIN}-{name} usually needs more than one VL, but without QoS OpenSM sets up only one (qos TRUE)"
            yield Finding(False, f"{conf_path}: {text}")


def as_table(findings: list[Finding]) -> list[dict[str, Any]]:
    """Return the findings of a check as objects for JSON."""
    return [dataclasses.asdict(finding) for finding in findings]
