"""Check QoS policies in a live OpenSM: SLs follow the policy, and all VLs in use together have no credit loop.

The check is independent of the plugin.  SLs come from the SA, forwarding tables and SL-to-VL tables from the switches.
Every path is followed.
"""

import itertools

import networkx as nx
import pytest
from campaigns import some_of
from plugin_lab import logged
from waiting import until

from ibsim_fixtures import mad_client

pytestmark = pytest.mark.lab

ENGINES = {1: "ibnue-nue", 2: "ibnue-dfsssp", 8: "ibnue-dfsssp"}
"""Engine by number of data VLs; dfsssp needs two layers on a ring of seven."""
PARTITIONS = "Default=0x7fff, ipoib, sl={} : ALL=full;\nfast=0x0002, sl={} : ALL=full;\n"
ULPS = "qos-ulps\n    default : {}\n{}end-qos-ulps\n"
RULES = "    any, service-id 0x5000 : 5\n    any, pkey 0x0002 : 6\n"
POLICIES = {
    "default SL": ("", ULPS.format(1, ""), {"path": ({}, 1)}),
    "ULP rules": (
        PARTITIONS.format(0, 0),
        ULPS.format(2, RULES),
        {"path": ({}, 2), "service": ({"service": 0x5000}, 5), "partition": ({"pkey": 0x8002}, 6)},
    ),
    "partition SL": (
        PARTITIONS.format(1, 3), "", {"default": ({"pkey": 0xFFFF}, 1), "fast": ({"pkey": 0x8002}, 3)},
    ),
}  # fmt: skip
WEIGHTS = {"qos_vlarb_high": "2:3", "qos_vlarb_low": "0:64,1:8"}


@pytest.fixture
def qos(live, nets, tmp_path):
    """Return a function that starts a lab on a ring of seven with a policy and a number of data VLs."""

    def start(vls, partitions="", policy="", engine=None, toml=""):
        (tmp_path / "partitions").write_text(partitions or "Default=0x7fff, ipoib : ALL=full;\n")
        config = {"qos": True, "qos_max_vls": vls, "partition_config_file": tmp_path / "partitions", **WEIGHTS}
        if policy:
            (tmp_path / "policy").write_text(policy)
            config["qos_policy_file"] = tmp_path / "policy"
        net = nets("ring", "7", cas=1)
        return live(net, f"{engine or ENGINES[vls]},no_fallback", toml=f"state_file = false\n{toml}", config=config)

    return start


class Walk:
    """All paths over the tables that were read from the switches."""

    def __init__(self, lab):
        self.lab, self.fabric = lab, lab.fabric()
        self.lft, self.sl2vl = lab.switch_lfts(), lab.switch_sl2vl()
        fabric = self.fabric
        self.guid = fabric.switch_guid.tolist()
        self.far = {}
        for ends, ports in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True):
            for one, other in ((0, 1), (1, 0)):
                self.far[ends[one], ports[one]] = ends[other], ports[other]
        self.entry = {
            int(lid): (int(switch), int(port))
            for lid, switch, port in zip(
                fabric.endport_lid, fabric.endport_switch, fabric.endport_switch_port, strict=True
            )
        }

    def hops(self, source, target, sl):
        """Yield (switch, out-port, VL) at each switch of a path on an SL."""
        switch, entry = self.entry[source]
        while True:
            leave = self.lft[self.guid[switch]][target]
            yield switch, leave, self.sl2vl[self.guid[switch], entry, leave][sl]
            device, entry = self.far[switch, leave]
            if device >= self.fabric.switches:
                assert self.entry[target] == (switch, leave)
                return
            switch = device

    def used(self, answers):
        """Return the VLs in use at each (switch, port), after a check that the dependencies have no cycle."""
        graph, used = nx.DiGraph(), {}
        for sls in answers:
            for (source, target), sl in sls.items():
                hops = list(self.hops(source, target, sl))
                graph.add_edges_from(itertools.pairwise(hops))
                for switch, port, vl in hops:
                    used.setdefault((switch, port), set()).add(vl)
        assert nx.is_directed_acyclic_graph(graph)
        return used

    def assert_arbiters_serve(self, used):
        ports = [(int(self.fabric.switch_lid[switch]), port) for switch, port in used]
        found = mad_client.arbitration(self.lab.ibsim, ports)
        for vls, weights in zip(used.values(), found, strict=True):
            assert weights is not None
            assert all(weights.get(vl, 0) > 0 for vl in vls), (vls, weights)


