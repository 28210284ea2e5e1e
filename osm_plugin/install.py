"""Builds the plugin for the OpenSM that is installed, and says what to write into opensm.conf."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from osm_plugin.build_shim import PythonBuild, compile_shim
from routing.engines import ENGINES
from routing.errors import EnvironmentProblem

PLUGIN = "ibnue"
LIBRARY = f"lib{PLUGIN}.so"

# What a build needs, and the Debian package that has it.
_HEADERS = {
    "opensm/osm_opensm.h": "libopensm-dev",
    "opensm/osm_version.h": "libopensm-dev",
    "iba/ib_types.h": "libopensm-dev",
    "complib/cl_qmap.h": "libopensm-dev",
    "umad.h": "libibumad-dev",
}


@dataclass(frozen=True)
class InstalledPlugin:
    """A plugin that OpenSM can load.

    Attributes
    ----------
    library
        The file.
    opensm_version
        The only OpenSM that takes it, e.g. "OpenSM 3.3.23".
    conf_lines
        What opensm.conf wants.
    environment
        Variables that OpenSM's process needs to find the library; empty where it is in a directory of the system's.
    """

    library: Path
    opensm_version: str
    conf_lines: tuple[str, ...]
    environment: dict[str, str]


def install(
    prefix: str | Path | None = None,
    *,
    libdir: str | Path | None = None,
    config: str | Path | None = None,
    engine: str = "updn",
) -> InstalledPlugin:
    """Build ``libibnue.so`` with the running interpreter inside, and put it where OpenSM looks.

    Parameters
    ----------
    prefix
        Where OpenSM is installed, if not in ``/usr``.
    libdir
        Where to put the library; None: the system's directory for libraries, which takes root.
    config
        The TOML file that ``event_plugin_options`` is to name.
    engine
        The engine that ``routing_engine`` is to name.

    Raises
    ------
    EnvironmentProblem
        A header, the compiler or libpython is missing (the message names the Debian package), the headers are of
        another version than OpenSM, or the directory cannot be written.
    """
    root = Path(prefix) if prefix is not None else Path("/usr")
    include = _include(root)
    version = _version(root, include)
    place = Path(libdir) if libdir is not None else _system_libdir(root)
    if not place.is_dir():
        raise EnvironmentProblem(f"{place} is no directory (create it, or name another one)")
    library = place.resolve() / LIBRARY
    names = [f"{PLUGIN}-{name}" for name in [*ENGINES, "bundle"]]
    libraries = tuple(path for path in (root / "lib", _system_libdir(root)) if path.is_dir() and root != Path("/usr"))
    compile_shim(python_build(), library, engines=names, include=(include, include.parent), libraries=libraries)
    lines = [f"event_plugin_name {PLUGIN}", f"routing_engine {PLUGIN}-{engine},no_fallback"]
    if config is not None:
        lines.append(f"event_plugin_options --config {Path(config).resolve()}")
    environment = {} if place.resolve() in _searched() else {"LD_LIBRARY_PATH": str(place.resolve())}
    return InstalledPlugin(library, version, tuple(lines), environment)


def _include(root: Path) -> Path:
    include = root / "include" / "infiniband"
    for header, package in _HEADERS.items():
        if not (include / header).is_file():
            raise EnvironmentProblem(f"the header {include / header} is missing (apt install {package})")
    return include


def _version(root: Path, include: Path) -> str:
    """The version in the headers, which must be that of the program: OpenSM refuses any other plugin."""
    text = (include / "opensm/osm_version.h").read_text()
    found = re.search(r'define OSM_VERSION "([^"]+)"', text)
    if found is None:
        raise EnvironmentProblem(f"{include / 'opensm/osm_version.h'} does not say its version")
    program = shutil.which("opensm", path=f"{root}/sbin:{root}/bin:/usr/local/sbin:/usr/sbin:/sbin")
    if program is None:
        raise EnvironmentProblem("OpenSM is not installed (apt install opensm)")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    running = re.search(r"OpenSM \S+", done.stdout + done.stderr)
    if running is not None and running[0] != found[1]:
        raise EnvironmentProblem(
            f"{program} is {running[0]}, its headers are {found[1]} (apt install libopensm-dev of the same version)"
        )
    return found[1]


def _system_libdir(root: Path) -> Path:
    multiarch = sysconfig.get_config_var("MULTIARCH")
    beside = root / "lib" / str(multiarch)
    return beside if multiarch and beside.is_dir() else root / "lib"


def _searched() -> set[Path]:
    """The directories that the dynamic linker searches by itself."""
    done = subprocess.run(["/sbin/ldconfig", "-vNX"], capture_output=True, text=True, check=False)
    found = {Path(line.split(":")[0]).resolve() for line in done.stdout.splitlines() if line.startswith("/")}
    return found | {Path(path).resolve() for path in ("/lib", "/usr/lib")}


def python_build() -> PythonBuild:
    """How to embed the running interpreter.

    Raises
    ------
    EnvironmentProblem
        It has no shared libpython, or Python.h is missing.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    include = Path(sysconfig.get_path("include"))
    platform = Path(sysconfig.get_path("platinclude"))
    if not (include / "Python.h").is_file():
        raise EnvironmentProblem(f"the header {include / 'Python.h'} is missing (apt install python{version}-dev)")
    here = Path(__file__).resolve().parents[1]
    site = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}
    # The interpreter's own path, not what it links to: a virtual environment is known by the place of the link.
    return PythonBuild(
        executable=Path(sys.executable).absolute(),
        include=tuple(dict.fromkeys((include, platform))),
        libpython=_libpython(version),
        paths=() if here in site else (str(here),),
    )


def _libpython(version: str) -> Path:
    names = [sysconfig.get_config_var(key) for key in ("INSTSONAME", "LDLIBRARY")]
    libdir, multiarch = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("MULTIARCH")
    places = [Path(str(libdir)), Path(str(libdir)) / str(multiarch), Path("/usr/lib") / str(multiarch)]
    for place in places:
        for name in names:
            if name and ".so" in str(name) and (place / str(name)).is_file():
                return place / str(name)
    raise EnvironmentProblem(
        f"{sys.executable} has no shared libpython, so that it cannot be embedded "
        f"(apt install libpython{version}, or build Python with --enable-shared)"
    )
