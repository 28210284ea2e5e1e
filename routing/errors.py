"""Define the hierarchy of errors.

Every error that this project raises on purpose descends from :class:`IbnueError`.  Callers distinguish three kinds.
:class:`InputError` is about the input or the options.  :class:`EnvironmentProblem` is about the machine.
:class:`RoutingError` is a finding about the fabric or the tables, for which the command exits with status 1.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

from routing.names import join_lines
from routing.numerals import count_noun


class IbnueError(Exception):
    """Base class of every error that this project raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        """Return the function and the arguments with which ``copy`` and ``pickle`` recreate the error.

        By default, Python would call the constructor with the text of the error, but the constructors have other
        parameters.
        """
        return _without_constructor, (type(self), self.args), self.__dict__


def _without_constructor(kind: type[IbnueError], args: tuple[object, ...]) -> IbnueError:
    """Create an error without a call of its constructor.  ``copy`` or ``pickle`` then sets the error's attributes."""
    return kind.__new__(kind, *args)


class InputError(IbnueError, ValueError):
    """The input data or the arguments are wrong.

    Parameters
    ----------
    problem
        Description of the error in one line.
    path, line
        File and line of the error, if the error is in a file (lines count from 1).
    remedy
        Remedy for the user, in one line.
    """

    def __init__(
        self, problem: str, *, path: str | Path | None = None, line: int | None = None, remedy: str | None = None
    ) -> None:
        self.problem = problem
        self.path = None if path is None else str(path)
        self.line = line
        self.remedy = remedy
        super().__init__(self._one_line())

    def _one_line(self) -> str:
        where = "" if self.path is None else self.path
        if self.line is not None:
            where += f":{self.line}"
        text = f"{where}: {self.problem}" if where else self.problem
        text = join_lines(text)
        return text if self.remedy is None else f"{text} ({join_lines(self.remedy)})"


class InputWarning(UserWarning):
    """A file has unusual content but could still be read.  The warning is issued with :func:`warnings.warn`."""


class ParseError(InputError):
    """A file does not follow its format."""


class ParseErrors(ParseError):
    """A file has several errors.

    Parameters
    ----------
    errors
        The errors.
    remedy
        One remedy for all errors together; None: the message has the separate remedy of each error.

    Attributes
    ----------
    errors
        The errors, in the order of their lines.
    """

    def __init__(self, errors: Sequence[ParseError], remedy: str | None = None) -> None:
        self.errors = sorted(errors, key=lambda error: error.line or 0)
        remedies = [f" ({error.remedy})" if error.remedy and remedy is None else "" for error in self.errors]
        lines = ["" if each.line is None else f"line {each.line}: " for each in self.errors]
        texts = [f"{at}{each.problem}{own}" for at, each, own in zip(lines, self.errors, remedies, strict=True)]
        super().__init__(f"{len(errors)} errors: {'; '.join(texts)}", path=errors[0].path, remedy=remedy)


def errors_of(problem: IbnueError) -> Sequence[IbnueError]:
    """Return the single errors of a combined error.  Return any other error as a list of one item."""
    return problem.errors if isinstance(problem, ParseErrors) else [problem]


def raise_errors(errors: Sequence[ParseError], remedy: str | None = None) -> None:
    """Raise the errors of a file as one exception, if there are any.

    ``remedy`` is one remedy for several errors together; None: the message has the separate remedy of each error.
    """
    if errors:
        raise errors[0] if len(errors) == 1 else ParseErrors(errors, remedy)


class FabricError(InputError):
    """The input can be read but is not a valid fabric.  Examples are duplicate GUIDs, two cables at one port, and a LID
    that two ports have.
    """


class OptionError(InputError):
    """The value of an option cannot be used.  Examples are an unknown engine, a root that is not in the fabric, and
    zero VLs.

    Parameters
    ----------
    problem, path, line, remedy
        As for :class:`InputError`.
    option
        Name of the engine option, as in the plugin's configuration; None: unknown, or not an engine option.
    """

    def __init__(
        self,
        problem: str,
        *,
        option: str | None = None,
        path: str | Path | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        self.option = option
        super().__init__(problem, path=path, line=line, remedy=remedy)


class TableError(InputError):
    """Tables do not fit the fabric.  Examples are a bundle of another fabric, wrong shapes, and an out-port without a
    cable.
    """


class DamagedBundle(TableError):
    """A file with tables is not a bundle, is damaged, or was cut short.  The file cannot be used with any fabric."""


class NotCollected(InputError):
    """A snapshot lacks data, such as LFTs.  Without these data, a credit loop cannot be ruled out."""


class EnvironmentProblem(IbnueError, RuntimeError):
    """A program or a header is missing on the machine or fails, or a folder is not writable.

    Parameters
    ----------
    problem
        Description of the error.  Further lines are the end of a log.
    path
        File of the error, if ``problem`` does not name it.
    remedy
        Remedy for the user, if ``problem`` does not state it.
    """

    def __init__(self, problem: str, *, path: str | Path | None = None, remedy: str | None = None) -> None:
        self.problem, self.remedy = problem, remedy
        self.path = None if path is None else str(path)
        super().__init__(("" if path is None else f"{path}: ") + problem + ("" if remedy is None else f" ({remedy})"))


_FILE_REMEDIES = {
    errno.EACCES: "check the rights of the file and of its folders",
    errno.ENOSPC: "free space, or name another folder",
    errno.EROFS: "name a folder on a file system that can be written",
}


def file_problem(action: str, path: str | Path, error: OSError) -> EnvironmentProblem:
    """Return an error with the text that an action on a file is not possible, and with a remedy.

    ``action`` is a participle such as "written", for the text "cannot be written".  ``error`` is the error of the
    operating system.
    """
    remedy = _FILE_REMEDIES.get(error.errno or 0, "check the path and its file system")
    return EnvironmentProblem(f"cannot be {action}: {(error.strerror or str(error)).lower()}", path=path, remedy=remedy)


class RoutingError(IbnueError):
    """The requested result is impossible, although the fabric and the tables can be read."""


class NotEnoughVLs(RoutingError):
    """An engine needs more VLs than it may use, or its search found no tables within the allowed number of VLs.

    Parameters
    ----------
    needed
        Number of VLs that the engine needs, or the smallest number with which its search succeeded.  None: no such
        number is known.
    have
        Number of VLs that was allowed.
    proven
        Whether it is proven that every solution needs at least ``needed`` VLs.  A heuristic search cannot prove this.
    what
        Used only if ``needed`` is None: a noun phrase for the error message.  It names what the search did not find
        within ``have`` VLs.
    """

    def __init__(self, needed: int | None, have: int, *, proven: bool = True, what: str = "tables") -> None:
        self.needed = needed
        self.have = have
        self.proven = proven
        if needed is None:
            problem = f"the search found no {what} with up to {count_noun(have, 'VL')}"
        elif proven:
            problem = f"{count_noun(needed, 'VL is', 'VLs are')} needed"
        else:
            problem = f"the search needed {count_noun(needed, 'VL')}"
        super().__init__(problem if needed is None else f"{problem}, {have} may be used")


class BrokenPromise(RoutingError):
    """An engine has made tables that lack paths, or that have a credit loop although the engine promises none.

    This error shows a bug in the engine.  The tables are discarded.
    """


class FalseCertificate(RoutingError):
    """A stored certificate of freedom from credit loops is not valid for the tables with which it was stored."""


class KernelError(IbnueError, RuntimeError):
    """A C kernel failed for a reason outside the input, such as lack of memory."""
