"""Parse and execute the actions of ``ibnue lab``, such as ``unlink sw1 2``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from routing.errors import OptionError
from routing.numerals import parse_decimal

if TYPE_CHECKING:
    from ibsim_fixtures.lab import Lab
    from ibsim_fixtures.opensm_log import Sweep
    from routing.fabric import Fabric

HELP = "unlink DEVICE [PORT], relink DEVICE [PORT], show, quit"


def read_actions() -> Iterator[str]:
    """Yield the actions that the user types or pipes into standard input, with a prompt on a terminal."""
    watched = sys.stdin.isatty()
    while True:
        if watched:
            click.echo(f"({HELP})\n> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line or line.strip() in ("quit", "exit"):
            return
        if line.strip():
            yield line.strip()


def parse(action: str) -> tuple[str, str, int | None]:
    """Split an action into its word, device and port.

    Returns
    -------
    word : str
        "show", "quit", "unlink" or "relink".
    device : str
        Name of the device; "" if the action has no device.
    port : int or None
        Port number; None if the action has no port.

    Raises
    ------
    OptionError
        The action is unknown.
    """
    match action.split():
        case [("show" | "quit") as word]:
            return word, "", None
        case [("unlink" | "relink") as word, device]:
            return word, device, None
        case [("unlink" | "relink") as word, device, port] if (number := parse_decimal(port)) is not None:
            return word, device, number
    raise OptionError(f"{action!r} is not an action", remedy=HELP)


def validate(action: str, fabric: Fabric) -> None:
    """Check before the lab starts that an action is possible on the fabric.

    Raises
    ------
    OptionError
        The action is unknown, or the fabric does not have the device or cable.
    """
    from routing.faults import parse_fault

    _, device, port = parse(action)
    if device:
        parse_fault(device if port is None else f"{device}/{port}", fabric)


def execute(opened: Lab, action: str) -> Sweep:
    """Execute an action on the running lab, and return OpenSM's sweep that follows it.

    Raises
    ------
    InputError
        The action is unknown, or the fabric does not have the device or port.  An action that would cut off OpenSM is
        also an error, because no sweep could follow.
    """
    word, device, port = parse(action)
    if word == "show":
        return last_sweep(opened)
    if word == "unlink" and opened.cuts_off_opensm(device, port):
        host = opened.ibsim.device(opened.ibsim.sm_host).description
        raise OptionError(f"{action!r} would cut off {host}, on which OpenSM runs", remedy="pull another cable")
    return opened.unlink_live(device, port) if word == "unlink" else opened.relink_live(device, port)


def last_sweep(opened: Lab) -> Sweep:
    """Return OpenSM's latest sweep.  There is always a sweep, because the lab waits for a sweep when it starts."""
    sweep = opened.sweep
    assert sweep is not None
    return sweep
