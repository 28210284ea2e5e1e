"""Find files whose file system does not answer, so that no sweep waits for such a file again and again."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from routing.errors import InputError

ANSWER_SECONDS = 1.0
"""Number of seconds for which a sweep waits for files."""


def real_paths(files: Iterable[Path]) -> dict[Path, str]:
    """Return the real path of each file: an absolute path without symbolic links.

    If a file system does not answer in time, the paths of some files keep their symbolic links.
    """
    files = list(files)
    found = {path: os.path.normpath(path.absolute()) for path in files}

    def follow() -> None:
        for path in files:
            with suppress(OSError, ValueError):  # A path with a null character is a ValueError.
                found[path] = os.path.realpath(path)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    # A sweep waits only ANSWER_SECONDS for the thread that calls this function, so this function takes at most half of
    # this time.
    thread.join(ANSWER_SECONDS / 2)
    return dict(found)


def not_answered(path: Path) -> InputError:
    """Return the error for a file whose file system does not answer."""
    return InputError(f"has not answered for {ANSWER_SECONDS:g} s", path=path)


class SilentFiles:
    """Finds files whose file system does not answer.

    A separate thread tries to open each file.  If the file system does not answer, this thread may never end.
    """

    def __init__(self) -> None:
        self._opening: dict[Path, threading.Thread] = {}

    def among(self, files: Iterable[Path]) -> list[Path]:
        """Return the files whose file system does not answer.

        This method waits only once for a file that does not answer.  Later calls with this file return at once.
        """
        files, until = list(files), time.monotonic() + ANSWER_SECONDS
        new = {path: threading.Thread(target=_open, args=(path,), daemon=True) for path in files}
        new = {path: thread for path, thread in new.items() if path not in self._opening}
        for thread in new.values():
            thread.start()
        for thread in new.values():
            thread.join(max(0.0, until - time.monotonic()))
        self._opening = {path: thread for path, thread in {**self._opening, **new}.items() if thread.is_alive()}
        return [path for path in files if path in self._opening]


def _open(path: Path) -> None:
    with suppress(OSError):
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
