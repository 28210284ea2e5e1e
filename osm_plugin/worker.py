"""The worker process: routes and proves what OpenSM asks for.

It is started by the host inside OpenSM with two file descriptors (a socket and shared memory), imports and warms all
that it will need, says so, and then answers one request after the other.  It dies with OpenSM.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import routing
from osm_plugin.answer import SharedMemory, write_answer
from osm_plugin.bundle_engine import BUNDLE, BundleEngine
from osm_plugin.config import PluginConfig, read_config
from osm_plugin.judge import Judge
from osm_plugin.options import check_published, options_of, threads_of
from osm_plugin.plan import options_key, plan
from osm_plugin.policies import POLICIES, PolicyDesk
from osm_plugin.rounds import Change, as_written, in_rounds, plan_number
from osm_plugin.snapshot import Snapshot, read_request
from osm_plugin.state import Kept, State
from routing.engines import ENGINES
from routing.engines.base import Engine, EngineOptions
from routing.errors import IbnueError, InputError, OptionError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder
from routing.numerals import number_of
from routing.publish import verify
from routing.reroute import Stability, prepare

PREFIX = "ibnue-"
LONGEST_MESSAGE = 1 << 16
_PR_SET_PDEATHSIG = 1


def engine_names() -> list[str]:
    """What the plugin registers: every engine of the registry, and the bundle."""
    return [PREFIX + name for name in [*ENGINES, BUNDLE]]


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the thread of OpenSM that started it ends, which OpenSM ends with."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("OpenSM is gone")


def plain_signals() -> None:
    """OpenSM's threads block signals and an ignored one stays ignored over exec; the worker wants neither."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


REMEMBERED = 4
"""Fabrics that are recognised when they come again: that without faults, and the last ones."""


class Worker:
    """Answers requests: fabric in, proven tables out."""

    def __init__(self, memory: SharedMemory, engines: Mapping[str, Engine]) -> None:
        self._memory = memory
        self._engines = engines
        self._log_level = "info"
        self._state = State()
        self._policies = PolicyDesk()
        self._earlier: deque[Snapshot] = deque(maxlen=REMEMBERED)
        self._published: tuple[Kept, Change | None, bool] | None = None

    def prepare(self, place: str | None) -> None:
        """Read the state ahead of the first request, which reads it again only if it has changed."""
        with suppress(IbnueError):  # a wrong configuration is named when it counts
            config = read_config(None if place is None else Path(place))
            self._state.refresh(config.state_path, threads=threads_of(config))
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Do what the next re-route needs of the tables in force, whatever the fault will be."""
        last = self._state.last
        if last is None:
            return
        try:
            prepare(last, self._state.home_of(last))
        except Exception:  # it is tried again where it counts
            traceback.print_exc()

    def settle(self) -> Change | None:
        """Do what could wait until OpenSM has its answer: keep what was published, and save it.

        Gives the change of what is in the switches, once.
        """
        published, self._published = self._published, None
        if published is not None:
            self._state.put(published[0], reset=published[2])
        self._look_ahead()
        try:
            self._state.save()
        except IbnueError as problem:
            self._state.remarks.append(f"state not saved: {problem}")
        return None if published is None else published[1]

    def written(self, told: Mapping[str, Any]) -> None:
        """Take note of how many rounds of the last tables are in all switches."""
        last = self._state.last
        if last is not None and last.held is not None and told.get("plan") == plan_number(last):
            self._state.last = as_written(last, int(told.get("rounds", 0)))
            # Tables whose rounds are over are those of home, too.
            if self._state.home is last:
                self._state.home = self._state.last

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Route what lies in the memory; never raises."""
        sequence = request.get("sequence")
        try:
            note = self._set_ports(request) if request.get("engine") == POLICIES else self._route(request)
            return {"ok": True, "sequence": sequence, "note": note}
        except IbnueError as problem:
            if self._log_level == "debug":
                traceback.print_exc()
            return {"ok": False, "sequence": sequence, "note": str(problem)[:900]}
        except Exception as problem:
            traceback.print_exc()
            sys.stderr.flush()
            text = f"bug in the worker: {type(problem).__name__}: {problem} (its log has the traceback)"
            return {"ok": False, "broken": True, "sequence": sequence, "note": text[:900]}

    def _set_ports(self, request: Mapping[str, Any]) -> str:
        place = request.get("config")
        config = read_config(None if place is None else Path(place))
        return self._policies.answer(self._memory, self._read(), config)

    def _read(self) -> Snapshot:
        snapshot = read_request(self._memory.view(), self._earlier)
        again = next((known for known in self._earlier if known.fabric is snapshot.fabric), None)
        if again is not None:
            self._earlier.remove(again)
        self._earlier.appendleft(snapshot)
        return snapshot

    def _engine(self, name: str, config: PluginConfig) -> Engine:
        plain = name.removeprefix(PREFIX)
        if plain == BUNDLE:
            if config.bundle is None:
                raise InputError("no bundle is named", remedy='set bundle = "FILE" in the file of --config')
            return BundleEngine(Path(config.bundle))
        if plain not in self._engines:
            raise OptionError(f"unknown engine {name!r}", remedy=f"known are {', '.join(self._engines)}")
        return self._engines[plain]

    def _route(self, request: Mapping[str, Any]) -> str:
        clock = Clock()
        place = request.get("config")
        config = read_config(None if place is None else Path(place))
        self._log_level = config.log_level
        engine = self._engine(str(request["engine"]), config)
        snapshot = self._read()
        fabric = snapshot.fabric
        options = options_of(engine.name, config, snapshot)
        clock.lap("fabric")
        key = options_key(options)
        before = self._before(engine, key, fabric, config)
        self.written(request.get("written", {}))
        clock.lap("state")
        home = None if before is None else self._state.home_of(before)
        made = plan(engine, options, fabric, before, home=home, stability=Stability(config.stability))
        tables, proof = made.routing, made.proof
        verdict = check_published(proof, tables, snapshot, config)
        clock.lap("route")
        kept = Kept(fabric, tables, proof, engine.name, key)
        change = self._change_to(kept, config)
        kept = kept if change is None else change.after
        wait_from = 0 if change is None or change.stages is None else change.stages.wait_from
        clock.lap("rounds")
        write_answer(
            self._memory, snapshot.answer_at, fabric, tables, np.ascontiguousarray(proof.hops),
            sequence=snapshot.sequence, certified=proof.certified,
            held=kept.held, plan=plan_number(kept), wait=config.round_wait, wait_from=wait_from,
        )  # fmt: skip
        clock.lap("write")
        self._policies.routed(fabric, tables)
        if engine.name != BUNDLE:
            self._published = kept, change, config.stability == "fresh"
        lanes = number_of(tables.vls, "VL")
        counts = f"{number_of(fabric.switches, 'switch')}, {number_of(fabric.endports, 'end port')}"
        size = f"fabric {fabric.digest[:12]}: {counts}"
        told = [] if change is None else [change.describe()]
        how = "; ".join([made.how, *told, *self._state.take_remarks()])
        return f"{size}, {lanes}, {verdict}; {how}; {clock}"

    def _change_to(self, kept: Kept, config: PluginConfig) -> Change | None:
        """How the tables in the switches are replaced by these, if that is known."""
        last = self._state.last
        if kept.engine == BUNDLE or last is None:
            return None
        try:
            return in_rounds(last, kept, wanted=config.transitions == "rounds", threads=threads_of(config))
        except Exception:  # proven tables are not kept from a fabric that waits for them
            traceback.print_exc()
            return Change(last, kept, None, asked=True)

    def _before(self, engine: Engine, key: str, fabric: Fabric, config: PluginConfig) -> Kept | None:
        """The tables in force, where they count."""
        if engine.name == BUNDLE:
            return None
        self._state.refresh(config.state_path, threads=threads_of(config))
        if config.stability == "fresh":
            return None
        return self._state.before(engine.name, key, fabric)


