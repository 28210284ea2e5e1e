"""Check the plugin's log lines about SL-to-VL tables that OpenSM truncates, for each sweep."""

import re
import subprocess
from pathlib import Path

import pytest
from shared_builds import built_once

from osm_plugin.build_shim import HERE

pytestmark = pytest.mark.lab  # the shim needs OpenSM's headers


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    names = [f'-DIBNUE_{name}=""' for name in ("ENGINES", "PACKAGE", "PROTOCOL")]
    # Only the handler of events is linked, because the other functions need Python and OpenSM.
    command = ["cc", "-std=gnu11", "-pthread", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", *names]
    command += [f"-I{HERE}", "-I/usr/include/infiniband"]
    sources = [str(Path(__file__).with_name("report_sweeps.c")), str(HERE / "qos.c")]

    def build(folder):
        subprocess.run([*command, "-o", folder / "sweeps", *sources, "-losmcomp"], check=True)

    return built_once(tmp_path_factory, "sweeps", build) / "sweeps"


def logged(program, sweeps):
    """Return a word for each line: "again" if a sweep is requested, otherwise the kind of the line and its count."""
    output = subprocess.run([program, *sweeps.split()], check=True, capture_output=True, text=True).stdout
    found = []
    for line in output.splitlines():
        (count,) = re.findall(r" (\d+) tables", line) or [""]
        kind = "again" if line == "signal sweep" else "info" if line.startswith("info ") else line.split(":")[0]
        found.append(f"{kind} {count}".strip())
    return found


FIRST = ["info 5", "again"]


@pytest.mark.parametrize(
    ("sweeps", "lines"),
    [
        ("0 0", []),
        ("5 0 0", FIRST),
        ("5 5 5", [*FIRST, "ERR IBN40 5"]),
        ("5 5 7 7", [*FIRST, "ERR IBN40 5", "ERR IBN40 7"]),
        ("5 5 0 5 5", 2 * [*FIRST, "ERR IBN40 5"]),
        ("x3 5 0", FIRST),
        ("x5 0", []),
    ],
)
def test_cut_tables_are_reported_once_and_again_if_they_stay_cut(program, sweeps, lines):
    assert logged(program, sweeps) == lines
