"""Run random faults and repairs under a running OpenSM, with checks after each event: ``ibnue lab --soak``."""

from __future__ import annotations

import json
import re
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from routing.cli.command import FINDING
from routing.cli.output import echo_lines, fabric_object, print_json, print_rows, spinner
from routing.errors import EnvironmentProblem, OptionError
from routing.numerals import count_noun

if TYPE_CHECKING:
    from ibsim_fixtures.soak import Outcome, Summary
    from routing.fabric import Fabric

LEDGER = "ibnue-soak-ledger/2"
_LENGTH = re.compile(r"([0-9]{1,18})(s|min|h)?")
_SECONDS = {"s": 1, "min": 60, "h": 3600}


def length(text: str) -> tuple[int | None, float | None]:
    """Parse the length of a soak (a run of random faults and repairs): a number of events, or a duration.

    Examples are "100", "90s", "30min" and "8h".

    Returns
    -------
    events : int or None
        Number of events; None for a duration.
    seconds : float or None
        Duration in seconds; None for a number of events.

    Raises
    ------
    OptionError
        The text is neither a number nor a duration.
    """
    found = _LENGTH.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise OptionError(
            f"{text!r} is not a length for --soak", remedy="give a number of events or a time: 100, 90s, 30min, 8h"
        )
    number = int(found[1])
    return (number, None) if found[2] is None else (None, float(number * _SECONDS[found[2]]))


def open_ledger(path: Path, head: dict[str, Any]) -> TextIO:
    """Create the file of results.  The file has one JSON object per line; the first object is ``head``.  Each line is
    written as soon as its result is known.

    Raises
    ------
    OptionError
        The file exists already.
    EnvironmentProblem
        The file cannot be written.
    """
    try:
        ledger = path.open("x", encoding="utf-8", buffering=1)
    except FileExistsError:
        raise OptionError(f"{path} exists already", remedy="name a new ledger, or remove it") from None
    except OSError as problem:
        raise EnvironmentProblem(
            f"cannot be written: {(problem.strerror or str(problem)).lower()}", path=path
        ) from None
    ledger.write(json.dumps({"schema": LEDGER, **head}) + "\n")
    return ledger


def soak(
    subnet: Fabric,
    engine: str,
    opensm_engine: str | None,
    *,
    source: str | None,
    text: str,
    seed: int,
    ledger: Path | None,
    as_json: bool,
) -> int:
    """Run random faults and repairs, print the outcome of each event, write the outcomes to a file, and return the exit
    status.
    """
    from ibsim_fixtures.lab import Lab
    from ibsim_fixtures.soak import Soak, summary
    from routing.cli.lab_setup import fresh_route, opensm_settings

    events, seconds = length(text)
    fresh = fresh_route(engine) if opensm_engine is None else None
    asked = engine if opensm_engine is None else f"OpenSM's {opensm_engine}"
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="ibnue-soak-") as folder, ExitStack() as stack:
        head = {"fabric": fabric_object(subnet, source), "engine": asked, "seed": seed, "length": text}
        book = None if ledger is None else stack.enter_context(open_ledger(ledger, head))
        with spinner("building the plugin and starting OpenSM"):
            lab = stack.enter_context(Lab(**opensm_settings(Path(folder), subnet, engine, opensm_engine)))
        plan = None if opensm_engine else lab.opensm.folder / "ibnue-state.npz"
        with suppress(KeyboardInterrupt):  # Ctrl-C ends the run.  The outcomes so far are reported.
            for outcome in Soak(lab, seed=seed, plan=plan, fresh=fresh).run(events=events, seconds=seconds):
                outcomes.append(outcome)
                if book is not None:
                    book.write(json.dumps(outcome.as_object()) + "\n")
                if not as_json:
                    echo_lines(line(outcome))
        found = summary(outcomes)
        if book is not None:
            book.write(json.dumps({"summary": found.as_object()}) + "\n")
    if as_json:
        done = [outcome.as_object() for outcome in outcomes]
        print_json("ibnue-soak/1", {**head, "events": done, "summary": found.as_object()})
    else:
        echo_lines()
        print_rows(facts(found))
    return 0 if all(outcome.good for outcome in outcomes) else FINDING


def line(outcome: Outcome) -> str:
    """Format the outcome of an event as one line."""
    action = " ".join(filter(None, [outcome.action, outcome.fault]))
    size = f"{count_noun(outcome.switches, 'switch')}, {count_noun(outcome.endports, 'end port')}"
    took = "kept its tables" if outcome.routing_ms is None else f"routed in {outcome.routing_ms:.0f} ms"
    changed = f"{count_noun(outcome.changed, 'entry')} changed"
    if shares := outcome.kept.describe():
        changed += f", {shares}"
    return f"{outcome.number:>5}  {action}: {size}; {took}, {changed}; {verdict(outcome)}"


def verdict(outcome: Outcome) -> str:
    """Format the verdict on an event: proven, or what has failed."""
    if outcome.good:
        planned = "" if outcome.as_planned is None else ", as planned"
        return f"proven ({outcome.strength}){planned}"
    if outcome.problem:
        return f"FAILED: {outcome.problem}"
    wrong = [
        text
        for bad, text in (
            (not outcome.as_cabled, "ibnetdiscover does not see all cables that should be left"),
            (not outcome.as_dumped, "the tables in the switches differ from OpenSM's dump"),
            (outcome.as_planned is False, "the tables in force differ from those that the plugin planned"),
            (not outcome.complete, "routes are missing"),
            (not outcome.certified, "not proven free of credit loops"),
        )
        if bad
    ]
    return f"FAILED: {', '.join(wrong)}"


def facts(found: Summary) -> list[tuple[str, str]]:
    """Return the summary of all events as rows of a name and a text."""

    def memory(kb: tuple[float, float]) -> str:
        return f"{kb[0] / 1024:.1f} MiB in the second fifth of the events, {kb[1] / 1024:.1f} MiB in the last"

    return [
        ("events", f"{found.events}, {found.good} of them without a problem"),
        ("OpenSM", memory(found.opensm_kb)),
        ("worker", memory(found.worker_kb)),
        ("routing", f"{found.routing_ms:.1f} ms, {found.changed:.0f} entries changed (medians)"),
        (
            "reading",
            f"{found.look_ms[0] / 1e3:.2f} s to read back and prove an event, {found.look_ms[1] / 1e3:.2f} s at most",
        ),
    ]
