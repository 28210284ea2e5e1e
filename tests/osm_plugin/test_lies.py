"""Check the shim's C code with a worker that lies in each field of its answer: which lies it accepts, and which it
refuses.
"""

import os
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import cffi
import numpy as np
import pytest
from plugin_request import write_request
from shared_builds import built_once

from osm_plugin.answer import ANSWER, DEFERRED, SharedMemory, write_answer
from osm_plugin.build_shim import HERE
from osm_plugin.snapshot import REQUEST
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.publish import verify
from routing.topologies import generate

pytestmark = pytest.mark.lab  # the shim needs OpenSM's headers

SEQUENCE = 7
WIDE = [0, 1, 2, 7, 8, 255, 4097, 0xBFFF, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
WIDER = [*WIDE, 1 << 40, (1 << 63) - 8, 1 << 63, (1 << 64) - 8, (1 << 64) - 1]
HARMLESS = {"plan", "wait_from", "unused", "end", "certified"}
"""Fields whose value the shim cannot check, or in which a wrong value harms only the worker."""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    sources = [str(HERE / name) for name in ("answer.c", "view.c", "delivery.c")]
    sources.append(str(Path(__file__).with_name("take_answer.c")))
    command = ["cc", "-std=gnu11", "-O2", "-g", "-shared", "-fPIC", "-pthread", "-fsanitize=undefined"]
    command += ["-fno-sanitize-recover=all", "-static-libubsan", f"-I{HERE}", "-I/usr/include/infiniband"]

    def build(folder):
        subprocess.run([*command, "-o", str(folder / "take.so"), *sources], check=True)

    library = built_once(tmp_path_factory, "take", build) / "take.so"
    ffi = cffi.FFI()
    ffi.cdef("""
        int take_answer(uint8_t *asked, uint64_t answer_at, uint64_t sequence, const uint8_t *memory, uint64_t size,
                        char *why);
        int take_changing(uint8_t *asked, uint64_t answer_at, uint64_t sequence, uint8_t *memory, uint64_t size,
                          uint64_t at, uint8_t other, int times, int *counts);
    """)
    return ffi, ffi.dlopen(str(library))


class ShimReport:
    """An honest answer of the worker, and methods that change copies of the answer."""

    def __init__(self, shim, engine):
        self._ffi, self._lib = shim
        self.fabric = generate("torus", ["4x4"], cas=1)
        self.routing = ENGINES[engine].route(self.fabric, EngineOptions(vls=4 if engine != "updn" else 1))
        tables = verify(self.fabric, self.routing, ENGINES[engine])
        self.proof = tables.proof
        memory = SharedMemory(os.memfd_create("lies"))
        self.at = write_request(self.fabric, memory, sequence=SEQUENCE)
        self.asked = bytes(memory.view()[: self.at])
        installed = np.array([(1, 2, 2, 255), (3, 4, 3, 1)], DEFERRED)
        write_answer(memory, self.at, tables, sequence=SEQUENCE, deferred=installed)
        self.memory = np.frombuffer(memory.view(), np.uint8).copy()
        self.head = self.memory[self.at : self.at + ANSWER.itemsize].view(ANSWER)[0]

    def verdict(self, memory):
        """Return the shim's verdict on an answer (0: accepted, -1: refused), and the reason."""
        why = self._ffi.new("char[1024]")
        asked, given = self._ffi.from_buffer("uint8_t[]", self.asked), self._ffi.from_buffer("uint8_t[]", memory)
        code = self._lib.take_answer(asked, self.at, SEQUENCE, given, len(memory), why)
        return code, self._ffi.string(why).decode()

    def while_changing(self, at, other, times):
        memory, counts = self.memory.copy(), self._ffi.new("int[3]")
        asked, given = self._ffi.from_buffer("uint8_t[]", self.asked), self._ffi.from_buffer("uint8_t[]", memory)
        assert not self._lib.take_changing(asked, self.at, SEQUENCE, given, len(memory), at, other, times, counts)
        return list(counts)

    def with_header(self, name, value):
        memory = self.memory.copy()
        memory[self.at : self.at + ANSWER.itemsize].view(ANSWER)[name] = value
        return memory

    def part(self, memory, name, dtype, count):
        start = int(self.head[name])
        return memory[start : start + count * np.dtype(dtype).itemsize].view(dtype)


@pytest.fixture(scope="module", params=["updn", "nue", "lash", "dfsssp"])
def case(shim, request):
    return ShimReport(shim, request.param)


def test_correct_answers_are_accepted(case):
    assert case.verdict(case.memory) == (0, "")


@pytest.mark.parametrize("name", [name for name in ANSWER.names if name not in HARMLESS])
def test_a_lie_in_the_head_is_refused(case, name):
    truth, kind = int(case.head[name]), ANSWER[name]
    values = {*(WIDER if kind.itemsize == 8 else WIDE), truth + 1, truth - 1, truth + 8, truth - 8, 2 * truth}
    for value in sorted(values - {truth}):
        if not 0 <= value < 1 << 8 * kind.itemsize:
            continue
        code, _ = case.verdict(case.with_header(name, value))
        lesser = name in {"deferred", "round_wait", "deferred_at", "up_port_at", "down_port_at"}
        # a wrong value in the allowed range cannot be noticed
        lesser |= name in {"vls", "sl_at", "sl_kind", "sl2vl_at", "sl2vl_ports"}
        assert code == -1 or (lesser and code == 0), (name, value)


def test_a_lie_in_a_forwarding_table_is_refused_unless_it_delivers_as_reported(case):
    rng, shape = random.Random(1), case.routing.lft.shape
    for _ in range(300):
        memory, row, lid = case.memory.copy(), rng.randrange(shape[0]), rng.randrange(shape[1])
        lft = case.part(memory, "lft_at", np.uint8, shape[0] * shape[1]).reshape(shape)
        lft[row, lid] = rng.choice([0, 1, 2, 3, 4, 5, 200, 255])
        hops = prove(case.fabric, replace(case.routing, lft=lft.copy())).hops
        assert (case.verdict(memory)[0] == 0) == bool((hops == case.proof.hops).all())


def test_a_lie_in_hops_is_refused(case):
    rng, shape = random.Random(2), case.routing.lft.shape
    for _ in range(300):
        memory, position = case.memory.copy(), rng.randrange(shape[0] * shape[1])
        hops = case.part(memory, "hops_at", np.uint8, shape[0] * shape[1])
        lie = rng.choice([0, 1, 2, 3, 253, 254, 255])
        if lie != hops[position]:
            hops[position] = lie
            assert case.verdict(memory) == (-1, "the worker's paths do not have the lengths that its hop counts state")


@pytest.mark.parametrize(
    ("name", "dtype", "lies", "why"),
    [
        ("sl_at", np.uint8, [16, 255], "the worker's tables have an SL over 15"),
        ("sl2vl_at", np.uint8, [9, 14, 16, 255], "the worker's tables use a VL that ports do not have"),
        ("switch_of_at", np.int32, [-2, 3, 99, 1 << 30], "the worker's LIDs are at other switches than OpenSM's"),
        ("parent_at", np.int32, [-2, 16, 99, 1 << 30], "the worker's multicast tree is not one of this subnet"),
        ("deferred_at", np.uint32, [1 << 20, (1 << 32) - 1], "the worker's rounds do not fit its tables"),
    ],
)
def test_a_value_out_of_range_is_refused(case, name, dtype, lies, why):
    count = {"sl_at": case.routing.sl.size, "sl2vl_at": case.routing.sl2vl.size, "deferred_at": 1}
    count |= {"switch_of_at": len(case.fabric.lids), "parent_at": case.fabric.switches}
    for position in {0, count[name] // 2, count[name] - 1}:
        for lie in lies:
            memory = case.memory.copy()
            part = case.part(memory, name, dtype, count[name])
            if part[position] != lie:
                part[position] = lie
                assert case.verdict(memory) == (-1, why)


def test_a_multicast_tree_that_goes_round_is_refused(case):
    memory = case.memory.copy()
    parent = case.part(memory, "parent_at", np.int32, case.fabric.switches)
    up = case.part(memory, "up_port_at", np.uint8, case.fabric.switches)
    down = case.part(memory, "down_port_at", np.uint8, case.fabric.switches)
    child = int(np.flatnonzero(parent >= 0)[0])
    top = int(parent[child])
    parent[top], up[top], down[top] = child, down[child], up[child]
    assert case.verdict(memory) == (-1, "the worker's multicast tree is not one of this subnet")


@pytest.mark.parametrize("name", ["lft_at", "hops_at", "sl_at", "deferred_at"])
def test_memory_that_changes_while_it_is_read_is_never_accepted_and_wrong(case, name):
    accepted, refused, wrong = case.while_changing(int(case.head[name]) + (3 if name != "deferred_at" else 0), 200, 300)
    assert wrong == 0 and accepted + refused == 300


def test_an_answer_that_is_cut_off_is_refused(case):
    for size in (case.at, case.at + 8, case.at + ANSWER.itemsize, len(case.memory) - 4096):
        assert case.verdict(case.memory[:size].copy())[0] == -1
    assert REQUEST.itemsize < case.at
