"""Check that errors keep their type, text and attributes when one process sends them to another."""

import ast
import copy
import inspect
import pickle
import re
from pathlib import Path

from in_one_test import cases_in_one_test

import routing
from routing import errors
from routing.engines.registry import UnknownEngine
from routing.errors import IbnueError, InputError, NotEnoughVLs, ParseError, ParseErrors
from routing.grids.coordinates import NotAGrid
from routing.trees.closed_form import NotATree

OWN = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, IbnueError)]
INPUT = [kind for kind in [*OWN, UnknownEngine] if issubclass(kind, InputError) and kind is not ParseErrors]
OTHERS = [kind for kind in [*OWN, NotAGrid, NotATree] if kind not in (*INPUT, NotEnoughVLs, ParseErrors)]
ERRORS = [
    *(kind("no such\nvalue", path="fabric.net", line=7, remedy="use 1") for kind in INPUT),
    *(kind("the fabric is not a tree") for kind in OTHERS),
    NotEnoughVLs(3, 2),
    NotEnoughVLs(3, 2, proven=False),
    NotEnoughVLs(None, 2, what="detours"),
]


@cases_in_one_test("error", ERRORS, ids=lambda error: type(error).__name__)
@cases_in_one_test("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_can_be_pickled(error, protocol):
    error.add_note("in a worker")
    for other in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error)):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)
        assert other.args == error.args


def test_several_errors_of_a_file_can_be_pickled():
    error = ParseErrors([ParseError(f"{line} is wrong", path="a.toml", line=line) for line in (3, 2)])
    other = pickle.loads(pickle.dumps(error))
    assert str(other) == str(error) and [each.line for each in other.errors] == [2, 3]


def test_the_remedy_of_a_problem_of_the_machine_is_not_part_of_its_text():
    """With ``--json``, path and remedy of an error are keys of their own."""
    found, root = [], Path(routing.__file__).parents[1]
    for path in (path for name in ("routing", "osm_plugin", "ibsim_fixtures") for path in (root / name).rglob("*.py")):
        source = path.read_text()
        for node in ast.walk(ast.parse(source)) if "EnvironmentProblem" in source else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "EnvironmentProblem" and node.args:
                text = ast.unparse(node.args[0])
                if re.search(r"\([^()]*\)['\"]$", text) or re.match(
                    r"f['\"]\{\w*(path|folder|file|library)\w*\}: ", text
                ):
                    found.append(f"{path.name}:{node.lineno}: {text}")
    assert not found
