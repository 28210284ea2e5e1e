"""Implement the functions of ``host.h``, through which the C part of the plugin (the shim) calls Python.

The functions never raise an exception into C.  On success they return :data:`TOKEN` instead of 0, because cffi returns
0 if Python itself fails.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from osm_plugin.build_info import protocol
from osm_plugin.host import Host, StillComputing, WorkerReplaced
from routing.errors import IbnueError
from routing.names import escape_control

TOKEN = 0x1B0E
PENDING = 0x1B0F
LATE = 0x1B10
REPLACED = 0x1B11
FAILED = -1
_CODES: dict[type[IbnueError], int] = {StillComputing: LATE, WorkerReplaced: REPLACED}
Result = TypeVar("Result")


class Callbacks:
    """Implementation of ``host.h``, with one method for each function ``ibnue_host_*``.  Arguments are cffi values."""

    def __init__(self, ffi: Any, host: Host) -> None:
        self._ffi = ffi
        self._host = host

    def start(self, options: Any, log: Any, configured: Any, names: Any, names_room: int, note: Any, room: int) -> int:  # noqa: PLR0917
        """Start the worker, and write the names of its engines to ``names``, one per line (``ibnue_host_start``).

        ``options`` is OpenSM's option event_plugin_options, ``log`` the path of OpenSM's log, and ``configured``
        OpenSM's option routing_engine.  ``names_room`` is the size of ``names`` in bytes.
        """

        def action() -> str:
            engines, line = self._host.start(*map(self._text, (options, log, configured)))
            self._put(names, names_room, "\n".join(engines))
            return line

        return self._called(note, room, action)[0]

    def memory(self, descriptor: Any, generation: Any, note: Any, room: int) -> int:
        """Pass to C the file descriptor of the memory that is shared with the worker (``ibnue_host_memory``).

        The method stores the file descriptor in ``descriptor``.  In ``generation``, it stores how many workers were
        started so far.  If this number has changed, C has to map the memory of a new worker.
        """
        code, found = self._called(note, room, self._host.memory)
        if found is not None:
            descriptor[0], generation[0] = found
        return code

    def send(self, engine: Any, sequence: int, note: Any, room: int) -> int:
        """Notify the worker of a request in the shared memory (``ibnue_host_send``).

        Return TOKEN on success.  Return REPLACED if the worker has ended and another worker is started.  Return FAILED
        after any other error.

        ``sequence`` is the number of the request, and ``engine`` the engine that computes the tables.
        """
        return self._called(note, room, lambda: self._host.send(self._text(engine), sequence))[0]

    def wait(self, sequence: int, milliseconds: int, note: Any, room: int) -> int:
        """Wait for the worker's answer (``ibnue_host_wait``).

        Return one of these codes:

        - TOKEN: the answer has arrived, and its line for the log is in ``note``.
        - PENDING: there is no answer yet, and the deadline has not passed.
        - LATE: the deadline has passed, and the worker still computes.
        - REPLACED: the worker has ended, stalled or sent an invalid message, and another worker is started.
        - FAILED: the worker has refused the request, or another error has occurred.

        ``sequence`` is the number of the request.  The method waits for at most ``milliseconds``.
        """
        code, line = self._called(note, room, lambda: self._host.wait(sequence, milliseconds / 1000))
        return PENDING if code == TOKEN and line is None else code

    def awaited(self, note: Any, room: int) -> int:
        """Return a code that states whether OpenSM should sweep (``ibnue_host_awaited``).

        TOKEN: OpenSM should sweep now.  PENDING: a sweep may be needed later.  FAILED: no sweep is needed, or the host
        has failed.
        """
        code, found = self._called(note, room, self._host.awaited)
        return FAILED if code != TOKEN or found is None else TOKEN if found else PENDING

    def discard(self, note: Any, room: int) -> int:
        """Replace a worker whose tables turned out to be wrong (``ibnue_host_discard``)."""
        return self._called(note, room, self._host.discard)[0]

    def check_worker(self, note: Any, room: int) -> int:
        """Check the worker, and replace it if it has ended (``ibnue_host_check_worker``)."""
        return self._called(note, room, self._host.check_worker)[0]

    def policies(self, note: Any, room: int) -> int:
        """Return whether the configuration names a file of port rules (``ibnue_host_policies``).

        Return TOKEN if it names such a file, and PENDING if not.  If the configuration cannot be read, write the reason
        to ``note``, which has ``room`` bytes, and return FAILED.
        """
        code, named = self._called(note, room, self._host.has_policies)
        return PENDING if code == TOKEN and not named else code

    def written(self, plan: int, rounds: int, note: Any, room: int) -> int:
        """Record how many rounds of an update schedule all switches have acknowledged (``ibnue_host_written``).

        ``plan`` is the number of the update schedule, and ``rounds`` the number of acknowledged rounds.
        """
        return self._called(note, room, lambda: self._host.written(int(plan), int(rounds)))[0]

    def status(self, facts: Any, note: Any, room: int) -> int:
        """Update the status file with the facts that the shim reports (``ibnue_host_status``)."""
        return self._called(note, room, lambda: self._host.status(self._text(facts)))[0]

    def shadow(self, in_force: Any, descriptor: Any, generation: Any, note: Any, room: int) -> int:
        """Pass to C the memory that the shadow engine's worker shares with OpenSM (``ibnue_host_shadow``).

        Return TOKEN on success.  Return PENDING if no worker has to check the tables in force.  Return FAILED after an
        error.

        ``in_force`` is the engine whose tables OpenSM uses.  ``descriptor`` and ``generation`` are set as in
        :meth:`memory`.
        """
        code, found = self._called(note, room, lambda: self._host.shadow(self._text(in_force)))
        if found:
            descriptor[0], generation[0] = found[0]
        return PENDING if code == TOKEN and not found else code

    def shadow_send(self, in_force: Any, own_sls: int, sequence: int, note: Any, room: int) -> int:
        """Ask the shadow engine's worker to compare its own tables with the tables in force
        (``ibnue_host_shadow_send``).

        ``in_force`` is the engine whose tables OpenSM uses.  ``own_sls`` states whether this engine assigns SLs.
        ``sequence`` is the number of the request in the shared memory.
        """
        call = self._host.shadow_send
        return self._called(note, room, lambda: call(self._text(in_force), bool(own_sls), int(sequence)))[0]

    def stop(self) -> int:
        """End the worker, and write the last status (``ibnue_host_stop``)."""
        self._host.stop()
        return TOKEN

    def _text(self, chars: Any) -> str:
        return str(self._ffi.string(chars).decode(errors="replace"))

    def _put(self, buffer: Any, room: int, text: str) -> None:
        data = text.encode()[: room - 1] + b"\0"
        self._ffi.memmove(buffer, data, len(data))

    def _called(self, note: Any, room: int, action: Callable[[], Result]) -> tuple[int, Result | None]:
        """Call a function, and write a line for the log to ``note``, which has ``room`` bytes.

        If the function returns a text, the line is this text.  If the function fails, the line is the error message.
        Otherwise the line is empty.

        Returns
        -------
        code
            TOKEN, or the reason of a failure: LATE, REPLACED or FAILED.
        result
            The result of the function; None if it failed.
        """
        try:
            found = action()
            self._put(note, room, escape_control(" ".join(found.split())) if isinstance(found, str) else "")
        except IbnueError as problem:
            self._put(note, room, escape_control(str(problem)))
            return _CODES.get(type(problem), FAILED), None
        except Exception as problem:  # OpenSM logs the text in ``note``, whereas a traceback would be lost.
            self._put(note, room, escape_control(f"{type(problem).__name__} in the host: {problem}"))
            return FAILED, None
        return TOKEN, found


FUNCTIONS = tuple(name for name in vars(Callbacks) if not name.startswith("_"))


def attach(ffi: Any, python: str, paths: list[str], library_protocol: str = "") -> None:
    """Make a :class:`Host` execute the functions of ``host.h``.  If the protocols of library and package differ, each
    of these functions fails with an error message instead.

    The plugin library calls ``attach`` when OpenSM loads the library.  The arguments except ``ffi`` are constants,
    which were written into the library when it was built.

    ``ffi`` is the cffi object of the library, ``python`` the path of the interpreter, and ``paths`` the folders to put
    on ``sys.path``.  ``library_protocol`` is the protocol of the library; very old libraries pass none.
    """
    if library_protocol != protocol():
        _refuse_all(ffi, library_protocol or "none")
        return
    callbacks = Callbacks(ffi, Host(python, paths))
    for name in FUNCTIONS:
        ffi.def_extern(name=f"ibnue_host_{name}")(getattr(callbacks, name))


def _refuse_all(ffi: Any, library_protocol: str) -> None:
    text = (
        f"the library has protocol {library_protocol}, but the package has {protocol()}: "
        "run 'ibnue plugin install' again, and start OpenSM again"
    ).encode()

    def refuse(*arguments: Any) -> int:
        # A function of ``host.h`` with more than one argument can report an error to the C part.  Its last two
        # arguments are the buffer ``note`` and the buffer's size ``room``.
        if len(arguments) > 1:
            note, room = arguments[-2:]
            ffi.memmove(note, text[: room - 1] + b"\0", min(len(text), room - 1) + 1)
        return FAILED

    for name in FUNCTIONS:
        # An older library may lack the function `name`.  Then cffi raises an error, which is ignored.
        with contextlib.suppress(ffi.error):
            ffi.def_extern(name=f"ibnue_host_{name}")(refuse)
