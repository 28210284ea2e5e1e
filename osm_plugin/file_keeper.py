"""Read and write files in a separate process, so that routing continues while a file system does not answer.

A process that waits for a network mount is blocked, and sometimes not even SIGKILL ends it.  So the worker does not
open state files itself.  The worker sends requests to this process, and polls for the answers.  The process copies
files to and from memory.  The process runs this source file, and imports only the standard library.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import stat
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import subprocess

_LONGEST_MESSAGE = 1 << 16
_PIECE = 1 << 16
"""Number of bytes that are copied at once."""
_PR_SET_PDEATHSIG = 1
MOST_SENT = 4
"""Maximum number of requests that are sent before an answer arrives.

Further requests are queued.  A queued write is replaced by a newer write to the same file.
"""

Stamp = tuple[int, ...]


class Reply(NamedTuple):
    """Answer to a request to read or write a file.

    Attributes
    ----------
    kind
        Kind of the request: "look" to read the file, or "put" to write the file.
    path
        Path of the file.
    stamp
        Modification time (ns), size and inode of the file; None if the file does not exist.
    problem
        Reason why the file could not be read or written; "" on success.
    content
        Descriptor of a copy of the file in memory.  The receiver has to close it.  None if the file is unchanged, or
        was not read.
    """

    kind: str
    path: str
    stamp: Stamp | None
    problem: str = ""
    content: int | None = None


class _Task(NamedTuple):
    """A request to read or write a file.  The attributes have the meaning that they have in :class:`Reply`."""

    kind: str
    path: str
    stamp: Stamp | None = None
    content: int | None = None


class FileKeeper:
    """The worker's access to the process that reads and writes files.

    No method waits for a file system.  Only :meth:`receive` waits, for the time that its caller sets.

    Attributes
    ----------
    link
        The socket from which the answers are read; None if the process does not run.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.link: socket.socket | None = None
        self._tasks: deque[_Task] = deque()
        self._sent: deque[_Task] = deque()
        self._since = 0.0

    @property
    def waiting(self) -> str | None:
        """Return the kind of the oldest request without an answer, "look" or "put"; None if all are answered."""
        return self._sent[0].kind if self._sent else None

    @property
    def seconds(self) -> float:
        """Return for how many seconds the process has not answered an open request; 0 if all requests are answered.

        The seconds count from the later of two times: the last answer, and the sending of the oldest open request.
        """
        return time.monotonic() - self._since if self._sent else 0.0

    def inspect(self, path: str, stamp: Stamp | None) -> None:
        """Request the content of a file, unless its stamp (:attr:`Reply.stamp`) still equals ``stamp``."""
        self._add(_Task("look", path, stamp))

    def put(self, path: str, content: int) -> None:
        """Request that the content of a memory file is written to ``path``.

        The descriptor ``content`` of the memory file is closed after it was sent.
        """
        for old in [task for task in self._tasks if task.kind == "put" and task.path == path]:
            self._tasks.remove(old)
            _close(old)
        self._add(_Task("put", path, None, content))

    def receive(self, seconds: float) -> Iterator[Reply]:
        """Yield answers until all requests are answered, or until ``seconds`` have passed."""
        until = time.monotonic() + seconds
        while self._sent and self.link is not None:
            poll = select.poll()
            poll.register(self.link, select.POLLIN)
            left = until - time.monotonic()
            # The waiting time is rounded up to whole milliseconds.  Otherwise a caller that checks the time afterwards
            # could find that a part of ``seconds`` is left.
            if not poll.poll(int(1000 * left) + 1 if left > 0 else 0):
                return
            task, reply = self._sent.popleft(), self._read()
            self._since = time.monotonic()
            if reply is None:
                self.end()
                yield Reply(task.kind, task.path, None, "the process that reads and writes files has died")
            else:
                yield reply
            self._send()

    def end(self) -> None:
        """Kill the process that reads and writes files, even if it is blocked, and drop all requests."""
        for task in self._tasks:
            _close(task)
        self._tasks.clear()
        self._sent.clear()
        if self.link is not None:
            self.link.close()
        if self._process is not None:
            self._process.kill()
            self._process.poll()  # poll() instead of wait(): a process that is blocked in the kernel may never end
        self.link = self._process = None

    def _add(self, task: _Task) -> None:
        self._tasks.append(task)
        self._send()

    def _send(self) -> None:
        """Send queued requests, until :data:`MOST_SENT` requests wait for an answer.

        Several requests are sent at once, so that an answer about one file does not delay the request for another file.
        """
        while self._tasks and len(self._sent) < MOST_SENT:
            task = self._tasks.popleft()
            if not self._sent:
                self._since = time.monotonic()
            self._sent.append(task)
            with suppress(OSError):  # Sending fails if the process has ended.  Reading its answer detects this.
                message = json.dumps({"kind": task.kind, "path": task.path, "stamp": task.stamp}).encode()
                socket.send_fds(self._running(), [message], [] if task.content is None else [task.content])
            _close(task)

    def _read(self) -> Reply | None:
        """Read an answer of the process that reads and writes files; None if this process has died."""
        assert self.link is not None
        try:
            message, descriptors, _, _ = socket.recv_fds(self.link, _LONGEST_MESSAGE, 1)
        except OSError:
            return None
        if not message:
            return None
        answer = json.loads(message)
        stamp = None if answer["stamp"] is None else tuple(answer["stamp"])
        content = descriptors[0] if descriptors else None
        return Reply(answer["kind"], answer["path"], stamp, answer["problem"], content)

    def _running(self) -> socket.socket:
        """Return the socket to the process that reads and writes files.  If this process does not run, start it."""
        import subprocess  # noqa: PLC0415 - only the worker needs it: the other process starts in half of the time

        if self.link is None:
            self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", __file__, str(theirs.fileno()), str(os.getpid())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    cwd="/",
                )
        return self.link


