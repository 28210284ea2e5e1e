"""What can be done to a running lab, in words: ``unlink sw1 2``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from routing.errors import OptionError
from routing.numerals import decimal

if TYPE_CHECKING:
    from ibsim_fixtures.lab import Lab
    from ibsim_fixtures.opensm_log import Sweep
    from routing.fabric import Fabric

HELP = "unlink DEVICE [PORT], relink DEVICE [PORT], show, quit"


def typed() -> Iterator[str]:
    """Deeds from standard input, with a prompt on a terminal."""
    watched = sys.stdin.isatty()
    while True:
        if watched:
            click.echo(f"({HELP})\n> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line or line.strip() in ("quit", "exit"):
            return
        if line.strip():
            yield line.strip()


def parse(deed: str) -> tuple[str, str, int | None]:
    """A deed as its word, device and port ("" and None where there is none).

    Raises
    ------
    OptionError
        No such deed.
    """
    match deed.split():
        case [("show" | "quit") as word]:
            return word, "", None
        case [("unlink" | "relink") as word, device]:
            return word, device, None
        case [("unlink" | "relink") as word, device, port] if (number := decimal(port)) is not None:
            return word, device, number
    raise OptionError(f"{deed!r} cannot be done", remedy=HELP)


def foresee(deed: str, fabric: Fabric) -> None:
    """See that a deed can be done, before anything is started for it.

    Raises
    ------
    OptionError
        No such deed, device or cable.
    """
    from routing.faults import parse_fault

    _, device, port = parse(deed)
    if device:
        parse_fault(device if port is None else f"{device}/{port}", fabric)


def do(opened: Lab, deed: str) -> Sweep:
    """Do a deed; the sweep that it led to.

    Raises
    ------
    InputError
        No such deed, device or port.
    """
    word, device, port = parse(deed)
    if word == "show":
        return last_sweep(opened)
    return opened.unlink_live(device, port) if word == "unlink" else opened.relink_live(device, port)


def last_sweep(opened: Lab) -> Sweep:
    """The latest sweep; there is one, as the lab waits for it when it starts."""
    sweep = opened.sweep
    assert sweep is not None
    return sweep
