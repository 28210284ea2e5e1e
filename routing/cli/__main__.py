"""``python -m routing.cli`` is ``ibnue``."""

from routing.cli import main

if __name__ == "__main__":  # workers of an MPI job import the main module of their master
    main()
