"""Read the plugin's configuration: a TOML file that opensm.conf names by ``event_plugin_options --config FILE``.

This module imports nothing that is slow to load, because the host inside OpenSM uses it too.
"""

from __future__ import annotations

import codecs
import os
import pwd
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from osm_plugin.silent_files import real_paths
from routing.class_settings import CLASS_LABELS, SETTINGS
from routing.engines.base import OPTIONS
from routing.errors import InputError, ParseError, raise_errors
from routing.formats.toml_text import Toml, type_names
from routing.names import similar_or

POLICIES = "policies"
"""Name that a request for port rules has in place of the name of an engine."""

LOG_LEVELS = ("error", "info", "debug")
STABILITIES = ("full", "balanced", "fresh")
TRANSITIONS = ("rounds", "at once")

ENGINE_OPTIONS = {name: option for name, option in OPTIONS.items() if "plugin" in option.sources}
"""Engine options that the tables ``[engine]`` and ``[engine.NAME]`` of the configuration can set."""

ENGINE_FILES = tuple(name for name, option in ENGINE_OPTIONS.items() if option.make is Path)
"""Engine options whose value is the name of a file."""

ENGINE_KEYS: Mapping[str, tuple[type, ...]] = {
    **{name: option.types for name, option in ENGINE_OPTIONS.items()},
    "budget": (int, float),
}
"""Keys of ``[engine]`` and ``[engine.NAME]`` with their types: the engine options and ``budget``, which states
``effort`` as a number of CPU seconds.
"""

CLASS_KEYS: Mapping[str, tuple[type, ...]] = {setting.key: setting.types for setting in SETTINGS}
"""Keys of ``[classes.NAME]`` with their types."""

CLASS_FILES = tuple(setting.key for setting in SETTINGS if setting.is_file)
"""Settings of port classes that name a file."""

WRITTEN_FILES = ("log_file", "state_file", "status_file", "metrics_file")
"""Keys of the configuration that name a file which the plugin writes."""

_SEE_CHECK = "see 'ibnue plugin check'"
"""Remedy in the message about several errors."""

_NO_TABLES: Mapping[str, Mapping[str, Any]] = {}


