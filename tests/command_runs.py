"""Helpers that run the ``ibnue`` command in this process, and check its output."""

import json
import os
import sys
from pathlib import Path

from click.testing import CliRunner

import routing
from routing.cli import main


def run(*args, **options):
    return CliRunner().invoke(main, [str(arg) for arg in args], **options)


def collect(ibsim, folder, *words):
    """Run ``ibnue collect`` as a program that is connected to ibsim, and return the manifest that it prints."""
    paths = [str(Path(routing.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    program = ("env", f"PYTHONPATH={os.pathsep.join(paths)}", sys.executable, "-m", "routing.cli")
    return json.loads(ibsim.run(*program, "collect", "-o", folder, "--json", *words, timeout=300))


def parts_of(manifest):
    """Return the parts of a snapshot by name, given the manifest that :func:`collect` returns."""
    return {part["part"]: part for part in manifest["collected"]}


def assert_refused(result, *expected, status=2):
    """Check that a command refused its input: its exit status, no result on standard output, and a one-line error.

    The error must contain each of the texts ``expected``.
    """
    assert result.exit_code == status, result.output
    assert result.stdout == "" or json.loads(result.stdout)["schema"] == "ibnue-error/1"
    assert result.stderr.startswith("ibnue: ")
    assert result.stderr.count("\n") == 1
    for words in expected:
        assert words in result.stderr
