from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from campaigns import some_of
from lab_nets import ring, torus

from ibsim_fixtures import ibdmchk
from ibsim_fixtures.lab import Lab
from ibsim_fixtures.processes import LabError
from routing.deadlock.proof import prove
from routing.engines import ENGINES, OWN
from routing.engines.base import EngineOptions
from routing.errors import RoutingError
from routing.faults.choose import between_switches
from routing.formats.fabric_files import write_fabric
from routing.formats.table_files import write_tables
from routing.topologies import generate

lab_test = pytest.mark.lab


def _is_cycle(lab, loop):
    """Check that each channel of the loop ends where the next channel begins."""
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
        assert lab.ibdmchk().credit_loop  # if all packets have one SL, the same paths have a loop
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
        # The cache also stays unchanged if the system does not allow a private folder.
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


def _verdict_on_files(folder, fabric, routing):
    """Return ibdmchk's verdict on the files of `ibnue route` and `ibnue fabric -o`, and whether the tables have a
    certificate.
    """
    proof = prove(fabric, routing)
    write_tables(folder, fabric, routing, proof)
    write_fabric(fabric, folder / "fabric.lst")
    (folder / "fabric.lst").rename(folder / "opensm-subnet.lst")
    verdict = ibdmchk.check(folder)
    assert verdict.errors == () and verdict.paths == fabric.endports * (fabric.endports - 1)
    return verdict, proof.certificate is not None


FABRICS = [("torus", "5x4"), ("hyperx", "3x3"), ("dragonfly", "3,1,1"), ("kary-ntree", "3,2")]


@lab_test
@pytest.mark.filterwarnings("ignore:link .* may be miscabled")
@pytest.mark.parametrize(("name", "size"), some_of(FABRICS, FABRICS[:1]), ids=lambda value: value)
def test_certified_tables_of_each_engine_have_no_loop(tmp_path, name, size):
    fabric = generate(name, size.split(","), cas=1)
    fabric = fabric.without_links(between_switches(fabric)[::20].tolist())
    routed = 0
    for engine in sorted(set(OWN) - {"chain"}):
        try:
            routing = ENGINES[engine].route(fabric, EngineOptions(effort=0.1, threads=1))
        except RoutingError:
            continue  # the engine refuses the fabric, because it is not a tree, grid or dragonfly
        verdict, certified = _verdict_on_files(tmp_path / engine, fabric, routing)
        assert not (certified and verdict.credit_loop), engine
        routed += certified
    assert routed >= 10


@lab_test
@pytest.mark.parametrize("engine", ["torus-2qos", "lash", "dfsssp", "lash-tor"])
def test_the_same_paths_on_one_vl_have_a_loop(tmp_path, engine):
    fabric = generate("torus", ["6x5"], cas=1)
    routing = ENGINES[engine].route(fabric, EngineOptions(threads=1))
    one_vl = replace(routing, sl2vl=np.zeros_like(routing.sl2vl))
    verdict, certified = _verdict_on_files(tmp_path, fabric, one_vl)
    assert verdict.credit_loop and not certified
