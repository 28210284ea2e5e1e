"""Write files and folders atomically: a reader finds the old content or the complete new content.

Data are written to a temporary name next to the target, which is renamed when it is complete.  An exception, including
Ctrl-C, removes the temporary data.

The data are not synced to disk.  So the functions protect against early readers and interrupted runs, but not against a
power failure.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from routing.errors import EnvironmentProblem, InputError

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file for writing.  The file replaces ``path`` when the ``with`` block ends without an exception.

    If ``path`` is a symbolic link, the link stays, and the file to which the link leads is replaced.

    Raises
    ------
    InputError
        The path is a folder, a device or a pipe.
    EnvironmentProblem
        The folder is missing or cannot be written, or the disk is full.
    """
    # Path.resolve would raise an exception for a cycle of symbolic links, but realpath does not.
    target = Path(os.path.realpath(path))
    part = _part(target)
    with _environment(target):
        # A rename can replace even a device node by a regular file.  If ``path`` were /dev/null, no program on the
        # machine could use the device /dev/null after the rename.
        if Path(path).exists() and not Path(path).is_file():
            what = "a folder" if Path(path).is_dir() else "not a regular file"
            raise InputError(f"is {what}, but a file is to be written", path=path, remedy="name a file")
        try:
            with part.open("xb") as file:
                yield file
            part.replace(target)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise


def write_text_atomically(path: str | Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    with atomic_write(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def make_parents(path: str | Path) -> None:
    """Create the missing parent folders of a file or folder that the user has named as output.

    Raises
    ------
    EnvironmentProblem
        A folder cannot be created.
    """
    parent = Path(path).parent
    with _environment(parent):
        parent.mkdir(parents=True, exist_ok=True)


def make_folder(path: str | Path) -> Path:
    """Create a folder for output files unless the folder exists, and return its path.

    Raises
    ------
    EnvironmentProblem
        The path is a file, or the parent folder is missing or cannot be written.
    """
    folder = Path(path)
    with _environment(folder):
        folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def atomic_directory(path: str | Path, *, marker: str, known: Collection[str]) -> Iterator[Path]:
    """Yield an empty temporary folder, which replaces ``path`` when the ``with`` block ends without an exception.

    An existing folder ``path`` is replaced as a whole, and on Linux atomically.  The existing folder must be empty, or
    an earlier call of this function must have written it.

    Parameters
    ----------
    path
        The folder to write.
    marker
        Name of a file that the caller always writes.  The file identifies folders written by this function.
    known
        All file names that such a folder may contain.

    Raises
    ------
    InputError
        The path is not a folder, or the folder contains other files.  Or the folder is the working folder of this
        process, or contains the working folder.
    EnvironmentProblem
        The parent folder is missing or cannot be written.
    """
    target = Path(os.path.realpath(path))
    part = _part(target)
    with _environment(target):
        _refuse_foreign(target, marker, known)
        try:
            part.mkdir()
            yield part
            _refuse_foreign(target, marker, known)
            if target.exists():
                _exchange(part, target)
            else:
                part.rename(target)
        # The error names the target, because the user did not choose the temporary name.
        except EnvironmentProblem as problem:
            raise EnvironmentProblem(str(problem).replace(str(part), str(target))) from None
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _part(target: Path) -> Path:
    """Return a unique temporary name in the folder of the target.

    The caller knows the name before the temporary file or folder exists.  So the caller can remove the file or folder
    after an interrupt at any time.
    """
    return target.parent / f".{target.name}.{secrets.token_hex(8)}.part"


def _refuse_foreign(target: Path, marker: str, known: Collection[str]) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError("is a file, but a folder is to be written", path=target, remedy="name another folder")
    if Path.cwd().is_relative_to(target):
        raise InputError(
            "this is the working folder, which would be replaced", path=target, remedy="name a folder in it"
        )
    names = {entry.name for entry in target.iterdir()}
    foreign = sorted(names - set(known))
    if foreign or (names and marker not in names):
        example = foreign[0] if foreign else min(names)
        raise InputError(
            f"the folder has files that this command does not write, such as {example!r}",
            path=target,
            remedy="name a folder that is new, is empty, or was written by this command",
        )


def _exchange(part: Path, target: Path) -> None:
    """Exchange the names of two folders: the new folder gets the name ``target``, the old folder the name ``part``."""
    libc = ctypes.CDLL(None, use_errno=True)
    swap = getattr(libc, "renameat2", None)
    names = os.fsencode(part), os.fsencode(target)
    if swap is not None and swap(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return
    # Not every system can exchange two names at once.  Between the two renames below, no folder has the name ``target``
    # for a moment.
    aside = part.with_name(part.name + ".old")
    target.rename(aside)
    try:
        part.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    aside.rename(part)


@contextmanager
def _environment(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise EnvironmentProblem(
            f"cannot be written: {reason}",
            path=target,
            remedy="check that the folder exists and is writable, and the free space",
        ) from None
