"""Compare scenarios that read fabrics or tables from files with scenarios that define the same fabrics themselves."""

from pathlib import Path

import pytest
from in_one_test import cases_in_one_test
from sim_files import TWO_SWITCHES, refusal

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import ParseError
from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.formats.fabric_files import write_fabric
from routing.formats.table_files import BUNDLE, write_tables
from routing.publish import verify
from routing.simulate.case_runners import run_case
from routing.simulate.scenario import read_scenario
from routing.topologies import from_words

RING = "ring:4,cas=2"
OVERLOAD = """
title = "t"
[fabric]
@fabric
[routing]
@routing
[traffic]
pattern = "uniform"
[timing]
packet = 256
buffer = 2
[run]
until = 20000
[[case]]
name = "c"
expect = { outcome = "deadlock" }
"""


def made(words):
    name, _, rest = words.partition(":")
    return from_words(name, rest.split(","))


def overload(fabric, routing):
    return OVERLOAD.replace("@fabric", fabric).replace("@routing", routing)


def found(folder, text):
    """Return the result of the only case of a scenario."""
    path = folder / "mine.toml"
    path.write_text(text)
    scenario = read_scenario(path)
    (case,) = scenario.cases
    return run_case(scenario, case)


def written(folder, words=RING, engine="minhop", file="fabric.net"):
    """Write a fabric and an engine's tables for it into a folder, and return the fabric."""
    fabric = made(words)
    write_fabric(fabric, folder / file)
    routing = ENGINES[engine].route(fabric, EngineOptions(threads=1, effort=0.05))
    write_tables(folder / "tables", fabric, routing, verify(fabric, routing, ENGINES[engine], threads=1).proof)
    return fabric


@pytest.mark.parametrize("file", ["fabric.net", "fabric.json", "fabric.graphml", "fabric.net.gz"])
def test_a_fabric_file_is_as_good_as_its_generator(tmp_path, file):
    write_fabric(made(RING), tmp_path / file)
    routing = 'engine = "minhop"'
    from_file = found(tmp_path, overload(f'file = "{file}"', routing))
    generated = found(tmp_path, overload(f'generator = "{RING}"', routing))
    assert from_file.right
    assert from_file.found == generated.found


@pytest.mark.parametrize("form", ["bundle", "dumps", "LFTs"])
def test_written_tables_are_as_good_as_their_engine(tmp_path, form):
    written(tmp_path)
    tables = "tables"
    if form != "bundle":
        (tmp_path / "tables" / BUNDLE).unlink()
    if form == "LFTs":
        tables = "tables/opensm-lfts.dump"
    read = found(tmp_path, overload('file = "fabric.net"', f'tables = "{tables}"'))
    computed = found(tmp_path, overload('file = "fabric.net"', 'engine = "minhop"'))
    assert read.right
    assert read.found["throughput"] == computed.found["throughput"]
    assert read.stated["tables"] == ("minhop" if form == "bundle" else "file")
    assert ("assumed" in read.stated) == (form == "LFTs")


def test_an_engine_of_a_case_replaces_written_tables(tmp_path):
    written(tmp_path)
    text = overload('file = "fabric.net"', 'tables = "tables"')
    text += '[[case]]\nname = "updn"\nengine = "updn"\nexpect = { outcome = "progress" }\n'
    (tmp_path / "mine.toml").write_text(text)
    scenario = read_scenario(tmp_path / "mine.toml")
    results = [run_case(scenario, case) for case in scenario.cases]
    assert all(result.right for result in results)
    assert [result.stated.get("tables") for result in results] == ["minhop", None]


