"""Declaration of one engine option: kind and range of its values, help text, and the places that can set it.

The command line and OpenSM's process load this module, so it imports nothing that is slow to load.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routing.errors import OptionError
from routing.numerals import decimal

MAX_DATA_VLS = 15
"""Number of data VLs of InfiniBand, as :data:`routing.tables.DATA_VLS`."""

_FLAGS = {"": True, "true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Kind:
    """Kind of value of an option.

    Attributes
    ----------
    types
        Types of the value in TOML and JSON.
    fits
        Function that returns whether a value is in the range.
    remedy
        Remedy if it is not.
    parse
        Function that returns the value in TOML for a text; ValueError if the text denotes none.
    convert
        Function that returns the option's value for a value in TOML; ValueError if there is none.
    range
        Lowest and highest number; None if the values are no numbers.
    words
        All values, if they are words.
    """

    types: tuple[type, ...] = ()
    fits: Callable[[Any], bool] = lambda _: True
    remedy: str = ""
    parse: Callable[[str], Any] = str
    convert: Callable[[Any], Any] = lambda value: value
    range: tuple[Any, Any] | None = None
    words: tuple[str, ...] = ()


def whole(low: int, high: int) -> Kind:
    """Return the kind of whole numbers of a range."""
    remedy = f"use {low} to {'2^31-1' if high == 2**31 - 1 else high}"
    return Kind((int,), lambda value: low <= value <= high, remedy, _whole, range=(low, high))


def real(low: float, high: float) -> Kind:
    """Return the kind of numbers of a range, whole or not."""
    return Kind((int, float), lambda value: low <= value <= high, f"use {low:g} to {high:g}", _real, range=(low, high))


def choice(words: tuple[str, ...], make: Callable[[str], Any] = str) -> Kind:
    """Return the kind of some words; `make` returns the option's value for a word, or raises ValueError."""
    return Kind(
        (str,), lambda value: plain(value) in words, f"use {' or '.join(words)}", lambda text: str(plain(make(text))),
        make, words=words,
    )  # fmt: skip


def _whole(text: str) -> int:
    number = decimal(text)
    if number is None:
        raise ValueError(text)
    return number


def _real(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _vl_count(text: str) -> int | str:
    value = text if text in ("min", "auto") else decimal(text)
    if value is None or not _is_vl_count(value):
        raise ValueError(f"{text!r} is neither 1 to {MAX_DATA_VLS} nor min nor auto")
    return value


def _is_vl_count(value: int | str) -> bool:
    return value in ("min", "auto") or (type(value) is int and 1 <= value <= MAX_DATA_VLS)


def _flag(text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise ValueError(text)
    return _FLAGS[text.lower()]


VL_COUNT = Kind((int, str), _is_vl_count, f"use 1 to {MAX_DATA_VLS}, min or auto", _vl_count)
"""Number of data VLs, or "min", or "auto"."""
FLAG = Kind((bool,), parse=_flag)
"""Yes or no."""
NAMES = Kind((list,), convert=lambda value: tuple(map(str, value)))
"""Any number of names."""
FILE = Kind((str,), convert=Path)
"""Path of a file to read."""
LINK_WEIGHTS = Kind(fits=lambda value: all(weight > 0 for *_, weight in value), remedy="use positive ones")
"""Triples of switch GUID, out-port and weight."""


class Source(enum.Flag):
    """Places that can set an option."""

    NONE = 0
    COMMAND = enum.auto()
    """Command line of the commands that route."""
    PLUGIN = enum.auto()
    """Tables ``[engine]`` of the plugin's configuration."""
    SWEEP = enum.auto()
    """Engines of a sweep, such as ``nue:vls=4``."""
    ALL = COMMAND | PLUGIN | SWEEP


@dataclass(frozen=True)
class Option:
    """One option of :class:`routing.engines.base.EngineOptions`.

    Attributes
    ----------
    kind
        Kind and range of the values.
    help
        Help text.
    what
        Noun for the value in error messages.
    name, default
        Name and default value, which the dataclass states.
    flag, metavar
        Option and metavariable of the command line; None: derived from the name and the kind.
    sources
        Places that can set the option.
    recorded
        Whether the provenance of the tables records the value.
    changes_tables
        Whether the tables depend on the value.
    refusal
        Problem and remedy of the error of an engine that does not support the option; None: every engine supports it.
    harmless
        Values besides the default that every engine accepts.
    """

    kind: Kind
    help: str
    what: str = ""
    name: str = ""
    default: Any = None
    flag: str | None = None
    metavar: str | None = None
    sources: Source = Source.ALL
    recorded: bool = True
    changes_tables: bool = True
    refusal: tuple[str, str] | None = None
    harmless: tuple[object, ...] = ()

    def convert(self, value: Any) -> Any:
        """Return the value of the option for a value from TOML, JSON or the command line; None stays.

        Raises
        ------
        OptionError
            There is no such value.
        """
        try:
            return None if value is None else self.kind.convert(value)
        except ValueError:
            raise OptionError(f"unknown {self.name} {value!r}", remedy=f"one of {', '.join(self.kind.words)}") from None


def plain(value: object) -> object:
    """Return the value of an enumeration's member as JSON has it; any other value unchanged."""
    return value.value if isinstance(value, enum.Enum) else value
