"""Fixture fabrics with random link faults, routed by a live OpenSM with our plugin, looked at by three checkers.

For every case the tables must be proven by ours, found free of credit loops by networkx (on tables that were read from
the switches and cables that ibsim names) and by ibdmchk.  OpenSM's own minhop is routed through the same checkers, for
what never says "loop" would agree as well.
"""

import random
import zlib

import pytest
from campaigns import some_of
from loop_check import has_loop, walk_everything, walk_layers
from shared_builds import plugin_build

from ibsim_fixtures.catalogue import FIXTURES
from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm import Plugin
from ibsim_fixtures.pytest_plugin import require_programs
from routing.deadlock.proof import prove

SAMPLE = ("torus-4x4", "tree-4-2-faults", "dragonfly-2-1-1", "random-16-4")
PERCENTS = (0, 8, 15, 22, 30)
SAMPLE_PERCENTS = (0, 15, 30)
# No switch, so OpenSM asks no engine.
ROUTED = {name: fixture for name, fixture in FIXTURES.items() if name != "back-to-back"}
# ibdmchk follows no path from or to a router, and none at all where there is no CA.
UNSEEN = {"routers", "switches-only"}


def test_the_campaign_is_as_large_as_it_says():
    assert len(ROUTED) * len(PERCENTS) >= 200
    assert len(SAMPLE) * len(SAMPLE_PERCENTS) >= 12
    assert set(SAMPLE) <= set(ROUTED)


@pytest.fixture(scope="module")
def plugin(tmp_path_factory, request):
    require_programs(request.config, ["ibdmchk"])
    folder = plugin_build(tmp_path_factory)
    return Plugin("ibnue", folder=folder)


def switch_links(ibsim):
    """Cables between two switches, by one end, in a fixed order."""
    switches = {device.id for device in ibsim.devices if device.kind == "Switch"}
    ends = [(p.device, p.port, *p.peer) for p in ibsim.ports() if p.peer and p.device in switches]
    return sorted(end[:2] for end in ends if end[2] in switches and end[:2] < end[2:])


def faults(name, links, percent):
    """The cables to pull; the same ones every time."""
    count = min(len(links), max(1, round(len(links) * percent / 100))) if percent and links else 0
    return random.Random(zlib.crc32(f"{name} {percent}".encode())).sample(links, count)


def inspect_result(lab, name):
    """(our proof, networkx' dependency graphs, ibdmchk's verdict or None) of the tables that are there now.

    Like is compared with like: all traffic; what CAs and routers have a part in; what goes from CA to CA.
    """
    fabric = lab.fabric()
    proof = prove(fabric, lab.routing(fabric))
    graphs, lost = walk_everything(lab, int(lab.opensm.config.get("lmc", 0)))
    assert lost == []
    assert lab.switch_lfts() == lab.dumped_lfts()
    assert proof.complete
    assert (proof.scope != "all") == has_loop(graphs["all"])
    assert (proof.credit_loop is not None) == has_loop(graphs["endports"])
    if name in UNSEEN:
        return proof, graphs, None
    verdict = lab.ibdmchk(switches=True)
    assert verdict.credit_loop == has_loop(graphs["all"])
    assert lab.ibdmchk().credit_loop == has_loop(graphs["cas"])
    return proof, graphs, verdict


def updn(name, plugin, **config):
    return Lab(ROUTED[name].path, routing_engine="ibnue-updn,no_fallback", plugin=plugin, config=config)


def sweep_without(lab, name, pulled):
    """Pull cables (or whole switches, port None), sweep, look, put them back."""
    for device, port in pulled:
        lab.ibsim.unlink(device, port)
    assert lab.opensm.resweep().engine == "ibnue-updn"
    proof, graphs, _ = inspect_result(lab, name)
    assert proof.certified, f"{name} without {pulled}"
    assert not has_loop(graphs["all"]), f"{name} without {pulled}"
    for device, port in pulled:
        lab.ibsim.relink(device, port)


