"""A package imports only packages of lower layers."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("routing", "osm_plugin", "ibsim_fixtures", "ibnue")
COMMAND_ONLY = {"click", "rich", "routing.cli"}


def imported(path):
    """Full names of all modules that a file imports, inside functions too."""
    for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(part, ast.Import):
            yield from (name.name for name in part.names)
        elif isinstance(part, ast.ImportFrom) and part.module:
            yield part.module
            yield from (f"{part.module}.{name.name}" for name in part.names)


def refused(path):
    """What a file must not import."""
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


def listed():
    """Packages of `routing`, from the bottom up, as the page on the architecture lists them."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `routing/(\w+)` \|", page, re.MULTILINE)


def test_packages_import_only_those_listed_before_them():
    order = listed()
    assert sorted(order) == sorted(path.parent.name for path in (ROOT / "routing").glob("*/__init__.py"))
    for height, package in enumerate(order):
        above = {f"routing.{name}" for name in order[height + 1 :]}
        for path in sorted((ROOT / "routing" / package).rglob("*.py")):
            wrong = {name for name in imported(path) if ".".join(name.split(".")[:2]) in above}
            assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"


@pytest.mark.parametrize("package", PACKAGES)
def test_layers(package):
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        for name in imported(path):
            wrong = [room for room in refused(path) if name == room or name.startswith(f"{room}.")]
            assert not wrong, f"{path.relative_to(ROOT)} imports {name}"
