"""Check engines with hop classes in a running OpenSM: the switches have the engine's tables, also after a cable was
pulled.
"""

import pytest
from campaigns import some_of
from plugin_lab import expected_lfts, sweep_options

from routing.engines import ENGINES

pytestmark = pytest.mark.lab

VLS = 4
QOS = {"qos": True, "qos_max_vls": VLS}


def switches_and_engine_agree(lab, engine):
    fabric = lab.fabric()
    routing = ENGINES[engine].route(fabric, sweep_options(vls="auto", port_vls=VLS))
    assert lab.switch_lfts() == expected_lfts(fabric, routing)
    row_of = {int(guid): row for row, guid in enumerate(fabric.switch_guid.tolist())}
    ends, ports = fabric.link_device.reshape(-1).tolist(), fabric.link_port.reshape(-1).tolist()
    cabled = set(zip(ends, ports, strict=True))
    held = {
        (row_of[guid], entry, leave): vls
        for (guid, entry, leave), vls in lab.switch_sl2vl().items()
        if {(row_of[guid], leave), (row_of[guid], entry)} <= cabled
    }
    assert held == {place: tuple(routing.sl2vl[place].tolist()) for place in held}
    node_guid = fabric.terminal_guid[fabric.endport_terminal].tolist()
    at = dict(zip(node_guid, fabric.endport_switch.tolist(), strict=True))
    sls = lab.ca_sls()
    assert sls == {(guid, lid): int(routing.sl[at[guid], lid]) for guid, lid in sls}
    verdict = lab.ibdmchk(sls=sls)
    assert verdict.errors == ()
    assert not verdict.credit_loop
    return held


SIZES = [("dragonfly", ["4", "1", "1"], 0), ("dragonfly", ["4", "1", "1"], 1), ("slimfly", ["3"], 0)]


@pytest.mark.parametrize(
    ("engine", "size", "lmc"),
    some_of(SIZES, [SIZES[1]]),
)
def test_a_cable_is_pulled_and_back(live, nets, engine, size, lmc):
    net = nets(engine, *size, cas=1)
    with live(net, f"ibnue-{engine},no_fallback", toml="stability = 'fresh'", config={**QOS, "lmc": lmc}) as lab:
        assert lab.sweep is not None and lab.sweep.engine == f"ibnue-{engine}"
        before = switches_and_engine_agree(lab, engine)
        assert len(set(before.values())) > 1
        fabric = lab.fabric()
        link = int(fabric.channels.link[0])
        device, port = int(fabric.link_device[link, 0]), int(fabric.link_port[link, 0])
        assert lab.unlink(fabric.switch_name[device], port).engine == f"ibnue-{engine}"
        switches_and_engine_agree(lab, engine)
        assert lab.relink(fabric.switch_name[device], port).engine == f"ibnue-{engine}"
        assert switches_and_engine_agree(lab, engine) == before
        assert lab.opensm.errors == []
