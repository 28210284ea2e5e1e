"""Check dimension-order engines in a running OpenSM: the switches have the engine's tables, also after a cable was
pulled.
"""

import numpy as np
import pytest
from campaigns import some_of
from plugin_lab import expected_lfts, sweep_options
from strategies import tree_and_torus

from routing.engines import ENGINES
from routing.formats.fabric_files import write_net

pytestmark = pytest.mark.lab

VLS = 4
QOS = {"qos": True, "qos_max_vls": VLS}


def switches_and_engine_agree(lab, engine, **options):
    fabric = lab.fabric()
    routing = ENGINES[engine].route(fabric, sweep_options(vls="auto", port_vls=VLS, **options))
    assert lab.switch_lfts() == expected_lfts(fabric, routing)
    row_of = {int(guid): row for row, guid in enumerate(fabric.switch_guid.tolist())}
    cabled = {
        (row, port) for row, port in zip(fabric.channels.src.tolist(), fabric.channels.port.tolist(), strict=True)
    }
    held = {
        (row_of[guid], entry, leave): vls
        for (guid, entry, leave), vls in lab.switch_sl2vl().items()
        if (row_of[guid], leave) in cabled and (row_of[guid], entry) in cabled
    }
    table = routing.sl2vl
    assert held == {
        place: tuple((table if table.ndim == 1 else table[place]).tolist()) for place in held
    }  # fmt: skip
    node_guid = fabric.terminal_guid[fabric.endport_terminal].tolist()
    at = dict(zip(node_guid, fabric.endport_switch.tolist(), strict=True))
    sls, sl = lab.ca_sls(), routing.sl
    assert sls == {(guid, lid): int(sl[at[guid], lid] if sl.ndim > 1 else sl[lid]) for guid, lid in sls}
    verdict = lab.ibdmchk(sls=sls)
    assert verdict.errors == ()
    assert not verdict.credit_loop
    return held


CASES = [("dor", "torus", "5x3"), ("torus-2qos", "torus", "5x3"), ("hyperx", "hyperx", "4x3")]


@pytest.mark.parametrize(("engine", "name", "size"), some_of(CASES, [CASES[1]]))
def test_a_cable_is_pulled_and_back(live, nets, engine, name, size):
    net = nets(name, size, cas=1)
    with live(net, f"ibnue-{engine},no_fallback", toml="stability = 'fresh'", config=QOS) as lab:
        assert lab.sweep is not None and lab.sweep.engine == f"ibnue-{engine}"
        before = switches_and_engine_agree(lab, engine)
        if engine == "torus-2qos":
            assert len(set(before.values())) > 1
        fabric = lab.fabric()
        link = int(fabric.channels.link[0])
        device, port = int(fabric.link_device[link, 0]), int(fabric.link_port[link, 0])
        assert lab.unlink(fabric.switch_name[device], port).engine == f"ibnue-{engine}"
        switches_and_engine_agree(lab, engine)
        assert lab.relink(fabric.switch_name[device], port).engine == f"ibnue-{engine}"
        assert switches_and_engine_agree(lab, engine) == before
        assert lab.opensm.errors == []


def test_parts_with_their_engines(live, tmp_path):
    fabric, parts = tree_and_torus(), tmp_path / "parts.toml"
    write_net(fabric, tmp_path / "gateways.net")
    guids = ", ".join(f'"{guid:#x}"' for guid in fabric.switch_guid[:21].tolist())
    parts.write_text(
        f'[[part]]\nengine = "torus-2qos"\nswitches = [{guids}]\n[[part]]\nengine = "ftree"\nswitches = ["*"]\n'
    )
    toml = f"stability = 'fresh'\n[engine]\nparts = '{parts}'"
    with live(tmp_path / "gateways.net", "ibnue-chain,no_fallback", toml=toml, config=QOS) as lab:
        assert lab.sweep is not None and lab.sweep.engine == "ibnue-chain"
        before = switches_and_engine_agree(lab, "chain", parts=parts)
        gateway = int(np.flatnonzero((fabric.channels.src < 21) & (fabric.channels.dst >= 21))[0])
        switch, port = fabric.switch_name[fabric.channels.src[gateway]], int(fabric.channels.port[gateway])
        assert lab.unlink(switch, port).engine == "ibnue-chain"
        switches_and_engine_agree(lab, "chain", parts=parts)
        assert lab.relink(switch, port).engine == "ibnue-chain"
        assert switches_and_engine_agree(lab, "chain", parts=parts) == before
        assert lab.opensm.errors == []
