"""Read damaged files and random bytes.  Readers must return a fabric or an ibnue error, in bounded time and memory."""

import gc
import gzip
import time
import tracemalloc
from pathlib import Path

import pytest
from damages import SNIPPETS, damaged
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from routing.errors import IbnueError
from routing.fabric import Fabric
from routing.formats.fabric_files import read_fabric, write_fabric
from routing.formats.guid_files import read_guid2lid, read_guid_lines, read_node_name_map
from routing.formats.lft_files import read_lft_file
from routing.formats.text import read_text

DATA = Path(__file__).parent / "data"
FABRIC = read_fabric(DATA / "mixed.ibnetdiscover")
FABRIC_SAMPLES = [
    "mixed.net",
    "mixed.ibnetdiscover",
    "mixed_lmc2.ibnetdiscover",
    "mixed-subnet.lst",
    "own.json",
    "own.graphml",
    "own.dot",
]
LIST_SAMPLES = [
    "mixed.ibnetdiscover_p", "mixed.iblinkinfo", "mixed.iblinkinfo_l", "mixed.db_csv", "mixed.topo", "mixed.ndt"
]  # fmt: skip
TABLE_SAMPLES = ["mixed-lfts.dump", "mixed.fdbs", "mixed.ibroute", "mixed.saquery_lftr"]
GUID_READERS = {"guid2lid": read_guid2lid, "guids": read_guid_lines, "names": read_node_name_map}
GUID_SAMPLES = {
    "guid2lid": (DATA / "mixed_lmc2.guid2lid").read_bytes(),
    "guids": b"# roots\n0x200000\n0x200001 name # x\n",
    "names": b'0x200000 "spine 0"\n# x\n0x200001 "spine 1"\n',
}


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    for path in (entry for entry in DATA.iterdir() if entry.is_file()):
        (folder / path.name).write_bytes(path.read_bytes())
    for name in ("own.json", "own.graphml", "own.dot"):
        write_fabric(read_fabric(DATA / "mixed_lmc2.ibnetdiscover"), folder / name)
    return folder


@st.composite
def damages(draw):
    """Hypothesis strategy: a damage for any bytes, as (kind, place from 0 to 1, length, inserted text)."""
    kind = draw(st.sampled_from(["cut", "drop", "double", "swap", "flip", "insert", "number"]))
    return kind, draw(st.floats(0, 1)), draw(st.integers(1, 200)), draw(st.sampled_from(SNIPPETS))


def several(path, damage):
    """Return the content of a file after several damages."""
    data = path.read_bytes()
    for one in damage:
        data = damaged(data, one)
    return data


def outcome(read, path):
    """Read a file, and check that the result is a consistent fabric or an error of one line."""
    try:
        value = read(path)
    except IbnueError as problem:
        assert "\n" not in str(problem)
        str(problem).encode()
        return None
    if isinstance(value, Fabric):
        assert len(value.digest) == 64
        assert len(value.lids) > 0 or not value.switches + value.endports
        assert value.graph.vcount() == value.switches
    return value


@pytest.mark.parametrize("name", FABRIC_SAMPLES)
@examples(150)
@given(damage=st.lists(damages(), min_size=1, max_size=3))
def test_damaged_fabric_files(samples, name, damage):
    path = samples / "damaged"
    path.write_bytes(several(samples / name, damage))
    outcome(read_fabric, path)


@pytest.mark.filterwarnings("ignore::routing.errors.InputWarning")
@pytest.mark.parametrize("name", LIST_SAMPLES)
@examples(30)
@given(damage=st.lists(damages(), min_size=1, max_size=3))
def test_damaged_lists_and_plans(samples, name, damage):
    path = samples / "damaged"
    path.write_bytes(several(samples / name, damage))
    outcome(read_fabric, path)


@pytest.mark.parametrize("name", TABLE_SAMPLES)
@examples(20)
@given(damage=st.lists(damages(), min_size=1, max_size=3))
def test_damaged_tables(samples, name, damage):
    path = samples / "damaged"
    path.write_bytes(several(samples / name, damage))
    lft = outcome(lambda damaged_path: read_lft_file(damaged_path, FABRIC), path)
    assert lft is None or (lft.shape == (FABRIC.switches, len(FABRIC.lids)))


