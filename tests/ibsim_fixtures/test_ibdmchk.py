from pathlib import Path
from types import SimpleNamespace

import pytest
from lab_nets import ring, torus

from ibsim_fixtures import ibdmchk
from ibsim_fixtures.lab import Lab
from ibsim_fixtures.processes import LabError

lab_test = pytest.mark.lab


def _is_cycle(lab, loop):
    """Each channel of the loop ends where the next begins."""
    ids = {device.guid: device.id for device in lab.ibsim.devices}
    peers = {(state.device, state.port): state.peer for state in lab.ibsim.ports()}
    for here, following in zip(loop, [*loop[1:], loop[0]], strict=True):
        assert peers[ids[here.guid], here.port][0] == ids[following.guid]


@lab_test
@pytest.mark.parametrize("links", [ring(6), torus(4, 4, 4)], ids=["ring6", "torus444"])
def test_minhop_has_a_credit_loop(net, links):
    switches = 1 + max(map(max, links))
    with Lab(net(switches, links, 2 if switches == 6 else 1)) as lab:
        verdict = lab.ibdmchk()
        assert verdict.credit_loop
        assert verdict.errors == ()
        assert len(verdict.loop) >= 3
        assert len(set(verdict.loop)) == len(verdict.loop)
        _is_cycle(lab, verdict.loop)


@lab_test
@pytest.mark.parametrize("engine", ["dfsssp", "lash"])
def test_layered_engines_have_none(net, engine):
    with Lab(net(6, ring(6)), routing_engine=f"{engine},no_fallback", config={"qos": True}) as lab:
        assert lab.ibdmchk().credit_loop  # with one SL for all, the same paths have a loop
        sls = lab.ca_sls()
        assert len(sls) == 6 * 5
        verdict = lab.ibdmchk(sls=sls)
        assert not verdict.credit_loop
        assert verdict.loop == ()
        assert verdict.paths == 6 * 5
        assert verdict.sls > 1


@lab_test
def test_sl2vl_is_handed_over(net):
    with Lab(net(6, ring(6)), routing_engine="dfsssp,no_fallback", config={"qos": True}) as lab:
        sls = lab.ca_sls()
        dumped = ibdmchk.read_sl2vl(lab.opensm.folder / "opensm-sl2vl.dump")
        assert dumped[0x200000, 1, 2][:8] == tuple(range(8))
        flat = dict.fromkeys(dumped, (0,) * 16)
        assert ibdmchk.check(lab.opensm.folder, sls=sls, sl2vl=flat).credit_loop


@lab_test
def test_nothing_is_left_in_the_cache(ring4, monkeypatch):
    cache = Path("/var/cache/ibutils")
    before = sorted(cache.iterdir())
    with Lab(ring4) as lab:
        assert lab.ibdmchk().paths == 12
        assert sorted(cache.iterdir()) == before
        # The same where the system allows no private folder.
        monkeypatch.setattr(ibdmchk, "shutil", SimpleNamespace(which=lambda name: None))
        assert lab.ibdmchk().paths == 12
        assert sorted(cache.iterdir()) == before


@lab_test
def test_no_verdict_is_an_error(ring4):
    with Lab(ring4) as lab:
        (lab.opensm.folder / "opensm.fdbs").unlink()
        with pytest.raises(LabError, match="no verdict"):
            lab.ibdmchk()


OUTPUT = """-I- Scanned:12 CA to CA paths
-I- Analyzing Fabric for Credit Loops 1 SLs, 1 VLs used.
Found credit loop on: S0000000000000001/U1/P3 VL: 0
  - BT credit loop through: S0000000000000003/U1/P4 VL: 0
  - BT credit loop through: S0000000000000002/U1/P4 VL: 0
  - BT credit loop through: S0000000000000001/U1/P3 VL: 0
  - BT credit loop through: S0000000000000009/U1/P1 VL: 0
-E- credit loops in routing
"""


def test_the_loop_ends_where_it_began(monkeypatch, tmp_path):
    monkeypatch.setattr(ibdmchk, "find_program", lambda name: Path("/bin/cat"))
    monkeypatch.setattr(ibdmchk, "_run", lambda *_: OUTPUT)
    verdict = ibdmchk.check(tmp_path)
    assert verdict.describe() == [
        "0x0000000000000001 port 3 VL 0",
        "0x0000000000000002 port 4 VL 0",
        "0x0000000000000003 port 4 VL 0",
    ]
    assert (verdict.paths, verdict.sls) == (12, 1)