def test_lids_of_a_file_of_lids(tmp_path):
    fabric = written(tmp_path)
    guid, other = fabric.endport_guid[0], fabric.endport_guid[1]
    (tmp_path / "lids").write_text(f"0x{int(guid):016x} 0x0028 0x0028\n\n0x{int(other):016x} 0x0030 0x0030\n")
    flow = '[[flow]]\nfrom = "40"\nto = "48"\n[traffic]'
    text = overload('file = "fabric.net"\nguid2lid = "lids"', 'engine = "updn"').replace("[traffic]", flow)
    text = text.replace('[traffic]\npattern = "uniform"\n', "").replace("deadlock", "progress")
    assert found(tmp_path, text).right
    refusal(tmp_path, text.replace('\nguid2lid = "lids"', ""), "no CA or router has LID 40")


def hosts(speeds, name="node"):
    """Return a fabric of one switch and CAs of equal names.  Each CA has two ports, whose links have its speed in
    ``speeds``.
    """
    builder = FabricBuilder("hosts")
    switch = builder.add_device(NodeKind.SWITCH, 0x10, "", 8)
    for number, speed in enumerate(speeds):
        ca = builder.add_device(NodeKind.CA, 0x100 * (number + 1), name, 2)
        for port in (1, 2):
            builder.connect(ca, port, switch, 2 * number + port, width=4, speed=speed)
    return builder.build()


FLOWS = """
title = "t"
[fabric]
file = "fabric.json"
[routing]
engine = "updn"
[[flow]]
from = "@from"
to = "@to"
[run]
until = 2000
[[case]]
name = "c"
expect = { outcome = "progress" }
"""


def test_links_are_as_fast_as_the_file_says(tmp_path):
    fabric = hosts([10.0, 10.0, 2.5])
    write_fabric(fabric, tmp_path / "fabric.json")
    guids = [f"0x{guid:016x}" for guid in fabric.endport_guid.tolist()]
    text = FLOWS.replace("@from", guids[0])
    fast = found(tmp_path, text.replace("@to", guids[2])).found
    slow = found(tmp_path, text.replace("@to", guids[4])).found
    assert fast["throughput"]["f0"] == pytest.approx(1.0, abs=0.01)
    assert slow["throughput"]["f0"] == pytest.approx(0.25, abs=0.01)
    half = text.replace(guids[0], guids[4]).replace("@to", guids[0])
    half = half.replace('from = "', 'process = "poisson"\nload = 0.5\nfrom = "')
    # half of the rate of a slow link
    assert found(tmp_path, half).found["throughput"]["f0"] == pytest.approx(0.125, rel=0.1)


@pytest.mark.parametrize(("source", "target"), [("0x100", "0x200"), ("node", "0x202"), ("0x101", "node")])
def test_names_of_several_ports_are_refused(tmp_path, source, target):
    write_fabric(hosts([10.0, 10.0]), tmp_path / "fabric.json")
    refusal(tmp_path, FLOWS.replace("@from", source).replace("@to", target), "called ('0x[12]00'|'node')")


def test_ports_of_a_ca_and_devices_of_one_name_are_distinguished(tmp_path):
    fabric = hosts([10.0, 10.0])
    write_fabric(fabric, tmp_path / "fabric.json")
    text = overload('file = "fabric.json"', 'engine = "updn"').replace("deadlock", "progress")
    result = found(tmp_path, text)
    ports = zip(fabric.endport_label, fabric.endport_guid.tolist(), strict=True)
    assert set(result.found["throughput"]) == {f"{label} (0x{guid:016x})" for label, guid in ports}
    assert sum(result.found["throughput"].values()) == pytest.approx(result.found["total"], abs=0.001)
    assert result.found["links_used"] == {fabric.labels[0]: 0}


def test_paths_go_by_guid_and_to_the_port_that_is_meant(tmp_path):
    fabric = hosts([10.0, 10.0])
    write_fabric(fabric, tmp_path / "fabric.json")
    last = f"0x{int(fabric.endport_guid[3]):x}"
    flow = f'path = ["0x{int(fabric.endport_guid[0]):x}", "0x10", "{last}"]'
    text = FLOWS.replace('from = "@from"\nto = "@to"', flow).replace('engine = "updn"', "")
    assert found(tmp_path, text).found["throughput"]["f0"] == pytest.approx(1.0, abs=0.01)


