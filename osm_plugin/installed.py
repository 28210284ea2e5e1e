"""Inspect the installed plugin: its library, the OpenSM processes that run it, and files that users other than root may
write.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from osm_plugin.build_info import BuildInfo, protocol, read_build_info
from routing.errors import EnvironmentProblem, file_problem

_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class RunningOpensm:
    """A running OpenSM process that has loaded the plugin library.

    Attributes
    ----------
    pid
        Process id of OpenSM.
    library
        Path of the plugin library that OpenSM has loaded.
    outdated
        Whether the library file was replaced or removed after OpenSM had loaded it.
    workers
        Process ids of OpenSM's child processes.
    """

    pid: int
    library: str
    outdated: bool
    workers: tuple[int, ...]


@dataclass(frozen=True)
class Installed:
    """An installed plugin library, and whether OpenSM and this package can use it.

    Attributes
    ----------
    library
        Path of the library.
    build
        Build information: versions of OpenSM and ibnue, path of the Python interpreter, and layout of OpenSM's structs.
    problems
        Reasons why OpenSM or this package will refuse the library; empty if both can use it.
    """

    library: Path
    build: BuildInfo
    problems: tuple[str, ...]


def inspect(library: Path, opensm_version: str | None) -> Installed:
    """Check whether the installed OpenSM and this package can use a plugin library.

    ``opensm_version`` is the version of the installed OpenSM; None: unknown, so the version is not checked.

    Raises
    ------
    EnvironmentProblem
        The file does not exist, or contains no build information.
    """
    if not library.is_file():
        raise EnvironmentProblem(f"{library} does not exist", remedy="run 'ibnue plugin install'")
    build = read_build_info(library)
    problems = []
    if opensm_version is not None and build.opensm != opensm_version:
        problems.append(f"it was built for {build.opensm}, but {opensm_version} is installed")
    if build.protocol != protocol():
        problems.append(f"it has protocol {build.protocol}, but this package has {protocol()}")
    if not Path(build.python).is_file():
        problems.append(f"its Python {build.python} does not exist")
    return Installed(library, build, tuple(f"{problem} (run 'ibnue plugin install' again)" for problem in problems))


def debian_package(path: Path) -> str | None:
    """Return the Debian package to which a file belongs; None if no package has it, or dpkg is not installed."""
    query = shutil.which("dpkg-query")
    if query is None or not path.exists():
        return None
    done = subprocess.run([query, "-S", str(path)], capture_output=True, text=True, check=False)
    return done.stdout.split(":")[0] if done.returncode == 0 else None


def is_opensm(pid: int, proc: Path = Path("/proc")) -> bool:
    """Return whether the process ``pid`` runs the program OpenSM.  ``proc`` is the kernel's folder of processes."""
    try:
        return (proc / str(pid) / "comm").read_text().strip() == "opensm"
    except OSError:  # The process has ended.
        return False


def running(name: str, proc: Path = Path("/proc")) -> list[RunningOpensm]:
    """Return the OpenSM processes that have loaded a library with the file name ``name``.

    Processes of other users may not be readable, and are then left out.  ``proc`` is the kernel's folder of processes.
    """
    found = []
    for folder in sorted(path for path in proc.iterdir() if path.name.isdigit()):
        if not is_opensm(int(folder.name), proc):
            continue
        try:
            maps, children = (folder / "maps").read_text(), tuple(_children(folder))
        except OSError:  # The process has ended, or belongs to another user.
            continue
        paths = {line.split(maxsplit=5)[5] for line in maps.splitlines() if f"/{name}" in line}
        for path in sorted(paths):
            plain = path.removesuffix(" (deleted)")
            if Path(plain).name == name:
                found.append(RunningOpensm(int(folder.name), plain, path != plain, children))
    return found


def _children(folder: Path) -> Iterator[int]:
    for task in (folder / "task").iterdir():
        try:
            yield from map(int, (task / "children").read_text().split())
        except OSError:  # noqa: PERF203  (the thread has ended)
            continue


def remove(library: Path, *, force: bool = False) -> None:
    """Remove the plugin library.

    Raises
    ------
    EnvironmentProblem
        The library does not exist or cannot be removed.  Unless ``force`` is set, there are three more causes.  The
        library is of another plugin, belongs to a Debian package, or is loaded in a running OpenSM.
    """
    if not library.is_file():
        raise EnvironmentProblem(
            f"{library} does not exist", remedy="there is nothing to remove, or --libdir names its folder"
        )
    if not force:
        read_build_info(library)
        package = debian_package(library)
        if package is not None:
            raise EnvironmentProblem(
                f"{library} belongs to the Debian package {package}", remedy=f"apt remove {package}"
            )
        users = [opensm for opensm in running(library.name) if Path(opensm.library) == library.resolve()]
        if users:
            pids = ", ".join(str(opensm.pid) for opensm in users)
            raise EnvironmentProblem(
                f"OpenSM (process {pids}) has loaded {library}",
                remedy=(
                    "remove the lines from opensm.conf and restart OpenSM, "
                    "or use --force: OpenSM continues with the library that it has loaded"
                ),
            )
    try:
        library.unlink()
    except OSError as problem:
        raise file_problem("removed", library, problem) from None


def run_by_root(library: Path) -> list[Path]:
    """Return the files and folders that root's OpenSM would run: the library, the interpreter and Python packages."""
    python = Path(sys.executable).absolute()
    here = Path(__file__).resolve().parent
    packages = [here, here.parent / "routing"]
    sources = [path for package in packages for path in package.rglob("*") if "__pycache__" not in path.parts]
    folders = [Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib", "stdlib")]
    return [library.parent, library, python, python.resolve(), *packages, *sources, *folders]


def writable_by_others(paths: Iterable[Path]) -> list[str]:
    """Return a line for each path, or folder above a path, that a user other than root may write."""
    seen: dict[Path, str | None] = {}
    for path in paths:
        for part in (path, *path.parents):
            if part in seen:
                break
            seen[part] = _writer(part)
    return [f"{path} {why}" for path, why in seen.items() if why]


def _writer(path: Path) -> str | None:
    try:
        about = path.lstat()
    except OSError:
        return None
    if about.st_uid != 0:
        return f"belongs to user {about.st_uid}"
    # The kernel ignores the permissions of a symbolic link.  In a folder with the sticky bit, users cannot replace
    # files of root.  So such a folder is safe even if all users may write to it.
    if stat.S_ISLNK(about.st_mode) or (stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX):
        return None
    by = about.st_mode & _BY_OTHERS
    if by & stat.S_IWOTH:
        return "may be written by every user"
    return f"may be written by group {about.st_gid}" if by and about.st_gid != 0 else None


def opensm_program(root: Path) -> str | None:
    """Return the path of the OpenSM program; None if it is not installed."""
    return shutil.which("opensm", path=f"{root}/sbin:{root}/bin:/usr/local/sbin:/usr/sbin:/sbin")


def is_root() -> bool:
    """Return whether this process runs as root, as the system's OpenSM does."""
    return os.geteuid() == 0
