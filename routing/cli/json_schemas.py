"""Load the JSON Schemas of everything that ibnue prints or writes as JSON.

A schema is the file ``schemas/NAME.json`` of this package.  It may refer to definitions in ``schemas/common.json``,
which are copied into the schema when the schema is loaded, so that a loaded schema needs no other file.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

COMMON = "common"
_FOLDER = files("routing.cli") / "schemas"


def schema_names() -> list[str]:
    """Return the names of all schemas, such as "check" for the JSON of ``ibnue check``."""
    names = (entry.name.removesuffix(".json") for entry in _FOLDER.iterdir() if entry.name.endswith(".json"))
    return sorted(name for name in names if name != COMMON)


def load_schema(name: str) -> dict[str, Any]:
    """Return a schema together with all definitions that it uses.

    Raises
    ------
    KeyError
        There is no schema of that name.
    """
    if name not in schema_names():
        raise KeyError(name)
    schema = _read(name)
    own = schema.pop("$defs", {})
    available = {**_read(COMMON)["$defs"], **own}
    used: dict[str, Any] = {}
    waiting = [schema]
    while waiting:
        for definition in _references(_internal(waiting.pop())):
            if definition not in used:
                used[definition] = _internal(available[definition])
                waiting.append(used[definition])
    bundled: dict[str, Any] = _internal(schema)
    return {**bundled, "$defs": {key: used[key] for key in sorted(used)}} if used else bundled


def _read(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return schema


def _internal(part: Any) -> Any:
    """Return a copy of a part of a schema.  In the copy, references to definitions in ``common.json`` become references
    to definitions of the same names in the schema itself.
    """
    if isinstance(part, dict):
        return {
            key: value.removeprefix("common.json") if key == "$ref" else _internal(value) for key, value in part.items()
        }
    return [_internal(each) for each in part] if isinstance(part, list) else part


def _references(part: Any) -> list[str]:
    """Return the names of all definitions to which a part of a schema refers."""
    if isinstance(part, dict):
        found = [part["$ref"].removeprefix("#/$defs/")] if "$ref" in part else []
        return found + [name for value in part.values() for name in _references(value)]
    return [name for each in part for name in _references(each)] if isinstance(part, list) else []
