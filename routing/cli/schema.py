"""``ibnue schema``: print the JSON Schema of a command's JSON."""

from __future__ import annotations

import json

import click
from click.shell_completion import CompletionItem

from routing.cli.json_schemas import load_schema, schema_names
from routing.cli.output import print_rows
from routing.errors import OptionError
from routing.names import similar_or


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return matching names of schemas for shell completion."""
    return [CompletionItem(name) for name in schema_names() if name.startswith(incomplete)]


@click.command()
@click.argument("name", required=False, shell_complete=complete)
def schema(*, name: str | None) -> int:
    """Print the JSON Schema (draft 2020-12) with this NAME.  There are schemas for the output of commands with --json,
    for JSON files, and for error messages.

    \b
    ibnue schema                  list all schemas
    ibnue schema check            the JSON of ibnue check --json
    ibnue schema plugin-status    the JSON of ibnue plugin status --json
    """
    names = schema_names()
    if name is None:
        print_rows([(each, load_schema(each)["title"]) for each in names])
        return 0
    if name not in names:
        remedy = similar_or("ibnue schema lists them", name, names)
        raise OptionError(f"there is no schema {name!r}", remedy=remedy)
    click.echo(json.dumps(load_schema(name), indent=2))
    return 0
