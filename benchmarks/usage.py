"""Command-line parser of the benchmarks."""

from __future__ import annotations

import argparse


def parser_of(name: str, doc: str | None) -> argparse.ArgumentParser:
    """Return the parser for ``python -m benchmarks.NAME``, with the module's docstring as description."""
    raw = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=doc, formatter_class=raw)
