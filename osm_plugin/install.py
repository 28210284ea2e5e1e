"""Build the plugin for the installed OpenSM, and return the lines to write into opensm.conf."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from osm_plugin.build_shim import PythonBuild, compile_shim
from osm_plugin.bundle_engine import plugin_engines
from osm_plugin.installed import debian_package, inspect, is_root, opensm_program, run_by_root, writable_by_others
from routing.engines import IN_OPENSM
from routing.errors import EnvironmentProblem

PLUGIN = "ibnue"
LIBRARY = f"lib{PLUGIN}.so"
SECOND = "updn"
"""Engine that OpenSM tries if the first engine fails."""
FOR_ONE_RUN = ("-O1", "-g0")
"""Compiler options for a library that is used once, as in a lab.  These options halve the time of the build."""
_REGISTERS = "osm_register_external_routing_engine"

# The header files that a build needs, each with the Debian package that contains it.
_HEADERS = {
    "opensm/osm_opensm.h": "libopensm-dev",
    "opensm/osm_version.h": "libopensm-dev",
    "iba/ib_types.h": "libopensm-dev",
    "complib/cl_qmap.h": "libopensm-dev",
    "umad.h": "libibumad-dev",
}


@dataclass(frozen=True)
class InstalledPlugin:
    """An installed plugin library, and what the user has to configure.

    Attributes
    ----------
    library
        Path of the library.
    opensm_version
        Version of OpenSM for which the library was built, such as "OpenSM 3.3.23".  No other version of OpenSM can load
        the library.
    conf_lines
        Lines to add to opensm.conf.
    environment
        Environment variables with which OpenSM finds the library; empty if it is in a system directory.
    warnings
        Files and folders that root's OpenSM would run, although users other than root may write to them.
    package
        Debian package to which the library belongs, so that nothing was built; None: the library was built.
    """

    library: Path
    opensm_version: str
    conf_lines: tuple[str, ...]
    environment: dict[str, str]
    warnings: tuple[str, ...] = ()
    package: str | None = None


def install(
    prefix: str | Path | None = None,
    *,
    libdir: str | Path | None = None,
    config: str | Path | None = None,
    engine: str = IN_OPENSM,
    allow_writable: bool = False,
    flags: Sequence[str] = (),
) -> InstalledPlugin:
    """Build ``libibnue.so``, which embeds the running Python interpreter, and install it in a library directory.

    If a Debian package has put the library there, nothing is built.

    Parameters
    ----------
    prefix
        Folder below which OpenSM is installed; None: ``/usr``.
    libdir
        Directory for the library; None: the system's library directory, which only root may write.
    config
        The TOML file that ``event_plugin_options`` in opensm.conf should name.
    engine
        The engine that ``routing_engine`` in opensm.conf should name.
    allow_writable
        Whether to install for the system's OpenSM even if users other than root may write to files that it runs.
    flags
        Additional compiler options, for example :data:`FOR_ONE_RUN`.

    Raises
    ------
    EnvironmentProblem
        A header, the compiler or libpython is missing.  The message names the Debian package.  Other causes are headers
        of another version than OpenSM, a directory that is not writable, and files for root that other users may write.
        A packaged library that OpenSM or this package cannot use is an error, too.
    """
    root = Path(prefix or "/usr")
    packaged = _packaged(installed_library(prefix, libdir), prefix, _conf_lines(engine, config))
    if packaged is not None:
        return packaged
    include = _include(root)
    version = _version(root, include)
    folder = Path(libdir) if libdir is not None else _system_libdir(root)
    if not folder.is_dir():
        raise EnvironmentProblem(f"{folder} is not a directory", remedy="create it, or name another one")
    library = folder.resolve() / LIBRARY
    warnings = writable_by_others(run_by_root(library)) if is_root() else []
    if warnings and libdir is None and not allow_writable:
        more = f" and {len(warnings) - 1} more" if len(warnings) > 1 else ""
        raise EnvironmentProblem(
            f"root's OpenSM would run files that other users may change: {warnings[0]}{more}",
            remedy="install ibnue as root into folders that only root may write, or use --allow-writable",
        )
    names = [f"{PLUGIN}-{name}" for name in plugin_engines()]
    libraries = tuple(path for path in (root / "lib", _system_libdir(root)) if path.is_dir() and root != Path("/usr"))
    headers = (include, include.parent)
    compile_shim(python_build(), library, engines=names, include=headers, libraries=libraries, flags=flags)
    environment = {} if folder.resolve() in _searched() else {"LD_LIBRARY_PATH": str(folder.resolve())}
    return InstalledPlugin(library, version, _conf_lines(engine, config), environment, tuple(warnings))


def _conf_lines(engine: str, config: str | Path | None) -> tuple[str, ...]:
    """Return the lines for opensm.conf."""
    chain = ",".join(f"{PLUGIN}-{name}" for name in (engine, second_engine(engine)))
    lines = (f"event_plugin_name {PLUGIN}", f"routing_engine {chain},no_fallback")
    return lines if config is None else (*lines, f"event_plugin_options --config {Path(config).resolve()}")


def _packaged(library: Path, prefix: str | Path | None, lines: tuple[str, ...]) -> InstalledPlugin | None:
    """Describe ``library`` as an installed plugin if it belongs to a Debian package; otherwise return None.

    ``prefix`` is the folder below which OpenSM is installed, and ``lines`` are the lines for opensm.conf.

    Raises
    ------
    EnvironmentProblem
        OpenSM or this package cannot use the packaged library.
    """
    package = debian_package(library)
    if package is None:
        return None
    there = inspect(library, opensm_version(prefix))
    if there.problems:
        problem = there.problems[0].partition(" (")[0]
        raise EnvironmentProblem(
            f"{library} belongs to the Debian package {package}, and {problem}",
            remedy=f"upgrade both packages, or apt remove {package} to build another library",
        )
    return InstalledPlugin(library, there.build.opensm, lines, {}, package=package)


def second_engine(engine: str) -> str:
    """Return the engine that OpenSM shall try if ``engine`` fails.  The returned engine routes any fabric, and needs
    one VL.
    """
    return SECOND if engine != SECOND else "nue"


def _include(root: Path) -> Path:
    include = root / "include" / "infiniband"
    missing: dict[Path, str] = {}
    for header, package in _HEADERS.items():
        # libibumad is a separate package, so an OpenSM built from source uses the system's header of libibumad.
        system = Path("/usr/include/infiniband") if header == "umad.h" and root.name != "usr" else include
        if not (include / header).is_file() and not (system / header).is_file():
            missing[include / header] = package
    if missing:
        # The error names all missing packages, so that a user can install them with one command.
        packages = [*missing.values(), *_other_packages(root)]
        raise EnvironmentProblem(
            f"the header {next(iter(missing))} is missing (apt install {' '.join(dict.fromkeys(packages))})"
        )
    return include


def _other_packages(root: Path) -> list[str]:
    """Return the missing Debian packages among the packages of OpenSM, of the compiler, and of Python's headers.

    The plugin can be built and loaded only with all of these packages.

    ``root`` is the folder below which OpenSM is installed.
    """
    missing = [] if opensm_program(root) else ["opensm"]
    if not shutil.which("cc"):
        missing += ["gcc", "libc6-dev"]
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        missing.append(_python_headers())
    return missing


def _python_headers() -> str:
    """Return the Debian package with the headers of the running Python."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}-dev"


