"""Store the last good configuration, and use it while the file of ``--config`` is invalid.

The host inside OpenSM reads the file, and keeps its last valid content in memory.  For the worker, a configuration is
good once an engine has computed tables with it.  The worker then saves this configuration, with copies of all files
that it names, in OpenSM's cache folder.  If the file is invalid when OpenSM starts, the saved configuration is used.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from osm_plugin import silent_files
from osm_plugin.config import (
    PluginConfig,
    cache_folder,
    config_from_table,
    files_of_two_uses,
    files_read,
    line_of_option,
    read_config,
)
from routing.errors import EnvironmentProblem, IbnueError, InputError, OptionError, file_problem
from routing.formats.atomic import atomic_write, write_text_atomically

SAVED = "config.json"
_LONGEST = 50_000
"""Maximum number of characters of a configuration as JSON, because a message to the worker can have at most 64 KiB."""
READ_AGAIN, VALID_AGAIN = "can be read again", "the configuration is valid again, and in use"
"""Texts at the end of a log line, which report that a problem with the configuration is solved."""
_POLICIES = ("policies",)
_BUNDLE = ("bundle",)

Stamp = tuple[int, int, int]


def saved_folder(path: Path) -> Path:
    """Return the folder for the last good configuration of a file.  Each configuration file has its own folder."""
    digest = hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:12]
    return cache_folder() / f"ibnue-last-good-{digest}"


def read_saved(path: Path) -> PluginConfig | None:
    """Return the configuration that was saved for a file; None if no configuration was saved, or if it cannot be
    used.
    """
    position = saved_folder(path) / SAVED
    try:
        table = json.loads(position.read_text(encoding="utf-8"))
        found = config_from_table(table, position) if isinstance(table, dict) else None
        # An earlier version may have saved a configuration with which the plugin overwrites its other files.
        return None if found is not None and any(files_of_two_uses(found, files_read(found, path))) else found
    except (OSError, ValueError, TypeError):  # ValueError includes InputError, a class derived from ValueError.
        return None


def stamp_of(path: Path) -> Stamp | None:
    """Return the modification time (ns), size and inode of a file; None if the file does not exist, or if a folder of
    its path cannot be searched.  A change of these numbers shows that the file has changed.
    """
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino


class ConfigFile:
    """Reads the configuration file for the part of the plugin that runs inside OpenSM (:class:`osm_plugin.host.Host`).

    The file is read again when it changes.  The last good configuration is used while the file is invalid, or while its
    file system does not answer.  The last good configuration is the last valid content that this object has read.  If
    there was none, it is the configuration that a worker has saved.

    Attributes
    ----------
    path
        Path of the file.  None: there is no file, so the defaults apply.
    current
        The configuration in use.
    warnings
        Lines for the log.  A line is added each time that the file becomes invalid for another reason, or can be
        read again.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.current = PluginConfig()
        self.warnings: list[str] = []
        self._stamp: Stamp | None = None
        self._reader: threading.Thread | None = None
        self._found: PluginConfig | InputError | None = None  # result of the reading thread; None: file unchanged
        self._found_stamp: Stamp | None = None
        self._good = False
        self._wrong = ""

    def refresh(self) -> PluginConfig:
        """Read the file if it has changed, and return the configuration to use.

        This method is called in every sweep.  A user can request a sweep by sending SIGHUP to OpenSM.

        Raises
        ------
        InputError
            The file is invalid or does not answer, and no last good configuration is known.
        """
        if self.path is None:
            return self.current
        if self._reader is None:
            self._reader = threading.Thread(target=self._read, args=(self.path,), daemon=True)
            self._reader.start()
            self._reader.join(silent_files.ANSWER_SECONDS)  # Later sweeps do not wait for a reader that does not end.
        if self._reader.is_alive():
            self._fall_back(silent_files.not_answered(self.path))
            self._good, self._stamp = True, None
            return self.current
        self._reader = None
        if isinstance(self._found, InputError):
            self._fall_back(self._found)
        elif self._found is not None:
            self.current = self._found
            if self._wrong:
                self.warnings.append(f"{self.path}: {READ_AGAIN}")
            self._wrong = ""
        # The stamp of an invalid file is stored too.  Otherwise every sweep would parse the file again.
        self._good, self._stamp = True, self._found_stamp
        return self.current

    def _read(self, path: Path) -> None:
        """Read the file in a thread, because its file system may not answer."""
        self._found = None
        self._found_stamp = stamp_of(path)
        if not self._good or self._found_stamp != self._stamp:
            try:
                self._found = _short(read_config(path), path)
            except InputError as problem:
                self._found = problem

    def _fall_back(self, problem: InputError) -> None:
        assert self.path is not None
        how = "the last good configuration stays in use"
        if not self._good:
            saved = read_saved(self.path)
            if saved is None:
                raise problem
            self.current, how = saved, f"started with the last good configuration, saved in {saved_folder(self.path)}"
        if str(problem) != self._wrong:
            self._wrong = str(problem)
            self.warnings.append(f"{problem}; {how}")


