"""The fixture fabrics: small ones that each show one thing, for tests, demonstrations and the first look at an engine.

>>> from ibsim_fixtures.catalogue import FIXTURES
>>> FIXTURES["ring-4"].purpose
'The smallest ring on which shortest paths can close a credit loop'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from routing.formats.toml_text import parse_toml

FOLDER = Path(__file__).parent / "fabrics"
INDEX = FOLDER / "index.toml"


@dataclass(frozen=True)
class Recipe:
    """How a fixture is made by a generator.

    Attributes
    ----------
    topology, args, options
        What :func:`routing.topologies.generate` takes.
    without
        Cables to pull afterwards: name of a switch, and its port.
    """

    topology: str
    args: tuple[str, ...]
    options: Mapping[str, object] = field(default_factory=dict)
    without: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Fixture:
    """A fixture fabric.

    Attributes
    ----------
    name, purpose
        Its name, and what it is for, in one line.
    path, picture
        The net file, and a picture of it (SVG).
    connected
        Whether every end port is on a switch and all switches hang together.
    layout
        How it is drawn: circle, grid, levels, groups.
    recipe
        How it is made, or None if its net file was written by hand.
    """

    name: str
    purpose: str
    path: Path
    picture: Path
    connected: bool
    layout: str = "circle"
    recipe: Recipe | None = None


def _fixture(name: str, entry: Mapping[str, Any]) -> Fixture:
    recipe = None
    if "topology" in entry:
        topology, *args = entry["topology"].split()
        without = [place.rsplit(" ", 1) for place in entry.get("without", ())]
        recipe = Recipe(topology, tuple(args), entry.get("options", {}), tuple((s, int(p)) for s, p in without))
    return Fixture(
        name=name,
        purpose=entry["purpose"],
        path=FOLDER / f"{name}.net",
        picture=FOLDER / f"{name}.svg",
        connected=entry["connected"],
        layout=entry.get("layout", "circle"),
        recipe=recipe,
    )


def _read_index(path: Path) -> Mapping[str, Fixture]:
    entries = parse_toml(path.read_text(encoding="utf-8"), path)
    return MappingProxyType({name: _fixture(name, entry) for name, entry in entries.items()})


FIXTURES: Mapping[str, Fixture] = _read_index(INDEX)
"""Every fixture fabric by name, in the order of the index."""
