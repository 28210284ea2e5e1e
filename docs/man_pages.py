"""Write a man page for every command of ibnue, from its arguments and options: ``python docs/man_pages.py FOLDER``."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from routing import __version__
from routing.cli.command import COMMANDS
from routing.cli.command import main as ibnue

VERBATIM = "\b\n"
"""Mark at the beginning of a paragraph in a help text.  Click prints the lines of such a paragraph unchanged."""


def commands(context: click.Context) -> Iterator[click.Context]:
    """Yield the Click context of a command, followed by the contexts of its subcommands at all depths."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            if not command.hidden:
                yield from commands(click.Context(command, info_name=name, parent=context))


def escape(text: str) -> str:
    """Return a text with the escapes that make troff print it unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text in troff."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith(VERBATIM):
            yield f".PP\n.nf\n.RS\n{escape(paragraph.removeprefix(VERBATIM))}\n.RE\n.fi"
        else:
            yield f".PP\n{escape(' '.join(paragraph.split()))}"


def listed(entries: list[tuple[str, str]]) -> Iterator[str]:
    """Yield a list of terms with their descriptions in troff."""
    for term, description in entries:
        yield f".TP\n.B {escape(term)}\n{escape(' '.join(description.split()))}"


def summary(context: click.Context) -> str:
    """Return the one-line description of a command, as ``ibnue --help`` lists it."""
    if context.parent is None:
        return "compute and prove the routes of InfiniBand fabrics"
    above = context.parent.parent is None
    return COMMANDS[context.info_name or ""] if above else context.command.get_short_help_str(200)


def page(context: click.Context) -> str:
    """Return the man page of a command."""
    command, name = context.command, context.command_path
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [
        f'.TH "{escape(name.replace(" ", "-").upper())}" 1 "" "ibnue {__version__}" "ibnue"',
        f".SH NAME\n{escape(name.replace(' ', '-'))} \\- {escape(summary(context).rstrip('.'))}",
        f".SH SYNOPSIS\n.B {escape(name)}\n{escape(usage)}",
        ".SH DESCRIPTION",
        *paragraphs(command.help or ""),
    ]
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    if options:
        parts += [".SH OPTIONS", *listed([record for each in options if (record := each.get_help_record(context))])]
    below = [each for each in commands(context) if each.parent is context]
    if below:
        parts += [".SH COMMANDS", *listed([(each.info_name or "", summary(each)) for each in below])]
    others = below or [each for each in (context.parent,) if each is not None]
    if command.epilog:
        parts += [".SH NOTES", *paragraphs(command.epilog)]
    seen = ", ".join(f"\\fB{escape(each.command_path.replace(' ', '-'))}\\fR(1)" for each in others)
    return "\n".join([*parts, f".SH SEE ALSO\n{seen}", ""])


def main(folder: Path) -> int:
    """Write all man pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for context in commands(click.Context(ibnue, info_name="ibnue", **ibnue.context_settings)):
        (folder / f"{context.command_path.replace(' ', '-')}.1").write_text(page(context), encoding="utf-8")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/man_pages.py FOLDER")
    sys.exit(main(Path(sys.argv[1])))
