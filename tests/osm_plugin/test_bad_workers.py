from pathlib import Path

import pytest
from campaigns import without_slow
from plugin_lab import logged, workers_of
from waiting import AMPLE, until

import osm_plugin
from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm import Plugin

pytestmark = pytest.mark.lab

REAL = Path(osm_plugin.__file__).parent
FOREIGN = "the worker's tables do not belong to this subnet; another worker is started"
FAULTS = {
    "early": r"the worker ended with status 1 \(no mood for work\) while it started",
    "mute": "the worker was not ready in time",
    "nonsense": "the worker sent an invalid message; another one is started",
    "other words": "the worker sent an invalid message; another one is started",
    "stranger": "the worker has protocol another, the library .*: ibnue was replaced while OpenSM ran; run 'ibnue",
    "hang up": "the worker closed its connection.*; another one is started",
    "bug": r"bug in the worker: ZeroDivisionError: by test \(its log has the traceback\)",
    "nothing": "the worker left no tables|" + FOREIGN,
    "port": "the worker's paths do not have the lengths that its hop counts state; another worker is started",
    "tree": "the worker's multicast tree is not one of this subnet; another worker is started",
    **dict.fromkeys(["sequence", "switches", "lids", "outside", "overflow", "unaligned", "vls", "magic"], FOREIGN),
}
SLOW = (
    "switches", "lids", "outside", "unaligned", "vls", "magic", "other words", "overflow", "tree", "stranger",
    "hang up", "nothing",
)  # fmt: skip
"""Faults for the campaign only.  OpenSM handles them as "sequence", "nonsense" and "port", with other lines in its log.

In every run, test_lies.py checks that the shim refuses a wrong value of each field, and test_host.py checks the
messages of the host about workers of another protocol and about workers that end.
"""


@pytest.mark.parametrize("fault", without_slow(sorted(FAULTS), SLOW))
def test_opensm_survives_a_worker_that_is_wrong(bad_plugin, nets, tmp_path, fault):
    config = tmp_path / "ibnue.toml"
    seconds = 3 if fault == "mute" else AMPLE
    config.write_text(f"deadline = {seconds}\nstart_deadline = {seconds}")
    environment = {"IBNUE_TEST_REAL": str(REAL), "IBNUE_TEST_FAULT": fault}
    plugin = Plugin("ibnue", options=f"--config {config}", folder=bad_plugin, environment=environment)
    with Lab(nets("ring", "4", cas=1), routing_engine="ibnue-updn,minhop", plugin=plugin) as lab:
        assert lab.sweep.engine == "minhop" and lab.sweep.tried == ("ibnue-updn", "minhop")
        assert logged(lab, f"ibnue-updn routed nothing: (?:{FAULTS[fault]})")
        if fault == "bug":
            assert "ZeroDivisionError" in (lab.opensm.folder / "ibnue-worker.log").read_text()
        assert lab.opensm.resweep().engine == "minhop"
        until(lambda: len(workers_of(lab)) <= 1)