def by_lids(lab, found):
    """Return the SLs by (source LID, destination LID)."""
    lids = {owner.guid: owner.lid for owner in lab.owners() if owner.kind == "CA"}
    assert len(found) == len(lids) * (len(lids) - 1)
    return {(lids.get(source, source), target): sl for (source, target), sl in found.items()}


CASES = [(name, vls) for name in POLICIES for vls in (1, 2, 8)]


@pytest.mark.parametrize(("name", "vls"), some_of(CASES, [("ULP rules", 2), ("partition SL", 8)]))
def test_sls_are_those_of_the_policy_and_all_together_are_safe(qos, name, vls):
    partitions, policy, requests = POLICIES[name]
    with qos(vls, partitions, policy) as lab:
        walk = Walk(lab)
        answers = {about: by_lids(lab, lab.requested_sls(**request)) for about, (request, _) in requests.items()}
        used = walk.used(answers.values())
        walk.assert_arbiters_serve(used)
        found = {about: set(sls.values()) for about, sls in answers.items()}
        for about, (_, sl) in requests.items():
            assert sl in found[about]
            assert len(found[about]) == (1 if vls == 1 else 2)
        assert sum(map(len, found.values())) == len(set().union(*found.values()))
        # Each class has two layers.  If there are VLs for all layers, the layers of different classes use different
        # VLs.
        carried = set().union(*used.values())
        assert vls == 1 or len(carried) == {2: 2, 8: 2 * len(requests)}[vls]
        assert lab.opensm.errors == []
        if vls > 1:
            until(lambda: logged(lab, "ibnue: QoS: 2 layers for each class"))
        lacking = carried - {0, 1, 2}
        if vls == 8 and lacking:
            assert until(lambda: logged(lab, "ibnue: VL arbitration: VLs (0x[0-9a-f]+)")) == [
                f"{sum(1 << vl for vl in lacking):#x}"
            ]


@pytest.mark.parametrize("vls", some_of([1, 2, 8], [8]))
def test_a_request_for_an_sl_gets_a_path_where_it_is_safe(qos, vls):
    with qos(vls) as lab:
        walk = Walk(lab)
        plain = by_lids(lab, lab.requested_sls())
        answers = [plain]
        lids = {owner.guid: owner.lid for owner in lab.owners() if owner.kind == "CA"}
        for sl in range(0, 16, 3):
            found = {(lids.get(a, a), b): got for (a, b), got in lab.requested_sls(sl=sl).items()}
            assert set(found.values()) <= {sl}
            # A request for an SL is served only if this SL uses the VL of the path's own SL.
            same = {
                pair
                for pair, own in plain.items()
                if vls == 1 or list(walk.hops(*pair, own)) == list(walk.hops(*pair, sl))
            }
            assert set(found) == same
            answers.append(found)
        walk.assert_arbiters_serve(walk.used(answers))


def test_a_policy_that_changes_counts_from_the_next_sweep_on(qos, tmp_path):
    with qos(8, policy=ULPS.format(1, "")) as lab:
        assert set(lab.requested_sls().values()) == {1, 0}
        (tmp_path / "policy").write_text(ULPS.format(4, ""))
        lab.opensm.resweep()
        found = by_lids(lab, lab.requested_sls())
        assert 4 in found.values() and 1 not in found.values()
        Walk(lab).used([found])
        until(lambda: logged(lab, "transition not judged: the SLs of QoS classes change"))


def test_a_policy_file_that_is_gone_does_not_count_in_the_next_sweep(qos, tmp_path):
    # Without a policy, eight layers have the SLs 0 to 7.
    with qos(8, policy=ULPS.format(9, "")) as lab:
        assert 9 in lab.requested_sls().values()
        file, aside = tmp_path / "policy", tmp_path / "aside"
        file.rename(aside)
        lab.opensm.resweep()
        found = by_lids(lab, lab.requested_sls())
        assert 9 not in found.values()
        Walk(lab).used([found])
        assert not any("ERR IBN" in line for line in lab.opensm.errors)
        aside.rename(file)  # the file has the inode, size and time that it had before
        lab.opensm.resweep()
        assert 9 in lab.requested_sls().values()


