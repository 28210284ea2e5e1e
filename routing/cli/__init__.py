"""Implement the ``ibnue`` command line.  This is the only package that prints."""

from routing.cli.command import main

__all__ = ["main"]
