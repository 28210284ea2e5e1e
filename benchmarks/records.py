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
from dataclasses import asdict, dataclass
from pathlib import Path

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])|(?<![\w.])\d+\.\d+")
TIMED = re.compile(r"\b(ms|s|second|seconds|MB|route|proof)\b")
"""Words in a line or in the head of its table that mark times and sizes, which differ from run to run."""


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
    """

    command: str
    page: str
    date: str
    machine: str
    commit: str
    seconds: float
    exit_status: int
    output: list[str]


def run(command: Sequence[str], page: str, root: Path) -> Record:
    """Run a benchmark, print its output while it comes, and return its record."""
    start, lines = time.monotonic(), []
    with subprocess.Popen([sys.executable, *command], cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
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
        exit_status=process.returncode,
        output=lines,
    )


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

    Lines belong together if they are equal apart from their numbers.  A figure is marked as "time" if its line, or the
    head of its column, names seconds or memory.
    """
    before, after = _by_text(stored), _by_text(found)
    for text in [*before, *(text for text in after if text not in before)]:
        old, new = before.get(text, []), after.get(text, [])
        for (line, head), (other, _) in zip(old, new, strict=False):
            for (was, timed), (now, _) in zip(_figures(line, head), _figures(other, head), strict=True):
                if abs(float(now) - float(was)) > tolerance * abs(float(was)) + 1e-9:
                    yield f"{'time   ' if timed else 'figure '} {was} -> {now}: {other.strip()}"
        for line, _ in old[len(new) :]:
            yield f"gone    {line.strip()}"
        for line, _ in new[len(old) :]:
            yield f"new     {line.strip()}"


def _by_text(record: Record) -> dict[str, list[tuple[str, str]]]:
    """Return the lines of a record by their text without numbers, each with the head of its table, or an empty text."""
    lines: dict[str, list[tuple[str, str]]] = defaultdict(list)
    head, above = "", ""
    for line in record.output:
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
