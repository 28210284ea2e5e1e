"""Records of benchmark runs: what a run printed, and how its figures differ from the figures of an earlier run."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])|(?<![\w.])\d+\.\d+")
TIMED = re.compile(r"\b(ms|s|second|seconds|MB|route|proof)\b")
"""Words that mark a line, or the head of a table column, as one with times or memory sizes.

Such figures differ from run to run.
"""
NOISE = 2.0
"""If one of two records has only one run, times that differ by at most this factor may differ by noise alone."""


@dataclass(frozen=True)
class Record:
    """A run of a benchmark.

    Attributes
    ----------
    command, page
        The command, and the page of docs/ that shows its figures.
    date, machine, commit
        Date of the run; processor type, system and Python version of the machine; and the commit that was run.
    seconds, exit_status
        Wall time and exit status of the run.
    output
        The lines that the benchmark printed on standard output.
    again
        The lines that the further runs of the same command printed: a list for each run after the first one.
    """

    command: str
    page: str
    date: str
    machine: str
    commit: str
    seconds: float
    exit_status: int
    output: list[str]
    again: list[list[str]] = field(default_factory=list)


def run(command: Sequence[str], page: str, root: Path, repeat: int = 1) -> Record:
    """Run a benchmark ``repeat`` times, and return its record.

    The output of the first run is also printed, line by line, while the benchmark runs.  After a run that fails, no
    further run starts, and the record has the exit status of this run.

    Parameters
    ----------
    command
        Arguments of the Python interpreter that run the benchmark.
    page
        Page of docs/ that shows the figures of the benchmark.
    root
        Root of the repository, where the benchmark runs.
    repeat
        Number of runs.
    """
    start = time.monotonic()
    status, lines = _run(command, root, shown=True)
    again: list[list[str]] = []
    while len(again) + 1 < repeat and not status:
        status, more = _run(command, root, shown=False)
        again.append(more)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=root, check=False, capture_output=True, text=True
    )
    return Record(
        command=" ".join(["python", *command]),
        page=page,
        date=time.strftime("%Y-%m-%d"),
        machine=f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        commit=commit.stdout.strip(),
        seconds=round(time.monotonic() - start, 1),
        exit_status=status,
        output=lines,
        again=again,
    )


def _run(command: Sequence[str], root: Path, *, shown: bool) -> tuple[int, list[str]]:
    """Run a command once, and return its exit status and the lines that it prints.

    With ``shown``, the lines are also printed while the command runs.
    """
    lines: list[str] = []
    with subprocess.Popen([sys.executable, *command], cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if shown:
                print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    return process.returncode, lines


def read(path: Path) -> dict[str, Record]:
    """Read records from a JSON file, and return them in a dictionary with the names of the benchmarks as keys."""
    return {name: Record(**record) for name, record in json.loads(path.read_text(encoding="utf-8")).items()}


def write(path: Path, records: dict[str, Record]) -> None:
    """Write records into a JSON file, sorted by the names of their benchmarks."""
    text = json.dumps({name: asdict(record) for name, record in sorted(records.items())}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def differences(stored: Record, found: Record, tolerance: float) -> Iterator[str]:
    """Compare two records of a benchmark, and yield a line of text for each difference.

    Only lines with numbers are compared.  A line of one output is compared with the line of the other output that is
    equal apart from its numbers.  A line without such a counterpart is a difference.  A figure is a time if its line,
    or the head of its table column, names seconds or memory.

    The difference of a time is marked "noise" if the machine may have caused the difference.  If both records have
    several runs, this is so if the ranges of their times overlap.  Otherwise, this is so if the two times differ by at
    most the factor :data:`NOISE`.

    Parameters
    ----------
    stored
        The earlier record.
    found
        The new record.
    tolerance
        Share of the stored figure by which the new figure may differ.
    """
    before, after = _by_text(stored.output), _by_text(found.output)
    more = [[_by_text(lines) for lines in record.again] for record in (stored, found)]
    for text in [*before, *(text for text in after if text not in before)]:
        old, new = before.get(text, []), after.get(text, [])
        for row, ((line, head), (other, _)) in enumerate(zip(old, new, strict=False)):
            ranges = [_ranges(text, row, runs) for runs in more]
            for place, ((was, timed), (now, _)) in enumerate(
                zip(_figures(line, head), _figures(other, head), strict=True)
            ):
                if abs(float(now) - float(was)) > tolerance * abs(float(was)) + 1e-9:
                    known = [float(was), *ranges[0].get(place, ())], [float(now), *ranges[1].get(place, ())]
                    kind = "figure" if not timed else "noise " if _is_noise(*known) else "time  "
                    yield f"{kind}  {was} -> {now}: {other.strip()}"
        for line, _ in old[len(new) :]:
            yield f"gone    {line.strip()}"
        for line, _ in new[len(old) :]:
            yield f"new     {line.strip()}"


def _ranges(text: str, row: int, runs: Sequence[dict[str, list[tuple[str, str]]]]) -> dict[int, list[float]]:
    """Return the values that the numbers of one output line have in the further runs of a benchmark.

    The key is the position of a number in the line, counted from 0.  The value is a list with the number's value in
    each further run.

    Parameters
    ----------
    text
        The line, with ``#`` in place of each number.
    row
        Position of the line among the lines with the same text.
    runs
        The results of :func:`_by_text` for the further runs.
    """
    values: dict[int, list[float]] = defaultdict(list)
    for lines in runs:
        for line, head in lines.get(text, [])[row : row + 1]:
            for place, (value, _) in enumerate(_figures(line, head)):
                values[place].append(float(value))
    return values


def _is_noise(before: Sequence[float], after: Sequence[float]) -> bool:
    """Return whether the machine alone may have caused the difference between the times of two records.

    If each record has several times, the result is whether the ranges of the times overlap.  If a record has one time
    only, the result is whether the first times of the two records differ by at most the factor :data:`NOISE`.
    """
    if len(before) > 1 and len(after) > 1:
        return min(before) <= max(after) and min(after) <= max(before)
    low, high = sorted((before[0], after[0]))
    return high <= NOISE * low


def _by_text(output: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return the lines of an output that contain numbers, grouped by their text.

    The key of a group is the text with ``#`` in place of each number.  The group has a pair for each line: the line,
    and the head of its table.  The head is empty if the line is in no table.
    """
    lines: dict[str, list[tuple[str, str]]] = defaultdict(list)
    head, above = "", ""
    for line in output:
        if re.match(r"\|[ :-]*-", line):
            head = above
        elif not line.startswith("|"):
            head = ""
        above = line
        if NUMBER.search(line):
            lines[NUMBER.sub("#", line)].append((line, head))
    return dict(lines)


def _figures(line: str, head: str) -> Iterator[tuple[str, bool]]:
    """Yield each number of a line, with True if the number is a time or a memory size, otherwise False.

    ``head`` is the head of the line's table, or an empty text if the line is in no table.
    """
    cells = line.split("|") if head else [line]
    titles = head.split("|") if head else [line]
    for number, cell in enumerate(cells):
        timed = number < len(titles) and TIMED.search(titles[number]) is not None
        for figure in NUMBER.findall(cell):
            yield figure, timed


def tables(output: Sequence[str]) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the title and the rows of each Markdown table of an output.

    The title is the last line of text above the table.  A row is the list of its cells.  The first row is the head of
    the table.
    """
    title, rows = "", list[list[str]]()
    for line in [*output, ""]:
        if line.startswith("|"):
            if not re.match(r"\|[ :-]*-", line):
                rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
            continue
        if len(rows) > 1:
            yield title, rows
        rows = []
        title = line.strip() or title
