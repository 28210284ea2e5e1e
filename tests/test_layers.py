"""A package imports only packages of lower layers, and there are at most ten layers."""

import ast
import functools
import re
from pathlib import Path

import pytest
from statements import statements

ROOT = Path(__file__).parents[1]
PACKAGES = ("routing", "osm_plugin", "ibsim_fixtures", "ibnue")
COMMAND_ONLY = {"click", "rich", "routing.cli"}
MOST_LAYERS = 10


@functools.cache
def imported(path):
    """Return the full names of all modules that a file imports, including imports inside functions."""
    found = []
    for part in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(part, ast.Import):
            found += [name.name for name in part.names]
        elif isinstance(part, ast.ImportFrom) and part.module:
            found += [part.module, *(f"{part.module}.{name.name}" for name in part.names)]
    return found


def refused(path):
    """Return the modules that a file must not import."""
    package, *inside = path.relative_to(ROOT).parts
    if package == "ibnue":
        return {"osm_plugin", "ibsim_fixtures"}
    if package == "routing" and inside[0] == "cli":
        return set()
    others = {
        "routing": {"osm_plugin", "ibsim_fixtures", "ibnue"},
        "osm_plugin": {"ibsim_fixtures", "ibnue"},
        "ibsim_fixtures": {"osm_plugin", "ibnue"},
    }
    return COMMAND_ONLY | others[package]


def page():
    return (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def layers():
    """Return the layer of each package and of each single module of ``routing``, as docs/architecture.md draws them."""
    rows = re.findall(r"^ +(\d+)  ([a-z_ ]+)$", page(), re.MULTILINE)
    return [(name, int(number)) for number, names in rows for name in names.split()]


def members():
    """Return the files of each package and of each single module of ``routing``."""
    found = {name: sorted((ROOT / name).rglob("*.py")) for name in PACKAGES if name != "routing"}
    for path in (ROOT / "routing").rglob("*.py"):
        name = path.relative_to(ROOT / "routing").parts[0].removesuffix(".py")
        if name != "__init__":
            found.setdefault(name, []).append(path)
    return found


def package_of(name):
    """Return the package, or the single module of ``routing``, to which a module belongs; None for other
    distributions.
    """
    first, *rest = name.split(".")
    if first == "routing":
        return rest[0] if rest else None
    return first if first in PACKAGES else None


def test_packages_import_only_packages_of_lower_layers():
    layer, files = dict(layers()), members()
    assert sorted(name for name, _ in layers()) == sorted(files)
    for name, paths in files.items():
        lower = range(1, max(layer[name], 2))  # Modules of layer 1 may import each other.
        for path in paths:
            others = {package_of(module) for module in imported(path)} - {name, None}
            wrong = {other for other in others & set(layer) if layer[other] not in lower}
            assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"


def test_layers_are_few_and_the_lowest_one_has_no_packages():
    numbers = [number for _, number in layers()]
    assert numbers == sorted(numbers, reverse=True)
    assert set(numbers) == set(range(1, max(numbers) + 1))
    assert max(numbers) <= MOST_LAYERS
    assert all((ROOT / "routing" / f"{name}.py").is_file() for name, number in layers() if number == 1)


def test_contents_of_all_packages_are_described():
    described = re.findall(r"^\| `routing/(\w+)` \|", page(), re.MULTILINE)
    assert sorted(described) == sorted(path.parent.name for path in (ROOT / "routing").glob("*/__init__.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_layers(package):
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        for name in imported(path):
            wrong = [room for room in refused(path) if name == room or name.startswith(f"{room}.")]
            assert not wrong, f"{path.relative_to(ROOT)} imports {name}"
