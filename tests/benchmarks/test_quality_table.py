"""Check that the benchmark prints a table of the engines' balance for a small fabric."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ibsim_fixtures.processes import missing_packages
from routing.formats.fabric_files import read_fabric, write_net
from routing.topologies import generate

ROOT = Path(__file__).parents[2]


def ring(tmp_path):
    net = tmp_path / "ring.net"
    write_net(generate("ring", ["6"], cas=2), net)
    return net


def rows(net, *arguments):
    """Run the benchmark, and return the cells of each row by the engine's name."""
    command = [sys.executable, "-m", "benchmarks.quality_table", net, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines() if "|" in line]
    head, _, *body = cells
    return {row[0]: dict(zip(head, row, strict=True)) for row in body}


def test_our_engines(tmp_path):
    found = rows(ring(tmp_path), "--opensm", "", "--ours", "minhop,dfsssp/bisection/2")
    assert list(found) == ["ibnue minhop", "ibnue dfsssp/bisection/2"]
    assert found["ibnue minhop"]["note"] == "credit loop"
    assert found["ibnue dfsssp/bisection/2"]["note"].startswith("proven")
    # Each of 12 CAs sends to 2 CAs at each of the distances 1, 1, 2, 2 and 3: 12 * 18 flow-hops on 12 channels.
    assert found["ibnue minhop"]["bound"] == f"{11 / 18:.3f}"


@pytest.mark.lab
@pytest.mark.skipif(bool(missing_packages()), reason="no OpenSM, no ibsim")
def test_engines_of_opensm(tmp_path):
    found = rows(ring(tmp_path), "--opensm", "minhop,ftree", "--ours", "", "--timeout", "3600")
    assert found["OpenSM minhop"]["bound"] == f"{11 / 18:.3f}"
    assert float(found["OpenSM minhop"]["seconds"]) > 0
    assert found["OpenSM ftree"]["note"].startswith("gave up")


@pytest.mark.lab
@pytest.mark.skipif(bool(missing_packages()), reason="no OpenSM, no ibsim")
def test_ports_with_the_guid_of_their_node(tmp_path):
    """Port GUIDs in the file equal node GUIDs.  ibsim assigns other port GUIDs, and OpenSM's dumps contain these."""
    net = ring(tmp_path)
    fabric = read_fabric(net)
    nodes = fabric.terminal_guid[fabric.endport_terminal]
    write_net(replace(fabric, endport_guid=nodes), net)
    assert read_fabric(net).endport_guid.tolist() == nodes.tolist()
    found = rows(net, "--opensm", "minhop", "--ours", "", "--timeout", "3600")
    assert found["OpenSM minhop"]["bound"] == f"{11 / 18:.3f}"
