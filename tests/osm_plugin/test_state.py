import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics
from waiting import AMPLE, until

from osm_plugin.decision import decide
from osm_plugin.route_or_reroute import options_key, route_or_reroute
from osm_plugin.snapshot import fabric_from_arrays, fabric_to_arrays
from osm_plugin.state import SavedTables, fits, read_number, read_state, save_state, write_state
from osm_plugin.tables_in_force import State
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import IbnueError, InputError, TableError
from routing.formats.bundle import bundle_routing, read_bundle
from routing.formats.npz import NpzReader, write_npz
from routing.reroute import Stability, translate
from routing.topologies import generate

OPTIONS = EngineOptions(effort=0.1)


def kept_tables(fabric, engine="nue", options=OPTIONS):
    routing = ENGINES[engine].route(fabric, options)
    return SavedTables(fabric, routing, prove(fabric, routing), engine, options_key(options))


@pytest.fixture(scope="module")
def torus():
    return kept_tables(generate("torus", ["3x3"], cas=2))


@pytest.fixture(scope="module")
def degraded(torus):
    return kept_tables(torus.fabric.without_links([int(torus.fabric.channels.link[0])]))


def same_tables(a, b):
    return all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("lft", "sl", "sl2vl"))


def rewrite(path, **changed):
    """Write the file again with some arrays changed; None removes an array."""
    with NpzReader(path) as archive:
        arrays = {name: archive.read(name, lambda *_: None) for name in archive.names()}
    arrays |= changed
    with path.open("wb") as file:
        write_npz(file, {name: array for name, array in arrays.items() if array is not None})


def test_a_state_that_is_replaced_while_it_is_read_is_the_one_or_the_other(torus, degraded, tmp_path, monkeypatch):
    path, newer, plain = tmp_path / "state.npz", tmp_path / "newer.npz", NpzReader.read
    write_state(path, torus)
    write_state(newer, degraded)

    def read(archive, *what):
        if newer.exists():
            newer.replace(path)
        return plain(archive, *what)

    monkeypatch.setattr(NpzReader, "read", read)
    assert read_state(path).fabric.digest == torus.fabric.digest
    assert read_state(path).fabric.digest == degraded.fabric.digest


@given(fabrics(max_switches=8))
@examples(50)
def test_structures_hold_all_that_counts_of_a_fabric(fabric):
    again = fabric_from_arrays(*fabric_to_arrays(fabric), fabric.switches)
    assert again.digest == fabric.digest
    assert again.switch_name == fabric.switch_name and again.terminal_name == fabric.terminal_name
    for part in ("switch_ports", "terminal_ports", "endport_terminal", "endport_port", "link_device", "link_port"):
        assert np.array_equal(getattr(again, part), getattr(fabric, part))
        assert getattr(again, part).dtype == getattr(fabric, part).dtype


@pytest.mark.parametrize("engine", ["nue", "dfsssp", "lash", "updn"])
def test_a_state_comes_back_as_it_was_and_is_a_bundle_too(tmp_path, engine):
    kept = kept_tables(generate("torus", ["4x4"], cas=1), engine)
    write_state(tmp_path / "s.npz", kept)
    again = read_state(tmp_path / "s.npz")
    assert (again.engine, again.options) == (engine, kept.options)
    assert again.fabric.digest == kept.fabric.digest
    assert same_tables(again.routing, kept.routing)
    assert (again.routing.vls, again.routing.vls_needed) == (kept.routing.vls, kept.routing.vls_needed)
    assert np.array_equal(again.proof.certificate.order, kept.proof.certificate.order)
    assert same_tables(bundle_routing(read_bundle(tmp_path / "s.npz"), kept.fabric), kept.routing)


def test_the_same_state_gives_the_same_bytes(tmp_path, torus):
    for name in ("a.npz", "b.npz"):
        write_state(tmp_path / name, torus)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@given(st.integers(0, 1 << 20), st.integers(1, 255))
