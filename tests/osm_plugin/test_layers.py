"""Check the engines sssp, dfsssp, lash and ftree in a running OpenSM."""

import pytest
from plugin_lab import expected_lfts, sweep_options

from routing.deadlock.proof import prove
from routing.engines import ENGINES

pytestmark = pytest.mark.lab


@pytest.mark.parametrize(("engine", "vls"), [("dfsssp", 8), ("lash", 8), ("sssp", 1), ("ftree", 1)])
def test_tables_and_sls_are_those_of_the_engine(live, nets, engine, vls):
    net = nets("kary-ntree", "3", "2") if engine == "ftree" else nets("dragonfly", "4", "2", "2", "9", cas=1)
    with live(net, f"ibnue-{engine},no_fallback", toml=_toml(engine), config={"qos": True}) as lab:
        fabric = lab.fabric()
        routing = ENGINES[engine].route(fabric, sweep_options(vls="auto", port_vls=8))
        assert routing.vls == vls
        assert prove(fabric, routing).certified == (engine != "sssp")
        assert lab.sweep.engine == f"ibnue-{engine}"
        assert lab.switch_lfts() == expected_lfts(fabric, routing)
        guids = {int(guid): row for row, guid in enumerate(fabric.terminal_guid.tolist())}
        homes = dict(zip(fabric.endport_terminal.tolist(), fabric.endport_switch.tolist(), strict=True))
        sls = lab.ca_sls()
        assert len(sls) == fabric.endports * (fabric.endports - 1)
        for (guid, lid), sl in sls.items():
            sl_row = routing.sl if routing.sl.ndim == 1 else routing.sl[homes[guids[guid]]]
            assert sl == sl_row[lid]
        assert len(set(sls.values())) == vls
        verdict = lab.ibdmchk(sls=sls)
        assert verdict.credit_loop == (engine == "sssp")


def _toml(engine):
    return "allow_credit_loops = true" if engine == "sssp" else ""
