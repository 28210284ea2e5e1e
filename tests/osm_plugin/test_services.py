from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from campaigns import some_of
from plugin_lab import logged, sweep_options

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.formats.bundle import write_bundle
from routing.tables import identity_sl2vl

pytestmark = pytest.mark.lab

VLS = 4


def sl_tables(fabric):
    """Return SL tables of all three forms.  Every SL is safe, because all paths follow one Up*/Down* order."""
    lids, switches = len(fabric.lids), fabric.switches
    by_lid = np.arange(lids) % VLS
    return {
        "destination": by_lid.astype(np.uint8),
        "switch": ((by_lid[None, :] + np.arange(switches)[:, None]) % VLS).astype(np.uint8),
        "lids": ((by_lid[None, :] + 2 * np.arange(lids)[:, None]) % VLS).astype(np.uint8),
    }


def sl_of(fabric, form, sl, source, destination):
    row = {"switch": fabric.lids.switch[source], "lids": source}
    return sl[destination] if form == "destination" else sl[row[form], destination]


def write(fabric, sl, path):
    routing = ENGINES["updn"].route(fabric, sweep_options())
    routing = replace(routing, sl=sl, sl2vl=identity_sl2vl(VLS), vls=VLS, vls_needed=1)
    write_bundle(path, fabric, routing, prove(fabric, routing))
    return routing


def test_sls_and_sl2vl_tables_are_those_of_the_bundle(live, nets, tmp_path):
    toml = f"bundle = '{tmp_path / 'it.npz'}'"
    engines = "ibnue-bundle,ibnue-updn,no_fallback"
    with live(nets("torus", "3x3", cas=2), engines, toml=toml, config={"qos": True}) as lab:
        assert lab.sweep.engine == "ibnue-updn"  # there is no bundle yet
        fabric = lab.fabric()
        lids = fabric.endport_lid.tolist()
        pairs = [(a, b) for a in lids[:3] for b in lids[2:6] if a != b]
        for form, sl in sl_tables(fabric).items():
            write(fabric, sl, tmp_path / "it.npz")
            assert lab.opensm.resweep().engine == "ibnue-bundle"
            answers = lab.sls()
            assert [answers[pair] for pair in pairs] == [sl_of(fabric, form, sl, *pair) for pair in pairs]
        vls = tuple(identity_sl2vl(VLS).tolist())
        rows = lab.sl2vl(int(fabric.switch_lid[0]), [1, 2, 3])
        assert rows and set(rows.values()) == {vls}
        assert set(lab.sl2vl(lids[0], [1]).values()) == {vls}


def test_sls_are_answered_while_the_tables_change(live, nets, tmp_path):
    toml = f"bundle = '{tmp_path / 'it.npz'}'"
    with live(
        nets("torus", "3x3", cas=2), "ibnue-bundle,ibnue-updn,no_fallback", toml=toml, config={"qos": True}
    ) as lab:
        fabric = lab.fabric()
        sl = sl_tables(fabric)["destination"]
        write(fabric, sl, tmp_path / "it.npz")
        lab.opensm.resweep()
        lids = fabric.endport_lid.tolist()
        pairs = [(a, b) for a in lids[:6] for b in lids[6:12]]
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(lab.sl, a, b) for a, b in pairs]
            for _ in range(4):
                assert lab.opensm.resweep().engine == "ibnue-bundle"
            assert [answer.result() for answer in asked] == [sl[b] for _, b in pairs]


def test_one_vl_leaves_sls_and_sl2vl_to_the_administrator(live, nets):
    config = {"qos": True, "qos_sl2vl": "0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3"}
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback", toml="[engine]\nvls = 1", config=config) as lab:
        fabric = lab.fabric()
        rows = lab.sl2vl(int(fabric.switch_lid[0]), [1, 2, 3])
        assert set(rows.values()) == {(0, 1, 2, 3) * 4}


def test_a_bundle_for_another_fabric_is_refused(live, nets, tmp_path):
    toml = f"bundle = '{tmp_path / 'it.npz'}'"
    with live(nets("torus", "3x3", cas=1), "ibnue-bundle,ibnue-updn,no_fallback", toml=toml) as lab:
        fabric = lab.fabric()
        less = fabric.without_links([fabric.links - 1])
        routing = ENGINES["updn"].route(less, sweep_options())
        write_bundle(tmp_path / "it.npz", less, routing, prove(less, routing))
        assert lab.opensm.resweep().engine == "ibnue-updn"
        write(fabric, sl_tables(fabric)["destination"] * 0, tmp_path / "it.npz")
        cut = (tmp_path / "it.npz").read_bytes()
        (tmp_path / "it.npz").write_bytes(cut[: len(cut) // 2])
        assert lab.opensm.resweep().engine == "ibnue-updn"
        reasons = logged(lab, r"ibnue-bundle routed nothing: (.*)")
        assert len(set(reasons)) == 3
        assert all("it.npz" in reason and "bug" not in reason for reason in reasons)


OWN_MAX_VLS = {f"qos_{kind}_max_vls": 4 for kind in ("ca", "sw0", "swe", "rtr")}
SETTINGS = [("'auto'", {"qos_max_vls": 2, **OWN_MAX_VLS}), ("'auto'", {"qos_max_vls": 4}), ("3", {})]


@pytest.mark.parametrize(("vls", "config"), some_of(SETTINGS, SETTINGS[:1]))
def test_an_engine_with_more_vls_gets_its_sls_and_sl2vl_tables(live, nets, vls, config):
    toml = f"[engine.updn]\nvls = {vls}"
    net = nets("torus", "3x3", cas=2)
    with live(net, "ibnue-updn,no_fallback", toml=toml, config={"qos": True, **config}) as lab:
        fabric = lab.fabric()
        options = sweep_options(vls="auto", port_vls=4) if vls == "'auto'" else sweep_options(vls=3)
        routing = ENGINES["updn"].route(fabric, options)
        assert routing.vls == (4 if vls == "'auto'" else 3)
        assert logged(lab, r"end ports, (\d) VLs") == [str(routing.vls)]
        lids = fabric.endport_lid.tolist()
        pairs = [(a, b) for a in lids[:3] for b in lids[3:15]]
        answers = lab.sls()
        assert [answers[pair] for pair in pairs] == [routing.sl[target] for _, target in pairs]
        assert len(set(routing.sl[lids].tolist())) > 1
        rows = lab.sl2vl(int(fabric.switch_lid[0]), [1, 2, 3])
        assert set(rows.values()) == {tuple(routing.sl2vl.tolist())}
