"""Check values of single ports in a live OpenSM: the values that smpquery reads, and the number of requests."""

import os
import re
import signal

import numpy as np
import pytest
from plugin_lab import ample_timeouts, worker_of
from waiting import until

from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm import OpenSM, Plugin
from ibsim_fixtures.processes import find_program
from ibsim_fixtures.readback import portinfo
from routing.formats.fabric_files import read_fabric
from routing.formats.table_files import read_tables
from routing.policy import apply_rules, loop_channels, port_facts, read_policy

pytestmark = pytest.mark.lab

RULES = """
[[rule]]
name = "to CAs"
role = "ca-facing"
hoq_life = 14

[[rule]]
name = "between switches"
role = "switch-facing"
hoq_life = 17

[[rule]]
name = "on loops"
role = "loop"
hoq_life = 12
override = true

[[rule]]
name = "one switch by GUID"
switch = "0x0000000000200001"
ports = "3-4"
hoq_life = "1ms"
override = true

[[rule]]
name = "one port"
switch = "sw2"
ports = 2
hoq_life = "never"
override = true
"""
OPENSM = {"leaf_head_of_queue_lifetime": "0x10", "head_of_queue_lifetime": "0x0c", "qos": True}
USUAL = {True: 16, False: 12}
"""HOQLife that OpenSM is configured to set at ports to CAs (True) and at all other ports (False)."""


class Bench:
    """A ring of four switches with two CAs each in ibsim, on which OpenSMs with the plugin run one after the other."""

    def __init__(self, ibsim, folder, plugin_folder):
        self.ibsim, self.folder, self._plugin = ibsim, folder, plugin_folder
        self.rules = folder / "rules.toml"
        self.config = folder / "ibnue.toml"
        self.rules.write_text(RULES)
        self.config.write_text(ample_timeouts("policies = 'rules.toml'\nstate_file = false\n"))

    def opensm(self, engine="minhop,no_fallback", **config):
        plugin = Plugin("ibnue", options=f"--config {self.config}", folder=self._plugin)
        return OpenSM(self.ibsim, routing_engine=engine, plugin=plugin, config={**OPENSM, **config})

    def fabric(self):
        path = self.folder / "ibnetdiscover.out"
        path.write_text(self.ibsim.run("ibnetdiscover"))
        return read_fabric(path)

    def wanted(self, opensm):
        """Return the LID of the switch, the HOQLife by the rules (None: no rule), and OpenSM's HOQLife, for every
        cabled port.
        """
        fabric = self.fabric()
        facts = port_facts(fabric, loop_channels(fabric, read_tables(opensm.folder, fabric)))
        found = apply_rules(read_policy(self.rules), fabric, facts, strict=False)
        to_ca, attempts = facts.role["ca-facing"], found.hoq_life
        return {
            (s, p): (
                int(fabric.switch_lid[s]),
                int(attempts[s, p]) if attempts[s, p] >= 0 else None,
                USUAL[bool(to_ca[s, p])],
            )
            for s, p in np.argwhere(facts.cabled).tolist()
        }

    def check(self, opensm, sweeps):
        """Wait until OpenSM has swept ``sweeps`` times, and check that all ports have the HOQLife by the rules.

        The last sweep must have written the ports with other values.
        """
        wanted = self.wanted(opensm)
        requests = sum(life is not None for _, life, _ in wanted.values())
        differ = sum(life is not None and life != usual for _, life, usual in wanted.values())
        expected = (requests, requests - differ, differ, differ, 0)
        # A trap may have caused one more sweep.  So the number of rounds alone does not identify the last round.
        until(lambda: len(counted(opensm)) >= sweeps and counted(opensm)[-1] == expected)
        # One shell runs all programs, because the start of a program by the lab takes longer than its query.
        smpquery = find_program("smpquery")
        queries = [f"timeout 60 {smpquery} portinfo {lid} {port}" for (_, port), (lid, _, _) in wanted.items()]
        found = re.findall(r"^HoqLife:\.*(\d+)", self.ibsim.run("sh", "-ec", "\n".join(queries)), re.M)
        assert list(map(int, found)) == [usual if life is None else life for _, life, usual in wanted.values()]
        return requests, differ


def counted(opensm):
    """Return the figures of every round: ports covered by rules, already correct, updated, verified and skipped."""
    found = re.findall(
        r"policies: (\d+) ports? covered by rules: (\d+) already correct, (\d+) updated \((\d+) verified\), "
        r"(\d+) skipped",
        opensm.log_path.read_text(),
    )
    return [tuple(map(int, row)) for row in found]


@pytest.fixture
def bench(nets, plugin_folder, tmp_path):
    with Ibsim(nets("ring", "4", cas=2)) as ibsim:
        yield Bench(ibsim, tmp_path, plugin_folder)


def test_right_from_the_start_after_faults_sweeps_and_a_restart(bench):
    with bench.opensm() as opensm:
        requests, written = bench.check(opensm, 1)
        # Rules set all eight ports to CAs to another value, and two of the ports between switches.  The other ports
        # between switches are on loops, where the rules set OpenSM's value.
        assert (requests, written) == (16, 10)
        opensm.resweep()
        bench.check(opensm, 2)
        # The remaining chain has no loop, so its ports get the value for other ports between switches.
        bench.ibsim.unlink("sw3", 3)
        opensm.resweep()
        assert bench.check(opensm, 3) == (14, 14)
        bench.ibsim.relink("sw3", 3)
        opensm.resweep()
        assert bench.check(opensm, 4) == (16, 10)
        bench.ibsim.unlink("sw2")
        opensm.resweep()
        bench.check(opensm, 5)
        assert "without effect: line " in opensm.log_path.read_text()
        bench.ibsim.relink("sw2")
        opensm.resweep()
        bench.check(opensm, 6)
        assert opensm.errors == []
    with bench.opensm() as opensm:
        assert bench.check(opensm, 1) == (16, 10)
        assert opensm.errors == []


