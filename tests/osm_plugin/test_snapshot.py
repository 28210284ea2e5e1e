import mmap
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from plugin_request import arrays_of, write_request
from strategies import fabrics, random_fabric

import osm_plugin
from osm_plugin.answer import ANSWER, ANSWER_MAGIC, SharedMemory, write_answer
from osm_plugin.policies import POLICY_ANSWER, POLICY_REQUEST
from osm_plugin.qos import CLASSES
from osm_plugin.snapshot import CABLE, DEVICE, ENDPORT, PAGE, REQUEST, REQUEST_MAGIC, fabric_from_arrays, read_request
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import FabricError
from routing.publish import verify

LAYOUT = Path(osm_plugin.__file__).parent / "layout.h"
STRUCTURES = {
    "request": REQUEST,
    "device": DEVICE,
    "endport": ENDPORT,
    "cable": CABLE,
    "answer": ANSWER,
    "classes": CLASSES,
    "policy_request": POLICY_REQUEST,
    "policy_answer": POLICY_ANSWER,
}


@pytest.fixture
def memory():
    descriptor = os.memfd_create("test")
    yield SharedMemory(descriptor)
    os.close(descriptor)


@pytest.mark.skipif(shutil.which("cc") is None, reason="apt install gcc")
def test_structures_are_computed_out_as_the_compiler_lays_them_out(tmp_path):
    text = re.sub(r"/\*.*?\*/", "", LAYOUT.read_text(), flags=re.DOTALL)
    wanted, lines = [], []
    for name, dtype in STRUCTURES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof(struct ibnue_{name}));')
        wanted.append(f"{name} {dtype.itemsize}")
        body = re.search(rf"struct ibnue_{name} {{(.*?)}};", text, re.DOTALL)[1]
        members = re.findall(r"(\w+)(?:\[\d+\])?;", body)
        assert sorted(members) == sorted(dtype.names)
        for member in dtype.names:
            lines.append(f'printf("{name}.{member} %zu\\n", offsetof(struct ibnue_{name}, {member}));')
            wanted.append(f"{name}.{member} {dtype.fields[member][1]}")
    includes = f'#include <stddef.h>\n#include <stdio.h>\n#include "{LAYOUT}"\n'
    (tmp_path / "x.c").write_text(f"{includes}int main(void) {{ {' '.join(lines)} return 0; }}")
    subprocess.run(["cc", "-o", tmp_path / "x", tmp_path / "x.c"], check=True)
    assert subprocess.run([tmp_path / "x"], capture_output=True, text=True, check=True).stdout.splitlines() == wanted
    for name, magic in (("REQUEST", REQUEST_MAGIC), ("ANSWER", ANSWER_MAGIC)):
        assert f"IBNUE_{name}_MAGIC UINT64_C({magic:#x})" in text


@examples(60)
@given(fabric=fabrics(connected=False))
def test_the_fabric_comes_out_as_it_went_in(fabric):
    found = fabric_from_arrays(*arrays_of(fabric))
    assert found.digest == fabric.digest
    for name in ("switch_name", "terminal_name"):
        assert getattr(found, name) == getattr(fabric, name)
    for name in vars(fabric):
        if isinstance(getattr(fabric, name), np.ndarray):
            mine, theirs = getattr(found, name), getattr(fabric, name)
            assert mine.dtype == theirs.dtype and (mine == theirs).all(), name
            assert mine.flags.c_contiguous, name


def test_a_request_and_its_answer(memory):
    fabric = random_fabric(3, switches=6, lmc=1)
    at = write_request(fabric, memory)
    snapshot = read_request(memory.view())
    assert (snapshot.sequence, snapshot.data_vls, snapshot.qos, snapshot.answer_at) == (7, 8, False, at)
    assert snapshot.fabric.digest == fabric.digest
    routing = ENGINES["updn"].route(fabric, EngineOptions(effort=0.05))
    tables = verify(fabric, routing, ENGINES["updn"])
    hops = tables.proof.hops
    write_answer(memory, at, tables, sequence=7)
    data = memory.view()
    head = np.frombuffer(data, ANSWER, 1, at)[0]
    assert (head["magic"], head["sequence"]) == (ANSWER_MAGIC, 7)
    assert (head["switches"], head["lids"], head["vls"]) == (fabric.switches, len(fabric.lids), routing.vls)
    assert head["end"] <= len(data) and head["sl2vl_ports"] == 0
    for name, part in (("lft", routing.lft), ("hops", hops), ("sl", routing.sl), ("switch_of", fabric.lids.switch)):
        found = np.frombuffer(data, part.dtype, part.size, int(head[f"{name}_at"]))
        assert (found == part.ravel()).all()
    # The fabric stays unchanged when the shared memory changes.
    before = snapshot.fabric.switch_guid.tolist()
    write_request(random_fabric(4, switches=9), memory)
    assert snapshot.fabric.switch_guid.tolist() == before


