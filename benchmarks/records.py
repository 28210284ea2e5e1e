"""Records of benchmark runs: what a run printed, and how its figures differ from those of an earlier run."""

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
"""Words in a line or in the head of its table that mark times and sizes, which differ from run to run."""
NOISE = 2.0
"""Factor between two times of single runs up to which the difference may be noise."""


@dataclass(frozen=True)
class Record:
    """A run of a benchmark.

    Attributes
    ----------
    command, page
        The command, and the page of docs/ that shows its figures.
    date, machine, commit
        When, where and of which commit the run was.
    seconds, exit_status
        Wall time and exit status of the run.
    output
        The lines that the benchmark printed on standard output.
    again
        The lines that further runs of the command printed.
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
    """Run a benchmark ``repeat`` times, and return its record.  The output of the first run is printed while it comes.

    The record has the exit status of the first run that fails.
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
    """Run a command, and return its exit status and its output."""
    lines: list[str] = []
    with subprocess.Popen([sys.executable, *command], cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if shown:
                print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    return process.returncode, lines


def read(path: Path) -> dict[str, Record]:
    """Return the records in a file by the name of the benchmark."""
    return {name: Record(**record) for name, record in json.loads(path.read_text(encoding="utf-8")).items()}


def write(path: Path, records: dict[str, Record]) -> None:
    """Write records into a file, in the order of their names."""
    text = json.dumps({name: asdict(record) for name, record in sorted(records.items())}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def differences(stored: Record, found: Record, tolerance: float) -> Iterator[str]:
    """Yield a line for each figure that differs by more than a share of the stored one, and for each line of the output
    that only one of the records has.

    Lines belong together if they are equal apart from their numbers.  A figure is a time if its line, or the head of
    its column, names seconds or memory.  A time is marked "noise" if its difference may come from the machine: the
    ranges of several runs overlap, or two single runs differ by less than a factor of :data:`NOISE`.
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
    """Return the values of each figure of a line in further runs, by the place of the figure."""
    values: dict[int, list[float]] = defaultdict(list)
    for lines in runs:
        for line, head in lines.get(text, [])[row : row + 1]:
            for place, (value, _) in enumerate(_figures(line, head)):
                values[place].append(float(value))
    return values


def _is_noise(before: Sequence[float], after: Sequence[float]) -> bool:
    """Return whether two groups of times may have the same cause."""
    if len(before) > 1 and len(after) > 1:
        return min(before) <= max(after) and min(after) <= max(before)
    low, high = sorted((before[0], after[0]))
    return high <= NOISE * low


def _by_text(output: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return the lines of an output by their text without numbers, each with the head of its table or an empty text."""
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
    """Yield the numbers of a line, each with whether it is a time or a size."""
    cells = line.split("|") if head else [line]
    titles = head.split("|") if head else [line]
    for number, cell in enumerate(cells):
        timed = number < len(titles) and TIMED.search(titles[number]) is not None
        for figure in NUMBER.findall(cell):
            yield figure, timed


def tables(output: Sequence[str]) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield each Markdown table of an output: the last line of text above it, and its rows, of which the first is the
    head.
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
