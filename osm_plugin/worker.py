"""Run the worker process, which computes and proves the tables that OpenSM requests.

The host inside OpenSM starts the worker, and passes the descriptors of a socket and of shared memory to it.  The worker
loads the kernels, and reports that it is ready.  While OpenSM discovers the fabric, the worker loads the code of the
configured engines.  Then the worker answers one request after the other, until OpenSM ends.  While it waits for
requests, it imports the modules of the other engines, and later loads the rest of their code.
"""

from __future__ import annotations

import gc
import json
import resource
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np

import routing
from osm_plugin.answer import SharedMemory
from osm_plugin.background import LastItemThread
from osm_plugin.build_info import protocol
from osm_plugin.bundle_engine import plugin_engines
from osm_plugin.last_good import from_message
from osm_plugin.process_setup import exit_with_parent, limit_resources, reset_signals
from osm_plugin.report import Reporter
from osm_plugin.request_handler import PREFIX, RequestHandler
from osm_plugin.staged_update import Change
from osm_plugin.transition_check import check_transition
from osm_plugin.worker_log import WorkerLog, next_message
from routing.engines import ENGINES
from routing.engines.base import EngineOptions, offers_of
from routing.memory import keep_freed_memory
from routing.publish import verify
from routing.topologies import generate

BUG_STATUS = 2
"""Exit status of a worker with a bug.  It differs from the status of a worker whose package cannot be loaded."""


IDLE = 5.0
"""If no request arrives for this number of seconds, the worker routes a small fabric with the next engine, to load its
code.
"""


def import_engines(names: Iterable[str]) -> Iterator[str]:
    """Import the modules of engines.  Yield the name of each engine when this is done.

    An import may fail while ibnue is being upgraded.  Then the first request for the engine reports the error.
    """
    for name in names:
        with suppress(Exception):
            ENGINES.get(name)
        yield name


def load_code(names: Iterable[str]) -> Iterator[str]:
    """Load the code of engines: route a small fabric with each engine, and prove the tables.

    If an engine chooses among other engines, import the modules of all engines instead.

    Yield the name of each engine when this is done, so that the caller can pause between two engines.
    """
    fabric = generate("ring", ["4"], cas=1)
    for name in names:
        # Some engines, such as engines for trees, cannot route the small fabric, which is a ring.  The exceptions of
        # these engines are ignored, because the code of an engine is loaded before the engine fails.
        with suppress(Exception):
            if offers_of(engine := ENGINES[name]).chooses:
                list(import_engines(ENGINES))
            else:
                verify(fabric, engine.route(fabric, EngineOptions(effort=0.0)), engine)
        yield name
    # Some engines need METIS, but only for large fabrics.  So routing the small fabric has not loaded it.
    import pymetis  # noqa: PLC0415, F401


def serve(link: socket.socket, handler: RequestHandler, log: WorkerLog, later: dict[float, Iterator[str]]) -> None:
    """Answer requests until OpenSM closes the socket.

    Work that OpenSM does not wait for is done after each answer: checks of transitions, and garbage collection.
    ``link`` is the socket to OpenSM, and ``handler`` computes the answers.  ``later`` has iterators that do work while
    no request waits.  The key of an iterator is a number of seconds.  After this number of seconds without a request,
    the iterator is advanced by one element.
    """

    def send(line: str) -> None:
        log.info(line)
        with suppress(OSError):  # Sending fails if OpenSM has ended.  Then the line is only in the worker's log.
            link.send(json.dumps({"remark": line}).encode())

    def receive() -> bytes:
        # Also wait for the end of a write of the state file.  Otherwise, the log would report a failed write only after
        # the next request, maybe days later.
        while (files := handler.state.writing) is not None and link not in wait([link, files]):
            for line in handler.state.written():
                send(line)
        for seconds, steps in later.items():
            while not wait([link], seconds) and next(steps, None) is not None:
                pass
        return next_message(link)

    def check(change: Change) -> None:
        if (line := check_transition(change)) is not None:
            send(line)

    checker = LastItemThread("ibnue-judge", check)
    while message := receive():
        request = json.loads(message)
        if "engine" in request:
            answer = handler.answer(request)
            for line in handler.take_lines():
                send(line)
            link.send(json.dumps(answer).encode())
        else:
            handler.written(request.get("written", {}))
        if (change := handler.finish_publication()) is not None:
            checker.put(change)
        del change
        gc.collect()
        log.debug(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss} kB is the peak of memory so far")


def main(setup_text: str) -> int:
    """Run the worker process until OpenSM ends.

    Parameters
    ----------
    setup_text
        JSON object with the file descriptors ``socket``, ``memory``, ``reports`` and ``copies``, and the process id
        ``parent``.  Its key ``doubtful`` is true if two workers in a row have ended while they used the same tables.
        The new worker does not use these tables.
        The key ``engines`` holds OpenSM's option routing_engine.  The keys ``path`` and ``config`` are optional: the
        file and the content of the configuration.

    Returns
    -------
    Exit status: 0, or :data:`BUG_STATUS` if an exception occurs after tables may have been read.
    """
    setup = json.loads(setup_text)
    reset_signals()
    limit_resources()
    exit_with_parent(int(setup["parent"]))
    keep_freed_memory()
    reporter = Reporter(socket.socket(fileno=int(setup["reports"])))
    path = Path(setup["path"]) if setup.get("path") else None
    log, config = WorkerLog(), from_message(setup.get("config"))
    log.level = config.log_level
    handler = RequestHandler(SharedMemory(int(setup["memory"])), ENGINES, reporter, path, log, copies=setup["copies"])
    if setup["doubtful"]:
        handler.state.distrust()
    link = socket.socket(fileno=int(setup["socket"]))
    about = f"ibnue {routing.__version__}, Python {sys.version.split()[0]}, numpy {np.__version__}"
    try:
        handler.prepare(config)
        names = [PREFIX + name for name in plugin_engines()]
        link.send(json.dumps({"engines": names, "about": about, "protocol": protocol()}).encode())
        # Load code while OpenSM discovers the fabric, but only of the configured engines.  serve() imports the modules
        # of the other engines as soon as no request waits, so that a later upgrade of ibnue does not affect the worker.
        configured = setup["engines"].replace(",", " ").split()
        list(load_code(name for name in ENGINES if PREFIX + name in configured))
        # The garbage collector is off, because a collection can take longer than a sweep.  serve() collects after each
        # answer instead.  gc.freeze() excludes the present objects from all collections, because loaded modules stay
        # until the process ends.
        gc.freeze()
        serve(link, handler, log, {0.0: import_engines(ENGINES), IDLE: load_code(ENGINES)})
    except Exception:
        log.bug()
        return BUG_STATUS
    return 0