@examples(60)
def test_a_damaged_state_is_refused_or_means_what_it_meant(tmp_path_factory, place, flip):
    path = tmp_path_factory.mktemp("state") / "s.npz"
    kept = kept_tables(generate("ring", ["4"], cas=1), "updn")
    write_state(path, kept)
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= flip
    path.write_bytes(data)
    try:
        again = read_state(path)
    except IbnueError as problem:
        assert "\n" not in str(problem)
    else:
        assert same_tables(again.routing, kept.routing) and again.fabric.digest == kept.fabric.digest


def test_a_state_that_was_cut_short_is_refused(tmp_path, torus):
    path = tmp_path / "s.npz"
    write_state(path, torus)
    whole = path.read_bytes()
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        with pytest.raises(TableError):
            read_state(path)


def about(**changed):
    reported = {"format": "ibnue-state/1", "engine": "nue", "options": "{}", "switches": 9, **changed}
    return np.array(json.dumps(reported))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"state_about": None}, "this is a bundle, but not a state file"),
        ({"state_about": np.array("[]")}, "is not a JSON object"),
        ({"state_about": np.array("{")}, "is not a JSON object"),
        ({"state_about": about(format="ibnue-state/2")}, "is of format 'ibnue-state/2', wanted 'ibnue-state/1'"),
        ({"state_about": about(switches="9")}, "description is incomplete"),
        ({"state_about": about(switches=-1)}, "-1 switches among"),
        ({"state_about": about(switches=99)}, "99 switches among"),
        ({"state_cable": np.zeros((2, 3), np.uint8)}, "has the shape"),
        ({"state_cable": None}, "is missing"),
        ({"state_endport": np.zeros((0, 16), np.uint8)}, "contradicts itself"),
    ],
)
def test_inconsistent_parts_of_a_state_are_named(tmp_path, torus, changed, why):
    path = tmp_path / "s.npz"
    write_state(path, torus)
    rewrite(path, **changed)
    with pytest.raises(IbnueError, match=why):
        read_state(path)


def test_a_certificate_that_is_none_is_refused(tmp_path, torus):
    path = tmp_path / "s.npz"
    write_state(path, torus)
    rewrite(path, order=np.zeros_like(torus.proof.certificate.order))
    with pytest.raises(IbnueError):
        read_state(path)


def test_a_fabric_that_the_tables_are_not_for_is_refused(tmp_path, torus):
    path = tmp_path / "s.npz"
    write_state(path, torus)
    _, _, cable = fabric_to_arrays(replace(torus.fabric, link_width=torus.fabric.link_width * 2))
    rewrite(path, state_cable=cable.view(np.uint8).reshape(len(cable), -1))
    with pytest.raises(TableError, match="its fabric is not the one for which its tables were made"):
        read_state(path)


def test_cables_into_ports_that_are_not_there_are_refused(tmp_path, torus):
    path = tmp_path / "s.npz"
    ports = torus.fabric.switch_ports - 1
    write_state(path, replace(torus, fabric=replace(torus.fabric, switch_ports=ports)))
    with pytest.raises(IbnueError):
        read_state(path)


def test_options_that_make_other_tables_have_another_key(tmp_path):
    roots = tmp_path / "roots"
    roots.write_text("0x1\n")
    named = EngineOptions(root_guid_file=roots)
    key = options_key(named)
    assert key == options_key(replace(named, threads=7))
    others = [replace(named, seed=2), replace(named, vls=3), replace(named, port_vls=4), EngineOptions()]
    assert len({key, *map(options_key, others)}) == 5
    roots.write_text("0x2\n")
    assert options_key(named) != key
    roots.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        options_key(named)


@pytest.fixture
def started():
    """Return a function that starts the state of a worker, and waits until its files answer."""
    running = []

    def start(path=None, copies=()):
        state = State(timeout=AMPLE, copies=copies)
        running.append(state)
        state.refresh(path, threads=1)
        return state

    yield start
    for state in running:
        state.end()


def written(state, path):
    """Save the state, and wait until it is written."""
    state.save()
    until(lambda: state.refresh(path, threads=1) or state._files.waiting is None)


def test_tables_outlive_the_process(tmp_path, torus, degraded, started):
    path = tmp_path / "s.npz"
    state = started(path)
    assert state.last is None and state.take_remarks() == []
    for kept in (torus, degraded):
        state.put(kept, reset=False)
        written(state, path)
    again = started(path)
    assert again.take_remarks() == [f"state read from {path}"] and again.take_remarks() == []
    before = again.before("nue", torus.options, torus.fabric, data_vls=8)
    assert same_tables(before.routing, degraded.routing)
    assert same_tables(again.baseline_of(before).routing, torus.routing)


