"""Check that OpenSM refuses a library that was built with headers of another OpenSM, and continues without it."""

import re
import shutil
from pathlib import Path

import cffi
import pytest
from campaigns import without_slow
from plugin_lab import logged

from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm import Plugin
from osm_plugin import callbacks
from osm_plugin.build_info import protocol, read_build_info
from osm_plugin.build_shim import compile_shim, declarations
from osm_plugin.install import LIBRARY, python_build
from routing.errors import EnvironmentProblem

INCLUDE = Path("/usr/include/infiniband")
HERE = Path(callbacks.__file__).parent


def edit(folder, file, pattern, new):
    """Change a header, as another version or configuration of OpenSM would."""
    path = folder / "infiniband" / file
    text, count = re.subn(pattern, new, path.read_text(), flags=re.MULTILINE)
    assert count
    path.write_text(text)


ALTERED = {
    "configured without the performance manager": ("opensm/osm_config.h", r"^#define ENABLE_OSM_PERF_MGR 1", ""),
    "an option more at the front": ("opensm/osm_subnet.h", r"^\tconst char \*config_file;", r"\g<0>\n\tvoid *another;"),
    "an option more at the end": ("opensm/osm_subnet.h", r"^\tchar \*event_plugin_name;", r"\tvoid *another;\n\g<0>"),
    "a table more": ("opensm/osm_subnet.h", r"^\tcl_qmap_t sw_guid_tbl;", r"\tcl_qmap_t another;\n\g<0>"),
    "tables of debug builds": ("complib/cl_qmap.h", r"^#ifdef _DEBUG_", "#ifndef _DEBUG_"),
    "a member more of nodes": ("opensm/osm_node.h", r"^\tuint32_t discovery_count;", r"\tvoid *another;\n\g<0>"),
    "larger ports": ("opensm/osm_port.h", r"^\tuint8_t hop_wf;", r"\tuint64_t another[9];\n\g<0>"),
    "a member more of switches": ("opensm/osm_switch.h", r"^\tosm_node_t \*p_node;", r"\tvoid *another;\n\g<0>"),
    "an engine with another callback": (
        "opensm/osm_opensm.h", r"^\tconst char \*name;\n\tvoid \*context;\n\tint", r"\tvoid *another;\n\g<0>"
    ),
}  # fmt: skip
SLOW = (
    "an option more at the end", "a table more", "a member more of nodes", "a member more of switches", "larger ports",
    "tables of debug builds",
)  # fmt: skip
"""Changes for the campaign only.  The library notices all of them by one check, which compares the structs and members
in its list.
"""


def build(folder, include):
    folder.mkdir(exist_ok=True)
    include_both, flags = (include, include.parent), ("-O0", "-g0")
    compile_shim(python_build(), folder / LIBRARY, engines=["ibnue-updn"], include=include_both, flags=flags)
    return folder


@pytest.mark.lab
def test_values_that_opensm_accepts_are_not_taken_for_other_headers(live, nets):
    config = {"max_op_vls": 9, "qos": False, "qos_max_vls": 33}
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback", config=config) as lab:
        assert lab.sweep.engine == "ibnue-updn"


@pytest.mark.lab
@pytest.mark.parametrize("change", without_slow(sorted(ALTERED), SLOW))
def test_a_library_of_other_headers_is_kept_out(change, tmp_path, nets, plugin_folder):
    shutil.copytree(INCLUDE, tmp_path / "infiniband", symlinks=True)
    edit(tmp_path, *ALTERED[change])
    folder = build(tmp_path / "lib", tmp_path / "infiniband")
    with Lab(
        nets("ring", "4", cas=1), routing_engine="ibnue-updn,minhop", plugin=Plugin("ibnue", folder=folder)
    ) as lab:
        assert lab.sweep.engine == "minhop"
        assert lab.opensm.resweep().engine == "minhop"
        log = lab.opensm.log_path.read_text() + (lab.opensm.folder / "opensm.out").read_text()
        lines = re.findall(r"ERR IBN(?:9|21|22): .*", log)
        assert lines and all("built with headers" in line for line in lines)
        assert all(line.endswith("then run 'ibnue plugin install' again") for line in lines)
    assert read_build_info(folder / LIBRARY).layout != read_build_info(plugin_folder / LIBRARY).layout


def without_comments(path):
    return re.sub(r"/\*.*?\*/", "", path.read_text(errors="replace"), flags=re.DOTALL)


def names_of_members(text):
    """Return the names of all members of structs in C source, by a simple rule that is sufficient for these headers."""
    bodies = re.findall(r"\bstruct \w*\s*\{(.*?)\n\s*\}", text, re.DOTALL)
    fields = [part.strip() for body in bodies for line in body.split(";") for part in line.split(",")]
    return {found[1] for field in fields if (found := re.search(r"(\w+)(?:\[[^\]]*\])*$", field))}


