"""Declaration of one engine option.

The command line and OpenSM's process load this module, so it imports nothing that is slow to load.
"""

from __future__ import annotations

import enum
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from routing.errors import OptionError
from routing.numerals import parse_decimal

Source = Literal["command", "plugin", "sweep"]
"""Place that can set an option: the command line, the plugin's configuration, an engine of a sweep."""

_NAMES: Mapping[type, str] = {
    bool: "true or false", int: "an integer", float: "a number", str: "a string", list: "an array",
}  # fmt: skip
"""Names of the types of values in error messages."""
_KINDS: Mapping[type, type | tuple[type, ...]] = {
    bool: bool, int: numbers.Integral, float: numbers.Real, str: str, list: (list, tuple, str),
}  # fmt: skip
"""For each type of an option in TOML: the types in Python that are accepted as this type.

A string is accepted as an array here, because the later conversion to an array raises a clearer error.
"""

_FLAGS = {"": True, "true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Option:
    """One option of :class:`routing.engines.base.EngineOptions`.

    Attributes
    ----------
    types
        Types of the value in TOML and JSON.
    help, what
        Help text, and noun for the value in error messages.
    range, words
        The lowest and the highest allowed number (as a pair), and the allowed words.  If an option has neither, every
        value of its types is allowed.
    make
        Function that converts a value in TOML to the option's value.  The function raises ValueError if the value is
        not allowed.
    name, default
        Name and default value, as in :class:`routing.engines.base.EngineOptions`.
    flag, metavar
        Name of the option on the command line, and placeholder for its value in the help text; None: derived from the
        name and the types.
    sources
        Places that can set the option.
    recorded, changes_tables
        Whether the provenance of the tables records the value, and whether the tables depend on the value.
    refusal
        Texts of the error if an engine does not support the option: the problem and the remedy.  None: every engine
        supports the option.
    harmless
        A second value, besides the default, that engines without support for the option accept.
    """

    types: tuple[type, ...]
    help: str
    what: str = ""
    range: tuple[Any, Any] | None = None
    words: tuple[str, ...] = ()
    make: Callable[[Any], Any] = lambda value: value
    name: str = ""
    default: Any = None
    flag: str | None = None
    metavar: str | None = None
    sources: tuple[Source, ...] = ("command", "plugin", "sweep")
    recorded: bool = True
    changes_tables: bool = True
    refusal: tuple[str, str] | None = None
    harmless: object = None

    def parse(self, text: str) -> Any:
        """Convert a text to the value that the option would have in TOML.  Raise ValueError if this fails."""
        if bool in self.types and text.lower() in _FLAGS:
            return _FLAGS[text.lower()]
        if str in self.types and (text in self.words or self.range is None):
            self.make(text)
            return text
        if float in self.types and "_" not in text:
            return float(text)
        number = parse_decimal(text) if int in self.types else None
        if number is None or (self.words and not self.fits(number)):
            raise ValueError(f"{text!r} is neither {' nor '.join(self._values)}")
        return number

    def fits(self, value: Any) -> bool:
        """Return whether a value is in the range of the option."""
        if self.range is None or type(value) is str:
            return plain(value) in self.words or not self.words
        return (type(value) in self.types or not self.words) and bool(self.range[0] <= value <= self.range[1])

    def check(self, value: Any) -> None:
        """Check a value of the option.  Raise OptionError if the value has a wrong type or is out of range."""
        if not self._has_type(value):
            what = self.what or f"value of {self.name}"
            raise OptionError(f"{value!r} is not a valid {what}", option=self.name, remedy=f"use {self._type_names}")
        if value is not self.default and not self.fits(value):
            raise OptionError(f"{value!r} is not a valid {self.what}", option=self.name, remedy=f"use {self.wanted}")

    def _has_type(self, value: Any) -> bool:
        """Return whether a value has the type that the option has in TOML or in :class:`EngineOptions`.

        If an option allows both words and a range of numbers, the result is True for every type.  For such an option,
        :meth:`check` raises an error that lists the possible values.
        """
        if not self.types or (self.words and self.range is not None) or value is self.default is None:
            return True
        if isinstance(value, bool):
            return bool in self.types
        if isinstance(self.make, type) and isinstance(value, self.make):
            return True
        return isinstance(value, tuple(_KINDS[kind] for kind in self.types))

    def convert(self, value: Any) -> Any:
        """Convert a value from TOML, JSON or the command line to a value of the option; None stays None.

        Raises
        ------
        OptionError
            The option cannot have this value.
        """
        try:
            return None if value is None else self.make(value)
        except OptionError:
            raise
        except ValueError:
            known = f"one of {', '.join(self.words)}"
            raise OptionError(f"unknown {self.name} {value!r}", option=self.name, remedy=known) from None

    @property
    def wanted(self) -> str:
        """Description of the possible values: range and words, or the types if the option has neither."""
        return " or ".join(", ".join(self._values).rsplit(", ", 1)) or self._type_names

    @property
    def _type_names(self) -> str:
        return " or ".join(_NAMES[kind] for kind in self.types if not (kind is int and float in self.types))

    @property
    def _values(self) -> list[str]:
        ends = [str(end) for end in self.range or ()]
        return [" to ".join(ends).replace(str(2**31 - 1), "2^31-1"), *self.words] if ends else [*self.words]


def plain(value: object) -> object:
    """Return the value of an enumeration's member as it is written in JSON; return any other value unchanged."""
    return value.value if isinstance(value, enum.Enum) else value
