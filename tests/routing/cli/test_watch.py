"""Check ``ibnue watch`` on a simulated fabric whose counters are set by the tests."""

import importlib
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from json_contract import assert_valid
from waiting import until

import routing
from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm import OpenSM
from ibsim_fixtures.processes import missing_packages
from routing.cli import main
from routing.counters import CounterDeltas
from routing.formats.fabric_files import read_fabric, write_net
from routing.topologies import generate


@pytest.fixture(autouse=True)
def _programs(request):
    if request.node.get_closest_marker("lab") and (missing := missing_packages()):
        pytest.skip(f"apt install {' '.join(missing)}")


@pytest.fixture
def watched(tmp_path):
    """Return ibsim with a ring of five under OpenSM's minhop, whose tables loop in both directions, and a function that
    starts the command.
    """
    write_net(generate("ring", ["5"]), tmp_path / "ring.net")
    with Ibsim(tmp_path / "ring.net") as ibsim, OpenSM(ibsim) as opensm:
        (tmp_path / "live.txt").write_text(ibsim.run("ibnetdiscover"))
        paths = [str(Path(routing.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**ibsim.environment(), "PYTHONPATH": os.pathsep.join(paths)}

        def start(*options, of=(tmp_path / "live.txt", opensm.folder)):
            command = ["watch", *of, *options]
            return subprocess.Popen(
                [sys.executable, "-m", "routing.cli", *map(str, command)], cwd=tmp_path, env=environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip

        yield ibsim, start


def count(ibsim, switch, port, counter, value):
    output = ibsim.command(f'PerformanceSet "{switch}"[{port}] {counter}={value}')
    assert "has been set" in output


ASSUMED = "all packets share one VL, because service levels and SL2VL tables are unknown"
HOQ, WAIT = "PortXmitDiscardDetails.PortSwHOQLifetimeLimitDiscards", "PortCounters.PortXmitWait"
DATA, WIDE_DATA = "PortCounters.PortXmitData", "PortCountersExtended.PortXmitData"


def assert_nothing_found(output):
    reported = json.loads(output)
    assert_valid(reported)
    assert [reported[key] for key in ("credit_loops", "suspected_elsewhere", "unclassified")] == [[], [], []]
    assert reported["assumed"] == [ASSUMED]


@pytest.mark.lab
def test_drops_and_waits_round_a_loop_name_it(watched):
    ibsim, start = watched
    for switch in range(5):
        count(ibsim, f"sw{switch}", 3, *((HOQ, 7) if switch % 2 else (WAIT, 70_000_000)))
    count(ibsim, "sw1", 1, HOQ, 3)  # this channel leads to a CA, so it is on no loop and is not watched
    output, problem = (watch := start("--once")).communicate()
    assert (watch.returncode, problem) == (1, "")
    assert "watched  10 channels" in output
    assert "round 1: 5 channels suspected" in output
    assert "5 of 5 channels suspected: credit loop of 5 channels on VL 0" in output
    assert output.count("\n* sw") == 5
    assert output.count("closed by requests") == 1


@pytest.mark.lab
def test_only_what_is_added_while_watching_counts(watched):
    ibsim, start = watched
    for switch in range(5):
        count(ibsim, f"sw{switch}", 3, HOQ, 7)
    quiet = start("--rounds", 2, "--interval", "0.05", "--json")
    output, problem = quiet.communicate()
    assert (quiet.returncode, problem) == (0, "")
    assert_nothing_found(output)
    watch = start("--interval", "0.05", "--json")
    value = itertools.cycle(range(8, 0xFFFF))

    def ended():
        count(ibsim, "sw4", 2, HOQ, next(value))
        return watch.poll() is not None

    until(ended)
    output, problem = watch.communicate()
    assert (watch.returncode, problem) == (1, "")
    (loop,) = json.loads(output)["credit_loops"]
    pairs = zip(loop["credit_loop"], loop["suspected"], strict=True)
    assert [channel["switch_name"] for channel, hit in pairs if hit] == ["sw4"]
    assert {turn["port"] for turn in loop["credit_loop"]} == {2}


@pytest.mark.parametrize(("rounds", "status"), [([(), (2,), ()], 1), ([(), ()], 0), ([(1,), (2,)], 1)])
def test_a_loop_in_any_round_counts(monkeypatch, tmp_path, rounds, status):
    """The counters are invented, and the tables have a loop."""
    run = CliRunner().invoke
    assert run(main, ["route", "ring:5", "-e", "minhop", "-o", str(tmp_path / "loop")]).exit_code == 1

    def dropped(channels):
        none, channel = np.zeros(len(channels), np.int64), np.array(channels, np.int32)
        return CounterDeltas(channel, none + 1, none, none, np.zeros((3, len(channels)), bool))

    watch = importlib.import_module("routing.cli.watch")
    monkeypatch.setattr(watch, "rounds_of", lambda *_, **__: map(dropped, rounds))
    done = run(main, ["watch", "ring:5", str(tmp_path / "loop"), "--rounds", str(len(rounds)), "--json"])
    assert done.exit_code == status
    assert [sum(loop["suspected"]) for loop in json.loads(done.stdout)["credit_loops"]] == [1] * status


@pytest.mark.parametrize(("size", "certified", "status"), [(4, True, 1), (5, False, 2)])
def test_a_proposal_is_written_if_it_has_no_loop(monkeypatch, tmp_path, size, certified, status):
    """The counters are invented.  One change removes the loop of a ring of four, and one of the two loops of a ring of
    five.
    """
    run, loop, out = CliRunner().invoke, str(tmp_path / "loop"), tmp_path / "out"
    assert run(main, ["route", f"ring:{size}", "-e", "minhop", "-o", loop]).exit_code == 1
    every = np.arange(2 * size, dtype=np.int32)
    dropped = CounterDeltas(every, *np.ones((3, 2 * size), np.int64), np.zeros((3, 2 * size), bool))
    watch = importlib.import_module("routing.cli.watch")
    monkeypatch.setattr(watch, "rounds_of", lambda *_, **__: [dropped])
    command = ["watch", f"ring:{size}", loop, "--once", "--propose"]
    done = run(main, [*command, "--json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["proposal"]["loop_free"] is certified
    done = run(main, [*command, "-o", str(out)])
    assert done.exit_code == status, done.output
    assert ("the tables then have no credit loop (proven)" in done.output) is certified
    assert out.exists() is certified
    if certified:
        checked = run(main, ["check", f"ring:{size}", str(out), "--json"])
        assert checked.exit_code == 0, checked.output
    refused = run(main, ["watch", f"ring:{size}", loop, "-o", str(out)])
    assert refused.exit_code == 2
    assert "--output needs --propose" in refused.output


@pytest.mark.lab
@pytest.mark.slow
def test_full_counters_are_reported_and_emptied(watched, tmp_path):
    """A counter of sent words has 64 bits, so a saturated counter of 32 bits is not a standstill.  A counter of waiting
    has 32 bits.
    """
    ibsim, start = watched
    count(ibsim, "sw1", 2, DATA, 0xFFFFFFFF)
    count(ibsim, "sw1", 2, WIDE_DATA, 1 << 40)
    count(ibsim, "sw1", 2, WAIT, 1 << 30)
    output, problem = (watch := start("--once", "--json")).communicate()
    assert (watch.returncode, problem) == (0, "")
    assert_nothing_found(output)
    for switch in range(5):
        count(ibsim, f"sw{switch}", 3, WAIT, 0xFFFFFFFF)
    output, problem = (watch := start("--rounds", 1, "--interval", "0.05")).communicate()
    assert (watch.returncode, problem) == (0, "")
    assert "not judged, because a counter is saturated (--reset resets it): sw0 port 3 and 4 more\n" in output
    lid = int(read_fabric(tmp_path / "live.txt").switch_lid[4])
    watch = start("--interval", "0.05", "--reset")
    until(lambda: "PortXmitWait:....................4294967295" not in ibsim.run("perfquery", lid, 3))
    value = itertools.cycle(range(70_000_000, 1 << 32, 70_000_000))

    def ended():
        step = next(value)
        for switch in range(5):
            count(ibsim, f"sw{switch}", 3, WAIT, step)
        return watch.poll() is not None

    until(ended)
    output, problem = watch.communicate()
    assert (watch.returncode, problem) == (1, "")
    # A round may read the counters while the test sets the five counters.
    assert re.search("[1-5] of 5 channels suspected: credit loop of 5 channels on VL 0", output)


@pytest.mark.lab
def test_lids_of_other_switches_take_one_line(watched, tmp_path):
    """The LIDs that a generator assigns differ from the LIDs that OpenSM has assigned."""
    _, start = watched
    assert CliRunner().invoke(main, ["route", "ring:5", "-e", "minhop", "-o", str(tmp_path / "loop")]).exit_code == 1
    _, problem = (watch := start("--once", of=("ring:5", tmp_path / "loop"))).communicate()
    assert watch.returncode == 2
    assert problem.count("\n") == 1
    assert re.search(r"LID \d belongs to 0x[0-9a-f]{16}, and not to sw\d \(0x000000000020000\d\)", problem)
    assert "use a new output of ibnetdiscover" in problem


@pytest.mark.lab
def test_a_switch_that_does_not_answer_takes_one_line(watched):
    ibsim, start = watched
    ibsim.unlink("sw2")
    _, problem = (watch := start("--once")).communicate()
    assert watch.returncode == 2
    assert problem.startswith("ibnue: ")
    assert problem.count("\n") == 1


def test_tables_without_a_loop_leave_nothing_to_watch(tmp_path):
    runner = CliRunner()
    assert runner.invoke(main, ["route", "ring:5", "-o", str(tmp_path / "out")]).exit_code == 0
    result = runner.invoke(main, ["watch", "ring:5", str(tmp_path / "out"), "--once"])
    assert result.exit_code == 0, result.output
    assert "nothing to watch" in result.stdout


def test_a_host_without_a_port_is_reported(tmp_path, monkeypatch):
    (tmp_path / "perfquery").write_text('#!/bin/sh\necho "can\'t open UMAD port ((null):0)" >&2\nexit 1\n')
    (tmp_path / "perfquery").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert CliRunner().invoke(main, ["route", "ring:5", "-e", "minhop", "-o", str(tmp_path / "loop")]).exit_code == 1
    result = CliRunner().invoke(main, ["watch", "ring:5", str(tmp_path / "loop"), "--once"])
    assert result.exit_code == 2
    assert "UMAD port ((null):0) (run it as root on a host with an active InfiniBand port)" in result.stderr
