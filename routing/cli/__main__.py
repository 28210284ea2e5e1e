"""Run the ``ibnue`` command as ``python -m routing.cli``."""

import sys

from routing.cli import main
from routing.isolation import import_path


def start() -> None:
    """Remove the working directory from Python's import path, then run the command line.

    Otherwise a file in the working directory could be imported in place of an installed package.
    """
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
