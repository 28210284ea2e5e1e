"""Route fixture fabrics with random link faults by a live OpenSM with the plugin, and check the tables with three
checkers.

In every case, ibnue must prove the tables.  networkx and ibdmchk must find no credit loop.  For networkx, the tables
are read from the switches, and the cables from ibsim.  The checkers also check tables of OpenSM's minhop, because a
checker that never reports a loop would otherwise pass.
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
# The fixture back-to-back has no switch, so OpenSM calls no engine.
ROUTED = {name: fixture for name, fixture in FIXTURES.items() if name != "back-to-back"}
# ibdmchk checks no path from or to a router, and no path at all on a fabric without CAs.
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
    """Return the cables between two switches in a fixed order, each given by one of its ends."""
    switches = {device.id for device in ibsim.devices if device.kind == "Switch"}
    ends = [(p.device, p.port, *p.peer) for p in ibsim.ports() if p.peer and p.device in switches]
    return sorted(end[:2] for end in ends if end[2] in switches and end[:2] < end[2:])


def faults(name, links, percent):
    """Return the cables to pull, which are equal in every run."""
    count = min(len(links), max(1, round(len(links) * percent / 100))) if percent and links else 0
    return random.Random(zlib.crc32(f"{name} {percent}".encode())).sample(links, count)


def inspect_result(lab, name):
    """Check the present tables, and return ibnue's proof, the dependency graphs of networkx, and ibdmchk's verdict or
    None.

    The verdicts of the checkers are compared for equal traffic: all traffic, traffic from or to CAs and routers, and
    traffic from CA to CA.
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
    # A sweep because of a trap could write the dumps again while they are read.
    config = {"sweep_on_trap": False, **config}
    return Lab(ROUTED[name].path, routing_engine="ibnue-updn,no_fallback", plugin=plugin, config=config)


def sweep_without(lab, name, pulled):
    """Pull cables (or whole switches if the port is None), sweep, check the tables, and put the cables back."""
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
@pytest.mark.parametrize("name", some_of(SAMPLE, ("tree-4-2-faults",)))
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
    # ibdmchk checks base LIDs only, whereas networkx and the proof check all LIDs.
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
    """Return the verdicts of networkx and ibdmchk on loops, and the number of VLs, for paths from CA to CA on the SA's
    SLs.
    """
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
    # All eight SLs use one VL, but the paths of lash need two VLs.
    folded = {**QOS, "qos_sl2vl": ",".join("0" * 16)}
    for config, answer in ((QOS, (False, False, 2)), (folded, (True, True, 1))):
        with Lab(ROUTED["torus-4x4"].path, routing_engine="lash,no_fallback", config=config) as lab:
            assert layers(lab) == answer


def checkers_agree(name):
    """Return the scope in which the tables of OpenSM's minhop have no credit loop."""
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
