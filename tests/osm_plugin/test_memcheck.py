"""Run all C code of the plugin once under valgrind."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from plugin_lab import logged, sweep_with_stopped_worker
from waiting import until

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(1800)]

JOIN = Path(__file__).with_name("join_multicast.py")
TOML = "deadline = 300\nstart_deadline = 300\npolicies = 'rules.toml'\n"
RULES = '[[rule]]\nname = "to CAs"\nrole = "ca-facing"\nhoq_life = 14\n'
OURS = "libibnue.so"
PLUMBING = ("vgpreload_", "libc.so", "ld-linux")


def complaints(path):
    """Return the memory errors in or below the plugin, and the memory that the plugin leaks, each with its stack."""
    found = []
    for error in ET.parse(path).getroot().iter("error"):
        frames = [(f.findtext("fn", "?"), Path(f.findtext("obj", "?")).name) for f in error.find("stack").iter("frame")]
        own = [frame for frame in frames if not frame[1].startswith(PLUMBING)]
        kind = error.findtext("kind")
        # Python keeps its memory until the process ends.  So memory that the plugin gives to Python is not a leak of
        # the plugin.
        if any(frame[1] == OURS for frame in (own[:1] if kind.startswith("Leak_") else own)):
            found.append((kind, [name for name, _ in own]))
    return found


# lash may use the last VL only, so it fails after it has filled all hops.
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="apt install valgrind")
@pytest.mark.parametrize("engines", ["ibnue-dfsssp,no_fallback", "lash,ibnue-dfsssp,no_fallback"])
def test_the_plugin_inside_of_opensm_makes_no_error_of_memory(live, nets, tmp_path, engines):
    report = tmp_path / "valgrind.xml"
    # With a limit of 20,000 file descriptors, ibsim's library makes an error of memory in the worker under valgrind.
    wrapper = ["prlimit", "--nofile=1024", "valgrind", "--xml=yes", f"--xml-file={report}"]
    wrapper += ["--leak-check=full", "--num-callers=40"]
    (tmp_path / "rules.toml").write_text(RULES)
    config = {"qos": True, "lash_start_vl": 7}
    net = nets("torus", "4x4", cas=1)
    with live(net, engines, toml=TOML, config=config, wrapper=wrapper, timeout=600.0) as lab:
        assert lab.sweep.engine == "ibnue-dfsssp"
        fabric = lab.fabric()
        lids = fabric.endport_lid.tolist()
        sm_lid = int(re.search(r"sm lid (\d+)", lab.ibsim.run("sminfo"))[1])
        for end in (3, 7, 11):
            arguments = [sys.executable, JOIN, hex(int(fabric.endport_guid[end])), str(sm_lid)]
            subprocess.run(arguments, env=lab.ibsim.environment(fabric.endport_name[end]), check=True)
        for cable in (("sw1.1", 2), ("sw2.2", 1)):
            assert lab.unlink(*cable).engine == "ibnue-dfsssp"
            assert lab.sl(lids[0], lids[5]) >= 0
        assert lab.unlink("sw0.3").engine == "ibnue-dfsssp"  # one switch less, with its CA
        for cable, what in (((), "keeps its last tables"), (("sw2.2", 2), "keeps what is left")):
            # At the end of a sweep, OpenSM asks the worker for the values of ports.  It would wait for a stopped
            # worker.
            until(lambda: len(logged(lab, "ibnue policies: ")) >= len(logged(lab, "0x02 -> SUBNET UP")))
            position, worker = sweep_with_stopped_worker(lab, *cable)
            os.kill(worker, signal.SIGKILL)
            lab.opensm.wait_for_subnet_up(after=position)
            assert logged(lab, what)
        lab.ibsim.relink("sw2.2", 2)
        for cable in (("sw0.3",), ("sw2.2", 1), ("sw1.1", 2)):
            assert lab.relink(*cable).engine == "ibnue-dfsssp"
        assert logged(lab, r"ibnue policies: \d+ ports? covered by rules")
        lab.opensm.signal(signal.SIGTERM)
        assert lab.opensm.wait_for_exit(120.0) == 0
    assert complaints(report) == []
