"""Check the classes of a QoS policy with layered tables: all SLs that paths may get are safe together."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from in_one_test import cases_in_one_test

from osm_plugin.opensm_conf import OpensmConf
from osm_plugin.qos import CLASSES, UNUSED_VL, QosPolicy, check_classes, classes_of
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import FalseCertificate, RoutingError
from routing.tables import identity_sl2vl
from routing.topologies import generate

FABRICS = {
    "torus": generate("torus", ["5x5"], cas=1),
    "random": generate("random-regular", ["14", "3"], cas=1, seed=4),
}
ENGINE = {
    "nue on 2": ("nue", {"vls": 2}),
    "nue on 3": ("nue", {"vls": 3}),
    "dfsssp": ("dfsssp", {"vls": "min"}),
    "lash": ("lash", {"vls": "min"}),
    "lash from VL 1": ("lash", {"vls": "min", "first_vl": 1}),
}
POLICIES = [(0,), (3,), (0, 1), (0, 2, 5), (1, 4, 9, 15)]


def routed(fabric, engine):
    name, options = ENGINE[engine]
    return ENGINES[name].route(FABRICS[fabric], EngineOptions(effort=0.1, **options))


def own_sl(fabric, routing, source, destination):
    """Return the SL in the table for a source LID and a destination LID."""
    if routing.sl.ndim == 1:
        return int(routing.sl[destination])
    return int(routing.sl[fabric.lids.switch[source], destination])


def dependencies(fabric, classes):
    """Return all dependencies on every SL that OpenSM may give to a path, by following each path."""
    routing, channels, graph = classes.routing, fabric.channels, nx.DiGraph()
    for source in fabric.endport_lid.tolist():
        for target in fabric.endport_lid.tolist():
            own, switch, path = own_sl(fabric, routing, source, target), int(fabric.lids.switch[source]), []
            while switch != fabric.lids.switch[target]:
                path.append(int(channels.at_port[switch, routing.lft[switch, target]]))
                switch = int(channels.dst[path[-1]])
            for sl in set(classes.sl_for[:, own].tolist()):
                vl = int(routing.sl2vl[sl])
                graph.add_edges_from(((one, vl), (other, vl)) for one, other in itertools.pairwise(path))
    return graph


@cases_in_one_test("sls", POLICIES)
@cases_in_one_test("engine", ENGINE)
@cases_in_one_test("fabric", FABRICS)
def test_classes_are_safe_together_and_are_those_of_the_policy(fabric, engine, sls):
    routing, fabric = routed(fabric, engine), FABRICS[fabric]
    policy = QosPolicy(sls)
    layers = len(np.unique(routing.sl[..., fabric.lids.switch >= 0]))
    if len(sls) * layers > 16:
        with pytest.raises(RoutingError, match="more than 16 SLs"):
            classes_of(fabric, routing, policy, 8)
        return
    classes = classes_of(fabric, routing, policy, 8)
    assert nx.is_directed_acyclic_graph(dependencies(fabric, classes))
    check_classes(fabric, classes, prove(fabric, routing), threads=1)
    assert (classes.routing.lft == routing.lft).all()
    assert classes.routing.vls <= 8
    own = np.unique(classes.routing.sl[..., fabric.lids.switch >= 0])
    answers = {sl: set(classes.sl_for[sl][own].tolist()) for sl in sls}
    for sl, found in answers.items():
        assert sl in found and len(found) == layers
    assert sum(map(len, answers.values())) == len(set().union(*answers.values()))
    vls = [{int(classes.routing.sl2vl[sl]) for sl in found} for found in answers.values()]
    wanted = len({policy.sl2vl[sl] & 7 for sl in sls})
    room = 8 - ENGINE[engine][1].get("first_vl", 0)
    if wanted * layers <= room:
        assert len(set().union(*vls)) == wanted * layers
    else:
        assert all(found == vls[0] for found in vls)
    carried = set().union(*vls)
    assert {vl for vl in range(16) if classes.vl_like[vl] != UNUSED_VL} == carried
    assert set(classes.vl_like[sorted(carried)].tolist()) <= carried


@pytest.mark.parametrize("sls", [(), (0, 2)])
def test_a_request_for_an_sl_that_is_safe_on_a_path_gets_it(sls):
    fabric, routing = FABRICS["torus"], routed("torus", "nue on 3")
    classes = classes_of(fabric, routing, QosPolicy(sls), 8)
    row, own = classes.routing.sl2vl, np.unique(classes.routing.sl[fabric.lids.switch >= 0])
    safe = 0
    for sl in range(16):
        for table in own.tolist():
            answer = int(classes.sl_for[sl, table])
            same_layer = classes.layer_vl[row[sl]] == classes.layer_vl[row[table]]
            assert (answer == sl) == same_layer
            safe += same_layer
    assert safe >= 16  # every SL is safe on the paths of its layer


def test_one_vl_leaves_all_to_the_policy():
    fabric = FABRICS["torus"]
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls="min", effort=0.05))
    classes = classes_of(fabric, routing, QosPolicy((0, 4, 7)), 8)
    assert classes.routing is routing
    assert all((classes.sl_for[sl] == sl).all() for sl in range(16))
    assert (classes.vl_like == UNUSED_VL).all()


def test_without_a_policy_the_tables_are_the_engines():
    fabric, routing = FABRICS["torus"], routed("torus", "dfsssp")
    classes = classes_of(fabric, routing, QosPolicy(), 8)
    assert classes.routing is routing and classes.line == ""
    assert all(classes.sl_for[0, sl] in (0, sl) for sl in range(16))


def test_tables_whose_vls_change_on_the_path_keep_their_sls():
    fabric, routing = FABRICS["torus"], routed("torus", "nue on 2")
    ports = 1 + int(fabric.switch_ports.max())
    wide = np.broadcast_to(routing.sl2vl, (fabric.switches, ports, ports, 16)).copy()
    wide[0, 0] = 1
    classes = classes_of(fabric, replace(routing, sl2vl=wide), QosPolicy((0, 1)), 8)
    assert (classes.sl_for == np.arange(16)).all()
    assert "use the SLs of the tables" in classes.line


def test_too_few_vls_are_shared_and_the_line_says_so():
    fabric, routing = FABRICS["torus"], routed("torus", "nue on 2")
    shared, apart = (classes_of(fabric, routing, QosPolicy((0, 1, 2)), vls) for vls in (2, 8))
    assert shared.routing.vls == 2 and "classes share VLs" in shared.line
    assert apart.routing.vls == 6 and "share" not in apart.line


def test_the_vl_that_the_policy_has_for_a_class_carries_its_first_layer():
    fabric, routing = FABRICS["torus"], routed("torus", "nue on 2")
    sl2vl = (4, 4, 6, *[0] * 13)
    classes = classes_of(fabric, routing, QosPolicy((0, 1, 2), sl2vl), 8)
    assert classes.routing.sl2vl[[0, 1, 2]].tolist() == [4, 4, 6]
    assert classes.vl_like[[4, 6]].tolist() == [4, 6]
    assert sorted(classes.vl_like.tolist())[:4] == [4, 4, 6, 6]


def test_the_check_over_classes_can_fail():
    fabric, routing = FABRICS["torus"], routed("torus", "dfsssp")
    proof = prove(fabric, routing)
    classes = classes_of(fabric, routing, QosPolicy((0, 2)), 8)
    check_classes(fabric, classes, proof, threads=1)
    mixed = replace(classes, sl_for=np.broadcast_to(np.arange(16, dtype=np.uint8)[:, None], (16, 16)))
    with pytest.raises(FalseCertificate):
        check_classes(fabric, mixed, proof, threads=1)
    folded = replace(classes, routing=replace(classes.routing, sl2vl=identity_sl2vl(1)))
    with pytest.raises(FalseCertificate):
        check_classes(fabric, folded, proof, threads=1)


def test_the_policy_in_a_request():
    assert QosPolicy.of(OpensmConf.of("sm_sl 4\n")) == QosPolicy()
    text = "qos_policy_sls 1,3\npartition_sls 0,3\nsm_sl 4\nqos_swe_sl2vl 0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1\n"
    policy = QosPolicy.of(OpensmConf.of(text))
    assert policy.sls == (0, 1, 3, 4) and policy.sl2vl == (0, 1) * 8
    assert QosPolicy.of(OpensmConf.of("qos_policy_sls 1\nqos_swe_sl2vl 3,4\n")).sl2vl == QosPolicy().sl2vl


@pytest.mark.parametrize(
    ("policy", "vls", "sls"),
    [
        ("", 1, "SL 0"),
        ("qos_policy_sls 1,3\nsm_sl 2\n", 1, "SL 2 and SL 3"),
        ("qos_policy_sls 1\n", 1, ""),
        ("qos_policy_sls 3\n", 2, ""),
        ("", 2, ""),
    ],
)
def test_sls_whose_packets_are_discarded_are_named(policy, vls, sls):
    row = f"qos_swe_sl2vl 15,0,15,15{',0' * 12}\n"
    line = QosPolicy.of(OpensmConf.of(policy + row)).sl2vl_line(vls)
    why = "opensm.conf: qos_sl2vl: switches discard packets with {}: their VL is 15 (use VLs 0 to 14)"
    assert line == why.format(sls) if sls else "discard" not in line


def test_the_usual_sl2vl_table_discards_no_packets():
    assert QosPolicy.of(OpensmConf.of("qos_policy_sls 0,15\n")).sl2vl_line(1) == ""


def test_the_structure_for_the_shim():
    fabric, routing = FABRICS["torus"], routed("torus", "nue on 2")
    classes = classes_of(fabric, routing, QosPolicy((0, 1)), 8)
    found = np.frombuffer(classes.as_array().tobytes(), CLASSES)[0]
    assert found["sl_for"].reshape(16, 16).tolist() == classes.sl_for.tolist()
    assert found["vl_like"].tolist() == classes.vl_like.tolist()