@pytest.mark.parametrize("path", [None, Path("/proc/s.npz"), "outdated"])
def test_the_next_worker_reads_what_the_last_one_left_in_memory(tmp_path, torus, degraded, started, path):
    copies = [os.memfd_create("copy") for _ in range(2)]
    if path == "outdated":
        write_state(path := tmp_path / "s.npz", torus)
        os.utime(path, ns=(1, 1))
    state = started(path, copies)
    state.put(torus, reset=False)
    state.put(degraded, reset=False)
    state.save()
    if path == tmp_path / "s.npz":
        until(lambda: state.refresh(path, threads=1) or state._files.waiting is None)
        write_state(path, torus)  # the file then looks as if no later write had succeeded
        os.utime(path, ns=(1, 1))
    again = started(path, copies)
    assert "state read from the memory of the worker that has ended" in again.take_remarks()
    assert same_tables(again.last.routing, degraded.routing) and same_tables(again.baseline.routing, torus.routing)
    os.truncate(copies[0], 100)  # the copy then looks as if the worker had ended while it wrote
    assert started(None, copies).last is None
    for copy in copies:
        os.close(copy)


def test_the_last_tables_are_compressed_once_if_they_are_the_baseline_too(torus, degraded, started):
    copies = [os.memfd_create("copy") for _ in range(2)]
    state = started(None, copies)
    for kept, equal in ((torus, True), (degraded, False)):
        state.put(kept, reset=False)
        state.save()
        last, baseline = (os.pread(copy, os.fstat(copy).st_size, 0) for copy in copies)
        if equal:
            assert last == baseline  # Two files that were written one after the other have different numbers.
        again = started(None, copies)
        assert same_tables(again.last.routing, kept.routing) and same_tables(again.baseline.routing, torus.routing)
    for copy in copies:
        os.close(copy)


def test_tables_with_which_workers_have_ended_are_ignored_until_there_are_new_ones(tmp_path, torus, degraded, started):
    path, copies = tmp_path / "s.npz", [os.memfd_create("copy") for _ in range(2)]
    first = started(path, copies)
    first.put(torus, reset=False)
    written(first, path)
    state = State(timeout=AMPLE, copies=copies)
    for _ in range(2):
        state.distrust()
        state.refresh(path, threads=1)
        assert state.last is None and state.baseline is None
    assert state.take_remarks() == [
        "the last tables are not used, because the worker has ended twice with them",
        f"state ignored: {path}: the worker has ended twice with the last tables",
        f"state ignored: {path.with_name('s.home.npz')}: the worker has ended twice with the last tables",
    ]
    state.put(degraded, reset=False)
    written(state, path)
    assert same_tables(started(path, copies).last.routing, degraded.routing)
    first.distrust()  # as if it had read the tables before
    first.refresh(path, threads=1)
    assert first.last is None
    state.end()
    for copy in copies:
        os.close(copy)


def test_tables_from_the_file_are_left_in_memory_too(tmp_path, torus, started):
    path, copies = tmp_path / "s.npz", [os.memfd_create("copy") for _ in range(2)]
    write_state(path, torus)
    write_state(path, read_state(path))  # The name of the fabric is lost.
    state = started(path, copies)
    state.put(state.last, reset=False)  # this call means that no entry has changed
    state.save()
    assert "state read from " + str(path) in started(path, copies).take_remarks()
    path.unlink()  # this replaces a file system that does not answer any more
    assert same_tables(started(path, copies).last.routing, torus.routing)
    for copy in copies:
        os.close(copy)


def test_a_file_with_the_tables_in_memory_is_not_older_although_its_time_is(tmp_path, torus, degraded, started):
    """A file server may have another clock."""
    path, copies = tmp_path / "s.npz", [os.memfd_create("copy") for _ in range(2)]
    state = started(path, copies)
    state.put(torus, reset=False)
    written(state, path)
    os.utime(path, ns=(1, 1))
    assert started(path, copies).take_remarks() == [f"state read from {path}"]
    write_state(path, degraded)
    os.utime(path, ns=(1, 1))
    older = f"state ignored: {path}: it is older than the tables in memory"
    assert started(path, copies).take_remarks()[0] == older
    for copy in copies:
        os.close(copy)


