"""Check ``ibnue collect`` on a running OpenSM: the verdict on the snapshot is right, and the fabric does not change."""

import json

import pytest
from command_runs import collect, parts_of, run

from ibsim_fixtures import mad_client

pytestmark = pytest.mark.lab

SLOW = pytest.mark.slow


def everything(lab):
    """Return all tables in switches and end ports, but not the counters, because every query increases the counters."""
    owners = lab.owners()
    ports = [(owner.lid, owner.port if owner.kind == "SW" else 0) for owner in owners]
    weights = mad_client.arbitration(lab.ibsim, ports)
    return lab.switch_lfts(), lab.switch_sl2vl(), weights, lab.sls(), sorted(map(str, lab.ibsim.ports()))


def checked(*words):
    result = run("check", *words, "--json")
    verdict = json.loads(result.stdout)
    keys = ("verdict", "complete", "vls", "assumed", "credit_loop", "strength")
    return result.exit_code, {key: verdict.get(key) for key in keys}


@pytest.mark.parametrize(
    ("engine", "vls", "net"),
    [
        ("nue", 8, ("torus", "4x4")),
        pytest.param("nue", 1, ("torus", "4x4"), marks=SLOW),
        pytest.param("dfsssp", 8, ("torus", "4x4"), marks=SLOW),
        pytest.param("dfsssp", 1, ("kary-ntree", "4", "2"), marks=SLOW),
        pytest.param("lash", 8, ("torus", "4x4"), marks=SLOW),
        pytest.param("lash", 1, ("kary-ntree", "4", "2"), marks=SLOW),
        pytest.param("updn", 8, ("torus", "4x4"), marks=SLOW),
        pytest.param("updn", 1, ("torus", "4x4"), marks=SLOW),
    ],
)
def test_a_snapshot_is_judged_like_the_bundle_and_nothing_changes(live, nets, tmp_path, engine, vls, net):
    config = {"qos": True, "qos_max_vls": 8} if vls > 1 else {"max_op_vls": 1}
    config["sweep_interval"] = 0  # light sweeps of OpenSM would add lines to its log
    state = tmp_path / "state.npz"
    with live(nets(*net), f"ibnue-{engine},no_fallback", toml=f"state_file = '{state}'", config=config) as lab:
        before, log = everything(lab), lab.opensm.log_path.read_text()
        manifest = collect(lab.ibsim, tmp_path / "snapshot")
        assert lab.opensm.log_path.read_text().removeprefix(log) == ""
        assert everything(lab) == before
        (tmp_path / "live").write_text(lab.ibsim.run("ibnetdiscover"))
    assert {name: part["state"] for name, part in parts_of(manifest).items()} == dict.fromkeys(
        ("topology", "LFT", "SL2VL", "VL arbitration", "SL", "counters"), "collected"
    )
    ours = checked(tmp_path / "live", state)
    # a bundle states the strength of its certificate, and the VLs of all SLs, even of SLs that no path uses
    assert checked(tmp_path / "snapshot") == ours
    assert ours[0] == 0
    assert (len(set(before[3].values())) > 1) == (vls > 1)
