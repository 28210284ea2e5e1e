"""Keep the last usable versions of the files that opensm.conf names, so that an error in a file changes no tables."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from osm_plugin import silent_files
from osm_plugin.opensm_conf import FOREIGN, AcceptedOptions, OpensmConf, foreign_options, take_over
from osm_plugin.silent_files import SilentFiles, not_answered
from routing.errors import file_problem
from routing.formats.atomic import atomic_write

FILES = ("root_guid_file", "hop_weights_file", "port_prof_ignore_file", "cn_guid_file", "io_guid_file")
"""Options of opensm.conf that name a file which engines read."""


class ConfFiles:
    """Applies the options of opensm.conf.  If an option names a file that cannot be used, the last usable version of
    this file is used instead.

    Parameters
    ----------
    folder
        Value of the attribute ``folder``.

    Attributes
    ----------
    folder
        Folder in which :meth:`save` stores the usable versions for the worker of the next OpenSM.  None: no version is
        stored, and no stored version is used.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        # The key is a pair: an option of opensm.conf that names a file, and the path of this file.  The value is the
        # descriptor of a memory file with the last usable version of the named file.
        self._copies: dict[tuple[str, str], int] = {}
        self._silent = SilentFiles()
        # The last values of the options FOREIGN, which are read from opensm.conf, because OpenSM does not pass them on.
        # None: opensm.conf was never read.
        self._foreign: dict[str, str] | None = None
        # The thread that reads the folder.  It is started only once.
        self._reader: threading.Thread | None = None
        # _stored: the content of each file that is in the folder, by the name of the file.
        # _unsaved: the content of each file that save() will write into the folder, by the name of the file.
        self._stored: dict[str, bytes] = {}
        self._unsaved: dict[str, bytes] = {}

    def save(self) -> None:
        """Write the usable versions of files into the folder, except versions that the folder already has.

        Raises
        ------
        IbnueError
            The folder cannot be written.
        """
        unsaved, self._unsaved, folder = self._unsaved, {}, self.folder
        if folder is None or not unsaved:
            return
        try:
            folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        except OSError as problem:
            raise file_problem("created", folder, problem) from None
        for name, content in list(unsaved.items()):
            with atomic_write(folder / name) as file:
                file.write(content)
            self._stored[name] = content

    def _stored_version(self, key: tuple[str, str]) -> bytes | None:
        """Return the content of the stored version of a file.  Return None if there is no stored version, or if a
        thread is still reading the folder.

        The first call starts this thread, and waits for it for a limited time.  So the folder is read only if an option
        of opensm.conf names a file.
        ``key`` is a pair: the name of this option, and the path of the file.
        """
        if self.folder is None:
            return None
        if self._reader is None:
            self._reader = threading.Thread(target=self._read, args=(self.folder,), daemon=True)
            self._reader.start()
            # Wait only for a limited time, because the reading thread may never end if the file system does not answer.
            self._reader.join(silent_files.ANSWER_SECONDS)
        return self._stored.get(_stored_name(key))

    def _read(self, folder: Path) -> None:
        with suppress(OSError):
            found = {path.name: path.read_bytes() for path in folder.iterdir()}
            self._stored = {**found, **self._stored}

    def take_over(self, conf: OpensmConf, engine: str, own: Mapping[str, Any]) -> AcceptedOptions:
        """Apply the options of opensm.conf, as :func:`osm_plugin.opensm_conf.take_over` does.

        ``conf`` has the options that OpenSM passes on.  Its option "config_file" is the path of opensm.conf, from which
        other options are read.  ``engine`` is the name of the engine without the prefix "ibnue-".  ``own`` has the
        engine's options in the plugin's own configuration, which take precedence over opensm.conf.

        The result has a line for the log about each file whose last usable version is used.
        """
        named = {name: Path(value) for name in ("config_file", *FILES) if (value := conf.get(name)) is not None}
        silent = self._silent.among(named.values())
        config_file, notes = named.get("config_file"), list[str]()
        if config_file is not None and config_file in silent:
            how = "are unknown" if self._foreign is None else "keep their last values"
            notes.append(f"opensm.conf: {not_answered(config_file)}; {', '.join(FOREIGN)} {how}")
        else:
            self._foreign = foreign_options(conf.get("config_file"))
        conf = OpensmConf({**(self._foreign or {}), **conf.values})
        taken, verdicts = take_over(conf, engine, own, silent)
        copies: dict[str, str] = {}
        for verdict in (verdict for verdict in verdicts if verdict.name in FILES):
            key = verdict.name, verdict.value
            if verdict.honoured:
                self._copy(key, Path(verdict.value))
            elif self._is_known(key):
                copies[verdict.name] = f"/proc/self/fd/{self._copies[key]}"
        if self.folder is not None and self._reader is not None and self._reader.is_alive():
            notes.append(f"saved versions of files not read yet: {self.folder} has not answered")
        if copies:
            taken, again = take_over(OpensmConf({**conf.values, **copies}), engine, own, silent)
            used = {verdict.name for verdict in again if verdict.honoured and verdict.name in copies}
            taken.lines = [
                f"{verdict}; its last usable version stays in use" if verdict.name in used else str(verdict)
                for verdict in verdicts
                if not verdict.honoured
            ]
        taken.lines += notes
        return taken

    def _copy(self, key: tuple[str, str], path: Path) -> None:
        """Copy a usable file to memory.  If this fails, an older copy is kept.

        ``key`` is a pair: the option of opensm.conf that names the file, and the value of this option (the path).
        """
        with suppress(OSError):
            content = path.read_bytes()
            self._put(key, content)
            if self._stored_version(key) != content:
                self._unsaved[_stored_name(key)] = content

    def _is_known(self, key: tuple[str, str]) -> bool:
        """Return whether a usable version of a file is in memory.  If only the folder has a usable version, copy that
        version to memory.
        """
        if key not in self._copies and (content := self._stored_version(key)) is not None:
            with suppress(OSError):
                self._put(key, content)
        return key in self._copies

    def _put(self, key: tuple[str, str], content: bytes) -> None:
        """Keep the content of a usable file in memory, in place of an older version of the file."""
        if key not in self._copies:
            self._copies[key] = os.memfd_create("ibnue-opensm-conf", os.MFD_CLOEXEC)
        os.ftruncate(self._copies[key], 0)
        os.pwrite(self._copies[key], content, 0)


def _stored_name(key: tuple[str, str]) -> str:
    """Return the name of the copy of a file in the state folder.

    ``key`` is a pair: an option of opensm.conf whose value is a path, and this path.
    """
    option, path = key
    return f"{option}-{hashlib.sha256(path.encode()).hexdigest()[:12]}"
