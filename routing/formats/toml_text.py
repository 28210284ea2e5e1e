"""TOML, with errors that name file and line."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from routing.errors import ParseError

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def parse_toml(text: str, path: str | Path) -> dict[str, Any]:
    """What a TOML text says.

    Parameters
    ----------
    text
        The text.
    path
        Where it comes from, for the error.

    Raises
    ------
    ParseError
        It is no TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        told = str(error)
        at = _AT.search(told)
        problem = told if at is None else told[: at.start()]
        line = int(at[1]) if at and at[1] else max(1, len(text.splitlines()))
        raise ParseError(f"is no TOML: {problem}", path=path, line=line, remedy="see https://toml.io") from None
    except RecursionError:
        raise ParseError("is no TOML: it is nested too deeply", path=path) from None
