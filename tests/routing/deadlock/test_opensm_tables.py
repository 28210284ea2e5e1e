"""Check the verdict on tables of a real OpenSM whose deadlock freedom is known."""

from dataclasses import replace

import numpy as np
import pytest

from ibsim_fixtures.lab import Lab
from routing.cdg.certificate import check_certificate
from routing.deadlock.proof import prove
from routing.formats.fabric_files import write_net
from routing.topologies import generate

pytestmark = pytest.mark.lab


def test_minhop_leaves_a_loop_on_a_torus(tmp_path):
    write_net(generate("torus", ["4x4x4"], cas=1), tmp_path / "net")
    with Lab(tmp_path / "net", routing_engine="minhop,no_fallback") as lab:
        fabric = lab.fabric()
        proof = prove(fabric, lab.routing(fabric))
    assert proof.complete
    assert not proof.certified
    assert len(proof.credit_loop) == 4
    for turn, following in zip(proof.credit_loop.turns, proof.credit_loop.turns[1:], strict=False):
        assert turn.peer == following.switch


def test_torus_2qos_is_proved_by_its_vls_that_change_on_the_path(tmp_path):
    """The datelines are in the SL2VL tables.  If these routes used one VL, a ring of 5 would be a loop of 5
    channels.
    """
    torus = generate("torus", ["5x3x3"], cas=1)
    write_net(torus, tmp_path / "net")
    guid = {name: f"{g:#x}" for name, g in zip(torus.switch_name, torus.switch_guid.tolist(), strict=True)}
    ahead = {"xp_link": "sw1.0.0", "yp_link": "sw0.1.0", "zp_link": "sw0.0.1"}
    lines = ["torus 5 3 3", *(f"{key} {guid['sw0.0.0']} {guid[name]}" for key, name in ahead.items())]
    (tmp_path / "torus.conf").write_text("\n".join(lines) + "\n")
    config = {"qos": True, "torus_config": str(tmp_path / "torus.conf")}
    with Lab(tmp_path / "net", routing_engine="torus-2QoS,no_fallback", config=config) as lab:
        fabric = lab.fabric()
        routing = lab.routing(fabric)
        names = np.array([fabric.switch_name[s] for s in fabric.endport_switch])
        ring = np.isin(names, [f"sw{x}.0.0" for x in range(5)])
        lids = fabric.endport_lid[ring].tolist()
        levels = {(a, b): lab.sl(a, b) for a in lids for b in lids if a != b}
    # Only the CAs on one ring have LIDs here, so only these CAs send and receive.  So 20 SLs are queried instead of
    # thousands.
    few = replace(
        fabric,
        switch_lid=np.zeros_like(fabric.switch_lid),
        endport_lid=np.where(ring, fabric.endport_lid, 0).astype(np.uint16),
        endport_lmc=np.zeros_like(fabric.endport_lmc),
    )
    count = len(few.lids)
    sl = np.zeros((count, count), np.uint8)
    for (source, target), level in levels.items():
        sl[source, target] = level
    routing = replace(routing, lft=np.ascontiguousarray(routing.lft[:, :count]), sl=sl)
    assert routing.sl2vl.ndim == 4
    proof = prove(few, routing)
    assert proof.certified
    assert proof.strength == "reversible"
    assert proof.vls == 2
    check_certificate(few, routing, proof.certificate)
    flat = prove(few, replace(routing, sl2vl=np.zeros(16, np.uint8)))
    assert len(flat.credit_loop) == 5
