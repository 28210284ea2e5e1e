"""Run the ``ibnue`` command as ``python -m routing.cli``."""

import os
import sys

from routing.cli import main
from routing.isolation import import_path


def open_standard_streams() -> None:
    """Open closed standard streams on the null device, so that no other file gets their file descriptors.

    A write to standard output then fails, as on a full disk.  Text for standard error is discarded.  If standard input
    is closed, ``sys.stdin`` stays None.
    """
    for stream, mode in ((sys.stdin, os.O_WRONLY), (sys.stdout, os.O_RDONLY), (sys.stderr, os.O_WRONLY)):
        if stream is None:  # os.open returns the lowest free file descriptor, which is that of the closed stream.
            os.set_inheritable(os.open(os.devnull, mode), True)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def start() -> None:
    """Remove the working directory from Python's import path, then run the command line.

    Otherwise a file in the working directory could be imported in place of an installed package.
    """
    open_standard_streams()
    # igraph imports its drawing backends if they are installed, which takes longer than most commands.  No command
    # draws with igraph, so the backends are hidden.
    for drawing in ("matplotlib", "cairocffi", "cairo", "wcwidth"):
        sys.modules.setdefault(drawing, None)  # type: ignore[arg-type]  # None makes the import fail
    sys.path[:] = import_path()
    main()


# A worker process of MPI imports this module under a name other than __main__.  So the following condition is false in
# a worker, and the worker does not run the command.
if __name__ == "__main__":
    start()
