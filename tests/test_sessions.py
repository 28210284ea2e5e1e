"""Replays the console sessions of the pages: what they show is what a reader gets."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import routing

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if FENCE.search(page.read_text())]
PROLOGUE = f'ibnue() {{ {shlex.quote(sys.executable)} -m routing.cli "$@"; }}\n'


def steps(page):
    """Every command of a page with the output that it shows; lines behind ``> `` go on with the command."""
    for block in FENCE.findall(page.read_text()):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            while command.endswith("\\"):
                more, _, output = output.partition("\n")
                command = f"{command[:-1]}{more}"
            while output.startswith("> "):
                more, _, output = output.partition("\n")
                command = f"{command}\n{more[2:]}"
            yield command, output


def pattern(shown):
    """``...`` stands for anything."""
    return re.compile(".*?".join(re.escape(part) for part in shown.split("...")), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sessions(page, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(routing.__file__).parents[1])}
    for command, shown in steps(page):
        done = subprocess.run(
            ["bash", "-c", PROLOGUE + command], cwd=tmp_path, env=environment, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert pattern(shown).fullmatch(done.stdout), f"{command}\n{done.stdout}"