def run(name, percents, plugin, **config):
    with updn(name, plugin, **config) as lab:
        links = switch_links(lab.ibsim)
        for percent in percents:
            sweep_without(lab, name, faults(name, links, percent))
        assert lab.ibsim.warnings == []


@pytest.mark.lab
@pytest.mark.parametrize("name", some_of(SAMPLE, ("torus-4x4", "tree-4-2-faults")))
def test_updn_is_free_of_loops(name, plugin):
    run(name, SAMPLE_PERCENTS, plugin)


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("name", ROUTED)
def test_updn_is_free_of_loops_everywhere(name, plugin):
    run(name, PERCENTS, plugin)


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_updn_is_free_of_loops_with_lmc(name, plugin):
    # ibdmchk looks at base LIDs only, networkx and the proof at all.
    run(name, PERCENTS, plugin, lmc=2)


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_updn_is_free_of_loops_without_any_one_switch(name, plugin):
    with updn(name, plugin) as lab:
        near = next(port.peer[0] for port in lab.ibsim.ports(lab.ibsim.sm_host) if port.peer)
        switches = [device.id for device in lab.ibsim.devices if device.kind == "Switch" and device.id != near]
        assert len(switches) >= 5
        for switch in switches:
            sweep_without(lab, name, [(switch, None)])


def layers(lab):
    """(the loop verdicts of networkx and ibdmchk, how many VLs) of the paths from CA to CA, on the SLs of the SA."""
    sls = lab.ca_sls()
    graph = walk_layers(lab, sls)
    verdict = lab.ibdmchk(sls=sls)
    assert verdict.errors == ()
    return has_loop(graph), verdict.credit_loop, len({vl for _, _, vl in graph})


QOS = {"qos": True, "qos_max_vls": 8}


@pytest.mark.lab
def test_layers_of_updn_are_free_of_loops(plugin):
    with updn("torus-4x4", plugin, **QOS) as lab:
        assert layers(lab) == (False, False, 8)
        for device, port in faults("torus-4x4", switch_links(lab.ibsim), 22):
            lab.ibsim.unlink(device, port)
        assert lab.opensm.resweep().engine == "ibnue-updn"
        assert layers(lab)[:2] == (False, False)


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("percent", PERCENTS)
@pytest.mark.parametrize("name", ["torus-3x3x3", "dragonfly-4-2-2", "kautz-3-2-double", "random-24-3-faults"])
def test_layers_of_updn_are_free_of_loops_everywhere(name, percent, plugin):
    with updn(name, plugin, **QOS) as lab:
        for device, port in faults(name, switch_links(lab.ibsim), percent):
            lab.ibsim.unlink(device, port)
        assert lab.opensm.resweep().engine == "ibnue-updn"
        assert layers(lab)[:2] == (False, False)


@pytest.mark.lab
def test_layers_that_are_folded_have_a_loop():
    # Eight SLs on one VL: the paths are those of lash, which need two.
    folded = {**QOS, "qos_sl2vl": ",".join("0" * 16)}
    for config, answer in ((QOS, (False, False, 2)), (folded, (True, True, 1))):
        with Lab(ROUTED["torus-4x4"].path, routing_engine="lash,no_fallback", config=config) as lab:
            assert layers(lab) == answer


def checkers_agree(name):
    """The scope in which the tables of OpenSM's minhop are free of loops."""
    with Lab(ROUTED[name].path) as lab:
        proof, graphs, verdict = inspect_result(lab, name)
        if verdict is not None and verdict.credit_loop:
            ends = [(channel.guid, channel.port) for channel in verdict.loop]
            assert all(graphs["all"].has_edge(*turn) for turn in zip(ends, [*ends[1:], ends[0]], strict=True))
        return proof.scope


@pytest.mark.lab
@pytest.mark.parametrize(("name", "scope"), [("torus-4x4", None), ("tree-2-3", "endports"), ("tree-4-2", "all")])
def test_checkers_agree_on_opensms_minhop(name, scope):
    assert checkers_agree(name) == scope


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("name", ROUTED)
def test_checkers_agree_on_opensms_minhop_everywhere(name):
    checkers_agree(name)