def test_tables_in_memory_are_newer_than_the_file_although_the_clock_was_set_back(tmp_path, torus, degraded, started):
    path, copies = tmp_path / "s.npz", [os.memfd_create("copy") for _ in range(2)]
    hour_later = time.time_ns() + 3600 * 10**9  # the clock is then set back by this hour
    with path.open("wb") as file:
        save_state(file, torus, hour_later)
    old = path.read_bytes()
    state = started(path, copies)
    state.put(degraded, reset=False)
    written(state, path)
    path.write_bytes(old)  # the file then looks as if no later write had succeeded
    os.utime(path, ns=(hour_later, hour_later))
    again = started(path, copies)
    assert again.take_remarks()[0] == f"state ignored: {path}: it is older than the tables in memory"
    assert same_tables(again.last.routing, degraded.routing)
    with path.open("wb") as file:  # another OpenSM knew the tables in memory, and writes the file
        save_state(file, torus, read_number(copies[0]) + 1)
    os.utime(path, ns=(1, 1))
    assert same_tables(started(path, copies).last.routing, torus.routing)
    for copy in copies:
        os.close(copy)


@pytest.mark.parametrize("is_newer", [False, True])
def test_a_state_file_without_a_number_is_compared_by_its_time(tmp_path, torus, degraded, started, is_newer):
    path, copies = tmp_path / "s.npz", [os.memfd_create("copy") for _ in range(2)]
    state = started(path, copies)
    state.put(degraded, reset=False)
    written(state, path)
    write_state(path, torus)  # as an earlier version writes it
    changed = os.fstat(copies[0]).st_mtime_ns + (1 if is_newer else -1)
    os.utime(path, ns=(changed, changed))
    assert same_tables(started(path, copies).last.routing, (torus if is_newer else degraded).routing)
    for copy in copies:
        os.close(copy)


def test_published_tables_are_written_without_another_sweep(tmp_path, torus, degraded, started):
    path = tmp_path / "state.npz"
    state = started(path)
    for tables in (torus, degraded):  # a baseline and then other tables, without a sweep in between or after them
        state.put(tables, reset=False)
        state.save()
    assert until(lambda: path.exists() and same_tables(read_state(path).routing, degraded.routing))


def test_the_state_of_another_writer_is_used_unless_it_is_damaged(tmp_path, torus, degraded, started):
    path = tmp_path / "s.npz"
    ours, theirs = started(path), started(path)
    ours.put(torus, reset=False)
    written(ours, path)
    ours.refresh(path, threads=1)
    assert ours.take_remarks() == []
    theirs.put(degraded, reset=False)
    written(theirs, path)
    ours.refresh(path, threads=1)
    assert ours.last.fabric.digest == degraded.fabric.digest
    ours.take_remarks()
    path.write_bytes(b"no bundle at all")
    ours.refresh(path, threads=1)
    assert ours.last.fabric.digest == degraded.fabric.digest
    assert ours.take_remarks()[0].startswith(f"state ignored: {path}: this is not a whole bundle")
    written(ours, path)  # the damaged file is replaced
    assert read_state(path).fabric.digest == degraded.fabric.digest
    path.unlink()
    ours.refresh(path, threads=1)
    written(ours, path)
    assert read_state(path).fabric.digest == degraded.fabric.digest


def test_a_state_without_a_file_touches_none(tmp_path, torus, started):
    state = started(None)
    state.put(torus, reset=False)
    state.save()
    assert list(tmp_path.iterdir()) == [] and state.before("nue", torus.options, torus.fabric, data_vls=8) is torus


@pytest.mark.parametrize(("position", "why"), [("nowhere/s.npz", "no such file"), (".", "is not a regular file")])
def test_a_file_that_cannot_be_written_is_named(tmp_path, torus, started, position, why):
    state = started(path := tmp_path / position)
    state.take_remarks()
    state.put(torus, reset=False)
    written(state, path)
    assert any(remark.startswith(f"state not saved: {path}: ") and why in remark for remark in state.take_remarks())


