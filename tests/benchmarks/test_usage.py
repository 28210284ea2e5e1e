"""Check that every benchmark describes itself and its options."""

import importlib
from pathlib import Path

import pytest

import benchmarks.usage

FOLDER = Path(benchmarks.usage.__file__).parent
MODULES = [path.stem for path in sorted(FOLDER.glob("*.py")) if "__name__" in path.read_text()]


@pytest.mark.parametrize("name", MODULES)
def test_help(capsys, name):
    module = importlib.import_module(f"benchmarks.{name}")
    with pytest.raises(SystemExit) as ended:
        module.main(["--help"])
    output = capsys.readouterr().out
    assert ended.value.code == 0
    assert output.startswith("usage: python -m benchmarks")
    assert module.__doc__.splitlines()[0] in " ".join(output.split())


@pytest.mark.parametrize("name", MODULES)
def test_unknown_options_are_refused(capsys, name):
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"benchmarks.{name}").main(["--no-such-option"])
    assert ended.value.code == 2
    assert f"python -m benchmarks.{name}: error: " in capsys.readouterr().err.replace(
        "benchmarks: ", "benchmarks.__main__: "
    )


@pytest.mark.parametrize("more", ["proof", "--store"])
def test_the_page_is_written_without_a_run(capsys, more):
    with pytest.raises(SystemExit) as ended:
        importlib.import_module("benchmarks.__main__").main(["--page", more])
    assert ended.value.code == 2
    assert "first store the records, then give --page alone" in capsys.readouterr().err
