"""Check engines with allowed turns, several networks or changing VLs in a running OpenSM, also after a cable was
pulled.
"""

import pytest
from campaigns import some_of
from plugin_lab import expected_lfts, sweep_options

from ibsim_fixtures.catalogue import FIXTURES
from routing.deadlock.proof import prove
from routing.engines import ENGINES

pytestmark = pytest.mark.lab


def holds_what_the_engine_computes(lab, engine, vls):
    """Check that the switches have the engine's LFTs, SLs and SL2VL tables, and that ibdmchk finds no loop."""
    fabric = lab.fabric()
    routing = ENGINES[engine].route(fabric, sweep_options(vls=vls, port_vls=8))
    assert lab.switch_lfts() == expected_lfts(fabric, routing)
    assert not lab.ibdmchk(sls=lab.ca_sls()).credit_loop
    if routing.vls > 1:
        rows = {guid: row for row, guid in enumerate(fabric.switch_guid.tolist())}
        channels = fabric.channels
        for (guid, into, out), found in lab.switch_sl2vl().items():
            row = rows[guid]
            if into and min(channels.at_port[row, into], channels.at_port[row, out]) >= 0:
                own = routing.sl2vl if routing.sl2vl.ndim == 1 else routing.sl2vl[row, into, out]
                assert tuple(found) == tuple(own.tolist())
    return routing


@pytest.mark.parametrize(
    ("engine", "vls"),
    some_of(
        [("lash-tor", "min"), ("smart", 1), ("mud", 4), ("dnup", 1), ("segment", 1), ("lturn", 1)],
        [("lash-tor", "min")],
    ),
)
def test_a_cable_is_pulled_and_comes_back(live, engine, vls):
    toml = f"[engine]\nvls = {vls!r}"
    with live(FIXTURES["torus-4x4-faults"].path, f"ibnue-{engine},no_fallback", toml=toml, config={"qos": True}) as lab:
        assert lab.sweep.engine == f"ibnue-{engine}" and lab.opensm.errors == []
        routing = holds_what_the_engine_computes(lab, engine, vls)
        assert routing.sl2vl.ndim == (4 if engine == "lash-tor" else 1)
        first, before = lab.fabric(), lab.switch_lfts()
        cable = int(first.channels.link[0])
        switch, port = first.switch_name[int(first.link_device[cable, 0])], int(first.link_port[cable, 0])
        assert lab.unlink(switch, port).engine == f"ibnue-{engine}"
        fabric = lab.fabric()
        assert prove(fabric, lab.routing(fabric)).complete
        assert not lab.ibdmchk(sls=lab.ca_sls()).credit_loop
        assert lab.relink(switch, port).engine == f"ibnue-{engine}"
        assert lab.switch_lfts() == before
