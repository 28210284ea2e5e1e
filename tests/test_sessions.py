"""Run the console sessions of README.md and docs/, and compare the output with the output on the page."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from command_server import shell_function

import routing

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(routing.__file__).parents[1])}
FENCE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if FENCE.search(page.read_text())]


def steps(page):
    """Yield every command of a page with the output that the page shows.  A line that begins with ``> `` continues a
    command.
    """
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
    """Return a pattern for the output on a page, in which ``...`` stands for any text."""
    return re.compile(".*?".join(re.escape(part) for part in shown.split("...")), re.DOTALL)


@pytest.fixture(scope="module")
def ibnue(tmp_path_factory):
    """Return a shell function that runs the command ``ibnue``."""
    with shell_function(tmp_path_factory.mktemp("server"), ENVIRONMENT) as function:
        yield function


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sessions(page, ibnue, tmp_path):
    """Run the commands of a page one after the other.  A ``cd`` has an effect on the commands after it."""
    folder, here = tmp_path, tmp_path / "folder-of-the-session"
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    for command, shown in steps(page):
        done = subprocess.run(
            ["bash", "-c", f"{ibnue}{command}\npwd >{shlex.quote(str(here))}"],
            cwd=folder, env=ENVIRONMENT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        folder = Path(here.read_text().strip())
        assert pattern(shown).fullmatch(done.stdout), f"{command}\n{done.stdout}"