def _version(root: Path, include: Path) -> str:
    """Return the OpenSM version of the headers, after a check that the installed program has the same version.

    OpenSM refuses a plugin that was built for another version.

    ``root`` is the folder below which OpenSM is installed, and ``include`` the folder of its headers.

    Raises
    ------
    EnvironmentProblem
        The versions differ, or this version of OpenSM accepts no routing engines from plugins.
    """
    text = (include / "opensm/osm_version.h").read_text()
    found = re.search(r'define OSM_VERSION "([^"]+)"', text)
    if found is None:
        raise EnvironmentProblem(
            f"{include / 'opensm/osm_version.h'} does not state its version", remedy="install libopensm-dev again"
        )
    if _REGISTERS not in (include / "opensm/osm_opensm.h").read_text(errors="replace"):
        raise EnvironmentProblem(
            f"{found[1]} accepts no routing engines from plugins: its headers lack {_REGISTERS}",
            remedy="OpenSM 3.3.23 or later has it",
        )
    program = opensm_program(root)
    if program is None:
        raise EnvironmentProblem("OpenSM is not installed", remedy="apt install opensm")
    running = _program_version(program)
    if running is not None and running != found[1]:
        raise EnvironmentProblem(
            f"{program} is {running}, its headers are {found[1]}",
            remedy="apt install libopensm-dev of the same version",
        )
    return found[1]