def test_shifts_are_of_the_cas_at_switches(tmp_path):
    builder = FabricBuilder("beside")
    switch = builder.add_device(NodeKind.SWITCH, 0x10, "sw", 4)
    cas = [builder.add_device(NodeKind.CA, 0x100 * (n + 1), f"ca{n}", 1) for n in range(5)]
    for port, ca in enumerate(cas[:3], 1):
        builder.connect(ca, 1, switch, port, width=4, speed=10.0)
    builder.connect(cas[3], 1, cas[4], 1, width=4, speed=10.0)
    write_fabric(builder.build(), tmp_path / "fabric.json")
    text = overload('file = "fabric.json"', 'engine = "updn"').replace('[traffic]\npattern = "uniform"\n', "")
    text = text.replace('name = "c"', 'name = "c"\nwhat = "shifts"').replace('outcome = "deadlock"', "shifts = 2")
    assert found(tmp_path, text).right


DUMPS = Path(__file__).parents[1] / "formats" / "opensm-dumps"


@pytest.mark.parametrize(("folder", "lmc"), [("lash-ring", 1), ("torus-2qos", 0)])
def test_a_case_takes_the_dumps_of_opensm(tmp_path, folder, lmc):
    dumps = DUMPS / folder
    fabric = f'file = "{dumps / "fabric.net"}"\nguid2lid = "{dumps / "guid2lid"}"\nlmc = {lmc}'
    text = (
        overload(fabric, f'tables = "{dumps}"').replace("deadlock", "progress").replace("until = 20000", "until = 2000")
    )
    result = found(tmp_path, text)
    assert result.right
    assert result.found["least"] > 0.1
    assert "assumed" not in result.stated


@cases_in_one_test(
    ("fabric", "routing", "expected", "line"),
    [
        ('file = "none.net"', "", r"none.net: there is no such file", 4),
        ('file = "."', "", r"the folder has no fabric file", 4),
        ('file = "mine.toml"', "", r"mine.toml: not a fabric file of a known format", 4),
        ('file = "fabric.net"\nguid2lid = "none"', "", r"none: there is no such file", 5),
        ('file = "fabric.net"\nswitches = ["a"]', "", "switches does nothing beside a file", 5),
        ('file = "fabric.net"\ncables = []', "", "cables does nothing beside a file", 5),
        ('file = "fabric.net"\ncas = {}', "", "cas does nothing beside a file", 5),
        ('generator = "ring:4"\nfile = "fabric.net"', "", "generator does nothing beside a file", 4),
        ('generator = "ring:4"\nguid2lid = "lids"', "", "guid2lid does nothing without a file", 5),
        ('generator = "rang:4"', "", "no topology", 4),
        ('file = "fabric.net"\nfailed = [["sw0", "sw9"]]', "", "there is no device 'sw9'", 5),
        ('file = "fabric.net"\nfaults = ["sw0/3",\n"sw9"]', "", "no device 'sw9'", 6),
        ('file = "fabric.net"', 'tables = "none"', "none: there is no such file or folder", 6),
        ('file = "fabric.net"', 'tables = "."', "has neither ibnue.npz nor opensm-lfts.dump", 6),
        ('generator = "ring:5,cas=2"', 'tables = "tables"', "the bundle is for another fabric", 6),
        ('generator = "ring:4,cas=2"\nfailed = [["sw0", "sw1"]]', 'tables = "tables"', "after failed, or let a", 7),
        ('file = "fabric.net"', 'tables = "tables"\nengine = "updn"', "tables does nothing beside engine", 6),
        ('file = "fabric.net"', 'tables = "tables"\nrule = "d-mod-k"', "rule does nothing beside tables", 7),
        ('file = "fabric.net"', 'tables = "tables"\nfill = true', "fill does nothing beside tables", 7),
        ('file = "fabric.net"', 'tables = "tables"\npaths = []', "paths does nothing beside tables", 7),
        ('file = "fabric.net"', 'tables = "tables"\nvls = 2', "vls does nothing beside tables", 7),
        ('file = "fabric.net"', 'tables = "tables"\nseed = 2', "seed does nothing without an engine", 7),
        ('file = "fabric.net"', 'rule = "d-mod-k"', "this is not a tree", 6),
    ],
)  # fmt: skip
def test_files_that_cannot_be(tmp_path, fabric, routing, expected, line):
    written(tmp_path)
    assert refusal(tmp_path, overload(fabric, routing), expected).line == line


