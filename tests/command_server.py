"""Run commands of ``ibnue`` as processes that need not load Python modules again.

A server process loads all modules of the package, and starts a process for each command.  The process of a command has
the standard streams, the working directory and the environment of its client.  The client is a small program that a
shell runs in place of ``ibnue``.  tests/test_imports.py checks that modules can be loaded in any order.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import routing
import routing.cli.__main__ as program
from ibsim_fixtures.processes import kill_with_parent
from routing.cli import main

CLIENT = """
import array, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect("\\0" + sys.argv[1])
    streams = array.array("i", [0, 1, 2])
    server.sendmsg([b"s"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    words = [os.getcwd(), str(len(variables)), *variables, *sys.argv[2:]]
    server.sendall(b"\\0".join(os.fsencode(word) for word in words))
    server.shutdown(socket.SHUT_WR)
    sys.exit(int(server.recv(16)))
"""
SERVER = "import command_server; command_server.serve()"


@contextlib.contextmanager
def shell_function(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run a server, and return the definition of a shell function ``ibnue`` that runs commands through the server.

    ``folder`` is the working directory of the server.  The name of the server's socket is abstract, because the path of
    a socket may have only 107 bytes.
    """
    name = f"ibnue-commands-{os.getpid()}-{os.urandom(4).hex()}"
    folders = [*environment["PYTHONPATH"].split(os.pathsep), str(Path(__file__).parent)]
    server = subprocess.Popen(
        kill_with_parent([sys.executable, "-c", SERVER, name]),
        cwd=folder, env={**environment, "PYTHONPATH": os.pathsep.join(folders)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert server.stdout.readline() == b"ready\n"
        words = [sys.executable, "-I", "-S", "-c", CLIENT, name]
        yield f'ibnue() {{ {shlex.join(words)} "$@"; }}\n'
    finally:
        server.kill()
        server.communicate()


def serve() -> None:
    """Run ``ibnue`` with a server in place of its command line."""
    program.main = _serve
    program.start()


def _serve() -> None:
    """Start a process for each command of a client.  The processes of commands return from this function."""
    for module in pkgutil.walk_packages(routing.__path__, "routing."):
        with contextlib.suppress(ImportError):  # of optional packages
            importlib.import_module(module.name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("\0" + sys.argv[1])
        listening.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # The server does not wait for its processes.
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            client, _ = listening.accept()
            if os.fork() == 0:
                break
            client.close()
    with client:
        sys.argv[1:] = _received(client)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        command = os.fork()
        if command:
            _, status = os.waitpid(command, 0)
            client.sendall(str(os.waitstatus_to_exitcode(status) % 256).encode())
            os._exit(0)
    main()


def _received(client: socket.socket) -> list[str]:
    """Take the streams, the environment and the working directory of a client, and return the words of its command."""
    _, streams, *_ = socket.recv_fds(client, 1, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    with client.makefile("rb") as text:
        folder, count, *words = (os.fsdecode(word) for word in text.read().split(b"\0"))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(word.split("=", 1) for word in words[: int(count)])
    return words[int(count) :]
