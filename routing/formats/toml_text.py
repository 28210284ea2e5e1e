"""Parse TOML.  Errors in syntax and in values name file and line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from routing.errors import ParseError
from routing.formats.text import read_text

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_OPEN, _CLOSED = ("[", "{"), ("]", "}")
_TOKEN = re.compile(
    r""""{3}(?:\\.|[^\\])*?"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\])*"|'[^']*'|#[^\n]*|[][{},\n]|[^][{},\s"'#]+""", re.DOTALL
)
"""Pattern of the tokens of TOML: brackets, commas, newlines, strings, comments and other words."""

_TYPE_NAMES = {
    int: "an integer",
    float: "a number",
    str: "a string",
    bool: "true or false",
    list: "an array",
    dict: "a table",
}

Where = tuple[str | int, ...]
"""Path to a value: keys, and indices from 0, as in ``("rule", 2, "ports")``."""


@dataclass(frozen=True)
class Toml:
    """A parsed TOML text, which can report the line number of each value.

    Attributes
    ----------
    table
        Parsed content.
    text
        The text that was parsed.
    path
        File name for error messages.
    """

    table: dict[str, Any]
    text: str
    path: str | Path

    @classmethod
    def of(cls, text: str, path: str | Path) -> Toml:
        """Parse a text, with the errors of :func:`parse_toml`."""
        return cls(parse_toml(text, path), text, path)

    @classmethod
    def read(cls, path: str | Path) -> Toml:
        """Read and parse a TOML file.

        Raises
        ------
        ParseError
            The file is not valid TOML.
        EnvironmentProblem
            The file cannot be read.
        """
        return cls.of(read_text(path), path)

    @cached_property
    def lines(self) -> dict[Where, int]:
        """Line number of every table and key.  The numbers are computed only when an error message needs a number."""
        return _lines(self.text.replace("\r\n", "\n"))

    def line(self, *where: str | int) -> int | None:
        """Return the line number of a value.

        If the file does not have the value, the result is the line number of the innermost table or array that would
        contain the value.  The result is None if the file has no such table or array.
        """
        known = (where[:end] for end in range(len(where), 0, -1))
        return next((self.lines[part] for part in known if part in self.lines), None)

    def error(self, problem: str, *where: str | int, remedy: str | None = None) -> ParseError:
        """Return an error about a value, with the text ``problem`` and the line of the value.  ``where`` is the path to
        the value, as keys and indices.
        """
        return ParseError(problem, path=self.path, line=self.line(*where), remedy=remedy)


def type_names(types: Iterable[type]) -> str:
    """Return a text that names types of values as in TOML, such as "an integer or a string"."""
    found = set(types)
    return " or ".join(_TYPE_NAMES[kind] for kind in types if not (kind is int and float in found))


def parse_toml(text: str, path: str | Path) -> dict[str, Any]:
    """Parse a TOML text, with errors that state the line.

    Parameters
    ----------
    text
        The text to parse.
    path
        File name for error messages.

    Raises
    ------
    ParseError
        The text is not valid TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        at = _AT.search(message)
        problem = message if at is None else message[: at.start()]
        line = int(at[1]) if at and at[1] else max(1, text.count("\n") + (not text.endswith("\n")))
        raise ParseError(f"is not TOML: {problem}", path=path, line=line, remedy="see https://toml.io") from None
    except RecursionError:
        raise ParseError("is not TOML: it is nested too deeply", path=path) from None
    except ValueError:
        raise ParseError("has a number with thousands of digits", path=path, remedy="shorten the number") from None


def _lines(text: str) -> dict[Where, int]:
    found: dict[Where, int] = {}
    arrays: dict[Where, int] = {}
    table_keys: Where = ()
    for number, statement in _statements(text):
        parsed = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table_keys = _table_of(parsed, arrays)
            for end in range(1, len(table_keys) + 1):
                found.setdefault(table_keys[:end], number)
            continue
        items, array = _item_lines(statement, number), _keys_of(parsed)
        for where in _inside(parsed):
            indices = where[len(array) :] if where[: len(array)] == array else ()
            known = (items[indices[:end]] for end in range(len(indices), 0, -1) if indices[:end] in items)
            found.setdefault(table_keys + where, next(known, number))
    return found


def _keys_of(parsed: Any) -> Where:
    """Return the keys of a statement, from the outermost key on.  ``parsed`` is the result of ``tomllib.loads`` for the
    statement.

    For the statement ``a.b = [1]``, the keys are ``a`` and ``b``.
    """
    where: Where = ()
    while isinstance(parsed, dict) and len(parsed) == 1:
        ((key, parsed),) = parsed.items()
        where = (*where, key)
    return where


def _item_lines(statement: str, first: int) -> dict[Where, int]:
    """Return the line number of each item of the array in a statement ``key = [...]``.

    The keys of the result are the indices of an item: ``(2,)`` for the third item of the array, and ``(2, 0)`` for the
    first item of an array at index 2.  ``first`` is the line number at which the statement begins.

    Arrays inside of inline tables are left out, because an inline table is on a single line in TOML.
    """
    found: dict[Where, int] = {}
    line, tables, expected = first, 0, False
    indices: list[int] = []
    for token in _TOKEN.finditer(statement):
        text = token[0]
        if expected and not tables and text not in ("\n", "]") and not text.startswith("#"):
            indices[-1] += 1
            found[tuple(indices)] = line
            expected = False
        tables += (text == "{") - (text == "}")
        if text == "[" and not tables:
            indices.append(-1)
        elif text == "]" and not tables:
            indices.pop()
        expected = (text in ("[", ",") and bool(indices) and not tables) or (expected and text != "]")
        line += text.count("\n")
    return found


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of each statement of a valid TOML text.

    A statement is a table header, or a key with its value.  A statement ends at the first newline outside of brackets.

    Notes
    -----
    Cost: one pass over the text.
    """
    begin, first, line, depth = 0, 1, 1, 0
    for token in _TOKEN.finditer(text):
        found = token[0]
        line += found.count("\n")
        if found in _OPEN:
            depth += 1
        elif found in _CLOSED:
            depth -= 1
        elif found == "\n" and not depth:
            yield first, text[begin : token.start()]
            begin, first = token.end(), line
    yield first, text[begin:]


def _table_of(header: Any, arrays: dict[Where, int]) -> Where:
    """Return the path to the table that a parsed table header begins, as keys and indices.

    ``arrays`` has, for each array of tables (``[[...]]``), the number of its tables before this header.  If the new
    table belongs to such an array, the function increases the number.
    """
    where: Where = ()
    while header:
        if isinstance(header, list):
            arrays[where] = arrays.get(where, 0) + 1
            return (*where, arrays[where] - 1)
        if where in arrays:
            where = (*where, arrays[where] - 1)
        ((key, header),) = header.items()
        where = (*where, key)
    return where


def _inside(value: Any) -> Iterator[Where]:
    """Yield the path to every value inside a value, as keys and indices."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (key,)
        yield from ((key, *where) for where in _inside(item))
