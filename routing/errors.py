"""The one tree of errors.

Everything that this project raises on purpose descends from :class:`IbnueError`, so that a caller can tell "the tool
says no" from "the tool is broken".  The two branches below it decide the exit status of the command: what the user can
mend (:class:`InputError`, :class:`EnvironmentProblem`) is 2, what was found out about a fabric or a table
(:class:`RoutingError`) is 1.
"""

from __future__ import annotations

from pathlib import Path

from routing.numerals import number_of


class IbnueError(Exception):
    """Base of every deliberate error."""


class InputError(IbnueError, ValueError):
    """Something that was handed in cannot be used.

    Parameters
    ----------
    problem
        What is wrong, in one line.
    path, line
        Where it stands, if it stands in a file (lines count from 1).
    remedy
        What to do about it, in one line.
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


class ParseError(InputError):
    """A file does not follow its format."""


class FabricError(InputError):
    """The parts are readable, but they make no fabric: duplicate GUIDs, a port used twice, LID clashes."""


class OptionError(InputError):
    """An option has a value that cannot be served: an unknown engine, a root that is not there, zero VLs."""


class TableError(InputError):
    """Tables that do not fit: a bundle for another fabric, wrong shapes, an out-port that is not cabled."""


class EnvironmentProblem(IbnueError, RuntimeError):
    """Something outside is missing or refuses: a program, a header, a folder that cannot be written."""


class RoutingError(IbnueError):
    """The fabric or the tables are readable, and what was asked of them cannot be had."""


class NotEnoughVLs(RoutingError):
    """An engine needs more virtual lanes than it may use.

    Parameters
    ----------
    needed
        The smallest number that was found to do.
    have
        The number that was allowed.
    """

    def __init__(self, needed: int, have: int) -> None:
        self.needed = needed
        self.have = have
        super().__init__(f"{number_of(needed, 'VL is', 'VLs are')} needed, {have} may be used")


class BrokenPromise(RoutingError):
    """An engine that promises a proof failed it.  That is a bug in the engine; its tables are never handed out."""


class FalseCertificate(RoutingError):
    """A certificate of freedom from credit loops does not hold for the tables that it came with."""


class KernelError(IbnueError, RuntimeError):
    """A C kernel reported a failure that is neither of the user's making nor of the fabric's: out of memory."""
