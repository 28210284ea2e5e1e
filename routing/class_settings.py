"""Classes of end ports, their weights in traffic, and the settings of classes that the command line and the plugin's
configuration offer.

The command line and the plugin load this module at their start, so it imports nothing that is slow to load.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from routing.errors import OptionError
from routing.numerals import parse_decimal

MAX_WEIGHT = 100


class PortClass(enum.IntEnum):
    """Class of an end port.  Users write the name of a class in lower case."""

    COMPUTE = 0
    STORAGE = 1
    IO = 2
    MANAGEMENT = 3
    AGGREGATION = 4

    @property
    def label(self) -> str:
        """Name of the class in options, files and reports."""
        return self.name.lower()

    @classmethod
    def of(cls, label: str) -> PortClass:
        """Return the class with this label; raise OptionError if there is no such class."""
        for each in cls:
            if each.label == label:
                return each
        raise OptionError(f"unknown class {label!r} of end ports", remedy=f"one of {', '.join(CLASS_LABELS)}")


CLASS_LABELS = tuple(each.label for each in PortClass)


@dataclass(frozen=True)
class Weight:
    """Weight of an end port in traffic, as two whole numbers: one as a source and one as a destination.

    A compute port has the weight 1 as a source and as a destination by default.

    Attributes
    ----------
    source, destination
        Factors of the traffic that the end port sends, and of the traffic that it receives.
    """

    source: int = 1
    destination: int = 1

    def __post_init__(self) -> None:
        if not (0 <= self.source <= MAX_WEIGHT and 0 <= self.destination <= MAX_WEIGHT):
            raise OptionError(f"{self.source}:{self.destination} is not a weight", remedy=f"use 0 to {MAX_WEIGHT}")

    @classmethod
    def parse(cls, value: int | str) -> Weight:
        """Return the weight for a number, or for a text such as ``4`` or ``1:4`` (source and destination).

        Raises
        ------
        OptionError
            The value is not a weight.
        """
        numbers = [parse_decimal(word) for word in str(value).split(":")]
        if len(numbers) > 2 or None in numbers:
            raise OptionError(f"{value!r} is not a weight", remedy="write a number, or SOURCE:DESTINATION such as 1:4")
        source, destination = numbers[0], numbers[-1]
        assert source is not None and destination is not None
        return cls(source, destination)


@dataclass(frozen=True)
class ClassSetting:
    """One setting of the classes of end ports, on the command line and in the plugin's configuration.

    Attributes
    ----------
    key, types
        Key of the setting in the TOML table of the class, and types of its value.
    flag, metavar, help
        Name, form of the argument, and help text of the option on the command line.
    is_file
        Whether the value is a path.
    """

    key: str
    types: tuple[type, ...]
    flag: str
    metavar: str
    help: str
    is_file: bool = False


SETTINGS = (
    ClassSetting(
        "names", (list,), "--class", "CLASS=PATTERN",
        "Give a class to the end ports of devices whose name matches PATTERN: storage, io, management, compute or "
        "aggregation; repeatable.",
    ),
    ClassSetting(
        "guid_file", (str,), "--class-file", "CLASS=FILE",
        "Give a class to the end ports that FILE lists: node or port GUIDs, as in OpenSM's cn_guid_file; repeatable.",
        True,
    ),
    ClassSetting(
        "weight", (int, str), "--class-weight", "CLASS=N|S:D",
        "Traffic of an end port of CLASS relative to a compute port; S:D: S as a source, D as a destination.",
    ),
)  # fmt: skip
"""All settings of a class.  The options of the command line and of the plugin's configuration derive from these
settings.
"""
