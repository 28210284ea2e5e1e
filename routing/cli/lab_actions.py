"""Parse and execute the actions of ``ibnue lab``, such as ``unlink sw1 2``."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from routing.cli.command import report_error
from routing.errors import OptionError, ParseError
from routing.names import labels_of
from routing.numerals import parse_decimal

if TYPE_CHECKING:
    from ibsim_fixtures.lab import Lab
    from ibsim_fixtures.opensm_log import Sweep
    from routing.fabric import Fabric

HELP = "unlink DEVICE [PORT], relink DEVICE [PORT], show, quit"


def read_actions(fabric: Fabric) -> Iterator[str]:
    """Yield the actions that the user types or pipes into standard input, with a prompt on a terminal.

    On a terminal, an action that is not possible on the fabric is reported, and the next one is read.

    Raises
    ------
    ParseError
        A piped action is unknown, or the fabric does not have the device or cable.
    """
    watched = sys.stdin is not None and sys.stdin.isatty()
    for number in itertools.count(1):
        if watched:
            click.echo(f"({HELP})\n> ", nl=False, err=True)
        line = "" if sys.stdin is None else sys.stdin.readline()
        if not line or line.strip() in ("quit", "exit"):
            return
        if action := line.strip():
            try:
                resolve(action, fabric)
            except OptionError as error:
                if not watched:
                    raise ParseError(error.problem, path="standard input", line=number, remedy=error.remedy) from None
                report_error(error, as_json=False)
                continue
            yield action


def parse(action: str) -> tuple[str, str, int | None]:
    """Split an action into its word, device and port.

    Returns
    -------
    word : str
        "show", "quit", "unlink" or "relink".
    device : str
        Name of the device, which may contain spaces, or its GUID; "" if the action has no device.
    port : int or None
        Port number; None if the action has no port.

    Raises
    ------
    OptionError
        The action is unknown.
    """
    word, *rest = action.split(maxsplit=1) or [""]
    if word in ("show", "quit") and not rest:
        return word, "", None
    if word not in ("unlink", "relink") or not rest:
        raise OptionError(f"{action!r} is not an action", remedy=HELP)
    device, *last = rest[0].rsplit(maxsplit=1)
    number = parse_decimal(last[0]) if last else None
    return word, rest[0].strip() if number is None else device, number


def resolve(action: str, fabric: Fabric) -> tuple[str, int, int | None]:
    """Split an action into its word, the node GUID of its device, and its port.

    The GUID is 0 if the action has no device.  The port is None if the action has no port.

    A user cannot name a device by its LID, because OpenSM assigns new LIDs in the lab.

    Raises
    ------
    OptionError
        The action is unknown, or the fabric does not have the device or cable.
    """
    from routing.endports import find_device
    from routing.faults import parse_fault
    from routing.faults.model import node_guids

    word, device, port = parse(action)
    if not device:
        return word, 0, None
    if device.isdecimal() and device not in (*fabric.switch_name, *fabric.terminal_name):
        raise OptionError(f"{action!r}: {device} is not a device", remedy="name it by name or GUID, not by LID")
    guids = node_guids(fabric).tolist()
    try:
        found = find_device(fabric, device)
        if port is not None:
            parse_fault(f"{labels_of((*fabric.switch_name, *fabric.terminal_name), guids)[found]}/{port}", fabric)
    except OptionError as error:
        raise OptionError(f"{action!r}: {error}", remedy=HELP) from None
    return word, guids[found], port


def execute(opened: Lab, action: str, fabric: Fabric) -> Sweep:
    """Execute an action on the running lab of a fabric, and return OpenSM's sweep after the action.

    The action "show" causes no sweep.  The result is then the latest sweep.

    Raises
    ------
    InputError
        The action is unknown, or the fabric does not have the device or port.  An action that would cut off OpenSM is
        also an error, because no sweep could follow.
    """
    word, device, port = resolve(action, fabric)
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