def broken(change):
    device, endport, cable, switches = arrays_of(random_fabric(5, switches=5))
    change(device, endport, cable)
    return device, endport, cable, switches


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d, e, c: d["guid"].__setitem__(1, d["guid"][0]), "node GUID .* occurs twice"),
        (lambda d, e, c: e["guid"].__setitem__(1, e["guid"][0]), "port GUID .* belongs to two ports"),
        (lambda d, e, c: e["lid"].__setitem__(1, e["lid"][0]), "LID .* belongs to more than one port"),
        (lambda d, e, c: c["device"].__setitem__((0, 1), 999), "a cable leads to a device that does not exist"),
        (lambda d, e, c: e["device"].__setitem__(0, 0), "an end port belongs to a device that does not exist"),
    ],
)
def test_arrays_that_make_no_fabric_are_refused(change, complaint):
    with pytest.raises(FabricError, match=complaint):
        fabric_from_arrays(*broken(change))


def test_memory_without_a_request(memory):
    with pytest.raises(FabricError, match="has no request"):
        read_request(memory.view(PAGE))
    write_request(random_fabric(6), memory)
    whole = memory.view()
    short = mmap.mmap(-1, PAGE)
    short[: REQUEST.itemsize] = whole[: REQUEST.itemsize]
    head = np.frombuffer(short, REQUEST, 1)
    changed = head.copy()
    changed["devices"] = 1 << 31
    short[: REQUEST.itemsize] = changed.tobytes()
    with pytest.raises(FabricError, match="within the shared memory"):
        read_request(short)


def same(one, other):
    """Return whether two fabrics are equal in every array, name and derived value."""
    arrays = [name for name in vars(other) if isinstance(getattr(other, name), np.ndarray)]
    derived = all(np.array_equal(getattr(one.lids, n), getattr(other.lids, n)) for n in ("switch", "port", "endport"))
    equal = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
    return equal and derived and (one.switch_name, one.terminal_name) == (other.switch_name, other.terminal_name)


@pytest.mark.parametrize("lost", ["a cable between switches", "a cable to a CA", "none"])
def test_a_fabric_that_was_there_before_is_that_value_and_another_one_is_as_if_read_alone(memory, lost):
    fabric = random_fabric(11, switches=8)
    between = np.flatnonzero((fabric.link_device < fabric.switches).all(axis=1))
    to_ca = np.flatnonzero((fabric.link_device >= fabric.switches).any(axis=1))
    gone = {"a cable between switches": between[:1], "a cable to a CA": to_ca[:1], "none": between[:0]}[lost]
    write_request(fabric, memory)
    first = read_request(memory.view())
    other = fabric.without_links(gone.tolist())
    write_request(other, memory, sequence=8)
    alone, second = read_request(memory.view()), read_request(memory.view(), [first])
    assert second.sequence == 8 and same(second.fabric, alone.fabric)
    assert (second.fabric is first.fabric) == (lost == "none")
    write_request(fabric, memory, sequence=9)
    assert read_request(memory.view(), [second, first]).fabric is first.fabric


def test_other_cables_are_inspected_however_much_is_known(memory):
    fabric = random_fabric(11, switches=8)
    write_request(fabric, memory)
    first = read_request(memory.view())
    at = len(first.source[0]) + len(first.source[1]) + REQUEST.itemsize
    np.ndarray(1, CABLE, memory.view(), at)["device"] = 4711
    with pytest.raises(FabricError, match="a device that does not exist"):
        read_request(memory.view(), [first])
