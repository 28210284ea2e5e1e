"""The man pages name every command with all of its options, and groff renders them without a warning."""

import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from routing.cli.command import COMMANDS
from routing.cli.command import main as ibnue

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, "docs/man_pages.py", folder], cwd=ROOT, check=True)
    return folder


def test_every_option_is_described(pages):
    context = click.Context(ibnue)
    for name in COMMANDS:
        text = (pages / f"ibnue-{name}.1").read_text().replace("\\-", "-")
        for parameter in ibnue.get_command(context, name).params:
            assert all(word in text for word in (*parameter.opts, *parameter.secondary_opts) if word.startswith("-"))
    assert (pages / "ibnue-plugin-install.1").exists()


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff renders man pages")
def test_groff_renders_without_warnings(pages):
    command = ["groff", "-man", "-ww", "-Tutf8", "-P-c", *sorted(pages.iterdir())]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    assert "IBNUE-ROUTE(1)" in done.stdout
    assert "ibnue route torus:4x4x4 -e updn -o tables\n" in done.stdout