def _program_version(program: str) -> str | None:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"OpenSM \S+", done.stdout + done.stderr)
    return None if found is None else found[0]


def opensm_version(prefix: str | Path | None = None) -> str | None:
    """Return the version that the installed OpenSM prints, such as "OpenSM 3.3.23".  Return None if OpenSM is not
    installed, or if it prints no version.

    ``prefix`` is the folder below which OpenSM is installed; None: ``/usr``.
    """
    program = opensm_program(Path(prefix or "/usr"))
    return None if program is None else _program_version(program)


def installed_library(prefix: str | Path | None = None, libdir: str | Path | None = None) -> Path:
    """Return the path to which :func:`install` writes the library.

    ``prefix`` and ``libdir`` are the arguments of :func:`install`.
    """
    folder = _system_libdir(Path(prefix or "/usr")) if libdir is None else Path(libdir)
    return folder.resolve() / LIBRARY


def _system_libdir(root: Path) -> Path:
    multiarch = sysconfig.get_config_var("MULTIARCH")
    beside = root / "lib" / str(multiarch)
    return beside if multiarch and beside.is_dir() else root / "lib"


def _searched() -> set[Path]:
    """Return the directories in which the dynamic linker searches by default."""
    done = subprocess.run(["/sbin/ldconfig", "-vNX"], capture_output=True, text=True, check=False)
    found = {Path(line.split(":")[0]).resolve() for line in done.stdout.splitlines() if line.startswith("/")}
    return found | {Path(path).resolve() for path in ("/lib", "/usr/lib")}


def python_build() -> PythonBuild:
    """Return the files and settings that are needed to embed the running Python interpreter.

    Raises
    ------
    EnvironmentProblem
        The interpreter has no shared libpython, or Python.h is missing.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    include = Path(sysconfig.get_path("include"))
    platform = Path(sysconfig.get_path("platinclude"))
    if not (include / "Python.h").is_file():
        raise EnvironmentProblem(f"the header {include / 'Python.h'} is missing (apt install {_python_headers()})")
    here = Path(__file__).resolve().parents[1]
    site = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}
    # In a virtual environment, the path of the interpreter is a symbolic link.  The link is not resolved, because
    # Python finds the virtual environment by the location of the link.
    return PythonBuild(
        executable=Path(sys.executable).absolute(),
        include=tuple(dict.fromkeys((include, platform))),
        libpython=_libpython(version),
        paths=() if here in site else (str(here),),
    )


def _libpython(version: str) -> Path:
    names = [sysconfig.get_config_var(key) for key in ("INSTSONAME", "LDLIBRARY")]
    libdir, multiarch = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("MULTIARCH")
    folders = [Path(str(libdir)), Path(str(libdir)) / str(multiarch), Path("/usr/lib") / str(multiarch)]
    for folder in folders:
        for name in names:
            if name and ".so" in str(name) and (folder / str(name)).is_file():
                return folder / str(name)
    raise EnvironmentProblem(
        f"{sys.executable} has no shared libpython, so that it cannot be embedded",
        remedy=f"apt install libpython{version}, or build Python with --enable-shared",
    )
