"""Build the files for PyPI in ``dist/``: the sdist, and from the sdist one wheel for every Python from 3.10 on.

The wheel runs on every Linux with glibc 2.17 or newer, because zig compiles the kernels for glibc 2.17.  auditwheel
checks the version of glibc, and abi3audit checks that the wheel fits every Python from 3.10 on.  Then the wheel is
installed into a new virtual environment, and the examples of the README are tested there.  Nothing stays in ``dist/``
if a check fails.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GLIBC = (2, 17)
"""Oldest glibc that can load the kernels: the glibc of CentOS 7, for which the tag manylinux2014 stands."""
LEFT_OUT = (".ci/", ".clang-format", ".gitignore")
"""Files of the repository that the sdist does not need."""


def run(*words: str | Path, **variables: str) -> None:
    """Run a tool that is a Python module (``python -m``), with the interpreter that runs this script.

    ``variables`` are additional environment variables of the tool.
    """
    print("$", *words, flush=True)
    subprocess.run([sys.executable, "-m", *words], check=True, cwd=ROOT, env={**os.environ, **variables})


def build_sdist(folder: Path) -> Path:
    """Build the sdist, and return its path.

    Raises
    ------
    SystemExit
        A file of the repository is missing in the sdist.
    """
    run("build", "--no-isolation", "--sdist", "--outdir", folder)
    (sdist,) = folder.glob("*.tar.gz")
    listed = subprocess.run(["tar", "-tzf", sdist], check=True, capture_output=True, text=True).stdout.split("\n")
    packed = {name.partition("/")[2] for name in listed}
    tracked = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    missing = [name for name in tracked.split("\0") if not name.startswith(LEFT_OUT) and name not in packed]
    if missing:
        sys.exit(f"the sdist lacks {', '.join(missing)}: add them to MANIFEST.in")
    return sdist


def build_wheel(sdist: Path, folder: Path) -> Path:
    """Build the wheel from the sdist, with zig as the compiler, and return its path.  The wheel has passed auditwheel
    and abi3audit.
    """
    machine = platform.machine()
    # The option -s removes the debug information that zig adds.  With the debug information, the wheel would be three
    # times as large.
    compiler = f"{sys.executable} -m ziglang cc -target {machine}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    linked = folder / "linked"
    run("pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", linked, sdist,
        CC=compiler, LDSHARED=f"{compiler} -shared -s")  # fmt: skip
    (wheel,) = linked.iterdir()
    # auditwheel refuses a wheel that needs a newer glibc.  Otherwise it adds the platform tag, such as
    # manylinux_2_17_x86_64, to the name of the wheel.
    run("auditwheel", "repair", "--plat", f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}", "--wheel-dir", folder, wheel)
    (wheel,) = folder.glob("*.whl")
    run("auditwheel", "show", wheel)
    run("abi3audit", "--strict", "--verbose", wheel)
    # W009 warns of several folders at the top of the wheel.  This wheel has four of them on purpose.
    run("check_wheel_contents", "--ignore", "W009", wheel)
    return wheel


def try_wheel(wheel: Path, folder: Path) -> None:
    """Install the wheel into a new virtual environment, and test the examples of the README with it."""
    run("venv", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    # pip may install only wheels here, because the wheel of ibnue must be usable on machines without a compiler.
    tools = [wheel, "pytest>=8", "pytest-timeout>=2.3"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *tools], check=True)
    session = ["--doctest-glob=README.md", "-q", "-k", "README", "README.md", "tests/test_sessions.py"]
    subprocess.run([python.with_name("pytest"), *session], check=True, cwd=ROOT)


def main() -> int:
    """Build and check the sdist and the wheel, and move both into ``dist/``."""
    with tempfile.TemporaryDirectory(prefix="ibnue-dist-") as folder:
        sdist = build_sdist(Path(folder))
        wheel = build_wheel(sdist, Path(folder))
        try_wheel(wheel, Path(folder))
        target = ROOT / "dist"
        target.mkdir(exist_ok=True)
        for path in (sdist, wheel):
            shutil.move(path, target / path.name)
            print(f"dist/{path.name}: {(target / path.name).stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
