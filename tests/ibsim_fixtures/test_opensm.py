import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab_nets import ring
from waiting import until

from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm import OpenSM, Plugin
from ibsim_fixtures.opensm_log import EventKind
from ibsim_fixtures.processes import LabError, is_alive

pytestmark = pytest.mark.lab


@pytest.fixture
def ibsim(ring4):
    with Ibsim(ring4) as running:
        yield running


def test_events_of_the_first_sweep(ibsim):
    with OpenSM(ibsim, routing_engine="dor,no_fallback") as opensm:
        kinds = [event.kind for event in opensm.events() if event.kind is not EventKind.OTHER]
        assert kinds == [
            EventKind.HEAVY_SWEEP,
            EventKind.MASTER,
            EventKind.ROUTING,
            EventKind.TABLES,
            EventKind.SUBNET_UP,
        ]
        assert opensm.errors == []
        times = [event.seconds for event in opensm.events()]
        assert times == sorted(times)


def test_a_fallback_is_seen(ibsim):
    # Up*/Down* finds no roots on a ring, and OpenSM changes to minhop without a message to the user.
    with OpenSM(ibsim, routing_engine="updn") as opensm:
        assert opensm.last_sweep.tried == ("updn", "minhop")
        assert opensm.last_sweep.engine == "minhop"
        assert any("updn" in error for error in opensm.last_sweep.errors)


@pytest.mark.parametrize("once", [False, True])
def test_an_engine_that_cannot_is_noticed_at_once(ibsim, once):
    with (
        pytest.raises(LabError, match=r"no routing engine could route this fabric: .*ERR AB2B: Found more"),
        OpenSM(ibsim, routing_engine="ftree,no_fallback", once=once),
    ):
        pass


def test_more_sweeps_may_fail_if_one_says_so(ibsim):
    with OpenSM(ibsim, routing_engine="ftree,no_fallback", config={"sweep_interval": 1}, wait=False) as opensm:
        with pytest.raises(LabError, match="no routing engine"):
            opensm.wait_for_subnet_up(after=0, fruitless=2)
        assert sum(event.kind is EventKind.NO_ENGINE for event in opensm.events()) == 2


def test_once_ends_by_itself(ibsim):
    with OpenSM(ibsim, once=True) as opensm:
        assert opensm.wait_for_exit() == 0
        assert (opensm.folder / "opensm-lfts.dump").exists()
        with pytest.raises(LabError, match="ended with exit status 0"):
            opensm.resweep()


def test_a_sweep_counts_only_if_it_began_afterwards(ibsim):
    with OpenSM(ibsim) as opensm:
        first = opensm.last_sweep
        with pytest.raises(LabError, match=r"no SUBNET UP within 0\.2 s"):
            opensm.wait_for_subnet_up(timeout=0.2)
        assert opensm.wait_for_subnet_up(after=0) == first
        second = opensm.resweep()
        assert second.position > first.position
        assert opensm.last_sweep == second


def test_traps_make_it_sweep(ibsim):
    with OpenSM(ibsim, config={"sweep_interval": 0}) as opensm:
        position = opensm.mark()
        ibsim.unlink("sw0", 2)
        opensm.wait_for_subnet_up(after=position)
        kinds = [event.kind for event in opensm.events(position)]
        assert kinds.index(EventKind.TRAP) < kinds.index(EventKind.HEAVY_SWEEP)


def test_short_interval_makes_it_sweep(ibsim):
    config = {"sweep_interval": 1, "force_heavy_sweep": True, "sweep_on_trap": False}
    with OpenSM(ibsim, config=config) as opensm:
        opensm.wait_for_subnet_up()


def test_death_is_noticed_at_once(ibsim):
    with OpenSM(ibsim) as opensm:
        position = opensm.mark()
        os.kill(opensm.pid, signal.SIGKILL)
        with pytest.raises(LabError, match=r"was killed by signal 9 \(SIGKILL\) before SUBNET UP\n(?s:.*)SUBNET UP"):
            opensm.wait_for_subnet_up(after=position)
        assert opensm.returncode == -9


