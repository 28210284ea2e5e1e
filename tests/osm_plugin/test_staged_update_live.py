"""Check changes of tables that OpenSM writes in rounds, read back from the switches between the rounds."""

import os
import signal
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from plugin_lab import ample_timeouts, comes_up, expected_lfts, logged, sweep_options, worker_of
from slow_mixed import transition_slowly
from switch_tables import change_of
from waiting import until

from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm import OpenSM, Plugin
from ibsim_fixtures.readback import switch_lfts
from osm_plugin.route_or_reroute import options_key
from osm_plugin.state import SavedTables, read_state
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.errors import IbnueError
from routing.numerals import count_noun
from routing.reroute import reroute

pytestmark = pytest.mark.lab

OPTIONS = sweep_options(vls="auto", port_vls=8)
QOS = {"qos": True, "sweep_on_trap": True}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.npz"


@pytest.fixture
def torus(live, nets, path):
    """Return a function that starts OpenSM on a torus with ``wait`` seconds between rounds."""

    def start(engine, wait, size="4x4"):
        toml = f"state_file = '{path}'\nround_wait = {wait}"
        return live(nets("torus", size, cas=1), f"ibnue-{engine},no_fallback", toml=toml, config=QOS)

    return start


def made(fabric, engine):
    routing = ENGINES[engine].route(fabric, OPTIONS)
    return SavedTables(fabric, routing, prove(fabric, routing), engine, options_key(OPTIONS))


def changed(before, fabric, baseline):
    """Return the change of tables that the loss of a cable causes."""
    found = reroute(ENGINES[before.engine], OPTIONS, before, fabric, baseline=baseline)
    after = SavedTables(fabric, found.routing, found.proof, before.engine, before.options)
    return change_of(before, after)


def cables(fabric):
    """Yield the device name, the port and the link of each cable between switches."""
    for link in np.unique(fabric.channels.link).tolist():
        channel = int(np.flatnonzero(fabric.channels.link == link)[0])
        yield fabric.switch_name[fabric.channels.src[channel]], int(fabric.channels.port[channel]), link


def worth_rounds(baseline, *, waits, drained=False, rounds=2):
    """Return the first cable whose loss takes the given number of rounds, and the change.

    With ``waits``, packets have to leave the fabric before the last round.
    """
    for device, port, link in cables(baseline.fabric):
        change = changed(baseline, baseline.fabric.without_links([link]), baseline)
        schedule = change.schedule
        if schedule is None or len(schedule) != rounds or bool(schedule.drained) != drained:
            continue
        if schedule.first_draining_round == (rounds if waits else 0):
            return (device, port), change
    raise AssertionError("no cable is worth rounds")


def states(change):
    """Return the tables that the switches should have before the first round and after each round."""
    fabric, old = change.after.fabric, change.base.routing
    lfts = change.schedule.states(old.lft, change.after.routing.lft)
    return [old, *(replace(change.after.routing, lft=lft) for lft in lfts)], fabric


def read(ibsim, fabric, like):
    """Return the tables in the switches, in the rows of a fabric.  Entries over missing links lead nowhere."""
    lft = np.full((fabric.switches, len(fabric.lids)), 255, np.uint8)
    tables = switch_lfts(ibsim)
    for row, guid in enumerate(fabric.switch_guid.tolist()):
        for lid, port in tables[guid].items():
            lft[row, lid] = port
    return replace(like, lft=lft)


def lft_of(routing, fabric):
    """Return the LFT columns of LIDs that exist."""
    return routing.lft[:, fabric.lids.switch >= 0].tolist()


def free(fabric, one, other):
    """Return whether no mixture of two tables has a loop, according to networkx with every packet."""
    return nx.is_directed_acyclic_graph(transition_slowly(fabric, one, other, replies=False, scope="endports"))


def hears(lab, pattern):
    return until(lambda: logged(lab, pattern))


def milliseconds(lab, done):
    """Return the time in ms after which the last round was acknowledged that the pattern ``done`` describes."""
    pattern = rf"{done}: [0-9]+ entr(?:y is|ies are) written and acknowledged, (\d+\.\d) ms after the first"
    return float(logged(lab, pattern)[-1])


def log_of(opensm):
    return opensm.log_path.read_text() if opensm.log_path.exists() else ""


def state_reports(path, *, open_rounds):
    """Wait for a state file that states that rounds are open, or that all rounds are in the switches."""

    def found():
        try:
            return (read_state(path).deferred is not None) == open_rounds
        except IbnueError:  # the file does not exist yet, or was replaced while it was read
            return False

    return until(found)


