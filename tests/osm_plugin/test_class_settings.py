"""Check the classes of end ports in the plugin's configuration."""

import json
from dataclasses import replace

import pytest

from osm_plugin.check_conf import check_configuration
from osm_plugin.config import PluginConfig, config_from_table, read_config
from osm_plugin.options import port_classes
from osm_plugin.route_or_reroute import options_key
from osm_plugin.snapshot import Snapshot, _fabric, fabric_to_arrays
from osm_plugin.state import SavedTables, read_state, write_state
from osm_plugin.tables_in_force import State
from routing.class_settings import PortClass, Weight
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import InputError
from routing.port_classes import PortClasses
from routing.topologies import generate

TEXT = """
[classes.storage]
names = ["storage*", "nvme?"]
guid_file = "storage.guids"
weight = "1:4"
[classes.management]
weight = 0
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ibnue.toml"
    path.write_text(TEXT)
    (tmp_path / "storage.guids").write_text("0x7 # a node\n")
    return path


def test_a_full_file(path):
    config = read_config(path)
    rules = port_classes(config)
    assert rules.patterns == (("storage*", PortClass.STORAGE), ("nvme?", PortClass.STORAGE))
    assert rules.guids == ((7, PortClass.STORAGE),)
    assert rules.weights[PortClass.STORAGE] == Weight(1, 4) and rules.weights[PortClass.MANAGEMENT] == Weight(0, 0)
    assert config.files == {("classes", "storage", "guid_file"): path.parent / "storage.guids"}
    moved = config.with_files({("classes", "storage", "guid_file"): path.parent / "copy"})
    assert list(moved.files.values()) == [path.parent / "copy"]
    assert config_from_table(json.loads(json.dumps(config.to_table())), path) == config
    assert port_classes(PluginConfig()) == PortClasses()
    assert check_configuration(path, None) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[classes.tape]", "unknown class 'tape'"),
        ("[classes]\nio = 3", "'classes.io' is not a table"),
        ("[classes.io]\nname = ['x']", "unknown key 'classes.io.name'"),
        ("[classes.io]\nweight = 1.5", "'classes.io.weight' is 1.5"),
    ],
)
def test_a_wrong_configuration(path, text, complaint):
    path.write_text(text)
    with pytest.raises(InputError, match=complaint):
        read_config(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[classes.io]\nweight = 'x'", "[classes.io]: 'x' is not a weight"),
        ("[classes.io]\nguid_file = 'none'", "classes.io.guid_file: "),
    ],
)
def test_wrong_class_settings_are_found(path, text, complaint):
    path.write_text(text)
    (finding,) = check_configuration(path, None)
    assert finding.wrong and complaint in finding.text


def test_all_errors_are_reported_at_once(path):
    path.write_text(
        "dead_line = 3\nhistory = -1\n[classes.tape]\nwieght = 3\n[classes.io]\nweight = 1.5\n[engine]\nvsl = 2\n"
    )
    wanted = [
        "unknown key 'dead_line'",
        "'history' is -1",
        "unknown class 'tape'",
        "unknown key 'classes.tape.wieght'",
        "'classes.io.weight' is 1.5",
        "unknown key 'engine.vsl'",
    ]
    found = check_configuration(path, None)
    assert [want in finding.text for want, finding in zip(wanted, found, strict=True)] == [True] * 6
    with pytest.raises(InputError) as raised:
        read_config(path)
    assert all(want in str(raised.value) for want in wanted) and "\n" not in str(raised.value)


def test_a_fabric_is_used_again_only_with_the_same_rules():
    fabric = generate("ring", ["4"])
    device, endport, cable = fabric_to_arrays(fabric)
    source = device.tobytes(), endport.tobytes(), cable.tobytes()
    first = _fabric(source, 4, (), PortClasses())
    earlier = [Snapshot(1, first, 1, False, 0, source)]
    assert _fabric(source, 4, earlier, PortClasses()) is first
    rules = PortClasses(patterns=(("*", PortClass.IO),))
    assert set(_fabric(source, 4, earlier, rules).endport_class) == {PortClass.IO}


def test_tables_of_other_rules_are_not_kept_and_those_of_a_file_get_the_rules(tmp_path):
    rules = PortClasses(patterns=(("*", PortClass.IO),))
    fabric, options = replace(generate("ring", ["4"]), port_classes=rules), EngineOptions()
    assert options_key(options) == options_key(options, PortClasses()) != options_key(options, rules)
    routing = ENGINES["updn"].route(fabric, options)
    kept = SavedTables(fabric, routing, prove(fabric, routing), "updn", options_key(options, rules))
    write_state(tmp_path / "state.npz", kept)
    state = State()
    state.last = state.baseline = read_state(tmp_path / "state.npz")
    assert state.before("updn", options_key(options), fabric, data_vls=8) is None
    before = state.before("updn", options_key(options, rules), fabric, data_vls=8)
    assert before.fabric.port_classes == rules and state.before("updn", before.options, fabric, data_vls=8) is before
    assert state.baseline_of(before).fabric.port_classes == rules
