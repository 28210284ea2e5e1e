"""Registry of the engines by name: engines of this package, and engines of other packages, which an entry point group
names.  Engines are loaded on demand.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from routing.engines.base import Engine
from routing.errors import InputWarning, OptionError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def module_of(name: str) -> str:
    """Return the name of the module of an engine of this package."""
    return name.replace("-", "_")


class UnknownEngine(OptionError, KeyError):
    """Error: no engine has this name, or the package of the engine cannot be loaded."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would put quotes around the message.


class Registry(Mapping[str, Engine]):
    """Mapping of names to engines.  Engines of this package come first, and other packages cannot use their names.

    An engine of this package is loaded when it is requested.  Another package is loaded when its engine is requested by
    name, or when all engines are listed.  If a package cannot be loaded, one warning is issued and its engine is left
    out of the list.  Other engines stay usable.

    Parameters
    ----------
    own
        Names of the engines of this package.  The module of an engine has the name of the engine, with underscores in
        place of hyphens.  The variable ``ENGINE`` of this module is the engine.
    group
        Entry point group of the engines of other packages.
    """

    def __init__(self, own: Iterable[str], group: str) -> None:
        self._own = tuple(own)
        self._loaded: dict[str, Engine] = {}
        self._group = group
        self._broken: dict[str, str] = {}

    @cached_property
    def _points(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # noqa: PLC0415  (slow to load, and seldom needed)

        found: dict[str, EntryPoint] = {}
        for point in sorted(entry_points(group=self._group), key=lambda point: point.name):
            if point.name not in self._own:
                found.setdefault(point.name, point)
        return found

    def _load(self, name: str) -> Engine | None:
        """Load the package of an engine if necessary, and return the engine.  If that fails, issue a single warning and
        return None.
        """
        if name in self._loaded:
            return self._loaded[name]
        if name in self._own:
            return self._loaded.setdefault(name, import_module(f"{__package__}.{module_of(name)}").ENGINE)
        if name in self._broken or name not in self._points:
            return None
        point = self._points[name]
        try:
            self._loaded[name] = point.load()()
        except Exception as problem:  # A package that fails must not make other engines unusable.
            package = point.dist.name if point.dist is not None else "a package"
            self._broken[name] = f"{package} cannot be loaded: {type(problem).__name__}: {problem}"
            warnings.warn(f"engine {name!r} of {self._broken[name]}", InputWarning, stacklevel=3)
            return None
        return self._loaded[name]

    def __getitem__(self, name: str) -> Engine:
        """Return the engine of this name.

        Raises
        ------
        UnknownEngine
            No engine has this name, or its package cannot be loaded.
        """
        engine = self._load(name)
        if engine is not None:
            return engine
        if name in self._broken:
            raise UnknownEngine(f"engine {name!r} of {self._broken[name]}", remedy="repair or remove that package")
        known = sorted(self)
        near = difflib.get_close_matches(name, known, 1, 0.6)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UnknownEngine(f"there is no engine {name!r}", remedy=f"{hint}engines: {', '.join(known)}")

    def __contains__(self, name: object) -> bool:
        """Return whether an engine of this name can be used."""
        return isinstance(name, str) and self._load(name) is not None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of all usable engines; the engines of this package come first."""
        return iter([*self._own, *(name for name in self._points if self._load(name))])

    def __len__(self) -> int:
        """Return the number of engines that can be used."""
        return len(list(iter(self)))