@pytest.mark.parametrize("name", GUID_READERS)
@examples(100)
@given(damage=st.lists(damages(), min_size=1, max_size=3))
def test_damaged_guid_files(samples, name, damage):
    data = GUID_SAMPLES[name]
    for one in damage:
        data = damaged(data, one)
    path = samples / "damaged"
    path.write_bytes(data)
    outcome(GUID_READERS[name], path)


@examples(200)
@given(
    start=st.sampled_from(
        [b"", b"{", b"<a>", b"{ SW Ports:", b'Switch\t2 "S-0000000000000001"\t\t# "', b'Hca 1 "h"\n', b"\x1f\x8b"]
    ),
    noise=st.binary(max_size=300) | st.lists(st.sampled_from(SNIPPETS), max_size=30).map(b" ".join),
)
@example(start=b"", noise=b"\xef\xbb\xbf{}")
def test_random_bytes_are_read_or_refused(samples, start, noise):
    path = samples / "noise"
    for data in (start + noise, gzip.compress(start + noise)):
        path.write_bytes(data)
        for read in (read_fabric, *GUID_READERS.values()):
            outcome(read, path)


LONG = {
    "net": b'Switch 2 "s"\n' + b"[1] " * 125_000,
    "net lines": b'Switch 2 "s"\n\n' + b"vendid=1\n" * 25_000 + b"x\n",
    "ibnetdiscover": b'Switch\t2 "S-0000000000000001"\t\t# "' + b'" lid 1 ' * 75_000,
    "subnet.lst": b"{ SW Ports:" + b"{ SW Ports:" * 50_000,
    "ports report": b"CA 1 1 0x1 4x SDR - SW 1 1 0x2 ( '" + b"' - '" * 75_000,
    "ports": b"CA 1 1 0x1 4x SDR - SW 1 1 0x2 ( 'a' - 'b' )\n" * 10_000,
    "iblinkinfo": b"   1    1[  ] ==(" * 50_000,
    "iblinkinfo quotes": b'0x1 "' + b'" 1 ' * 125_000,
    "topology": b" P1 -> a b P1\n" + b" " * 250_000 + b"x -" + b"4x-" * 75_000,
    "plan": b"StartDevice,StartPort,EndDevice,EndPort\n" + b"," * 500_000,
    "plan quotes": b"StartDevice,StartPort,EndDevice,EndPort\n" + b'"",' * 5_000 + b'"\n' * 25_000,
    "database": b"START_NODES\n" * 2 + b"A,B\n" * 75_000,
    "comments": b"#\n" * 250_000 + b"{",
    "JSON": b"[" * 250_000,
    "JSON object": b"{" + b'"a":{' * 125_000,
    "JSON number": b'{"schema": "ibnue-fabric/1", "switches": ' + b"9" * 250_000 + b"}",
    "GraphML": b"<a>" * 125_000,
    "DOT": b"graph" + b"{" * 125_000,
    "nothing": b" " * 1_000_000,
    "bytes": b"\xff" * 500_000,
}


@pytest.mark.parametrize("name", LONG)
def test_long_nonsense_ends_soon(tmp_path, name):
    (tmp_path / "long").write_bytes(LONG[name])
    begin = time.process_time()
    with pytest.raises(IbnueError):
        read_fabric(tmp_path / "long")
    assert time.process_time() - begin < 2.5  # this limit is in seconds; a reader of quadratic time would take minutes


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("routing.formats.text.MAX_BYTES", 1 << 20)
    (tmp_path / "bomb.net.gz").write_bytes(gzip.compress(b"\n" * (1 << 24)))
    tracemalloc.start()
    try:
        with pytest.raises(IbnueError, match="more than 1 MiB"):
            read_fabric(tmp_path / "bomb.net.gz")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("packed", [False, True])
def test_a_small_file_takes_little_memory(tmp_path, packed):
    """The reader must not allocate as much memory as the largest allowed file needs."""
    (tmp_path / "f").write_bytes(gzip.compress(b"text\n") if packed else b"text\n")
    tracemalloc.start()
    try:
        assert read_text(tmp_path / "f") == "text\n"
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", FABRIC_SAMPLES)
def test_rejected_files_leave_nothing_behind(samples, name):
    data = (samples / name).read_bytes()
    path = samples / "cut"

    def reject(times):
        for number in range(times):
            path.write_bytes(data[: len(data) * (number % 50) // 60])
            outcome(read_fabric, path)

    reject(50)
    tracemalloc.start()
    try:
        reject(50)
        before = tracemalloc.get_traced_memory()[0]
        reject(50)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 30_000
    finally:
        tracemalloc.stop()