def test_nothing_else_of_a_port_changes(live, nets, tmp_path):
    """The fabric is tested with and without rules.  Its link speed has a separate field in PortInfo."""
    net = nets("ring", "3", speed="EDR")
    (tmp_path / "rules.toml").write_text("[[rule]]\nhoq_life = 9\n")
    seen = []
    for toml in ("", "policies = 'rules.toml'\n"):
        with live(net, "minhop,no_fallback", toml=f"{toml}state_file = false\n") as lab:
            assert not toml or until(lambda lab=lab: counted(lab.opensm))
            lids = [owner.lid for owner in lab.owners() if owner.kind == "SW"]
            seen.append({(lid, port): lab.portinfo(lid, port) for lid in lids for port in (1, 2, 3)})
            assert lab.opensm.errors == []
    assert {info.pop("HoqLife") for info in seen[1].values()} == {"9"}
    assert {info.pop("HoqLife") for info in seen[0].values()} == {"16", "18"}
    assert seen[0] == seen[1]


def test_rules_are_read_again_and_bad_ones_leave_what_is(bench):
    with bench.opensm() as opensm:
        bench.check(opensm, 1)
        bench.rules.write_text("[[rule]]\nhoq_life = 5\n")
        opensm.resweep()
        assert bench.check(opensm, 2) == (16, 16)
        bench.rules.write_text("[[rule]]\nhoq_life = 5\n[[rule]]\nname = 'more'\nhoq_life = 6\n")
        opensm.resweep()
        until(lambda: len(counted(opensm)) >= 3)
        assert counted(opensm)[-1] == (16, 0, 16, 16, 0)
        (error,) = [line for line in opensm.errors if "IBNC" in line]
        assert "the last ones stay" in error and "rules.toml:5: more and rule 1 (line 1) set hoq_life" in error
        lid = int(bench.fabric().switch_lid[0])
        assert portinfo(bench.ibsim, lid, 1)["HoqLife"] == "5"
        bench.config.write_text(ample_timeouts("state_file = false\n"))
        opensm.resweep()
        assert portinfo(bench.ibsim, lid, 1)["HoqLife"] == "16"
        assert len(counted(opensm)) == 3


def test_a_port_that_keeps_its_own_value_is_left_alone_in_the_end(bench):
    """ibsim accepts HOQLife, but its ports always keep a VLStallCount of 7."""
    bench.rules.write_text("[[rule]]\nswitch = 'sw1'\nports = 1\nvl_stall_count = 3\n")
    with bench.opensm() as opensm:
        for sweep in range(1, 6):
            until(lambda sweep=sweep: len(counted(opensm)) >= sweep)
            opensm.resweep()
        assert counted(opensm)[:5] == [*[(1, 0, 1, 0, 0)] * 3, *[(1, 0, 0, 0, 1)] * 2]
        errors = [line for line in opensm.errors if "IBNA" in line]
        assert len(errors) == 3
        assert "sw1 port 1: HOQLife 16, VLStallCount 7 instead of 16, 3" in errors[0]


def test_a_value_that_a_port_does_not_take_does_not_keep_the_other_from_it(bench):
    bench.rules.write_text("[[rule]]\nswitch = 'sw1'\nports = 1\nvl_stall_count = 3\nhoq_life = 9\n")
    with bench.opensm() as opensm:
        for sweep in range(1, 6):
            until(lambda sweep=sweep: len(counted(opensm)) >= sweep)
            opensm.resweep()
        assert counted(opensm)[:5] == [*[(1, 0, 1, 0, 0)] * 3, *[(1, 0, 1, 1, 1)] * 2]
        assert sum("IBNA" in line for line in opensm.errors) == 3
        bench.ibsim.unlink("sw1", 1)
        opensm.resweep()
        bench.ibsim.relink("sw1", 1)
        opensm.resweep()
        until(lambda: counted(opensm)[-1] == (1, 0, 1, 0, 0))
        lid = int(bench.fabric().switch_lid[1])
        assert portinfo(bench.ibsim, lid, 1)["HoqLife"] == "9"


def test_loops_are_those_of_the_plugins_own_tables(bench):
    bench.rules.write_text("[[rule]]\nrole = 'loop'\nhoq_life = 9\n")
    with bench.opensm("ibnue-updn,no_fallback") as opensm:
        assert until(lambda: counted(opensm)) == [(0, 0, 0, 0, 0)]
        assert "1 rule, 0 channels on credit loops\n" in opensm.log_path.read_text()


def test_a_worker_that_died_is_replaced(live, nets, tmp_path):
    (tmp_path / "rules.toml").write_text("[[rule]]\nhoq_life = 9\n")
    with live(nets("ring", "3"), "minhop,no_fallback", toml="policies = 'rules.toml'\nstate_file = false\n") as lab:
        until(lambda: counted(lab.opensm))
        pid = worker_of(lab)
        os.kill(pid, signal.SIGKILL)
        lab.opensm.resweep()
        until(lambda: len(counted(lab.opensm)) >= 2)
        assert counted(lab.opensm)[-1] == (9, 0, 9, 9, 0)
        assert worker_of(lab) != pid
