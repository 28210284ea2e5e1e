"""The functions of ``host.h`` that the shim calls, implemented by a :class:`~osm_plugin.host.Host`.

They never raise into C, and what they return on success is :data:`TOKEN`, because 0 is what cffi returns when Python
itself is broken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from osm_plugin.host import Host
from routing.errors import IbnueError
from routing.names import escaped

TOKEN = 0x1B0E
PENDING = 0x1B0F
FAILED = -1


class Callbacks:
    """One method for each function, named as it is without its prefix; arguments are cffi's."""

    def __init__(self, ffi: Any, host: Host) -> None:
        self._ffi = ffi
        self._host = host

    def start(self, options: Any, opensm_log: Any, names: Any, names_room: int, note: Any, room: int) -> int:  # noqa: PLR0917
        """``ibnue_host_start``: engine names, one a line, into ``names``."""

        def action() -> str:
            engines, line = self._host.start(self._text(options), self._text(opensm_log))
            self._put(names, names_room, "\n".join(engines))
            return line

        return self._guarded(note, room, action)

    def memory(self, descriptor: Any, generation: Any, note: Any, room: int) -> int:
        """``ibnue_host_memory``."""

        def action() -> str:
            descriptor[0], generation[0] = self._host.memory()
            return ""

        return self._guarded(note, room, action)

    def send(self, engine: Any, sequence: int, note: Any, room: int) -> int:
        """``ibnue_host_send``."""

        def action() -> str:
            self._host.send(self._text(engine), sequence)
            return ""

        return self._guarded(note, room, action)

    def wait(self, sequence: int, milliseconds: int, note: Any, room: int) -> int:
        """``ibnue_host_wait``."""
        lines: list[str] = []

        def action() -> str:
            line = self._host.wait(sequence, milliseconds / 1000)
            lines.extend([] if line is None else [line])
            return line or ""

        code = self._guarded(note, room, action)
        return PENDING if code == TOKEN and not lines else code

    def discard(self, note: Any, room: int) -> int:
        """``ibnue_host_discard``."""
        return self._guarded(note, room, self._host.discard)

    def tend(self, note: Any, room: int) -> int:
        """``ibnue_host_tend``."""
        return self._guarded(note, room, self._host.tend)

    def policies(self, note: Any, room: int) -> int:
        """``ibnue_host_policies``."""
        named: list[bool] = []

        def action() -> str:
            named.append(self._host.has_policies())
            return ""

        code = self._guarded(note, room, action)
        return PENDING if code == TOKEN and not named[0] else code

    def written(self, plan: int, rounds: int, note: Any, room: int) -> int:
        """``ibnue_host_written``."""

        def action() -> str:
            self._host.written(int(plan), int(rounds))
            return ""

        return self._guarded(note, room, action)

    def stop(self) -> int:
        """``ibnue_host_stop``."""
        self._host.stop()
        return TOKEN

    def _text(self, chars: Any) -> str:
        return str(self._ffi.string(chars).decode(errors="replace"))

    def _put(self, buffer: Any, room: int, text: str) -> None:
        data = text.encode()[: room - 1] + b"\0"
        self._ffi.memmove(buffer, data, len(data))

    def _guarded(self, note: Any, room: int, action: Callable[[], str]) -> int:
        try:
            self._put(note, room, escaped(" ".join(action().split())))
        except IbnueError as problem:
            self._put(note, room, escaped(str(problem)))
            return FAILED
        except Exception as problem:  # a traceback would go nowhere that anyone looks
            self._put(note, room, escaped(f"{type(problem).__name__} in the host: {problem}"))
            return FAILED
        return TOKEN


def attach(ffi: Any, python: str, paths: list[str]) -> None:
    """Make a :class:`Host` the implementation of ``host.h``."""
    callbacks = Callbacks(ffi, Host(python, paths))
    for name in ("start", "memory", "send", "wait", "discard", "tend", "policies", "written", "stop"):
        ffi.def_extern(name=f"ibnue_host_{name}")(getattr(callbacks, name))
