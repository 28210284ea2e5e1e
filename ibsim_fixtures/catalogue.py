"""List the fixture fabrics: small fabrics for tests and demonstrations, each with one special property.

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
    """Recipe to generate a fixture fabric: topology, options, and cables to remove.

    Attributes
    ----------
    topology, args, options
        Arguments of :func:`routing.topologies.generate`.
    without
        Cables to remove after generation.  Each cable is given as the name of a switch and the number of its port.
    """

    topology: str
    args: tuple[str, ...]
    options: Mapping[str, object] = field(default_factory=dict)
    without: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Fixture:
    """Fixture fabric: a small fabric for tests and demonstrations, with its file and picture.

    Attributes
    ----------
    name
        Name of the fabric.
    purpose
        What the fabric shows, in one line.
    path
        Path of the net file, which describes the fabric in ibsim's format.
    picture
        Path of the picture of the fabric (SVG).
    connected
        Whether every end port is cabled to a switch and all switches are connected.
    layout
        Layout of the switches in the picture: circle, grid, levels, tiers or groups.
    recipe
        Recipe to generate the net file.  None if the file was written by hand.
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
        without = [position.rsplit(" ", 1) for position in entry.get("without", ())]
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
"""All fixture fabrics by name, in the order of the index file."""
