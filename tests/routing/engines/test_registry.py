"""Check engines of other packages: distributions on the path are loaded on demand, and a broken distribution does no
harm.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import routing
from routing.engines import ENGINES
from routing.errors import OptionError

MODULES = {
    "good_engine": "from routing.engines.minhop import MinHop\nclass Good(MinHop): name = 'good'\nprint('loaded')\n",
    "broken_engine": "raise RuntimeError('made for another version')\n",
}
POINTS = "[ibnue.engines]\ngood = good_engine:Good\nbroken = broken_engine:Broken\nupdn = broken_engine:Broken\n"


@pytest.fixture
def run(tmp_path):
    """Return a function that runs Python with an installed distribution of two engines, one of which is broken."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    info = tmp_path / "more_engines-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: more-engines\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    path = os.pathsep.join([str(tmp_path), str(Path(routing.__file__).parents[1])])

    def start(*words):
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment, check=False)

    return start


COMMAND = ("-c", "import sys; from routing.cli import main; main(sys.argv[1:])")


@pytest.mark.parametrize(
    "words", [("-c", "import routing.engines"), (*COMMAND, "--help"), (*COMMAND, "route", "ring:4", "-e", "updn")]
)
def test_no_package_of_others_is_loaded_that_is_not_wanted(run, words):
    done = run(*words)
    assert done.returncode == 0
    assert "loaded" not in done.stdout and done.stderr == ""


def test_an_engine_of_another_package_routes(run):
    done = run(*COMMAND, "route", "ring:5", "-e", "good")
    assert done.returncode == 1 and "engine        good" in done.stdout  # minhop routes, with a credit loop
    assert done.stderr == ""


def test_a_broken_package_is_one_warning_where_all_engines_are_listed(run):
    done = run(*COMMAND, "route", "ring:4", "-e", "godo")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "ibnue: warning: engine 'broken' of more-engines cannot be loaded: RuntimeError: made for another version",
        "ibnue: there is no engine 'godo' (did you mean good? engines: "
        "auto, chain, dfsssp, disjoint, dnup, dor, dragonfly, ftree, good, hyperx, lash, lash-tor, "
        "lturn, minhop, mud, nue, segment, slimfly, smart, sssp, torus-2qos, updn)",
    ]


def test_a_broken_engine_that_is_asked_for_is_an_error(run):
    done = run(*COMMAND, "route", "ring:4", "-e", "broken")
    assert done.returncode == 2
    assert "ibnue: engine 'broken' of more-engines cannot be loaded: RuntimeError: made" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_engine_is_an_error_of_the_tree_and_of_mappings():
    with pytest.raises(OptionError, match=r"^there is no engine 'fat' \(engines: auto, chain, dfsssp, "):
        ENGINES["fat"]
    assert ENGINES.get("fat") is None
    assert "fat" not in ENGINES
    assert [*ENGINES][:3] == ["auto", "updn", "ftree"] and len(ENGINES) >= 6
