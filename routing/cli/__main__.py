"""``python -m routing.cli`` is ``ibnue``."""

import sys

from routing.cli import main


def start() -> None:
    """Run the command line in a process that is its own."""
    # igraph loads what it could draw with, where that is installed, which takes longer than most commands; nothing here
    # has it draw.
    for drawing in ("matplotlib", "cairocffi", "cairo"):
        sys.modules.setdefault(drawing, None)  # type: ignore[arg-type]  # None: there is no such module
    main()


if __name__ == "__main__":  # workers of an MPI job import the main module of their master
    start()