def test_a_file_that_cannot_be_written_is_named_once_for_each_reason_and_when_it_can(tmp_path, torus, started):
    folder = tmp_path / "folder"
    state = started(path := folder / "s.npz")
    state.put(torus, reset=False)

    def remarks():
        state.refresh(path, threads=1)
        state.take_remarks()
        written(state, path)
        return [remark for remark in state.take_remarks() if f"{path}" in remark]

    why, remedy = f"state not saved: {path}: cannot be written: ", " (check its folder and the free space)"
    state.take_remarks()
    written(state, path)
    assert state.take_remarks()[0] == f"{why}no such file or directory{remedy}"
    assert remarks() == []
    folder.write_text("a file in place of the folder")
    assert remarks() == [f"{why}not a directory{remedy}"]
    assert remarks() == []
    folder.unlink()
    folder.mkdir()
    assert remarks() == [f"state saved again: {path}"]
    assert remarks() == []


def test_a_remark_that_occurs_twice_is_logged_once(started):
    state = started(None)
    state.take_remarks()
    for line in ("a", "b", "a"):
        state.remark(line)
    assert (state.take_remarks(), state.take_remarks()) == (["a", "b"], [])


def test_a_device_without_an_end_is_not_read(started):
    state = started(path := Path("/dev/zero"))
    until(lambda: (state.refresh(path, threads=1), f"state ignored: {path}: is a device" in state.remarks)[1])


def test_a_file_that_never_answers_stops_nothing_and_is_waited_for_once(tmp_path, torus, degraded):
    os.mkfifo(path := tmp_path / "s.npz")  # opening the pipe for reading blocks until it is opened for writing
    state = State(timeout=0.05)
    state.refresh(path, threads=1)
    assert state.take_remarks() == [f"state not read yet: {path} has not answered for 0.05 s"]
    state.refresh(path, threads=1)
    state.put(torus, reset=False)
    state.save()
    state.refresh(path, threads=1)
    assert state.take_remarks() == [] and state.last is torus
    write_state(other := tmp_path / "other.npz", degraded)
    path.write_bytes(other.read_bytes())  # the file answers now, which is too late
    late = f"state ignored: {path}: it was read only after tables had been published"
    until(lambda: state.refresh(path, threads=1) or late in state.take_remarks())
    assert state.last is torus
    state.end()


def test_a_state_that_comes_late_is_taken_where_nothing_was_published_meanwhile(tmp_path, torus):
    os.mkfifo(path := tmp_path / "s.npz")
    state = State(timeout=0.05)
    state.refresh(path, threads=1)
    write_state(other := tmp_path / "other.npz", torus)
    path.write_bytes(other.read_bytes())
    until(lambda: state.refresh(path, threads=1) or state.last is not None)
    assert same_tables(state.last.routing, torus.routing)
    state.end()


def test_another_file_is_not_kept_waiting_by_one_that_never_answers(tmp_path, torus):
    os.mkfifo(path := tmp_path / "s.npz")
    write_state(other := tmp_path / "other.npz", torus)
    state = State(timeout=0.05)
    state.refresh(path, threads=1)
    until(lambda: state.refresh(other, threads=1) or state.last is not None)
    assert f"state read from {other}" in state.take_remarks()
    state.end()


def test_a_keeper_that_dies_is_followed_by_another(tmp_path, torus, started):
    path = tmp_path / "s.npz"
    state = started(path)
    os.kill(state._files._process.pid, signal.SIGKILL)
    state.put(torus, reset=False)
    written(state, path)
    assert any("has died" in remark for remark in state.take_remarks())
    written(state, path)
    written(state, path)
    assert read_state(path).fabric.digest == torus.fabric.digest