def test_a_wrapper_and_a_plugins_environment(ibsim):
    plugin = Plugin("no_such_plugin", environment={"IBNUE_SEEN": "here"})
    with OpenSM(ibsim, wrapper=["env", "IBNUE_WRAPPED=1"], plugin=plugin) as opensm:
        environment = Path(f"/proc/{opensm.pid}/environ").read_text().split("\0")
        assert {"IBNUE_WRAPPED=1", "IBNUE_SEEN=here"} <= set(environment)
        assert Path(f"/proc/{opensm.pid}/comm").read_text() == "opensm\n"


def test_wrong_arguments_are_reported_with_the_output(ibsim):
    with pytest.raises(LabError, match=r"exit status (?s:.*)opensm\.out"), OpenSM(ibsim, arguments=["--no-such"]):
        pass


def test_a_plugin_that_is_not_there(ibsim):
    with OpenSM(ibsim, plugin=Plugin("no_such_plugin")) as opensm:
        assert any("no_such_plugin" in error for error in opensm.errors)


def test_a_second_opensm_on_the_same_host_is_refused(ibsim):
    with OpenSM(ibsim) as first:
        with pytest.raises(LabError, match="runs on 'h0' already"), OpenSM(ibsim):
            pass
        with OpenSM(ibsim, host="h2", wait=False) as standby:
            standby.wait_for(lambda events: any("STANDBY" in e.text for e in events), what="STANDBY")
            os.kill(first.pid, signal.SIGKILL)
            until(lambda: [client.device for client in ibsim.clients()] == ["h2"])


def test_killed_programs_leave_room(ibsim):
    for _ in range(12):  # ibsim has room for ten programs
        with OpenSM(ibsim) as opensm:
            os.kill(opensm.pid, signal.SIGKILL)
            opensm.wait_for_exit()


def test_two_at_once(net):
    with (
        Ibsim(net(4, ring(4))) as one,
        Ibsim(net(6, ring(6), name="other.net")) as other,
        OpenSM(one) as first,
        OpenSM(other, routing_engine="dfsssp") as second,
    ):
        assert first.last_sweep.engine == "minhop"
        assert second.last_sweep.engine == "dfsssp"
        assert first.folder != second.folder
        assert [client.pid for client in one.clients()] == [first.pid]
        assert [client.pid for client in other.clients()] == [second.pid]
        one.unlink("sw0", 2)
        assert first.resweep().engine == "minhop"
        assert second.resweep().engine == "dfsssp"


def test_nothing_is_left(ibsim):
    with pytest.raises(ZeroDivisionError), OpenSM(ibsim) as opensm:
        folder, pid = opensm.folder, opensm.pid
        raise ZeroDivisionError
    assert not folder.exists()
    assert not is_alive(pid)
    until(lambda: ibsim.clients() == [])


SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in runs that were started in the background
from ibsim_fixtures.lab import Lab
with Lab(sys.argv[1]) as lab:
    print(lab.opensm.pid, lab.ibsim._child.pid, lab.opensm.folder, lab.ibsim.folder, flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_runs_on_when_the_tests_are_stopped(ring4, tmp_path, number):
    # If the runner is killed, its folders stay, so they are created in a temporary folder.
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT, ring4]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as runner:
        opensm, ibsim, *folders = runner.stdout.readline().split()
        assert is_alive(opensm)
        assert is_alive(ibsim)
        runner.send_signal(number)
        runner.wait()
    until(lambda: not is_alive(opensm) and not is_alive(ibsim))
    if number is signal.SIGINT:
        assert not any(Path(folder).exists() for folder in folders)


def test_nothing_goes_to_the_places_of_a_real_opensm(ibsim):
    positions = [Path("/var/log"), Path("/var/cache/opensm"), Path("/tmp/osm"), Path("/etc/opensm")]
    before = [sorted(position.glob("*opensm*")) for position in positions]
    with OpenSM(ibsim) as opensm:
        names = {path.name for path in opensm.folder.iterdir()}
        assert {"guid2lid", "opensm-lfts.dump", "opensm.fdbs", "opensm-subnet.lst", "opensm.log"} <= names
    assert [sorted(position.glob("*opensm*")) for position in positions] == before
