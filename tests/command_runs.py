"""``ibnue`` as it is typed, in this process."""

import json

from click.testing import CliRunner

from routing.cli import main


def run(*args, **options):
    return CliRunner().invoke(main, [str(arg) for arg in args], **options)


def assert_refused(result, *expected, status=2):
    """No result on standard output, and on standard error one line that holds these words."""
    assert result.exit_code == status, result.output
    assert result.stdout == "" or json.loads(result.stdout)["schema"] == "ibnue-error/1"
    assert result.stderr.startswith("ibnue: ")
    assert result.stderr.count("\n") == 1
    for words in expected:
        assert words in result.stderr
