"""Replays the console sessions of the pages: what they show is what a reader gets."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if FENCE.search(page.read_text())]
PROLOGUE = f'ibnue() {{ {shlex.quote(sys.executable)} -m routing.cli "$@"; }}\n'


def steps(page):
    """Every command of a page with the output that it shows."""
    for block in FENCE.findall(page.read_text()):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            while command.endswith("\\"):
                more, _, output = output.partition("\n")
                command = f"{command[:-1]}{more}"
            yield command, output


def pattern(shown):
    """``...`` stands for anything."""
    return re.compile(".*?".join(re.escape(part) for part in shown.split("...")), re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.lab if "ibnue lab" in page.read_text() else []) for page in PAGES],
    ids=lambda page: page.name,
)
def test_sessions(page, tmp_path):
    for command, shown in steps(page):
        done = subprocess.run(
            ["bash", "-c", PROLOGUE + command], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
        )
        assert pattern(shown).fullmatch(done.stdout + done.stderr), f"{command}\n{done.stdout}{done.stderr}"
