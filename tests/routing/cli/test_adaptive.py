"""Check ``ibnue adaptive``: port groups are computed, written, read back and checked."""

import json

import pytest
from command_runs import run

from routing.deadlock.port_groups import compute_port_groups
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import ParseError
from routing.formats.port_groups import port_group_lines, read_port_groups
from routing.topologies import from_words

TORUS = "torus:4x4,cas=2"


@pytest.fixture(scope="module")
def torus(tmp_path_factory):
    """Return tables of a torus, and port groups that are safe under the rule "escape" only."""
    folder = tmp_path_factory.mktemp("torus")
    assert run("route", TORUS, "-e", "nue", "--vls", "2", "-o", folder / "tables").exit_code == 0
    groups = folder / "groups.txt"
    assert run("adaptive", TORUS, folder / "tables", "--rule", "escape", "-o", groups).exit_code == 0
    return folder


def test_groups_written_are_the_groups_read(torus):
    result = run("adaptive", TORUS, torus / "tables", "--groups", torus / "groups.txt", "--json")
    computed = run("adaptive", TORUS, torus / "tables", "--rule", "escape", "--json")
    assert result.exit_code == computed.exit_code == 0
    assert json.loads(result.stdout) == json.loads(computed.stdout)
    assert json.loads(result.stdout)["groups_with_choice"] > 0


def test_a_loop_of_the_stricter_rule_is_named(torus, tmp_path):
    strict = tmp_path / "groups.txt"
    strict.write_text((torus / "groups.txt").read_text().replace("rule escape", "rule commit"))
    result = run("adaptive", TORUS, torus / "tables", "--groups", strict)
    assert result.exit_code == 1
    assert "deadlock  POSSIBLE" in result.stdout
    assert "each waits for the next:" in result.stdout
    assert result.stdout.count(", VL ") >= 3


def test_groups_that_lack_ports_are_faults(torus, tmp_path):
    lines = (torus / "groups.txt").read_text().splitlines()
    cut = tmp_path / "groups.txt"
    cut.write_text("\n".join(lines[:20]))
    result = run("adaptive", TORUS, torus / "tables", "--groups", cut)
    assert result.exit_code == 1
    assert "without a port" in result.stdout
    assert "first fault: at " in result.stdout


def test_wrong_use_and_tables_with_a_loop(torus, tmp_path):
    both = run("adaptive", TORUS, torus / "tables", "--groups", torus / "groups.txt", "--rule", "commit")
    assert (both.exit_code, "no effect with --groups" in both.stderr) == (2, True)
    run("route", TORUS, "-e", "minhop", "-o", tmp_path / "loop")
    loop = run("adaptive", TORUS, tmp_path / "loop")
    assert (loop.exit_code, "credit loop" in loop.stderr) == (1, True)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('switch 0x99 "other"', "switch 0x0000000000000099 is not in the fabric"),
        ("7: 1-x", "is not a line of port groups"),
        ("200: 2", "a port without a link to a switch"),
        ("999: 2", "a port without a link to a switch"),
        ("3: 2-99999", "a LID that no switch delivers"),
        ("3: 0", "a LID that no switch delivers"),
    ],
)
def test_damaged_lines_name_their_line(tmp_path, line, problem):
    fabric = from_words("torus", ["3x3"])
    routing = ENGINES["updn"].route(fabric, EngineOptions(effort=0.05))
    lines = list(port_group_lines(compute_port_groups(fabric, routing, prove(fabric, routing))))
    path = tmp_path / "groups.txt"
    path.write_text("\n".join([*lines[:3], line, *lines[3:]]))
    with pytest.raises(ParseError) as found:
        read_port_groups(path, fabric, routing)
    assert problem in str(found.value)
    assert found.value.line == 4
    path.write_text("\n".join(lines[1:]))
    with pytest.raises(ParseError, match="is not a file of port groups"):
        read_port_groups(path, fabric, routing)