@pytest.mark.parametrize(
    ("engine", "own"), some_of([("ibnue-nue", {3}), ("ibnue-dfsssp", {0, 3})], [("ibnue-nue", {3})])
)
def test_a_policy_with_an_error_does_not_replace_the_tables(qos, tmp_path, engine, own):
    with qos(8, policy=ULPS.format(3, ""), engine=engine) as lab:
        lfts, sls = lab.switch_lfts(), lab.ca_sls()
        assert set(sls.values()) == own
        (tmp_path / "policy").write_text(ULPS.format(17, ""))
        lab.opensm.resweep()
        assert len(logged(lab, "ibnue: QoS: .*/policy has an error, so OpenSM assigns no SLs by it")) == 1
        assert lab.switch_lfts() == lfts
        Walk(lab).used([by_lids(lab, lab.requested_sls())])
        (tmp_path / "policy").write_text(ULPS.format(3, ""))
        lab.opensm.resweep()
        assert lab.switch_lfts() == lfts and lab.ca_sls() == sls
        assert len(logged(lab, "routed from scratch")) == 1


@pytest.mark.parametrize("engine", some_of(["ibnue-nue", "ibnue-dfsssp"], ["ibnue-dfsssp"]))
@pytest.mark.parametrize(
    ("old", "new"),
    some_of(
        # OpenSM deletes a partition whose ports are not in the subnet.
        [("sl=3 :", "sl=3"), ("fast=0x0002", "fast=two"), ("ALL=full;", "0x0=full;"), ("sl=3 : ALL", "sl=3 : 0x999")],
        [("sl=3 :", "sl=3")],
    ),
)
def test_partitions_with_an_error_do_not_replace_the_tables(qos, tmp_path, engine, old, new):
    good, file = PARTITIONS.format(1, 3), tmp_path / "partitions"
    with qos(8, good, engine=engine) as lab:
        lfts, sls = lab.switch_lfts(), by_lids(lab, lab.requested_sls(pkey=0xFFFF))
        file.write_text(good.replace(old, new))
        for _ in range(2):
            lab.opensm.resweep()
        assert (
            len(logged(lab, f"ibnue: QoS: OpenSM has only the default partition, although {file} defines others")) == 1
        )
        assert lab.switch_lfts() == lfts
        Walk(lab).used([by_lids(lab, lab.requested_sls())])
        file.write_text(good)
        lab.opensm.resweep()
        assert lab.switch_lfts() == lfts and by_lids(lab, lab.requested_sls(pkey=0xFFFF)) == sls
        assert len(logged(lab, "routed from scratch")) == 1


def test_partitions_that_are_removed_do_not_count(qos, tmp_path):
    with qos(8, PARTITIONS.format(1, 3)) as lab:
        (tmp_path / "partitions").write_text("# Default only\nDefault=0x7fff, ipoib, sl=5 : ALL=full;\n")
        lab.opensm.resweep()
        until(lambda: logged(lab, "ibnue: QoS: 2 layers for each class: SL 5 has SLs [0-9/]+ on VLs [0-9/]+\n"))
        assert not logged(lab, "OpenSM has only the default partition")


def test_vls_that_are_asked_for_by_number_go_with_the_classes(qos):
    with qos(8, PARTITIONS.format(1, 3), engine="ibnue-nue", toml="[engine]\nvls = 3\n") as lab:
        walk = Walk(lab)
        answers = [by_lids(lab, lab.requested_sls(pkey=pkey)) for pkey in (0xFFFF, 0x8002)]
        used = walk.used(answers)
        walk.assert_arbiters_serve(used)
        assert [len(set(sls.values())) for sls in answers] == [3, 3]
        assert len(set().union(*used.values())) == 6


def test_without_a_policy_arbiters_serve_every_vl(qos):
    with qos(8, engine="ibnue-nue") as lab:
        walk = Walk(lab)
        used = walk.used([by_lids(lab, lab.requested_sls())])
        assert len(set().union(*used.values())) > 3
        walk.assert_arbiters_serve(used)
