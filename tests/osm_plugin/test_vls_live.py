"""Check engines with several VLs in a running OpenSM: switches and SA have the engine's tables, and ibdmchk finds no
loop.
"""

import random
import signal
import zlib

import pytest
from campaigns import some_of
from plugin_lab import expected_lfts, logged, sweep_options
from waiting import until

from ibsim_fixtures.catalogue import FIXTURES
from routing.engines import ENGINES

pytestmark = pytest.mark.lab

SAMPLE = (
    "torus-4x4", "torus-3x3x3", "torus-5x4-double", "torus-4x4-faults", "kautz-2-3", "kautz-3-2-double",
    "dragonfly-2-1-1", "dragonfly-faults", "random-16-4", "random-24-3-faults", "tree-4-2-faults", "slimfly-3",
)  # fmt: skip
IN_EVERY_RUN = ("dragonfly-faults", "kautz-3-2-double")
"""Two irregular fixtures, one of them with parallel cables.  The others are for the campaign only."""
VLS = 8
QOS = {"qos": True, "qos_max_vls": VLS}


def engine_and_switches_agree(lab):
    fabric = lab.fabric()
    routing = ENGINES["nue"].route(fabric, sweep_options(vls="auto", port_vls=VLS))
    assert lab.switch_lfts() == expected_lfts(fabric, routing)
    row = tuple(routing.sl2vl.tolist())
    cabled = {
        (int(fabric.switch_guid[device]), int(port))
        for ends, ports in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True)
        for device, port in zip(ends, ports, strict=True)
        if device < fabric.switches
    }
    rows = {
        vls
        for (guid, entry, leave), vls in lab.switch_sl2vl().items()
        if (guid, leave) in cabled and (entry == 0 or (guid, entry) in cabled)
    }
    assert rows == {row}
    sls = lab.ca_sls()
    assert sls == {(guid, lid): int(routing.sl[lid]) for guid, lid in sls}
    verdict = lab.ibdmchk(sls=sls)
    assert verdict.errors == ()
    assert not verdict.credit_loop
    return verdict


def pulled(lab, name, percent):
    """Return some cables between switches, each given by one of its ends."""
    fabric = lab.fabric()
    ends = fabric.link_device.tolist()
    cables = [k for k, pair in enumerate(ends) if max(pair) < fabric.switches]
    count = max(1, len(cables) * percent // 100)
    chosen = random.Random(zlib.crc32(f"{name} {percent}".encode())).sample(cables, count)
    return [(fabric.switch_name[ends[k][0]], int(fabric.link_port[k, 0])) for k in chosen]


@pytest.mark.parametrize("name", some_of(SAMPLE, IN_EVERY_RUN))
def test_before_and_after_faults(live, name):
    with live(FIXTURES[name].path, "ibnue-nue,no_fallback", toml="stability = 'fresh'", config=QOS) as lab:
        assert lab.sweep.engine == "ibnue-nue"
        before = engine_and_switches_agree(lab)
        assert before.sls > 1
        for device, port in pulled(lab, name, 10):
            lab.ibsim.unlink(device, port)
        assert lab.opensm.resweep().engine == "ibnue-nue"
        engine_and_switches_agree(lab)


def test_vls_that_are_raised_while_opensm_runs_are_in_the_switches_after_another_sweep(live):
    """OpenSM raises the VLs of the ports only after it has written SL2VL tables for the ports' old VLs."""
    config = {"qos": True, "max_op_vls": 2, "sweep_interval": 0}
    with live(FIXTURES["torus-4x4"].path, "ibnue-nue,no_fallback", toml="stability = 'fresh'", config=config) as lab:
        conf = lab.opensm.folder / "opensm.conf"
        conf.write_text(conf.read_text().replace("max_op_vls 2", "max_op_vls 4"))
        lab.opensm.signal(signal.SIGHUP)
        # While OpenSM sweeps, some tables may not be readable yet.
        until(lambda: max((max(row, default=0) for row in lab.switch_sl2vl().values()), default=0) == VLS - 1)
        engine_and_switches_agree(lab)
        assert len(logged(lab, "OpenSM has cut [0-9]+ tables; another sweep writes them as proven")) == 1
        lab.opensm.resweep()
        assert logged(lab, "IBN40") == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ibnue-nue", "ibnue-dfsssp", "ibnue-lash"])
@pytest.mark.parametrize(
    "name", [name for name in FIXTURES if name not in ("back-to-back", "routers", "switches-only")]
)
def test_ibdmchk_agrees_on_every_fixture_with_faults(live, name, engine):
    with live(FIXTURES[name].path, f"{engine},no_fallback", config=QOS) as lab:
        for percent in (0, 8, 15, 22, 30):
            gone = pulled(lab, name, percent) if percent and len(lab.fabric().channels) else []
            for device, port in gone:
                lab.ibsim.unlink(device, port)
            assert lab.opensm.resweep().engine == engine
            sls = lab.ca_sls()
            assert not lab.ibdmchk(sls=sls).credit_loop
            for device, port in gone:
                lab.ibsim.relink(device, port)


def test_one_vl_without_qos(live):
    with live(FIXTURES["torus-4x4"].path, "ibnue-nue,no_fallback") as lab:
        assert lab.sweep.engine == "ibnue-nue"
        fabric = lab.fabric()
        routing = ENGINES["nue"].route(fabric, sweep_options())
        assert lab.switch_lfts() == expected_lfts(fabric, routing)
        assert not lab.ibdmchk(switches=True).credit_loop