def settled(path):
    return state_reports(path, open_rounds=False)


def pull(lab, cable):
    lab.ibsim.unlink(*cable)
    lab.opensm.signal(signal.SIGHUP)


def test_every_mixture_of_what_is_read_back_between_rounds_is_free_of_loops(torus, path):
    with torus("dfsssp", 8) as lab:
        baseline = made(lab.fabric(), "dfsssp")
        cable, change = worth_rounds(baseline, waits=True)
        (old, *wanted), fabric = states(change)
        assert not free(fabric, old, wanted[-1])
        position = lab.opensm.mark()
        pull(lab, cable)
        assert hears(lab, "ibnue-dfsssp: round 1 of 2: all but [0-9]+ entr(?:y is|ies are) written and acknowledged")
        with lab.opensm.paused():  # while OpenSM is paused, the next round is not written, however long reading takes
            between = read(lab.ibsim, fabric, wanted[0])
        lab.opensm.wait_for_subnet_up(after=position)
        after = read(lab.ibsim, fabric, wanted[1])
        assert [lft_of(t, fabric) for t in (between, after)] == [lft_of(t, fabric) for t in wanted]
        assert all(free(fabric, *pair) for pair in pairwise([old, between, after]))
        assert logged(lab, r"written in 2 rounds of \d+ and \d+ entr(?:y|ies), with a wait before each but the first")
        assert milliseconds(lab, "round 2 of 2") >= 8000
        assert settled(path) and lab.opensm.errors == []
        assert comes_up(lab, "ibnue: transition in rounds: none of 2 has a credit loop, as packets leave between them")


def test_lids_for_which_no_order_is_safe_are_out_of_use_between_rounds(torus):
    with torus("updn", 8) as lab:
        baseline = made(lab.fabric(), "updn")
        cable, change = worth_rounds(baseline, waits=True, drained=True)
        (old, *wanted), fabric = states(change)
        out = change.schedule.removed_in_round == 1
        position = lab.opensm.mark()
        pull(lab, cable)
        late = count_noun(int((change.schedule.round > 1).sum()), "entry is", "entries are")
        assert hears(lab, f"round 1 of 2: all but {late} written and acknowledged")
        with lab.opensm.paused():
            between = read(lab.ibsim, fabric, wanted[0])
        assert (old.lft[change.schedule.switch[out], change.schedule.lid[out]] != 255).all()
        assert (between.lft[change.schedule.switch[out], change.schedule.lid[out]] == 255).all()
        lab.opensm.wait_for_subnet_up(after=position)
        after = read(lab.ibsim, fabric, wanted[1])
        assert [lft_of(t, fabric) for t in (between, after)] == [lft_of(t, fabric) for t in wanted]
        assert all(free(fabric, *pair) for pair in pairwise([old, between, after]))
        assert logged(lab, f"with a wait before each but the first, {out.sum()} of them removed until their round")
        assert logged(lab, f"round 2 of 2: {late} ") and milliseconds(lab, "round 2 of 2") >= 8000
        assert lab.opensm.errors == []


def test_packets_are_awaited_where_acknowledgements_are_not_enough(torus):
    with torus("updn", 10, "4x4x4") as lab:
        baseline = made(lab.fabric(), "updn")
        cable, change = worth_rounds(baseline, waits=True, drained=True, rounds=3)
        lab.unlink(*cable)
        assert lab.switch_lfts() == expected_lfts(change.after.fabric, change.after.routing)
        assert logged(lab, "entries, with a wait before the last, [0-9]+ of them removed until their round")
        assert milliseconds(lab, "round 2 of 3") < 10_000 <= milliseconds(lab, "round 3 of 3")
        assert lab.opensm.errors == []


def test_acknowledgements_are_enough_for_most(torus, path):
    with torus("updn", 60) as lab:
        baseline = made(lab.fabric(), "updn")
        cable, change = worth_rounds(baseline, waits=False)
        tables, fabric = states(change)
        assert not free(fabric, tables[0], tables[-1])
        lab.unlink(*cable)
        assert lab.switch_lfts() == expected_lfts(fabric, change.after.routing)
        assert logged(lab, r"written in 2 rounds of \d+ and \d+ entr(?:y|ies);")
        assert milliseconds(lab, "round 2 of 2") < 60_000
        assert settled(path) and lab.opensm.errors == []


