"""Errors keep their type, text and attributes when they are sent from one process to another."""

import copy
import inspect
import pickle

import pytest

from routing import errors
from routing.engines.registry import UnknownEngine
from routing.errors import IbnueError, InputError, NotEnoughVLs
from routing.grids.coordinates import NotAGrid
from routing.trees.closed_form import NotATree

OWN = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, IbnueError)]
INPUT = [kind for kind in [*OWN, UnknownEngine] if issubclass(kind, InputError)]
OTHERS = [kind for kind in [*OWN, NotAGrid, NotATree] if kind not in (*INPUT, NotEnoughVLs)]
ERRORS = [
    *(kind("no such\nvalue", path="fabric.net", line=7, remedy="use 1") for kind in INPUT),
    *(kind("the fabric is not a tree") for kind in OTHERS),
    NotEnoughVLs(3, 2),
    NotEnoughVLs(3, 2, proven=False),
    NotEnoughVLs(None, 2, what="detours"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_can_be_pickled(error, protocol):
    error.add_note("in a worker")
    for other in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error)):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)
        assert other.args == error.args
