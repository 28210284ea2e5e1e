"""A room imports only what stands below it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("routing", "osm_plugin", "ibsim_fixtures")
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
    if package == "routing" and inside[0] == "cli":
        return set()
    return COMMAND_ONLY | {"routing": {"osm_plugin", "ibsim_fixtures"}, "osm_plugin": {"ibsim_fixtures"}}.get(
        package, {"osm_plugin"}
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_rooms(package):
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        for name in imported(path):
            wrong = [room for room in refused(path) if name == room or name.startswith(f"{room}.")]
            assert not wrong, f"{path.relative_to(ROOT)} imports {name}"