def test_the_worker_may_die_between_rounds(torus, path):
    with torus("dfsssp", 10) as lab:
        baseline = made(lab.fabric(), "dfsssp")
        cable, change = worth_rounds(baseline, waits=True)
        position, worker = lab.opensm.mark(), worker_of(lab)
        pull(lab, cable)
        assert hears(lab, "round 1 of 2")
        assert state_reports(path, open_rounds=True)
        os.kill(worker, signal.SIGKILL)
        lab.opensm.wait_for_subnet_up(after=position)
        final = expected_lfts(change.after.fabric, change.after.routing)
        assert logged(lab, "round 2 of 2") and lab.switch_lfts() == final
        # The next worker learns that the rounds are over, and begins no round again.
        lab.opensm.resweep()
        assert logged(lab, "tables unchanged") and not logged(lab, "of 0 and")
        assert lab.switch_lfts() == final and settled(path)


def test_a_second_fault_between_rounds_is_the_next_change(torus, path):
    with torus("dfsssp", 10) as lab:
        baseline = made(lab.fabric(), "dfsssp")
        cable, first = worth_rounds(baseline, waits=True)
        position = lab.opensm.mark()
        pull(lab, cable)
        assert hears(lab, "round 1 of 2")
        fabric = first.after.fabric
        device, port, link = next(each for each in cables(fabric) if each[0] != cable[0])
        lab.ibsim.unlink(device, port)
        lab.opensm.wait_for_subnet_up(after=position)
        assert logged(lab, "round 2 of 2")
        lab.opensm.resweep()
        change = changed(replace(first.after, deferred=None), fabric.without_links([link]), baseline)
        assert lab.switch_lfts() == expected_lfts(change.after.fabric, change.after.routing)


def test_an_opensm_that_ends_between_rounds_is_followed_by_one_that_goes_on(plugin_folder, nets, path, tmp_path):
    config = tmp_path / "ibnue.toml"
    plugin = Plugin("ibnue", options=f"--config {config}", folder=plugin_folder)
    start = {"routing_engine": "ibnue-dfsssp,no_fallback", "plugin": plugin, "config": QOS}
    with Ibsim(nets("torus", "4x4", cas=1)) as ibsim:
        config.write_text(ample_timeouts(f"state_file = '{path}'\nround_wait = 60"))
        with OpenSM(ibsim, **start) as opensm:
            assert settled(path)
            baseline = read_state(path)
            cable, change = worth_rounds(baseline, waits=True)
            (_, first, last), fabric = states(change)
            ibsim.unlink(*cable)
            opensm.signal(signal.SIGHUP)
            until(lambda: "round 1 of 2" in log_of(opensm))
            assert state_reports(path, open_rounds=True)
            opensm.signal(signal.SIGKILL)
            opensm.wait_for_exit()
        assert lft_of(read(ibsim, fabric, first), fabric) == lft_of(first, fabric)
        # OpenSM reads the tables in the switches, and continues from these tables.
        config.write_text(ample_timeouts(f"state_file = '{path}'\nround_wait = 8"))
        with OpenSM(ibsim, **start) as opensm:
            after = read(ibsim, fabric, last)
            left = int((first.lft != last.lft).sum())
            assert f"; {count_noun(left, 'entry changes', 'entries change')} in the switches;" in log_of(opensm)
        assert lft_of(after, fabric) == lft_of(last, fabric)
        assert free(fabric, first, after)
        assert settled(path)


LFT_ATTRIBUTE = 25


def test_a_round_that_is_not_acknowledged_waits_for_the_next_sweep(torus, path):
    with torus("dfsssp", 10) as lab:
        baseline = made(lab.fabric(), "dfsssp")
        cable, change = worth_rounds(baseline, waits=True)
        fabric, deferred = change.after.fabric, change.after.deferred
        deaf = fabric.switch_name[deferred["row"][0]]
        pull(lab, cable)
        assert hears(lab, "round 1 of 2: all but [0-9]+ entr(?:y is|ies are) written and acknowledged")
        lab.ibsim.error(deaf, 100, attribute=LFT_ATTRIBUTE)
        assert hears(lab, "ERR IBN10: ibnue-dfsssp: round 2 of 2 was not acknowledged by 1 switch: sw")
        lab.ibsim.error(deaf, 0)
        lab.opensm.resweep()
        # All other switches have the round.  The switch that did not answer is read back, unless the plugin's own sweep
        # queries it too early.
        left = int((deferred["row"] == deferred["row"][0]).sum())
        assert logged(lab, f"; {count_noun(left, 'entry changes', 'entries change')} in the switches;|base unknown: ")
        assert lab.switch_lfts() == expected_lfts(fabric, change.after.routing) and settled(path)
        # The next change begins with the tables that the switches have now.
        lab.relink(*cable)
        assert lab.switch_lfts() == expected_lfts(baseline.fabric, baseline.routing)