def _short(config: PluginConfig, path: Path) -> PluginConfig:
    """Return the configuration, or raise InputError if it is too long for a message to the worker."""
    if len(json.dumps(config.to_table(), default=str)) > _LONGEST:
        raise InputError("is too long", path=path, remedy="list roots in a file: root_guid_file")
    return config


class LastGood:
    """The last good configuration, which the worker keeps in memory and in a folder.

    A configuration is good once an engine has computed tables with it, or port rules were applied with it.

    Parameters
    ----------
    path
        The file of ``--config``.  None: there is no file, so nothing is saved.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._folder = None if path is None else saved_folder(path)
        self._good = None if path is None else read_saved(path)
        self._silent = silent_files.SilentFiles()
        # For each kind of request: the unsolved problem because of which the last good configuration is in use; "": no
        # problem.  The key is True for requests for port rules, and False for requests for routing.
        self._wrong = {True: "", False: ""}
        # What to save: the configuration, whether the file of port rules was read, and whether the bundle was read.
        self._pending: tuple[PluginConfig, bool, bool] | None = None
        self._saved: tuple[PluginConfig, bool, bool, tuple[Stamp | None, ...]] | None = None

    def use(
        self, config: PluginConfig, action: Callable[[PluginConfig], str], *, ports: bool = False, bundle: bool = False
    ) -> tuple[str, str]:
        """Run an action with a configuration.  If the action fails because of the configuration, run it with the last
        good configuration.

        Parameters
        ----------
        config
            The configuration that the host has read.
        action
            Function to run, with a configuration as its argument.
        ports
            Whether the action reads the file of port rules.
        bundle
            Whether the action reads the bundle.  Only files that were read count as part of a good configuration.

        Returns
        -------
        result
            Result of the action.
        warning
            A line for the log if the problem is new, has changed or is solved; otherwise "".

        Raises
        ------
        IbnueError
            The action failed, and there is no last good configuration, or the action also failed with the last good
            configuration.
        """
        silent = next(iter(self._silent.among(config.files.values())), None)
        try:
            if silent is not None:
                raise silent_files.not_answered(silent)
            result = action(config)
        except (InputError, EnvironmentProblem) as problem:
            good = self._instead_of(config, silent, ports=ports)
            if good is None:
                raise
            try:
                result = action(good)
            except IbnueError:
                raise problem from None
            where = "" if problem.path is not None else f"{self._path}: "
            answer = f"{where}{problem}; the last good configuration is in use"
            warning = "" if answer in self._wrong.values() else answer
            self._wrong[ports] = answer
            return result, warning
        self._pending = config, ports, bundle
        if self._good is None:
            # Later, save() sets `_good` to a configuration that names copies of the files.
            self._good = config
        # A request for routing and a request for port rules can have the same problem.  The first success of either
        # kind reports that the problem is solved, and clears the problem for both kinds.
        solved = self._wrong[ports]
        self._wrong = {request: "" if text == solved else text for request, text in self._wrong.items()}
        return result, VALID_AGAIN if solved else ""

    @contextmanager
    def line_in_errors(self, config: PluginConfig, engine: str) -> Iterator[None]:
        """Add the file and the line to an error about an option of an engine, if the file of ``--config`` sets the
        option.
        """
        try:
            yield
        except OptionError as problem:
            path, line = self._path, None
            if path is not None and problem.path is None and problem.option and not self._silent.among([path]):
                line = line_of_option(path, config, engine, problem.option)
            if line is None:
                raise
            raise OptionError(problem.problem, path=path, line=line, remedy=problem.remedy) from None

    def save(self) -> None:
        """Save the last configuration that was used without an error, unless it is already saved.

        Raises
        ------
        IbnueError
            The folder cannot be written.
        """
        pending, self._pending = self._pending, None
        if pending is None:
            return
        if self._folder is None or pending[0].state_path is None:
            self._good = pending[0]
            return
        try:
            self._save(self._folder, pending)
        except OSError as problem:
            raise file_problem("written", self._folder, problem) from None

    def _save(self, folder: Path, pending: tuple[PluginConfig, bool, bool]) -> None:
        config = pending[0]
        stamps = tuple(stamp_of(path) for path in config.files.values())
        if (*pending, stamps) == self._saved:
            return
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        copies = {keys: _copy(folder, keys, path) for keys, path in config.files.items() if _was_read(keys, pending)}
        good = config.with_files({**self._copies_of(config), **copies})
        write_text_atomically(folder / SAVED, json.dumps(good.to_table(), default=str, indent=1))
        _remove_others(folder, {SAVED, *(path.name for path in good.files.values())})
        self._good, self._saved = good, (*pending, stamps)

    def _copies_of(self, config: PluginConfig) -> Mapping[tuple[str, ...], Path]:
        """Return the paths of the saved copies of the files that ``config`` names.

        The result has the same keys as :attr:`PluginConfig.files`.
        """
        known = {} if self._good is None else self._good.files
        return {keys: known[keys] for keys in config.files if keys in known}

    def _instead_of(self, config: PluginConfig, silent: Path | None, *, ports: bool) -> PluginConfig | None:
        """Return the configuration to use instead of ``config``, which has failed.  Return None if no other
        configuration can be tried.

        If ``ports`` is false, the result is the last good configuration.  If ``ports`` is true, the request was for
        port rules.  In this case, the result is ``config`` with two settings of the last good configuration: the
        classes, and the file of port rules (if the last good configuration names such a file).

        ``silent`` is a file whose file system does not answer; None: there is none.  A configuration that names this
        file is not returned.
        """
        good = self._good
        if good is None:
            return None
        if ports:
            # Port rules depend only on the policy file and the classes of end ports, so only these two settings are
            # replaced.
            instead = replace(config, policies=good.policies or config.policies, classes=good.classes)
            is_silent = silent in replace(instead, bundle=None, engine={}).files.values()
            return None if is_silent or instead == config else instead
        if silent is not None:
            return None if silent in good.files.values() else good
        return None if _same(good, config) else good


def _was_read(keys: tuple[str, ...], pending: tuple[PluginConfig, bool, bool]) -> bool:
    _, ports, bundle = pending
    if keys[0] == "classes":
        return True
    return ports if keys == _POLICIES else bundle if keys == _BUNDLE else not ports


def _copy(folder: Path, keys: tuple[str, ...], path: Path) -> Path:
    if path.parent == folder:
        return path
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:12]
    target = folder / f"{'-'.join(filter(None, keys))}-{digest}{path.suffix}"
    if not target.exists():
        with atomic_write(target) as file:
            file.write(content)
    return target


def _remove_others(folder: Path, names: set[str]) -> None:
    for path in folder.iterdir():
        if path.name not in names:
            with suppress(OSError):
                path.unlink()


def _same(good: PluginConfig, config: PluginConfig) -> bool:
    if set(good.files) != set(config.files) or good.with_files(config.files) != config:
        return False
    try:
        return all(path.read_bytes() == config.files[keys].read_bytes() for keys, path in good.files.items())
    except OSError:
        return False


def from_message(config: Mapping[str, Any] | None) -> PluginConfig:
    """Return the configuration in a message of the host; the defaults if the message has none."""
    return PluginConfig() if config is None else config_from_table(config, Path("the host's configuration"))