def _close(task: _Task) -> None:
    if task.content is not None:
        os.close(task.content)


def _stamp(about: os.stat_result) -> list[int]:
    return [about.st_mtime_ns, about.st_size, about.st_ino]


def _inspect(path: str, stamp: list[int] | None) -> tuple[dict[str, Any], int | None]:
    """Copy a file into memory, unless its modification time, size and inode equal the values in ``stamp``.

    This function runs in the process that reads and writes files for the worker.

    Returns
    -------
    report
        The values of ``stamp`` and ``problem`` for the :class:`Reply` that the worker receives.  "stamp" has
        modification time, size and inode of the file; None if there is no such file.  "problem" is "", or states that
        the path is a device.
    content
        Descriptor of the copy in memory; None if the file is unchanged or a device, or if there is no such file.
    """
    try:
        about = os.stat(path)  # noqa: PTH116
        if stat.S_ISCHR(about.st_mode):
            return {"stamp": None, "problem": "is a device"}, None
        if _stamp(about) == stamp:
            return {"stamp": stamp, "problem": ""}, None
        source = open(path, "rb")  # noqa: PTH123, SIM115
    except (FileNotFoundError, NotADirectoryError):
        return {"stamp": None, "problem": ""}, None
    with source, open(os.memfd_create("ibnue-state", os.MFD_CLOEXEC), "wb") as copy:  # noqa: PTH123
        found = _stamp(os.fstat(source.fileno()))
        # The file may be another program's file, which is long and has no newline.
        while piece := source.read(_PIECE):
            copy.write(piece)
        copy.flush()
        content = os.dup(copy.fileno())
    return {"stamp": found, "problem": ""}, content


def _put(path: str, content: int) -> dict[str, Any]:
    """Write the content of a memory file to a path atomically.

    This function runs in the process that reads and writes files for the worker.

    Parameters
    ----------
    path
        Path of the file to be written.
    content
        Descriptor of the memory file.

    Returns
    -------
    report
        The values of ``stamp`` and ``problem`` for the :class:`Reply` that the worker receives.  On success, "stamp"
        has modification time, size and inode of the written file, and "problem" is "".  If the path exists, but is not
        a regular file, nothing is written, "stamp" is None, and "problem" is the reason.
    """
    target = os.path.realpath(path)
    if os.path.lexists(target) and not stat.S_ISREG(os.stat(target).st_mode):  # noqa: PTH116
        return {"stamp": None, "problem": "is not a regular file"}
    part = f"{target}.{os.urandom(4).hex()}.part"
    try:
        with open(content, "rb", closefd=False) as whole, open(part, "xb") as copy:  # noqa: PTH123
            whole.seek(0)
            while piece := whole.read(_PIECE):
                copy.write(piece)
        os.replace(part, target)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(part)  # noqa: PTH108
        raise
    return {"stamp": _stamp(os.stat(target)), "problem": ""}  # noqa: PTH116


def _serve(link: socket.socket) -> None:
    """Answer requests of the worker to read or write files, until the worker closes the socket ``link``.

    This function is the main loop of the process that reads and writes files for the worker.
    """
    while True:
        message, descriptors, _, _ = socket.recv_fds(link, _LONGEST_MESSAGE, 1)
        if not message:
            return
        asked, content = json.loads(message), None
        try:
            if asked["kind"] == "put":
                report = _put(asked["path"], descriptors[0])
            else:
                report, content = _inspect(asked["path"], asked["stamp"])
        except OSError as problem:
            what = "written" if asked["kind"] == "put" else "read"
            report = {"stamp": None, "problem": f"cannot be {what}: {(problem.strerror or str(problem)).lower()}"}
        answer = json.dumps({"kind": asked["kind"], "path": asked["path"], **report}).encode()
        socket.send_fds(link, [answer], [] if content is None else [content])
        for descriptor in [*descriptors, *([] if content is None else [content])]:
            os.close(descriptor)


def _main(descriptor: int, parent: int) -> int:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() == parent:
        with suppress(OSError):  # The connection breaks when the worker has ended.
            _serve(socket.socket(fileno=descriptor))
    return 0


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1]), int(sys.argv[2])))
