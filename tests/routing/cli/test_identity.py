"""Check that every report adds GUIDs to device names that are empty or not unique."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from command_runs import assert_refused, run
from in_one_test import cases_in_one_test
from switch_tables import change_of

from osm_plugin.state import SavedTables
from osm_plugin.transition import transition_line
from routing.cli.watch import as_object, channel_name
from routing.deadlock.counter_diagnosis import suspect_loops
from routing.deadlock.proof import prove
from routing.fabric import NO_PORT
from routing.faults import apply_faults, every_ca, every_link, every_switch, parse_fault
from routing.formats import lfts
from routing.formats.fabric_files import read_fabric, write_fabric
from routing.formats.table_files import read_tables
from routing.names import guid_in, guid_text, labels_of
from routing.topologies import generate

ALIKE = re.compile(r"(?:twin|node)(?!s\b| \(0x[0-9a-f]{16}\))")
"""Pattern of a device's name without its GUID, if other devices have this name, too."""
ROUTE = {
    "loop": ("-e", "minhop"),
    "one": ("-e", "updn", "--root", "0x200000", "--vls", 1),
    "two": ("-e", "updn", "--root", "0x200002", "--vls", 1),
}


def twins(fabric):
    """Return the fabric with one name for all switches, and another name for all CAs."""
    return replace(
        fabric,
        name="alike",
        switch_name=("twin",) * fabric.switches,
        terminal_name=("node",) * fabric.terminals,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return a folder with a ring of devices with equal names, tables with a loop, and two sets of tables without a
    loop.
    """
    folder = tmp_path_factory.mktemp("site")
    write_fabric(twins(generate("ring", ["5"])), folder / "ring.json")
    for name, options in ROUTE.items():
        assert run("route", folder / "ring.json", *options, "-o", folder / name).exit_code in (0, 1)
    (folder / "flows.txt").write_text("6 8\n7 9\n8 10\n9 6\n10 7\n")
    (folder / "rules.toml").write_text('[[rule]]\nname = "all"\nhoq_life = "1 s"\n')
    (folder / "case.toml").write_text(
        'title = "t"\n[fabric]\nfile = "ring.json"\n[routing]\nengine = "minhop"\n'
        "[traffic]\npattern = 'all-to-all'\n[[case]]\nname = 'c'\nuntil = 200\n[case.expect]\noutcome = 'deadlock'\n"
    )
    case = (folder / "case.toml").read_text().replace("deadlock", "progress").replace("minhop", "updn")
    (folder / "names.toml").write_text(case.replace("[routing]", 'faults = ["spine 3"]\n[routing]'))
    missing = read_tables(folder / "loop", fabric := read_fabric(folder / "ring.json"))
    missing.lft[1, 6:9] = NO_PORT
    lfts.write(folder / "holes.dump", fabric, missing.lft)
    return folder


RING, LOOP, ONE, TWO = "{}/ring.json", "{}/loop", "{}/one", "{}/two"
REPORTS = [
    ("route", RING, "-e", "minhop"),
    ("route", RING, "--previous", ONE, "--fail", "0x200003"),
    ("check", RING, LOOP),
    ("check", RING, "{}/holes.dump"),
    ("quality", RING, LOOP),
    ("whatif", RING, "--links", "all", "--switches", "all", "--cas", "all"),
    ("transition", RING, ONE, TWO),
    ("transition", RING, LOOP, TWO, "--rounds", "0"),
    ("diff", ONE, TWO),
    ("diff", ONE, TWO, "--fabric", RING),
    ("pause", RING, LOOP, "--flows", "{}/flows.txt"),
    ("policy", "explain", "{}/rules.toml", RING, "0x200001", "1"),
    ("policy", "suggest", RING, LOOP),
    ("sweep", RING, "-e", "minhop", "--links", "all", "--switches", "all", "-j", "1"),
    ("simulate", "{}/case.toml"),
]  # fmt: skip


def texts(value, beside=False):
    """Yield every text of a JSON value, except names that have the GUID beside them."""
    if isinstance(value, str):
        yield "" if beside else value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            guid = value.get("guid" if key == "name" else key.replace("_name", "_guid"))
            yield from texts(inner, beside=key.endswith("name") and isinstance(guid, str) and guid != inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


@cases_in_one_test("words", REPORTS, ids=" ".join)
@cases_in_one_test("form", ["text", "json"])
def test_no_two_devices_look_alike(site, words, form):
    words = [str(word).format(site) for word in words]
    result = run(*words, *(["--json"] if form == "json" and words[1] != "suggest" else []))
    assert result.exit_code in (0, 1), result.output
    shown = [result.stdout]
    if form == "json" and words[1] != "suggest":
        shown = list(texts(json.loads(result.stdout)))
    assert not [text for text in shown if ALIKE.search(text)]


def test_the_loop_names_every_switch_by_its_own_guid(site):
    result = run("check", site / "ring.json", site / "loop")
    channels = [line for line in result.stdout.splitlines() if " -> " in line]
    assert len(set(channels)) == 5
    assert {found for line in channels for found in re.findall(r"0x20000\d", line.replace("0" * 10, ""))} == {
        f"0x20000{n}" for n in range(5)
    }
    loop = json.loads(run("check", site / "ring.json", site / "loop", "--json").stdout)["credit_loop"]
    fabric = read_fabric(site / "ring.json")
    for turn, following in zip(loop, [*loop[1:], loop[0]], strict=True):
        assert turn["switch_name"] == turn["peer_name"] == "twin"
        assert turn["peer_guid"] == following["switch_guid"]
        row = fabric.switch_guid.tolist().index(int(turn["switch_guid"], 16))
        channel = fabric.channels.at_port[row, turn["port"]]
        assert guid_text(int(fabric.switch_guid[fabric.channels.dst[channel]])) == turn["peer_guid"]
        assert fabric.channels.dst_port[channel] == turn["peer_port"]


def test_watch_names_them_by_guid(site):
    fabric = read_fabric(site / "ring.json")
    reported = suspect_loops(fabric, read_tables(site / "loop", fabric), np.arange(10, dtype=np.int32))
    assert reported.loops
    named = [line for suspects in reported.loops for line in suspects.describe()]
    named += [channel_name(fabric, channel) for channel in range(10)]
    named += list(texts(as_object(fabric, reported, [0, 1])))
    assert not [line for line in named if ALIKE.search(line)]


def test_the_plugins_log_names_them_by_guid(site):
    fabric = read_fabric(site / "ring.json")
    one, loop = (read_tables(site / name, fabric) for name in ("one", "loop"))
    kept = [SavedTables(fabric, tables, prove(fabric, tables), "updn", "") for tables in (one, loop)]
    line = transition_line(change_of(*kept, wanted=False))
    assert "credit loop of" in line
    assert "twin (0x" in line
    assert not ALIKE.search(line)


def test_an_ambiguous_name_is_refused_with_the_guids(site):
    ring, loop = site / "ring.json", site / "loop"
    for words in (
        ("route", ring, "--fail", "twin"),
        ("route", ring, "--fail", "twin/1"),
        ("route", ring, "--root", "twin"),
        ("whatif", ring, "--fault", "twin"),
        ("policy", "explain", site / "rules.toml", ring, "twin", 1),
    ):
        result = run(*words)
        assert_refused(result, "twin")
        assert all(f"0x000000000020000{n}" in result.stderr for n in range(5)), result.stderr
    (site / "named.txt").write_text("node 8\n")
    result = run("pause", ring, loop, "--flows", site / "named.txt")
    assert_refused(result, "5 end ports are called 'node'")
    assert "0x0000000000100001" in result.stderr


def test_guids_and_labels_are_taken_wherever_a_device_is_named(site):
    ring = site / "ring.json"
    for name in ("0x200003", "twin (0x0000000000200003)"):
        for words in (
            ("route", ring, "--fail", name),
            ("route", ring, "--root", name),
            ("whatif", ring, "--fault", f"{name}/1"),
            ("policy", "explain", site / "rules.toml", ring, name, 1),
        ):
            result = run(*words)
            assert result.exit_code == 0, result.output


def test_faults_are_read_back_from_what_they_are_called():
    fabric = twins(generate("torus", ["3x3"]))
    for fault in [*every_link(fabric, cas=True), *every_switch(fabric), *every_ca(fabric)]:
        again = parse_fault(str(fault), fabric)
        assert (again.ports, again.devices, again.kind) == (fault.ports, fault.devices, fault.kind)
        assert apply_faults(fabric, [again]).digest == apply_faults(fabric, [fault]).digest


def test_labels_differ_for_different_devices():
    own = guid_text(7)
    names = ["a", "b", "b ", "", "  ", "", f"c ({guid_text(1)})", own, guid_text(1), "b (0x0000000000000002)"]
    labels = labels_of(names, list(range(len(names))))
    assert len(set(labels)) == len(names)
    assert labels[0] == "a"
    assert labels[1] == f"b ({guid_text(1)})"
    assert labels[3] == guid_text(3)
    assert labels[7] == own
    assert [guid_in(label) for label in labels[1:]] == list(range(1, len(names)))


MAPPED = [
    ("route", RING, "-e", "minhop"),
    ("check", RING, LOOP),
    ("quality", RING, LOOP),
    ("whatif", RING, "--fault", "spine 3"),
    ("transition", RING, ONE, TWO),
    ("diff", ONE, TWO, "--fabric", RING),
    ("pause", RING, LOOP, "--flows", "{}/flows.txt"),
    ("policy", "explain", "{}/rules.toml", RING, "spine 3", "1"),
    ("sweep", RING, "-e", "minhop", "--fault", "spine 3", "-j", "1"),
    ("compare-designs", RING, "-e", "minhop", "--links", "0"),
    ("simulate", "{}/names.toml", "--trace"),
]


@pytest.mark.parametrize("words", MAPPED, ids=" ".join)
def test_a_node_name_map_gives_every_command_its_names(site, words):
    path = site / "names.map"
    path.write_text("# the site's\n" + "".join(f'0x20000{n} "spine {n}"\n' for n in range(5)))
    result = run(*(str(word).format(site) for word in words), "--node-name-map", path)
    assert result.exit_code in (0, 1), result.output
    assert "spine" in result.stdout or words[0] in ("sweep", "compare-designs", "simulate")
    assert "twin" not in result.stdout
    path.write_text('0x200000 "spine"\nspine 2\n')
    assert_refused(run(*(str(word).format(site) for word in words), "--node-name-map", path), "names.map:2: ")


def test_a_generator_takes_a_node_name_map_too(site, tmp_path):
    (tmp_path / "names").write_text('0x200001 "left"\n')
    result = run("fabric", "ring", "5", "--node-name-map", tmp_path / "names", "-o", tmp_path / "ring.json")
    assert result.exit_code == 0, result.output
    assert read_fabric(tmp_path / "ring.json").switch_name == ("sw0", "left", "sw2", "sw3", "sw4")
    refused = run("diff", site / "one", site / "two", "--node-name-map", tmp_path / "names")
    assert_refused(refused, "--node-name-map has no effect without --fabric")
