"""Write the second half of docs/json.md: the keys of every JSON document, from the schemas in the package."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("json.md")
MARK = "<!-- What follows is written by docs/json_page.py from the schemas. -->\n"
FOLDER = files("routing.cli") / "schemas"
EVERYWHERE = {"schema", "warnings"}
"""Keys that all documents have.  The generated tables leave these keys out, because the text of docs/json.md before
:data:`MARK` describes them.
"""


def kind(part: dict[str, Any]) -> str:
    """Return in words which values a part of a schema allows: a type, a constant, or a link to a definition."""
    if "const" in part:
        return f"`{part['const']}`"
    if "anyOf" in part:
        return " or ".join(kind(each) for each in part["anyOf"])
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "enum" in part:
        return ", ".join(f"`{json.dumps(value)}`" for value in part["enum"])
    kinds = [part["type"]] if isinstance(part["type"], str) else list(part["type"])
    if "array" in kinds:
        kinds[kinds.index("array")] = f"array of {kind(part['items'])}"
    if "object" in kinds and isinstance(part.get("additionalProperties"), dict):
        kinds[kinds.index("object")] = f"object of {kind(part['additionalProperties'])} by name"
    return " or ".join(kinds)


def rows(part: dict[str, Any], above: str = "") -> Iterator[str]:
    """Yield a line of the page's table for each key of an object in a schema, and of the objects inside it.

    ``part`` describes the object.  ``above`` is the path of keys that leads to it, such as ``tables.``.
    """
    for key, value in part.get("properties", {}).items():
        if above or key not in EVERYWHERE:
            yield f"| `{above}{key}` | {kind(value)} | {value['description']} |"
        yield from rows(value, f"{above}{key}.")
        yield from rows(value.get("items", {}), f"{above}{key}[].")
        if isinstance(value.get("additionalProperties"), dict):
            yield from rows(value["additionalProperties"], f"{above}{key}.NAME.")


def section(name: str, schema: dict[str, Any], heading: str, shared: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the page about one schema, or about one definition that several schemas share.

    ``heading`` is the first line.  ``shared`` has the shared definitions by name.  If one of them has the same name as
    the schema, and the schema has all keys of this definition, the page links to the definition.  The page then lists
    only the other keys of the schema.
    """
    yield from ("", heading, "")
    if schema.get("description"):
        yield from (schema["description"], "")
    for each in schema.get("anyOf", [schema]):
        if "$ref" in each:
            yield from (f"- {kind(each)}", "")
        elif "properties" in each:
            inherited = shared.get(name, {}).get("properties", {})
            own = {key: value for key, value in each["properties"].items() if inherited.get(key) != value}
            if inherited and len(each["properties"]) - len(own) == len(inherited):
                yield from (f"The document has the keys of the object [{name}](#{name}), and these keys:", "")
            else:
                own = each["properties"]
            yield from ("| key | type | meaning |", "|---|---|---|", *rows({"properties": own}), "")
        else:
            yield from (kind(each), "")


def generated() -> str:
    """Return the second half of the page."""
    schemas = {path.name.removesuffix(".json"): json.loads(path.read_text("utf-8")) for path in FOLDER.iterdir()
               if path.name.endswith(".json")}  # fmt: skip
    common = schemas.pop("common")
    lines = ["", "## Documents", "", "| schema | document |", "|---|---|"]
    for name, schema in sorted(schemas.items()):
        lines.append(
            f"| [{name}](#{heading_of(name, schema).lower().replace(' ', '-').replace('/', '')}) | {schema['title']} |"
        )
    for name, schema in sorted(schemas.items()):
        lines += section(name, schema, f"## {heading_of(name, schema)}", common["$defs"])
    lines += ["", "## Shared objects"]
    for name, schema in sorted(common["$defs"].items()):
        lines += section(name, schema, f"### {name}", {})
    text = "\n".join(lines).rstrip("\n") + "\n"
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


def heading_of(name: str, schema: dict[str, Any]) -> str:
    """Return the name and version of a schema."""
    part = schema if "properties" in schema else schema["anyOf"][0]
    return str(part["properties"]["schema"]["const"])


def main() -> int:
    """Write the page.  With ``--check``, only compare the page, and return 1 if it is not up to date."""
    text = PAGE.read_text("utf-8")
    wanted = text.partition(MARK)[0] + MARK + generated()
    if "--check" in sys.argv[1:]:
        return int(text != wanted)
    PAGE.write_text(wanted, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
