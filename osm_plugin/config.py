"""The plugin's configuration: one TOML file, named by ``event_plugin_options --config FILE`` in opensm.conf.

Read by the host inside OpenSM and by the worker, so it imports nothing that takes long.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from routing.errors import InputError
from routing.formats.toml_text import Toml

LOG_LEVELS = ("error", "info", "debug")
STABILITIES = ("full", "balanced", "fresh")
TRANSITIONS = ("rounds", "at once")

ENGINE_KEYS: Mapping[str, tuple[type, ...]] = {
    "vls": (int, str),
    "objective": (str,),
    "passes": (int,),
    "effort": (int, float),
    "budget": (int, float),
    "seed": (int,),
    "roots": (list,),
    "root_guid_file": (str,),
    "partition": (str,),
    "first_vl": (int,),
    "reversible": (bool,),
    "minimal": (bool,),
}
"""What ``[engine]`` and ``[engine.NAME]`` may say: the options of :class:`routing.engines.base.EngineOptions`, and a
budget in place of the effort."""

_KEYS: Mapping[str, tuple[type, ...]] = {
    "deadline": (int, float),
    "start_deadline": (int, float),
    "threads": (int,),
    "allow_credit_loops": (bool,),
    "log_level": (str,),
    "log_file": (str,),
    "bundle": (str,),
    "state_file": (str, bool),
    "stability": (str,),
    "transitions": (str,),
    "round_wait": (int, float),
    "policies": (str,),
    "engine": (dict,),
}

_NO_ENGINE_OPTIONS: Mapping[str, Mapping[str, Any]] = {}


@dataclass(frozen=True)
class PluginConfig:
    """What an administrator can set.

    Attributes
    ----------
    deadline
        Seconds that OpenSM waits for tables before it goes on to its next engine.
    start_deadline
        Seconds that OpenSM waits for the worker's first word when the plugin is loaded.
    threads
        Threads of the kernels in the worker, 0: one for each processor, at most 8.
    allow_credit_loops
        Whether tables with credit loops may be published.
    log_level
        Of the worker's log: "error", "info" or "debug" (with the traceback of every failure).
    log_file
        The worker's log; None: ``ibnue-worker.log`` beside OpenSM's own.
    bundle
        The file that engine ``ibnue-bundle`` loads.
    state_file
        Where the tables in force are kept for the next start; True: beside OpenSM's cache; False: nowhere.
    stability
        What happens to routes that a change of the fabric left whole: "full": they stay; "balanced": they may move for
        the sake of balance; "fresh": every sweep routes anew.
    transitions
        How tables are written that are not safe in any order: in "rounds" that are, or "at once".
    round_wait
        Seconds between those rounds before which packets have to leave the fabric.
    policies
        A file of rules for HOQLife and VLStallCount of single ports, set after every sweep.
    engine
        Options for all engines under "", for one engine under its name.
    """

    deadline: float = 10.0
    start_deadline: float = 30.0
    threads: int = 0
    allow_credit_loops: bool = False
    log_level: str = "info"
    log_file: str | None = None
    bundle: str | None = None
    state_file: str | bool = True
    stability: str = "full"
    transitions: str = "rounds"
    round_wait: float = 0.1
    policies: str | None = None
    engine: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _NO_ENGINE_OPTIONS)

    @property
    def state_path(self) -> Path | None:
        """The state file, None if there is to be none."""
        if isinstance(self.state_file, str):
            return Path(self.state_file)
        folder = os.environ.get("OSM_CACHE_DIR") or "/var/cache/opensm"  # as OpenSM finds its own
        return Path(folder) / "ibnue-state.npz" if self.state_file else None

    def options_of(self, engine: str) -> dict[str, Any]:
        """The options of one engine: its own over those for all."""
        return {**self.engine.get("", {}), **self.engine.get(engine, {})}


def config_path(event_plugin_options: str) -> Path | None:
    """The FILE of ``--config FILE`` in OpenSM's ``event_plugin_options``, which other plugins may share.

    Raises
    ------
    InputError
        ``--config`` without a file, or quotes that do not close.
    """
    try:
        words = shlex.split(event_plugin_options)
    except ValueError as problem:
        raise InputError(f"event_plugin_options: {problem}", remedy="close the quotes") from None
    for place, word in enumerate(words):
        if word.startswith("--config="):
            return Path(word.removeprefix("--config="))
        if word == "--config":
            if place + 1 == len(words):
                raise InputError("event_plugin_options: --config names no file", remedy="--config /etc/ibnue.toml")
            return Path(words[place + 1])
    return None


def read_config(path: Path | None) -> PluginConfig:
    """The configuration in a TOML file; the defaults where ``path`` is None.

    Raises
    ------
    InputError
        A file that cannot be read or is no TOML, a key that does not exist, a value out of range.
    """
    if path is None:
        return PluginConfig()
    try:
        text = path.read_text(encoding="utf-8", errors="backslashreplace")
    except OSError as problem:
        raise InputError(
            f"cannot be read: {problem.strerror or problem}", path=path, remedy="check event_plugin_options"
        ) from None
    file = Toml.of(text, path)
    found = dict(file.table)
    _check_keys(found, _KEYS, (), file)
    engine = _engine_options(found.pop("engine", {}), file)
    for table, key in (
        (found, "log_file"),
        (found, "bundle"),
        (found, "policies"),
        *([(found, "state_file")] if isinstance(found.get("state_file"), str) else []),
        *((table, "root_guid_file") for table in engine.values()),
    ):
        if key in table:
            # The worker's own directory is nobody's idea of where a relative path starts.
            table[key] = str(path.absolute().parent / table[key])
    config = PluginConfig(**found, engine=engine)
    _check_values(config, file)
    return config


def _engine_options(found: dict[str, Any], file: Toml) -> dict[str, dict[str, Any]]:
    general = {key: value for key, value in found.items() if not isinstance(value, dict)}
    options = {"": general}
    options.update({key: value for key, value in found.items() if isinstance(value, dict)})
    for name, table in options.items():
        _check_keys(table, ENGINE_KEYS, ("engine", name) if name else ("engine",), file)
    return options


def _check_keys(
    found: Mapping[str, Any], known: Mapping[str, tuple[type, ...]], home: tuple[str, ...], file: Toml
) -> None:
    for key, value in found.items():
        name = ".".join((*home, key))
        if key not in known:
            raise file.error(f"unknown key {name!r}", *home, key, remedy=f"known are {', '.join(known)}")
        # bool is an int to isinstance, but "threads = true" is a mistake.
        if not isinstance(value, known[key]) or (isinstance(value, bool) and bool not in known[key]):
            wanted = " or ".join(kind.__name__ for kind in known[key])
            raise file.error(f"{name!r} is {value!r}, wanted {wanted}", *home, key)


def _check_values(config: PluginConfig, file: Toml) -> None:
    for key in ("deadline", "start_deadline"):
        if not 0 < getattr(config, key) <= 3600:
            raise file.error(f"{key!r} is {getattr(config, key)}, wanted seconds over 0, up to 3600", key)
    if not 0 <= config.round_wait <= 60:
        raise file.error(f"'round_wait' is {config.round_wait}, wanted seconds from 0 to 60", "round_wait")
    if not 0 <= config.threads <= 256:
        raise file.error(f"'threads' is {config.threads}, wanted 0 to 256", "threads")
    for key, known in (("log_level", LOG_LEVELS), ("stability", STABILITIES), ("transitions", TRANSITIONS)):
        if getattr(config, key) not in known:
            raise file.error(f"{key!r} is {getattr(config, key)!r}", key, remedy=f"one of {', '.join(known)}")
