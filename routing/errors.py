"""The hierarchy of errors.

All errors that this project raises on purpose descend from :class:`IbnueError`, so that a caller can distinguish them
from bugs.  The classes below it decide the exit status of the command.  It is 2 for problems that the user can fix
(:class:`InputError`, :class:`EnvironmentProblem`), and 1 for findings about a fabric or tables
(:class:`RoutingError`).
"""

from __future__ import annotations

from pathlib import Path

from routing.numerals import count_noun


class IbnueError(Exception):
    """Base of every deliberate error."""


class InputError(IbnueError, ValueError):
    """Error in input data or arguments.

    Parameters
    ----------
    problem
        Description of the error in one line.
    path, line
        File and line of the error, if it is in a file (lines count from 1).
    remedy
        What the user can do about it, in one line.
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
        text = " ".join(text.split())
        return text if self.remedy is None else f"{text} ({' '.join(self.remedy.split())})"


class InputWarning(UserWarning):
    """Unusual content in a file that could still be read; issued by :func:`warnings.warn`."""


class ParseError(InputError):
    """A file does not follow its format."""


class FabricError(InputError):
    """The parts are readable, but do not form a valid fabric: duplicate GUIDs, a port used twice, LID clashes."""


class OptionError(InputError):
    """An option has an unusable value: an unknown engine, a root that is not in the fabric, zero VLs."""


class TableError(InputError):
    """Tables do not fit the fabric: a bundle for another fabric, wrong shapes, an out-port that is not cabled."""


class EnvironmentProblem(IbnueError, RuntimeError):
    """Something outside this program is missing or fails: a program, a header, a folder that cannot be written."""


class RoutingError(IbnueError):
    """The fabric or the tables are readable, but the requested result is impossible."""


class NotEnoughVLs(RoutingError):
    """An engine needs more VLs than it may use, or found no tables that use fewer.

    Parameters
    ----------
    needed
        Number of VLs that is needed, or the smallest number that a search found to be sufficient; None: the search
        found no number of VLs that is sufficient.
    have
        Number of VLs that was allowed.
    proven
        Whether fewer than ``needed`` VLs are known to be too few.  A search does not show this.
    """

    def __init__(self, needed: int | None, have: int, *, proven: bool = True) -> None:
        self.needed = needed
        self.have = have
        self.proven = proven
        if needed is None:
            problem = "this search found no number of VLs that is enough"
        elif proven:
            problem = f"{count_noun(needed, 'VL is', 'VLs are')} needed"
        else:
            problem = f"this search found {count_noun(needed, 'VL')}"
        super().__init__(f"{problem}, {have} may be used")


class BrokenPromise(RoutingError):
    """An engine's tables fail the proof that it promises.  This is a bug in the engine; its tables are discarded."""


class FalseCertificate(RoutingError):
    """A certificate of freedom from credit loops is not valid for the tables that it came with."""


class KernelError(IbnueError, RuntimeError):
    """A C kernel failed for a reason outside the input, such as lack of memory."""