@pytest.mark.lab
def test_every_member_of_opensms_options_and_subnet_that_is_read_is_in_the_list(plugin_folder):
    listed = {name.partition(".")[2] for name in read_build_info(plugin_folder / LIBRARY).members}
    headers = [INCLUDE / "opensm" / f"osm_{name}.h" for name in ("subnet", "opensm", "switch", "node", "qos_policy")]
    theirs = set().union(*(names_of_members(without_comments(path)) for path in headers))
    assert {"sm_state", "lash_start_vl", "no_fallback_routing_engine", "sl_set"} < theirs
    own = set().union(*(names_of_members(without_comments(path)) for path in (*HERE.glob("*.h"), *HERE.glob("*.c"))))
    used = {name for path in HERE.glob("*.c") for name in re.findall(r"(?:->|\.)(\w+)", without_comments(path))}
    assert sorted((used & theirs) - own - listed) == []


@pytest.mark.lab
def test_headers_of_another_version_are_refused_by_opensm(tmp_path, nets):
    shutil.copytree(INCLUDE, tmp_path / "infiniband", symlinks=True)
    edit(tmp_path, "opensm/osm_version.h", r'"OpenSM [^"]*"', '"OpenSM 9.9.99"')
    folder = build(tmp_path / "lib", tmp_path / "infiniband")
    assert read_build_info(folder / LIBRARY).opensm == "OpenSM 9.9.99"
    with Lab(
        nets("ring", "4", cas=1), routing_engine="ibnue-updn,minhop", plugin=Plugin("ibnue", folder=folder)
    ) as lab:
        assert lab.sweep.engine == "minhop"


@pytest.mark.lab
def test_the_log_says_what_was_loaded(live, nets, plugin_folder):
    info = read_build_info(plugin_folder / LIBRARY)
    with live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback") as lab:
        (line,) = logged(lab, r"ibnue: (/.*)")
    assert line == (
        f"{plugin_folder / LIBRARY}, ibnue {info.package}, built for {info.opensm}, layout {info.layout}, "
        f"protocol {protocol()}"
    )


@pytest.mark.lab
def test_a_library_of_another_package_says_so(live, nets, tmp_path, monkeypatch):
    monkeypatch.setattr("osm_plugin.build_shim.protocol", lambda: "0123456789abcdef")
    folder = build(tmp_path / "lib", INCLUDE)
    with Lab(
        nets("ring", "4", cas=1), routing_engine="ibnue-updn,minhop", plugin=Plugin("ibnue", folder=folder)
    ) as lab:
        assert lab.sweep.engine == "minhop"
        lines = logged(lab, r"ERR IBN[17]: .*")
        assert len(lines) >= 2
        reported = f"the library has protocol 0123456789abcdef, but the package has {protocol()}: run 'ibnue plugin "
        assert all(reported in line for line in lines)


def test_a_library_from_before_there_were_protocols():
    ffi = cffi.FFI()
    given = {}

    class Old:
        error = cffi.FFIError
        memmove = staticmethod(ffi.memmove)

        @staticmethod
        def def_extern(name):
            if name == "ibnue_host_policies":
                raise cffi.FFIError("no such function")
            return lambda function: given.setdefault(name, function)

    callbacks.attach(Old, "/usr/bin/python3", [])
    note = ffi.new("char[40]")
    assert given["ibnue_host_send"](None, 3, note, 40) == callbacks.FAILED
    assert ffi.string(note) == b"the library has protocol none, but the "
    assert given["ibnue_host_stop"]() == callbacks.FAILED


def test_every_function_of_the_host_can_say_why():
    functions = re.findall(r"int ibnue_host_(\w+)\((.*?)\);", declarations(HERE / "host.h"), re.DOTALL)
    assert {name for name, _ in functions} == set(callbacks.FUNCTIONS)
    for name, arguments in functions:
        assert name == "stop" or re.search(r"char \*note,\s+size_t room$", arguments)


def test_a_file_that_says_nothing(tmp_path):
    path = tmp_path / "libother.so"
    with pytest.raises(EnvironmentProblem, match="cannot be read: no such file"):
        read_build_info(path)
    path.write_bytes(b"\x7fELF" + b"IBNUE-BUILD-1")
    with pytest.raises(EnvironmentProblem, match="has no record of what it was built from"):
        read_build_info(path)
    path.write_bytes(b"\x7fELF" + b"IBNUE-BUILD-1\n\n\0" + b"\xff" * 2000)
    with pytest.raises(EnvironmentProblem, match="is damaged"):
        read_build_info(path)
