"""``python -m routing.cli`` is ``ibnue``."""

from routing.cli import main

main()
