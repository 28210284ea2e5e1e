"""Build the Debian packages ``ibnue`` and ``ibnue-opensm-plugin`` into ``dist/``, from sdist and ``release/debian``.

lintian has to accept the packages.  With ``--try``, autopkgtest installs the packages in a clean Debian 12 that
mmdebstrap makes, and runs ``debian/tests`` there.  Nothing stays in ``dist/`` if a check fails.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from distributions import ROOT, build_sdist

DEBIAN = ROOT / "release" / "debian"
RELEASE = "bookworm"
VERSION = re.compile(r"ibnue \(([^-)]+)-[^)]+\)")


def run(*words: str | Path, folder: Path) -> None:
    """Run a program in a folder.  If the program fails, raise CalledProcessError."""
    print("$", *words, flush=True)
    subprocess.run(list(words), check=True, cwd=folder)


def source_tree(folder: Path) -> Path:
    """Build the sdist, unpack it in a folder, and add ``debian/`` to its files.  Return the path of the unpacked files.

    The sdist also stays in the folder, under the name that Debian requires for the original sources.

    Raises
    ------
    SystemExit
        ``release/debian/changelog`` begins with another version than the sdist has.
    """
    sdist = build_sdist(folder)
    version = sdist.name.removeprefix("ibnue-").removesuffix(".tar.gz")
    found = VERSION.match((DEBIAN / "changelog").read_text(encoding="utf-8"))
    if found is None or found[1] != version:
        sys.exit(f"release/debian/changelog:1: is not about ibnue {version}: add an entry for this version")
    original = sdist.rename(folder / f"ibnue_{version}.orig.tar.gz")
    run("tar", "-xzf", original, folder=folder)
    tree = folder / f"ibnue-{version}"
    shutil.copytree(DEBIAN, tree / "debian")
    return tree


def build(tree: Path) -> Path:
    """Build the source package and the binary packages, check them with lintian, and return the file ``.changes``."""
    run("dpkg-buildpackage", "--unsigned-source", "--unsigned-changes", folder=tree)
    (changes,) = tree.parent.glob("*.changes")
    run("lintian", "--allow-root", "--fail-on", "error,warning", "--info", changes, folder=tree.parent)
    return changes


def try_packages(changes: Path) -> None:
    """Install the packages in a clean Debian, and run the tests of ``debian/tests`` there."""
    clean = changes.parent / "clean"
    run("mmdebstrap", "--variant=minbase", RELEASE, clean, folder=changes.parent)
    packages = sorted(changes.parent.glob("*.deb"))
    (description,) = changes.parent.glob("*.dsc")
    run("autopkgtest", "--apt-upgrade", *packages, description, "--", "chroot", clean, folder=changes.parent)


def main() -> int:
    """Build and check the packages, and move them into ``dist/``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--try", dest="tried", action="store_true", help="run debian/tests in a clean Debian (as root)")
    tried = parser.parse_args().tried
    with tempfile.TemporaryDirectory(prefix="ibnue-deb-") as folder:
        changes = build(source_tree(Path(folder)))
        if tried:
            try_packages(changes)
        target = ROOT / "dist"
        target.mkdir(exist_ok=True)
        for path in sorted(Path(folder).glob("ibnue*_*")):
            shutil.move(path, target / path.name)
            print(f"dist/{path.name}: {(target / path.name).stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failure:
        sys.exit(f"{failure.cmd[0]} ended with status {failure.returncode}")
