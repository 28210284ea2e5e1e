import os
import shutil
import subprocess
from pathlib import Path

import pytest
from shared_builds import copied_library

from ibsim_fixtures.processes import missing_packages
from osm_plugin import install as install_module
from osm_plugin.build_shim import HERE, SOURCES, definitions
from osm_plugin.install import install
from routing.errors import EnvironmentProblem

HEADER_FILES = ("opensm/osm_opensm.h", "opensm/osm_version.h", "iba/ib_types.h", "complib/cl_qmap.h", "umad.h")


@pytest.fixture
def prefix(tmp_path):
    """Return a folder in which OpenSM 1.2.3 seems to be installed."""
    include = tmp_path / "usr" / "include" / "infiniband"
    for header in HEADER_FILES:
        (include / header).parent.mkdir(parents=True, exist_ok=True)
        (include / header).write_text("")
    (include / "opensm/osm_opensm.h").write_text("osm_register_external_routing_engine\n")
    (include / "opensm/osm_version.h").write_text('#define OSM_VERSION "OpenSM 1.2.3"\n')
    program = tmp_path / "usr" / "sbin" / "opensm"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'OpenSM 1.2.3'\n")
    program.chmod(0o755)
    (tmp_path / "usr" / "lib").mkdir()
    return tmp_path / "usr"


@pytest.mark.parametrize(("header", "package"), [("opensm/osm_opensm.h", "libopensm-dev"), ("umad.h", "libibumad-dev")])
def test_a_missing_header_names_its_package(prefix, header, package):
    (prefix / "include/infiniband" / header).unlink()
    with pytest.raises(EnvironmentProblem, match=rf"{header} is missing \(apt install {package}\)"):
        install(prefix)


def test_all_missing_packages_are_named_at_once(prefix, monkeypatch, tmp_path):
    (prefix / "include/infiniband/umad.h").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=r"umad.h is missing \(apt install libibumad-dev gcc libc6-dev\)"):
        install(prefix)


def test_headers_of_another_version_are_refused(prefix):
    (prefix / "include/infiniband/opensm/osm_version.h").write_text('#define OSM_VERSION "OpenSM 1.2.4"\n')
    with pytest.raises(EnvironmentProblem, match=r"is OpenSM 1.2.3, its headers are OpenSM 1.2.4"):
        install(prefix)


def test_an_opensm_that_takes_no_engines_from_plugins_is_named(prefix):
    (prefix / "include/infiniband/opensm/osm_opensm.h").write_text("")
    with pytest.raises(
        EnvironmentProblem, match=r"OpenSM 1.2.3 accepts no routing engines from plugins.* 3.3.23 or later"
    ):
        install(prefix)


def test_a_directory_that_is_not_there(prefix, tmp_path):
    with pytest.raises(EnvironmentProblem, match="is not a directory"):
        install(prefix, libdir=tmp_path / "nowhere")


def test_a_compiler_that_complains_leaves_nothing(prefix, tmp_path):
    with pytest.raises(EnvironmentProblem, match=r"the plugin does not compile: .*error") as raised:
        install(prefix, libdir=tmp_path)
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.glob("*.so")) and not list(tmp_path.glob(".*"))


def test_without_a_compiler(prefix, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=r"no C compiler 'cc' \(apt install gcc libc6-dev\)"):
        install(prefix, libdir=tmp_path)


def test_a_python_that_cannot_be_embedded(prefix, tmp_path, monkeypatch):
    monkeypatch.setattr(install_module.sysconfig, "get_config_var", lambda name: None)
    with pytest.raises(EnvironmentProblem, match="has no shared libpython, so that it cannot be embedded"):
        install(prefix, libdir=tmp_path)


def test_every_c_file_is_built():
    assert {path.name for path in HERE.glob("*.c")} == set(SOURCES)


@pytest.mark.lab
def test_install_puts_the_library_into_the_folder_and_returns_the_lines(tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(install_module, "compile_shim", copied_library(tmp_path_factory))
    folder = tmp_path / "lib"
    folder.mkdir()
    done = install(libdir=folder, config=tmp_path / "ibnue.toml", engine="minhop")
    assert done.library == folder / "libibnue.so" and done.library.is_file()
    assert done.conf_lines == (
        "event_plugin_name ibnue",
        "routing_engine ibnue-minhop,ibnue-updn,no_fallback",
        f"event_plugin_options --config {tmp_path / 'ibnue.toml'}",
    )
    assert done.environment == {"LD_LIBRARY_PATH": str(folder)}
    assert [path.name for path in folder.iterdir()] == ["libibnue.so"]


@pytest.mark.lab
@pytest.mark.skipif(shutil.which("nm") is None, reason="apt install binutils")
def test_the_library_shows_no_more_than_it_must(plugin_folder):
    output = subprocess.run(
        ["nm", "-D", "--defined-only", plugin_folder / "libibnue.so"], capture_output=True, text=True, check=True
    ).stdout
    assert {line.split()[-1] for line in output.splitlines()} == {"osm_event_plugin", "PyInit__ibnue_shim"}


@pytest.mark.lab
def test_the_shim_compiles_without_a_warning():
    assert missing_packages() == []
    build = install_module.python_build()
    include = ["/usr/include/infiniband", "/usr/include", *build.include]
    # The sources form one translation unit, as in a build of the plugin: OpenSM's headers are parsed once.
    done = subprocess.run(
        ["cc", "-std=gnu11", "-O2", "-fPIC", "-Wall", "-Wextra", "-Wno-unused-parameter", "-x", "c", "-c", "-"]
        + [f"-I{position}" for position in (HERE, *include)]
        + [*definitions(Path("x"), ""), "-o", os.devnull],
        input="".join(f'#include "{HERE / source}"\n' for source in SOURCES),
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if line.startswith(str(Path(HERE)))]
    assert done.returncode == 0 and ours == []