class Clock:
    """Laps, for the log."""

    def __init__(self) -> None:
        self._laps: list[tuple[str, float]] = []
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Note the time since the last one."""
        now = time.perf_counter()
        self._laps.append((name, now - self._last))
        self._last = now

    def __str__(self) -> str:
        return ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in self._laps)


def tiny_fabric() -> Fabric:
    """A ring of four switches with a CA each: enough to bring in every module and kernel."""
    build = FabricBuilder("tiny")
    switches = [build.add_device(NodeKind.SWITCH, 0x10 + i, f"s{i}", 4) for i in range(4)]
    for i, switch in enumerate(switches):
        build.connect(switch, 1, switches[(i + 1) % 4], 2)
        build.connect(switch, 3, build.add_device(NodeKind.CA, 0x100 + 16 * i, f"h{i}", 1), 1)
    return build.build()


def warm(engines: Mapping[str, Engine]) -> None:
    """Route and prove something small with every engine, so that the first sweep finds all imports done."""
    fabric = tiny_fabric()
    for engine in engines.values():
        try:
            verify(fabric, engine.route(fabric, EngineOptions()), engine)
        except Exception:  # noqa: PERF203  (an engine that cannot serve a ring is none the worse for that)
            print(f"{engine.name} does not route the warming ring", file=sys.stderr)  # noqa: T201
    gc.collect()
    gc.freeze()


def serve(link: socket.socket, worker: Worker) -> None:
    """Answer until OpenSM closes the socket, and do what can wait between two questions."""

    def tell(line: str) -> None:
        with suppress(OSError):  # OpenSM has gone
            link.send(json.dumps({"remark": line}).encode())

    judge = Judge(tell)
    while message := link.recv(LONGEST_MESSAGE):
        request = json.loads(message)
        if "engine" in request:
            link.send(json.dumps(worker.answer(request)).encode())
        else:
            worker.written(request.get("written", {}))
        if (change := worker.settle()) is not None:
            judge.put(change)
        del change
        gc.collect()


def main(setup_text: str) -> int:
    """Entry point; ``setup_text`` is JSON: socket, memory (file descriptors), parent (process id)."""
    setup = json.loads(setup_text)
    plain_signals()
    die_with(int(setup["parent"]))
    engines: dict[str, Engine] = dict(ENGINES)
    warm(engines)
    gc.disable()  # a collection takes longer than many a sweep: serve() collects when OpenSM has its answer
    worker = Worker(SharedMemory(int(setup["memory"])), engines)
    worker.prepare(setup.get("config"))
    link = socket.socket(fileno=int(setup["socket"]))
    about = f"ibnue {routing.__version__}, Python {sys.version.split()[0]}, numpy {np.__version__}"
    link.send(json.dumps({"engines": engine_names(), "about": about}).encode())
    serve(link, worker)
    return 0
