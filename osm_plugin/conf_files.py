"""Keep the last usable versions of the files that opensm.conf names, so that an error in a file changes no tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from osm_plugin.opensm_conf import AcceptedOptions, OpensmConf, take_over

FILES = ("root_guid_file", "hop_weights_file", "port_prof_ignore_file", "cn_guid_file", "io_guid_file")
"""Options of opensm.conf that name a file which engines read."""


class ConfFiles:
    """Applies the options of opensm.conf.  If a file cannot be used, its last usable version is used instead."""

    def __init__(self) -> None:
        # descriptor of a copy in memory of each file that was usable, by the name of the option and the path
        self._copies: dict[tuple[str, str], int] = {}

    def take_over(self, conf: OpensmConf, engine: str, own: Mapping[str, Any]) -> AcceptedOptions:
        """Apply the options of opensm.conf, as :func:`osm_plugin.opensm_conf.take_over` does.

        A line for the log names each file whose last usable version is used.
        """
        taken, verdicts = take_over(conf, engine, own)
        copies: dict[str, str] = {}
        for verdict in (verdict for verdict in verdicts if verdict.name in FILES):
            key = verdict.name, verdict.value
            if verdict.honoured:
                self._copy(key, Path(verdict.value))
            elif key in self._copies:
                copies[verdict.name] = f"/proc/self/fd/{self._copies[key]}"
        if not copies:
            return taken
        taken, again = take_over(OpensmConf({**conf.values, **copies}), engine, own)
        used = {verdict.name for verdict in again if verdict.honoured and verdict.name in copies}
        taken.lines = [
            f"{verdict}; its last usable version stays in use" if verdict.name in used else str(verdict)
            for verdict in verdicts
            if not verdict.honoured
        ]
        return taken

    def _copy(self, key: tuple[str, str], path: Path) -> None:
        """Copy a usable file to memory.  If this fails, an older copy is kept."""
        with suppress(OSError):
            content = path.read_bytes()
            if key not in self._copies:
                self._copies[key] = os.memfd_create("ibnue-opensm-conf", os.MFD_CLOEXEC)
            os.ftruncate(self._copies[key], 0)
            os.pwrite(self._copies[key], content, 0)
