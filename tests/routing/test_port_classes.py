"""Check classes of end ports: rules, their precedence, weights, and the use that engines make of them."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from command_runs import assert_refused, run

from routing.class_settings import CLASS_LABELS, PortClass, Weight
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations
from routing.errors import InputWarning, OptionError
from routing.formats.guid_files import apply_node_names, apply_port_classes
from routing.formats.ibnetdiscover import parse_ibnetdiscover
from routing.port_classes import PortClasses, port_classes_of
from routing.reroute.flow import flow_towards, lid_weights
from routing.topologies import generate

NODE = """vendid=0x2c9
devid={device}
sysimgguid=0x10
caguid=0x{guid}
Ca\t1 "H-{guid}"\t\t# "{name}"
[1]({guid}) \t"S-0000000000000010"[{port}]\t\t# lid {port} lmc 0 "leaf" lid 9 4xNDR

"""


def discovered(*nodes):
    """Return the output of ibnetdiscover for a switch with some nodes, each given as (name, device ID)."""
    guids = [f"{0x20 + row:016x}" for row in range(len(nodes))]
    ports = "".join(
        f'[{row + 1}]\t"H-{guid}"[1]({guid}) \t\t# "{name}" lid {row + 1} 4xNDR\n'
        for row, (guid, (name, _)) in enumerate(zip(guids, nodes, strict=True))
    )
    head = 'switchguid=0x10(10)\nSwitch\t65 "S-0000000000000010"\t\t# "leaf" enhanced port 0 lid 9 lmc 0\n'
    records = [
        NODE.format(device=device, guid=guid, name=name, port=row + 1)
        for row, (guid, (name, device)) in enumerate(zip(guids, nodes, strict=True))
    ]
    return parse_ibnetdiscover(f"{head}{ports}\n{''.join(records)}", "f")


def labels(fabric):
    return [PortClass(own).label for own in fabric.endport_class.tolist()]


def rules(*settings, guids=()):
    return port_classes_of(settings, lambda _: guids)


def test_aggregation_nodes_are_recognised_by_description_or_device_id_and_nothing_else_is():
    fabric = discovered(
        ("Mellanox Technologies Aggregation Node", "0xd2f4"), ("sharp7", "0xcf09"), ("storage1", "0x101b")
    )
    assert labels(fabric) == ["aggregation", "aggregation", "compute"]
    assert fabric.counted.tolist() == [False, False, True]


def test_another_name_does_not_hide_an_aggregation_node():
    fabric = discovered(("Mellanox Technologies Aggregation Node", "0x1"), ("node", "0x1"))
    named = apply_node_names(fabric, {0x20: "an-of-leaf", 0x21: "Aggregation Node?"})
    assert labels(named) == ["aggregation", "aggregation"]


def test_guids_precede_patterns_and_both_precede_detection():
    fabric = discovered(("Mellanox Technologies Aggregation Node", "0x1"), ("nvme1", "0x1"), ("nvme-gw", "0x1"))
    found = rules(
        ("names", "io", ["*-gw"]), ("names", "storage", "nvme*"), ("guid_file", "management", "f"), guids=[0x20]
    )
    assert labels(apply_port_classes(fabric, found)) == ["management", "storage", "io"]


def test_a_port_guid_names_one_port_of_a_device():
    fabric = generate("cluster", ["2x2x2", "2x2"])
    own = rules(("guid_file", "io", "f"), guids=[int(fabric.endport_guid[3])])
    assert np.flatnonzero(apply_port_classes(fabric, own).endport_class == PortClass.IO).tolist() == [3]


def test_rules_that_fit_nothing_are_named():
    fabric = generate("ring", ["3"])
    with pytest.warns(InputWarning, match=r"'nvme\*', 0x99"):
        apply_port_classes(fabric, rules(("names", "io", "nvme*"), ("guid_file", "io", "f"), guids=[0x99]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apply_port_classes(fabric, rules(("names", "io", "ca1*")))


@pytest.mark.parametrize("text", ["", "x", "1:2:3", "-1", "101", "1:", "1.5"])
def test_texts_that_are_no_weight(text):
    with pytest.raises(OptionError):
        Weight.parse(text)


def test_weights_as_text():
    assert Weight.parse("3") == Weight.parse(3) == Weight(3, 3)
    assert Weight.parse("0:4") == Weight(0, 4)


def test_a_guid_has_one_class():
    with pytest.raises(OptionError, match="0x7 is listed as io and as storage"):
        rules(("guid_file", "io", "a"), ("guid_file", "storage", "b"), guids=[7])
    with pytest.raises(OptionError, match=r"0x1 is listed .*; GUID 0xa is listed .* storage; and 2 more") as found:
        rules(("guid_file", "io", "a"), ("guid_file", "storage", "b"), guids=range(1, 13))
    assert "0xb" not in str(found.value)


def test_engines_read_the_weights():
    fabric = generate("kary-ntree", ["2", "2"], lmc=1)
    plain = apply_port_classes(
        fabric, rules(("names", "storage", fabric.terminal_name[0]), ("weight", "storage", "3:5"))
    )
    switch = int(fabric.endport_switch[0])
    assert (plain.source_weight_at - fabric.source_weight_at)[switch] == 2
    assert plain.senders_at.tolist() == fabric.senders_at.tolist()
    share = Destinations.of(plain).share
    owner = plain.lids.endport[Destinations.of(plain).lid]
    assert share[owner == 0].tolist() == [2.5, 2.5] and set(share[owner > 0]) == {0.5}
    assert lid_weights(plain)[plain.lids.endport == 0].tolist() == [320, 320]


def test_the_flow_is_that_of_the_weights():
    fabric = generate("mesh", ["2"], cas=1)
    weighted = apply_port_classes(
        fabric, rules(("names", "storage", fabric.terminal_name[1]), ("weight", "storage", "2:7"))
    )
    routing = ENGINES["minhop"].route(weighted, EngineOptions())
    flow = flow_towards(weighted, routing, threads=1) // 128
    towards = {int(weighted.channels.dst[row]): int(flow[row]) for row in range(2)}
    there = int(weighted.endport_switch[1])
    assert towards == {there: 7, 1 - there: 2}


def test_classes_without_a_weight_count_like_aggregation_nodes():
    fabric = generate("kary-ntree", ["4", "2"], aggregation=1)
    silent = apply_port_classes(fabric, rules(("names", "compute", "*Aggregation*"), ("weight", "compute", 0)))
    assert not silent.counted.any() and not silent.senders_at.any()


def test_rules_stay_when_links_break():
    fabric = apply_port_classes(generate("ring", ["4"]), rules(("names", "storage", "*")))
    assert set(labels(fabric.without_links([0, 1]))) == {"storage"}


@pytest.mark.parametrize("engine", ["minhop", "updn", "nue", "sssp", "dfsssp", "lash"])
def test_engines_route_any_weights(engine):
    fabric = generate("torus", ["3x3"], aggregation=1)
    for weight in ("0:4", "4:0", 0, 100):
        own = rules(("names", "storage", fabric.terminal_name[0]), ("weight", "storage", weight))
        routing = ENGINES[engine].route(apply_port_classes(fabric, own), EngineOptions())
        assert (routing.lft[:, fabric.endport_lid] != 255).all()


def test_default_rules_and_recognised_devices_are_values():
    assert PortClasses() == PortClasses() and hash(PortClasses()) == hash(PortClasses())
    assert replace(PortClasses(), recognised=((1, PortClass.IO),)).with_rules_of(PortClasses()).recognised
    assert CLASS_LABELS == ("compute", "storage", "io", "management", "aggregation")


def test_the_command_takes_classes(tmp_path):
    guid = generate("cluster", ["2x2x2", "2x2"], aggregation=1).terminal_guid[0]
    (tmp_path / "g").write_text(f"{guid:#x}\n")
    arguments = ["cluster:2x2x2,2x2,aggregation=1"]
    result = run("fabric", *arguments, "--class", "storage=storage*", "--class", "management=man*", "--json")
    counts = json.loads(result.stdout)["end_ports_by_class"]
    assert counts["storage"] == counts["management"] == 2 and counts["aggregation"] > 4
    listed = run("fabric", *arguments, "--class-file", f"io={tmp_path}/g", "--json")
    assert json.loads(listed.stdout)["end_ports_by_class"]["io"] == 1
    assert "2 storage" in run("fabric", *arguments, "--class", "storage=storage*").stdout
    assert_refused(run("fabric", *arguments, "--class", "tape=x*"), "unknown class 'tape'", "storage")
    assert_refused(run("fabric", *arguments, "--class", "tape"), "CLASS=PATTERN")
    assert_refused(run("route", *arguments, "--class-weight", "io=1:x"), "'1:x' is not a weight")
    assert_refused(run("fabric", *arguments, "--class-file", f"io={tmp_path}/none"), "none")
