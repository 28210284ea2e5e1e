import os
import resource
from dataclasses import replace

import pytest
from waiting import until

from osm_plugin.config import PluginConfig
from osm_plugin.historian import Historian
from osm_plugin.history import PIN, digest_of, entries, history_folder, pin, pinned_name, store, unpin
from osm_plugin.state import SavedTables, read_state
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import EnvironmentProblem, InputError, TableError
from routing.topologies import generate


@pytest.fixture(scope="module")
def several():
    """Return five different proven tables of one fabric."""
    fabric = generate("torus", ["4x4"], cas=1)
    found = []
    for root in fabric.switch_name[:5]:
        routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, roots=(root,)))
        found.append(SavedTables(fabric, routing, prove(fabric, routing), "updn", "{}"))
    assert len({digest_of(kept) for kept in found}) == 5
    return found


def numbers(folder):
    return [entry.number for entry in entries(folder)]


def test_the_oldest_go_and_what_is_there_is_not_stored_again(tmp_path, several):
    folder = tmp_path / "h"
    for kept in several[:3]:
        path = store(folder, kept, 3)
        assert digest_of(read_state(path)) == digest_of(kept)
    assert store(folder, several[0], 3) is None
    assert numbers(folder) == [1, 2, 3]
    store(folder, several[3], 3)
    assert numbers(folder) == [2, 3, 4]
    store(folder, several[0], 2)
    assert numbers(folder) == [4, 5]


def test_nothing_is_stored_that_is_not_proven_or_not_wanted(tmp_path, several):
    minhop = ENGINES["minhop"].route(several[0].fabric, EngineOptions())
    torus = generate("torus", ["5x5"], cas=1)
    looped = ENGINES["minhop"].route(torus, EngineOptions())
    assert prove(torus, looped).credit_loop is not None
    assert store(tmp_path / "h", SavedTables(torus, looped, prove(torus, looped), "minhop", "{}"), 3) is None
    assert store(tmp_path / "h", replace(several[0], routing=minhop), 0) is None
    assert not (tmp_path / "h").exists()


def test_a_pinned_file_outlives_those_that_are_newer(tmp_path, several):
    folder = tmp_path / "h"
    store(folder, several[0], 2)
    assert pin(folder, 1).path.name == pinned_name(folder)
    for kept in several[1:]:
        store(folder, kept, 2)
    assert numbers(folder) == [1, 4, 5]
    assert unpin(folder) and not unpin(folder) and pinned_name(folder) is None


def test_tables_that_cannot_be_pinned_are_refused(tmp_path, several):
    folder = tmp_path / "h"
    with pytest.raises(InputError, match=r"no tables have the number 4 \(known are: none\)"):
        pin(folder, 4)
    path = store(folder, several[0], 2)
    path.write_bytes(path.read_bytes()[:-99])
    with pytest.raises(TableError):
        pin(folder, 1)
    (folder / PIN).write_text('{"format": "ibnue-pin/1", "tables": "../../etc/passwd"}')
    with pytest.raises(InputError, match="names no tables of the history"):
        pinned_name(folder)
    (folder / PIN).write_text("nonsense")
    with pytest.raises(InputError, match="is not JSON"):
        pinned_name(folder)
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem):
        store(tmp_path / "file" / "h", several[0], 2)


@pytest.fixture
def desk(tmp_path):
    remarks = []
    historian = Historian(remarks.append)
    config = PluginConfig(state_file=str(tmp_path / "state.npz"), history=2)
    return historian, config, history_folder(tmp_path / "state.npz"), remarks


def test_a_pin_counts_from_the_next_question_on(desk, several):
    historian, config, folder, remarks = desk
    assert historian.pinned(config, threads=1, timeout=60) is None
    historian.put(several[0], config)
    until(lambda: numbers(folder) == [1])
    pin(folder, 1)
    found = historian.pinned(config, threads=1, timeout=60)
    assert digest_of(found.kept) == digest_of(several[0]) and found.name == pinned_name(folder)
    assert historian.pinned(config, threads=1, timeout=60) is found
    unpin(folder)
    assert historian.pinned(config, threads=1, timeout=60) is None and remarks == []


def test_a_damaged_pin_is_named_and_ignored(desk):
    historian, config, folder, remarks = desk
    folder.mkdir()
    (folder / PIN).write_text("nonsense")
    assert historian.pinned(config, threads=1, timeout=60) is None
    assert len(remarks) == 1 and remarks[0].startswith("pin ignored: ")


def test_a_file_system_that_does_not_answer_holds_no_sweep(desk):
    historian, config, folder, remarks = desk
    folder.mkdir()
    os.mkfifo(folder / PIN)  # opening the pipe for reading blocks until it is opened for writing
    assert historian.pinned(config, threads=1, timeout=0.01) is None
    assert "could not be read in time" in remarks[0]
    assert historian.pinned(config, threads=1, timeout=3600) is None
    (folder / PIN).open("wb").close()
    until(lambda: len(remarks) == 2)


def test_without_a_state_file_there_is_no_history(desk, several, tmp_path):
    historian = desk[0]
    config = PluginConfig(state_file=False)
    historian.put(several[0], config)
    assert historian.pinned(config, threads=1) is None and list(tmp_path.iterdir()) == []


def test_a_history_that_cannot_be_written_is_reported_once(tmp_path, several):
    """The system refuses to write any file."""
    folder, remarks = tmp_path / "h", []
    historian, (soft, hard) = Historian(remarks.append), resource.getrlimit(resource.RLIMIT_FSIZE)
    historian._store(folder, several[2], 3)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        for kept in several[:2]:
            historian._store(folder, kept, 3)
        historian._store(folder, several[2], 3)  # These tables are stored already, so nothing is written.
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(remarks) == 1
    historian._store(folder, several[0], 3)
    assert [line.partition(" (")[0] for line in remarks] == [
        f"history not written: {folder}: cannot be written: file too large",
        f"history written again: {folder}",
    ]