@pytest.mark.parametrize(
    ("engine", "options", "topology", "data_vls", "why"),
    [
        ("dfsssp", None, "torus", 8, "it is from engine nue"),
        ("nue", "{}", "torus", 8, "the engine's options have changed"),
        ("nue", None, "ring", 8, "it is for another fabric"),
        ("nue", None, "torus", 7, "its tables use 8 VLs, and OpenSM sets up only 7"),
        ("updn", None, "torus", 1, "its tables use 8 VLs, and OpenSM sets up only 1"),
    ],
)
def test_a_state_that_does_not_fit_is_ignored_and_the_log_says_why(torus, engine, options, topology, data_vls, why):
    state = State()
    state.put(torus, reset=False)
    fabric = torus.fabric
    if topology == "ring":
        ring = generate("ring", ["9"], cas=1)
        fabric = replace(ring, switch_guid=ring.switch_guid + np.uint64(1 << 40))
    failed = {"nue"} if engine == "updn" else set()
    own = torus.options if options is None else options
    assert state.before(engine, own, fabric, failed, data_vls=data_vls) is None
    assert state.start_note == f"state ignored: {why}"


def test_the_first_fabric_is_home_until_one_has_all_of_it_and_more(torus, degraded):
    state = State()
    state.put(degraded, reset=False)
    assert state.baseline is degraded
    state.put(torus, reset=False)
    assert state.baseline is torus
    state.put(degraded, reset=False)
    assert state.baseline is torus and state.last is degraded
    again = replace(torus)
    state.put(again, reset=False)
    assert state.baseline is torus
    state.put(degraded, reset=True)
    assert state.baseline is degraded


def test_part_of_a_subnet_fits_and_another_subnet_does_not(torus):
    fabric = torus.fabric
    other = replace(fabric, switch_guid=fabric.switch_guid + np.uint64(1 << 40))
    assert fits(torus, fabric) and not fits(torus, other)


def test_the_plan_keeps_what_is_in_force_and_returns_home(torus, degraded):
    engine = ENGINES["nue"]
    made = route_or_reroute(engine, OPTIONS, torus.fabric, decide(torus.fabric, None))
    assert made.how == "routed from scratch" and same_tables(made.tables.routing, torus.routing)
    odd = replace(torus, routing=kept_tables(torus.fabric, "updn").routing)
    made = route_or_reroute(engine, OPTIONS, torus.fabric, decide(torus.fabric, odd, baseline=torus))
    assert made.how == "tables unchanged" and made.tables.routing is odd.routing and made.tables.proof.certified
    made = route_or_reroute(engine, OPTIONS, torus.fabric, decide(torus.fabric, degraded, baseline=odd))
    assert made.how.startswith("re-routed, baseline (") and same_tables(made.tables.routing, odd.routing)


def test_a_changed_fabric_is_re_routed_from_what_is_in_force(torus, degraded):
    engine = ENGINES["nue"]
    made = route_or_reroute(engine, OPTIONS, degraded.fabric, decide(degraded.fabric, torus, baseline=torus))
    assert made.how.startswith("re-routed, re") and made.tables.proof.certified
    old = translate(torus.routing, torus.fabric, degraded.fabric).lft
    assert np.count_nonzero(made.tables.routing.lft != old) < np.count_nonzero(degraded.routing.lft != old)
    fresh = route_or_reroute(
        engine, OPTIONS, degraded.fabric, decide(degraded.fabric, torus, baseline=torus, stability=Stability.FRESH)
    )
    assert same_tables(fresh.tables.routing, degraded.routing) and "fresh (asked for)" in fresh.how


def test_a_bug_in_re_routing_costs_stability_and_not_the_engine(torus, degraded, monkeypatch, capsys):
    monkeypatch.setattr("osm_plugin.route_or_reroute.reroute", lambda *_, **__: 1 // 0)
    made = route_or_reroute(ENGINES["nue"], OPTIONS, degraded.fabric, decide(degraded.fabric, torus))
    assert made.how.startswith("routed from scratch, because the re-route failed: ZeroDivisionError")
    assert same_tables(made.tables.routing, degraded.routing) and "Traceback" in capsys.readouterr().err


def test_tables_that_fail_the_proof_are_not_kept(torus):
    lft = torus.routing.lft.copy()
    lft[0, int(torus.fabric.switch_lid[1])] = 255
    broken = replace(torus, routing=replace(torus.routing, lft=lft))
    made = route_or_reroute(ENGINES["nue"], OPTIONS, torus.fabric, decide(torus.fabric, broken))
    assert made.tables.routing is not broken.routing and made.tables.proof.certified
