"""Command-line parser that all benchmarks share."""

from __future__ import annotations

import argparse


def parser_of(name: str, doc: str | None) -> argparse.ArgumentParser:
    """Return the parser for ``python -m benchmarks.NAME``; ``doc`` is the description that ``--help`` prints."""
    raw = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=doc, formatter_class=raw)
