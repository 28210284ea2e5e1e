"""``ibnue completion``: print the completion script for a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    ibnue completion bash > ~/.local/share/bash-completion/completions/ibnue
    ibnue completion zsh > ~/.zfunc/_ibnue
    ibnue completion fish > ~/.config/fish/completions/ibnue.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "the choice above allows no other"
    click.echo(kind(ctx.find_root().command, {}, "ibnue", "_IBNUE_COMPLETE").source())
