"""A replacement of ``pytest.mark.parametrize`` for hundreds of cases that each take less time than pytest needs for a
test.
"""

import inspect
from functools import wraps

import pytest


def cases_in_one_test(names, cases, ids=None):
    """Return a decorator that runs a test function for all cases in one test.

    The arguments are those of ``pytest.mark.parametrize``, but ``ids`` has no effect.  The message of a failure begins
    with the values of the case.  A fixture has the same value in all cases.
    """
    del ids
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    values = [case if len(names) > 1 else (case,) for case in cases]
    assert values and all(len(value) == len(names) for value in values)

    def decorate(test):
        signature = inspect.signature(test)
        assert set(names) <= set(signature.parameters)

        @wraps(test)
        def run(**fixtures):
            for value in values:
                case = dict(zip(names, value, strict=True))
                try:
                    test(**fixtures, **case)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                    raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error

        others = [parameter for name, parameter in signature.parameters.items() if name not in names]
        run.__signature__ = signature.replace(parameters=others)
        return run

    return decorate
