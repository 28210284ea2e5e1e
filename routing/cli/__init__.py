"""The ``ibnue`` command: the only place that prints."""

from routing.cli.command import main

__all__ = ["main"]
