"""``ibnue`` as it is typed, in this process."""

from click.testing import CliRunner

from routing.cli import main


def run(*args, **options):
    return CliRunner().invoke(main, [str(arg) for arg in args], **options)


def assert_refused(result, *expected, status=2):
    """Nothing on standard output, and on standard error one line that holds these words."""
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("ibnue: ")
    assert result.stderr.count("\n") == 1
    for words in expected:
        assert words in result.stderr
