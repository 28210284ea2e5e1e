"""Check the names of cables in scenarios: the two devices, and a port where several cables link them."""

import pytest
from sim_files import TWO_SWITCHES, refusal

from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.formats.fabric_files import write_fabric
from routing.simulate.case_runners import run_case
from routing.simulate.scenario import read_scenario

PARALLEL = (
    TWO_SWITCHES.replace('cables = [["a", "b"]]', 'cables = [["a", "b"], ["a", "b"], ["b", "b"]]')
    + """\
[[case]]
name = "c"
fault = [{ cable = ["a", "b"], at = 10, until = 20 }]
expect = { outcome = "progress", at_least_link_down_discards = 5 }
"""
)


@pytest.mark.parametrize(
    ("cable", "lost"),
    [
        ('["a/1", "b"]', True), ('["a", "b[1]"]', True), ('["b/1", "a/1"]', True), ('["0x100000/1", "b"]', True),
        ('["a/2", "b"]', False), ('["a/2", "b/2"]', False), ('["b", "a[2]"]', False), ('["b", "b"]', False),
        ('["b/4", "b"]', False), ('["b/3", "b/4"]', False), ('["x", "a"]', True), ('["x/1", "a/3"]', True),
    ],
)  # fmt: skip
def test_a_fault_names_the_port_of_one_of_several_cables(tmp_path, cable, lost):
    text = PARALLEL.replace('cable = ["a", "b"]', f"cable = {cable}").replace(
        "at_least_link_down_discards = 5", "at_least_link_down_discards = 1" if lost else "link_down_discards = 0"
    )
    (tmp_path / "mine.toml").write_text(text)
    scenario = read_scenario(tmp_path / "mine.toml")
    assert run_case(scenario, scenario.cases[0]).wrong == ()


@pytest.mark.parametrize(
    ("cable", "expected"),
    [
        (
            '["a", "b"]',
            r'2 cables between a and b: a/1 - b/1, a/2 - b/2 \(name a port, such as \["a/1", "b"\]',
        ),
        ('["b", "a"]', r'2 cables between b and a: .* \(name a port, such as \["b/1", "a"\]'),
        ('["a/1", "b/2"]', r"no cable between a/1 and b/2 \(there is a/1 - b/1, a/2 - b/2\)"),
        ('["a/300", "b"]', r"no cable between a/300 and b \(there is"),
        ('["a/0", "b"]', r"no cable between a/0 and b"),
        ('["x", "b"]', r"no cable between x and b$"),
        ('["z/1", "b"]', r"there is no device 'z'"),
    ],
)
def test_cables_that_a_fault_does_not_name(tmp_path, cable, expected):
    text = PARALLEL.replace('cable = ["a", "b"]', f"cable = {cable}")
    assert refusal(tmp_path, text, expected).line == 11


def test_a_cable_that_is_taken_out_names_its_port_too(tmp_path):
    failed = PARALLEL.replace("cas =", 'failed = [["b", "b"],\n["a/1", "b"]]\ncas =')
    path = failed.replace("at_least_link_down_discards = 5", "at_least_link_down_discards = 1")
    (tmp_path / "mine.toml").write_text(path)
    scenario = read_scenario(tmp_path / "mine.toml")
    assert run_case(scenario, scenario.cases[0]).right
    assert refusal(tmp_path, failed.replace("a/1", "a"), "there are 2 cables between a and b").line == 7


def test_ports_of_one_ca_are_distinguished(tmp_path):
    """The port number, the GUID or the LID selects the port.  The CA alone has two cables to the same switch."""
    builder = FabricBuilder("two-ports")
    switch = builder.add_device(NodeKind.SWITCH, 0x200000, "s", 4)
    for number, ports in enumerate((2, 1)):
        ca = builder.add_device(NodeKind.CA, 0x100000 + 16 * number, f"c{number}", ports)
        for port in range(1, ports + 1):
            builder.connect(ca, port, switch, 2 * number + port)
    fabric = builder.build()
    write_fabric(fabric, tmp_path / "fabric.json")
    text = """
title = "t"
fabric = { file = "fabric.json" }
routing = { engine = "minhop" }
flow = [{ from = "0x100001", to = "c1" }]
run = { until = 100 }
[[case]]
name = "c"
fault = [{ cable = [@, "s"], at = 10 }]
expect = { @@ }
"""
    by_lid = [str(lid) for lid in fabric.endport_lid.tolist()]
    for first, second in (("c0/1", "c0/2"), ("0x100001", "0x100002"), by_lid[:2]):
        for named, outcome in ((first, "at_least_link_down_discards = 1"), (second, "link_down_discards = 0")):
            (tmp_path / "mine.toml").write_text(text.replace("@@", outcome).replace("@", f'"{named}"'))
            scenario = read_scenario(tmp_path / "mine.toml")
            assert run_case(scenario, scenario.cases[0]).wrong == ()
    for named in ("c0", "0x100000"):
        assert refusal(tmp_path, text.replace("@@", "finished = true").replace("@", f'"{named}"'), "there are 2 cables")