def test_a_line_of_the_fabric_file_is_named(tmp_path):
    written(tmp_path)
    text = (tmp_path / "fabric.net").read_text()
    (tmp_path / "fabric.net").write_text(text + "\nHca\n")
    with pytest.raises(ParseError) as caught:
        found(tmp_path, overload('file = "fabric.net"', 'engine = "updn"'))
    assert caught.value.path == str(tmp_path / "fabric.net")
    assert caught.value.line == len(text.splitlines()) + 2


def test_a_line_of_the_tables_is_named(tmp_path):
    written(tmp_path)
    (tmp_path / "lfts").write_text("Unicast lids\n")
    with pytest.raises(ParseError) as caught:
        found(tmp_path, overload('file = "fabric.net"', 'tables = "lfts"'))
    assert caught.value.path == str(tmp_path / "lfts")
    assert caught.value.line == 1


FLOW = 'path = ["x", "a", "b", "y"]'
CASE = '[[case]]\nname = "c"\nexpect = { outcome = "progress" }\n'


@pytest.mark.parametrize("routing", ["", '[routing]\nengine = "updn"\n'])
@pytest.mark.parametrize(
    ("flow", "expected", "line"),
    [
        ('from = "z"\nto = "y"', "no CA or router is called 'z'", 8),
        ('from = "x"\nto = "z"', "no CA or router is called 'z'", 9),
        ('from = "x"\nto = ["y", "z"]', "no CA or router is called 'z'", 9),
        ('from = "a"\nto = "y"', "no CA or router is called 'a'", 8),
        ('from = "99"\nto = "y"', "no CA or router has LID 99", 8),
        ('sl = 0\npath = ["z", "a", "b", "y"]', "'z'", 9),
        ('sl = 0\npath = ["x", "a", "b", "z"]', "'z'", 9),
        ('path = ["x", "y"]', "a path is a list of names: a CA, one or more switches, a CA", 8),
        ("path = []", "a path is a list of names: a CA, one or more switches, a CA", 8),
        ('name = "q"', "needs a path, or from and to", 8),
    ],
)
def test_ends_of_flows_that_are_not_there(tmp_path, routing, flow, expected, line):
    flow = flow if not routing else flow.replace("sl = 0", "start = 0")
    error = refusal(tmp_path, TWO_SWITCHES.replace(FLOW, flow).rstrip() + "\n" + routing + CASE, expected)
    assert error.line == line


def test_pauses_are_of_the_paths_that_tables_have(tmp_path):
    text = """
title = "t"
[fabric]
switches = ["a", "b", "c"]
cables = [["a", "b"], ["b", "c"], ["a", "c"]]
cas = { x = "a", y = "b" }
[routing]
engine = "minhop"
[[flow]]
path = ["x", "a", "c", "b", "y"]
[[case]]
name = "c"
what = "pauses"
expect = { verdict = "free" }
"""
    result = found(tmp_path, text)
    assert result.right
    assert list(result.found["pauses"]["1"]) == ["x > a", "a > b", "b > y"]
    same = found(tmp_path, text.replace('path = ["x", "a", "c", "b", "y"]', 'from = "x"\nto = "y"'))
    assert same.found == result.found
    refusal(tmp_path, text.replace('path = ["x", "a", "c", "b", "y"]', 'from = "x"\nto = ["y", "x"]'), "goes to 2 CAs")