@dataclass(frozen=True)
class PluginConfig:
    """Settings in the plugin's configuration file.  Each attribute has the name of its key in the file.

    Attributes
    ----------
    deadline
        Seconds that OpenSM waits for tables.  After this time, OpenSM tries the next engine of its list.
    start_deadline
        Seconds that OpenSM waits for the worker's first message, when it loads the plugin.
    threads
        Threads of the kernels in the worker; 0 means one per processor, at most 8.
    allow_credit_loops
        Whether tables with credit loops may be given to OpenSM.
    log_level
        Level of the worker's log: "error", "info" or "debug", see :mod:`osm_plugin.worker_log`.
    log_file
        The worker's log file; None: ``ibnue-worker.log`` in the folder of OpenSM's log.
    bundle
        The file whose tables the engine ``ibnue-bundle`` returns.
    state_file
        File that stores the tables in force until the next start of OpenSM.  True: in OpenSM's cache folder; False: no
        file.
    status_file
        JSON file that gets the status after each sweep.  True: in the folder of the state file; False: no file.
    metrics_file
        File that gets the values of the status file in the format of node_exporter's text file collector; None: no
        file.
    history
        Number of proven tables that are kept in files next to the state file; 0: none.
    shadow
        An engine of ibnue that computes tables only for comparison, while another engine's tables are in force; None:
        no engine.
    stability
        Which valid entries may change after a fault.  "full": only entries that a repair has to change.  "balanced":
        also a limited number of other entries, to keep the balance.  "fresh": all entries, because every sweep
        recomputes the tables.
    rebalance
        Maximum number of entries that change in a sweep without a fault, for every 100,000 entries in the tables
        (rounded up to a multiple of 100,000).  These changes regain the balance that re-routes have lost.  0: no
        entries.  The setting applies only with stability "balanced".
    rebalance_pause
        Seconds after a sweep until the next sweep is requested, as long as more entries can be rebalanced.
    transitions
        How new tables are written if some order of writing could cause a credit loop: in safe "rounds", or "at once".
    round_wait
        Seconds to wait before a round that may begin only after packets in flight have left the fabric.
    policies
        A file of rules that set HOQLife and VLStallCount of single ports after every sweep; None: no file.
    worker_user
        User of the worker process; None: OpenSM's user.
    classes
        Settings of the classes of end ports by the name of the class, as :data:`routing.class_settings.SETTINGS` has
        them.
    engine
        Engine options, by the name of the engine.  The key "" has options for all engines.
    """

    deadline: float = 10.0
    start_deadline: float = 30.0
    threads: int = 0
    allow_credit_loops: bool = False
    log_level: str = "info"
    log_file: str | None = None
    bundle: str | None = None
    state_file: str | bool = True
    status_file: str | bool = True
    metrics_file: str | None = None
    history: int = 10
    shadow: str | None = None
    stability: str = "balanced"
    rebalance: int = 256
    rebalance_pause: float = 10.0
    transitions: str = "rounds"
    round_wait: float = 0.1
    policies: str | None = None
    worker_user: str | None = None
    classes: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _NO_TABLES)
    engine: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _NO_TABLES)

    @property
    def state_path(self) -> Path | None:
        """Return the path of the state file; None if the configuration disables it."""
        if isinstance(self.state_file, str):
            return Path(self.state_file)
        return cache_folder() / "ibnue-state.npz" if self.state_file else None

    @property
    def files(self) -> dict[tuple[str, ...], Path]:
        """Return the input files that the configuration names.

        The result maps keys to paths.  Each key states which setting names the file: ``("bundle",)``,
        ``("policies",)``, ``("engine", NAME, KEY)`` or ``("classes", NAME, KEY)``.
        """
        keys = [(key, getattr(self, key)) for key in ("bundle", "policies")]
        found: dict[tuple[str, ...], Path] = {(key,): Path(value) for key, value in keys if value is not None}
        for section, tables, file_keys in (
            ("engine", self.engine, ENGINE_FILES),
            ("classes", self.classes, CLASS_FILES),
        ):
            for name, table in tables.items():
                found |= {(section, name, key): Path(table[key]) for key in file_keys if key in table}
        return found

    def with_files(self, files: Mapping[tuple[str, ...], Path]) -> PluginConfig:
        """Return a copy of the configuration that names other files.

        ``files`` maps keys, as in the result of :attr:`files`, to the new paths.
        """
        tables: dict[str, Any] = {
            section: {name: dict(table) for name, table in getattr(self, section).items()}
            for section in ("engine", "classes")
        }
        top: dict[str, Any] = {}
        for keys, path in files.items():
            (tables[keys[0]][keys[1]] if len(keys) == 3 else top)[keys[-1]] = str(path)
        return replace(self, **tables, **top)

    def to_table(self) -> dict[str, Any]:
        """Return all settings as a dictionary that can be stored as JSON.  :func:`config_from_table` reads it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def status_path(self) -> Path | None:
        """Return the path of the status file; None if the configuration disables it."""
        if isinstance(self.status_file, str):
            return Path(self.status_file)
        folder = cache_folder() if self.state_path is None else self.state_path.parent
        return folder / "ibnue-status.json" if self.status_file else None

    def options_of(self, engine: str) -> dict[str, Any]:
        """Return the options of an engine.  Options for this engine override options for all engines."""
        return {**self.engine.get("", {}), **self.engine.get(engine, {})}


_TYPES = {"float": (int, float), "int": (int,), "bool": (bool,), "str": (str,), "None": ()}
_KEYS: Mapping[str, tuple[type, ...]] = {
    part.name: sum((_TYPES.get(word, (dict,)) for word in str(part.type).split(" | ")), ())
    for part in fields(PluginConfig)
}


def cache_folder() -> Path:
    """Return the folder in which OpenSM keeps files between runs."""
    return Path(os.environ.get("OSM_CACHE_DIR") or "/var/cache/opensm")


def config_path(event_plugin_options: str) -> Path | None:
    """Return the FILE of ``--config FILE`` in OpenSM's option ``event_plugin_options``; None if the option does not
    contain ``--config``.

    Other words are ignored, because all plugins share this option.

    Raises
    ------
    InputError
        No file follows ``--config``, or a quote is not closed.
    """
    try:
        words = shlex.split(event_plugin_options)
    except ValueError as problem:
        raise InputError(f"event_plugin_options: {problem}", remedy="close the quotes") from None
    for position, word in enumerate(words):
        if word.startswith("--config="):
            return Path(word.removeprefix("--config="))
        if word == "--config":
            if position + 1 == len(words):
                raise InputError("event_plugin_options: --config names no file", remedy="--config /etc/ibnue.toml")
            return Path(words[position + 1])
    return None


def read_config(path: Path | None) -> PluginConfig:
    """Read the configuration from a TOML file.  Without a file (None), return the defaults.

    Raises
    ------
    InputError
        The file cannot be read, is not UTF-8 or not TOML, or has an unknown key or a value out of range.  Or the plugin
        would overwrite one of its files with another one.
    """
    if path is None:
        return PluginConfig()
    config, errors = valid_settings(read_toml(path), path)
    raise_errors(errors, _SEE_CHECK)
    return config


def read_toml(path: Path) -> Toml:
    """Read the configuration file ``path`` without a check of its keys and values.

    Raises
    ------
    InputError
        The file cannot be read, or is not UTF-8 or not TOML.
    """
    return Toml.of(_text(path), path)


def valid_settings(file: Toml, path: Path) -> tuple[PluginConfig, list[ParseError]]:
    """Return the valid settings of the configuration file ``path`` as a configuration, and all errors of its settings.

    The configuration leaves out unknown keys and values of wrong types.  ``file`` is the parsed content of the file at
    ``path``.
    """
    found = dict(file.table)
    if isinstance(found.get("engine"), dict):
        found["engine"] = _by_engine(found["engine"])
    config, errors = _checked(found, file)
    # A relative path starts at the folder of the configuration, since the worker has another working directory.
    folder = path.absolute().parent
    written = {(key,): getattr(config, key) for key in WRITTEN_FILES}
    named = {keys: name for keys, name in written.items() if isinstance(name, str)} | config.files
    config = config.with_files({keys: folder / name for keys, name in named.items()})
    return config, [*errors, *overwritten_files(config, files_read(config, path), file)]


def files_read(config: PluginConfig, path: Path) -> dict[str, Path]:
    """Return the files that the plugin only reads: the configuration file ``path``, and the input files that the
    configuration names.  The key of each file describes the file.
    """
    named = {".".join(filter(None, keys)): name for keys, name in config.files.items()}
    return {"this configuration file": path, **named}


def overwritten_files(
    config: PluginConfig, read: Mapping[str, Path], file: Toml, *, among_themselves: bool = True
) -> Iterator[ParseError]:
    """Yield an error for each file that the plugin writes although the file also has another use.

    For example, ``status_file`` names the configuration file.  ``config`` is the content of ``file``.  ``read`` has the
    files that the plugin must not write.  The key of each file describes the file.  ``among_themselves`` states whether
    files that the plugin writes are also compared with each other.
    """
    for key, path, other in files_of_two_uses(config, read):
        if other not in read and not among_themselves:
            continue
        where = (key,) if key in file.table else other.split(".")
        yield file.error(f"{key}: {path}: is also {other}", *where, remedy="name another file")


def files_of_two_uses(config: PluginConfig, read: Mapping[str, Path]) -> Iterator[tuple[str, Path, str]]:
    """Yield each file that the plugin writes although the file also has another use.

    The other use comes from another key in ``WRITTEN_FILES``, or from ``read``.  ``read`` has the files that the plugin
    must not write.  The key of each file describes the file.  Devices such as /dev/null are left out, because writing
    destroys nothing there.

    Yields
    ------
    key : str
        Key of the file in the configuration.
    path : Path
        The file.
    other : str
        Key or description of the other use.
    """
    names = (config.log_file, config.state_path, config.status_path, config.metrics_file)
    written = {key: Path(name) for key, name in zip(WRITTEN_FILES, names, strict=True) if name is not None}
    real = real_paths([*read.values(), *written.values()])
    uses = {real[path]: use for use, path in read.items()}
    for key, path in written.items():
        is_device = real[path].startswith(("/dev/", "/proc/")) and not real[path].startswith("/dev/shm/")
        if not is_device and (other := uses.setdefault(real[path], key)) != key:
            yield key, path, other


def line_of_option(path: Path, config: PluginConfig, engine: str, name: str) -> int | None:
    """Return the number of the line in the file ``path`` that sets the option ``name`` of an engine.

    ``config`` is the configuration with which the engine has run.  The result is None if ``config`` does not set the
    option.  The result is also None if the file has another configuration now, or cannot be read.
    """
    with suppress(InputError):
        if name in config.options_of(engine) and valid_settings(file := read_toml(path), path) == (config, []):
            keys = (engine, name) if name in config.engine.get(engine, {}) else (name,)
            return file.line("engine", *keys)
    return None


def _text(path: Path) -> str:
    try:
        if path.is_fifo():  # Reading a pipe would make OpenSM wait for a program that writes into the pipe.
            raise InputError("is a pipe", path=path, remedy="name a file")
        data = path.read_bytes()
    except OSError as problem:
        raise InputError(
            f"cannot be read: {problem.strerror or problem}", path=path, remedy="check event_plugin_options"
        ) from None
    # The byte order mark is removed before decoding, and not by the decoder "utf-8-sig".  With that decoder,
    # `problem.start` would not count the mark, and the line number below could be wrong.
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise ParseError("is not UTF-8 text", path=path, line=line, remedy="save it as UTF-8") from None


def config_from_table(table: Mapping[str, Any], path: Path) -> PluginConfig:
    """Return the configuration in a table made by :meth:`PluginConfig.to_table`, after all checks.

    ``path`` is the file name for error messages.

    Raises
    ------
    InputError
        The table has an unknown key or a value out of range.
    """
    known = {key: value for key, value in table.items() if value is not None}
    config, errors = _checked(known, Toml(dict(table), "", path))
    raise_errors(errors, _SEE_CHECK)
    return config


def _by_engine(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    general = {key: value for key, value in found.items() if not isinstance(value, dict)}
    return {"": general, **{key: value for key, value in found.items() if isinstance(value, dict)}}


def _checked(found: dict[str, Any], file: Toml) -> tuple[PluginConfig, list[ParseError]]:
    """Return the valid settings among ``found`` as a configuration, and all errors of ``found``.

    The configuration leaves out unknown keys and values of wrong types.
    """
    errors = [*_drop_invalid(found, _KEYS, (), file)]
    tables = {"engine": found.pop("engine", {}), "classes": found.pop("classes", {})}
    known = ", ".join(CLASS_LABELS)
    errors += [
        file.error(f"unknown class {label!r} of end ports", "classes", label, remedy=f"one of {known}")
        for label in tables["classes"]
        if label not in CLASS_LABELS
    ]
    for section, keys in (("engine", ENGINE_KEYS), ("classes", CLASS_KEYS)):
        for name, table in [*tables[section].items()]:
            where = (section, name) if name else (section,)
            if isinstance(table, dict):
                errors += _drop_invalid(table, keys, where, file)
            else:
                errors.append(file.error(f"'{'.'.join(where)}' is not a table", *where))
                del tables[section][name]
    tables["classes"] = {label: table for label, table in tables["classes"].items() if label in CLASS_LABELS}
    config = PluginConfig(**found, **tables)
    return config, [*errors, *_value_errors(config, file)]


def _drop_invalid(
    found: dict[str, Any], known: Mapping[str, tuple[type, ...]], section: tuple[str, ...], file: Toml
) -> Iterator[ParseError]:
    """Remove each unknown key and each value of a wrong type from the table ``found``, and yield an error for it.

    ``known`` has the types of each allowed key.  ``section`` has the names of the table and of the tables around it,
    which error messages show.
    """
    for key, value in [*found.items()]:
        name = ".".join((*section, key))
        if key not in known:
            of_engines = not section and key in ENGINE_KEYS
            near = similar_or(f"known are {', '.join(known)}", key, known)
            remedy = "write it into the table [engine]" if of_engines else near
            yield file.error(f"unknown key {name!r}", *section, key, remedy=remedy)
        # isinstance accepts a bool as an int, but "threads = true" must be an error.
        elif not isinstance(value, known[key]) or (isinstance(value, bool) and bool not in known[key]):
            shown = str(value).lower() if isinstance(value, bool) else repr(value)
            yield file.error(f"{name!r} is {shown}, wanted {type_names(known[key])}", *section, key)
        else:
            continue
        del found[key]


def _value_errors(config: PluginConfig, file: Toml) -> Iterator[ParseError]:
    if config.worker_user is not None:
        try:
            pwd.getpwnam(config.worker_user)
        except KeyError:
            yield file.error(f"there is no user {config.worker_user!r}", "worker_user")
    for key, fits, wanted in (
        ("deadline", 0 < config.deadline <= 3600, "seconds over 0, up to 3600"),
        ("start_deadline", 0 < config.start_deadline <= 3600, "seconds over 0, up to 3600"),
        ("round_wait", 0 <= config.round_wait <= 60, "seconds from 0 to 60"),
        ("history", 0 <= config.history <= 1000, "0 to 1000"),
        ("rebalance", 0 <= config.rebalance <= 1_000_000, "0 to 1000000 entries"),
        ("rebalance_pause", 0 < config.rebalance_pause <= 86_400, "seconds over 0, up to 86400"),
        ("threads", 0 <= config.threads <= 256, "0 to 256"),
    ):
        if not fits:
            yield file.error(f"{key!r} is {getattr(config, key)}, wanted {wanted}", key)
    for key, known in (("log_level", LOG_LEVELS), ("stability", STABILITIES), ("transitions", TRANSITIONS)):
        if getattr(config, key) not in known:
            yield file.error(f"{key!r} is {getattr(config, key)!r}", key, remedy=f"one of {', '.join(known)}")
