"""The ``ibnue`` command line: the only package that prints."""

from routing.cli.command import main

__all__ = ["main"]
