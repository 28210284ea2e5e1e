"""Read 300 damaged files with every reader.  The result must be a value or an ibnue error of one line, within a short
time.

``python -m pytest -m slow -s tests/routing/formats/test_mutations.py`` prints the figures.
"""

import json
import random
import shutil
import time
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from damages import SNIPPETS, damaged

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import IbnueError
from routing.formats import path_sl, sl2vl_dump
from routing.formats.bundle import read_bundle, write_bundle
from routing.formats.fabric_files import read_fabric, write_fabric
from routing.formats.guid_files import read_guid2lid, read_guid_lines, read_node_name_map
from routing.formats.lft_files import read_lft_file
from routing.formats.mcfdbs import read_mcfdbs
from routing.formats.snapshot import MANIFEST, SCHEMA, read_manifest
from routing.topologies import generate

pytestmark = pytest.mark.slow

FILES, SECONDS = 300, 5
CORPUS = Path(__file__).with_name("corpus.zip")
DATA, DUMPS = Path(__file__).parent / "data", Path(__file__).parent / "opensm-dumps" / "lash-ring"
FABRIC = read_fabric(DATA / "mixed.ibnetdiscover")
RING = read_fabric(DUMPS / "fabric.net", guid2lid=DUMPS / "guid2lid", lmc=1)
KINDS = ["cut", "drop", "double", "swap", "flip", "insert", "number"]


def record(source, destination):
    return f"PathRecord dump:\n\t\tdlid......{destination}\n\t\tslid......{source}\n\t\tsl........0x1\n"


def manifest():
    part = {"part": "LFT", "state": "incomplete", "file": "x", "amount": "1", "reason": "silent", "seconds": 0.1}
    return {
        "schema": SCHEMA, "folder": None, "ca": "mlx5_0", "port": 1, "sm_lid": 1, "began": "1", "ended": "2",
        "programs": [{"name": "ibnue", "version": "1"}], "collected": [part], "remarks": ["x"],
    }  # fmt: skip


def write_own(folder):
    """Write the files that are missing in the readers' data folders, and return the folder."""
    for suffix in (".json", ".graphml", ".dot"):
        write_fabric(FABRIC, folder / f"own{suffix}")
    lids = [int(lid) for lid in (*RING.switch_lid, *RING.endport_lid)]
    (folder / "own.saquery_pr").write_text("".join(record(a, b) for a in lids for b in lids if a != b))
    rows = "".join(f"Switch 0x{guid:016x}\nLID    : Out Port(s)\n0xC000 : 0x001  0x002\n" for guid in RING.switch_guid)
    (folder / "own.mcfdbs").write_text(rows)
    (folder / "own.manifest").write_text(json.dumps(manifest()))
    torus = generate("torus", ["3x3"])
    routing = ENGINES["updn"].route(torus, EngineOptions(effort=0.05))
    write_bundle(folder / "own.npz", torus, routing, prove(torus, routing))
    return folder


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return write_own(tmp_path_factory.mktemp("own"))


def of_fabric(read):
    return lambda path: read(path, RING)


def manifest_of(path):
    folder = path.parent / "snapshot"
    folder.mkdir(exist_ok=True)
    shutil.copy(path, folder / MANIFEST)
    return read_manifest(folder)


READERS = {
    **dict.fromkeys(
        ("mixed.net", "mixed.ibnetdiscover", "mixed-subnet.lst", "mixed.ibnetdiscover_p", "mixed.iblinkinfo",
         "mixed.iblinkinfo_l", "mixed.db_csv", "mixed.topo", "mixed.ndt", "own.json", "own.graphml",
         "own.dot"),
        read_fabric,
    ),
    **{
        name: lambda path: read_lft_file(path, FABRIC)
        for name in ("mixed-lfts.dump", "mixed.fdbs", "mixed.ibroute", "mixed.saquery_lftr")
    },
    "opensm-path-records.dump": of_fabric(path_sl.read),
    "own.saquery_pr": of_fabric(path_sl.read),
    "opensm-sl2vl.dump": of_fabric(sl2vl_dump.read),
    "own.mcfdbs": of_fabric(read_mcfdbs),
    "mixed_lmc2.guid2lid": read_guid2lid,
    "guids": read_guid_lines,
    "names": read_node_name_map,
    "own.manifest": manifest_of,
    "own.npz": read_bundle,
}  # fmt: skip


def sample(name, own):
    if name in ("guids", "names"):
        line = '0x{:x} "spine {}"\n' if name == "names" else "0x{:x} name # {}\n"
        return "".join(line.format(0x200000 + number, number) for number in range(8)).encode()
    return next(path for path in (DATA / name, DUMPS / name, own / name) if path.exists()).read_bytes()


def test_inputs_that_the_fuzzer_found_earlier(own, tmp_path):
    """Read the inputs of ``corpus.zip`` again.  Each input ended at another line of its reader when it was found."""
    with zipfile.ZipFile(CORPUS) as corpus:
        for entry in corpus.namelist():
            path = tmp_path / "file"
            path.write_bytes(corpus.read(entry))
            try:
                READERS[entry.rpartition("/")[0]](path)
            except IbnueError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize("name", READERS)
def test_damaged_files(name, own, tmp_path):
    rng, data, path = random.Random(name), sample(name, own), tmp_path / "file"
    path.write_bytes(data)
    shutil.copy(DATA / "mixed_spines.net", tmp_path)  # mixed.net includes it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        READERS[name](path)
    outcomes, slowest = Counter(), 0.0
    for _ in range(FILES):
        changed = data
        for _ in range(rng.randint(1, 4)):
            changed = damaged(changed, (rng.choice(KINDS), rng.random(), rng.randint(1, 200), rng.choice(SNIPPETS)))
        path.write_bytes(changed)
        begin = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                READERS[name](path)
                outcomes["read"] += 1
            except IbnueError as error:
                outcomes["refused"] += 1
                assert "\n" not in str(error)
        slowest = max(slowest, time.process_time() - begin)
        assert all("\n" not in str(warning.message) for warning in caught)
    print(f"{name}: {dict(outcomes)}, slowest {1000 * slowest:.0f} ms")  # noqa: T201
    assert slowest < SECONDS
