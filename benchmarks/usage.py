"""The command line of a benchmark: its name, and what its module says of itself."""

from __future__ import annotations

import argparse


def parser_of(name: str, doc: str | None) -> argparse.ArgumentParser:
    """For ``python -m benchmarks.NAME``, with the whole text of the module."""
    raw = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=doc, formatter_class=raw)
