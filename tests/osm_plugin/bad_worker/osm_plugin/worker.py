"""Run the real worker with one fault, which the environment variable IBNUE_TEST_FAULT names."""

import importlib.util
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

import numpy as np

from osm_plugin import request_handler, tables_in_force
from osm_plugin.answer import ANSWER

spec = importlib.util.spec_from_file_location("real_worker", Path(os.environ["IBNUE_TEST_REAL"]) / "worker.py")
real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)
write_answer = request_handler.write_answer

HEADS = {
    "sequence": ("sequence", 999),
    "switches": ("switches", 1),
    "lids": ("lids", 0xBFFF),
    "outside": ("lft_at", 1 << 40),
    "overflow": ("sl_at", (1 << 64) - 8),
    "unaligned": ("hops_at", 4097),
    "vls": ("vls", 16),
    "magic": ("magic", 0),
}


def wrong_tables(fault):
    def write(memory, at, tables, **expected):
        if fault == "nothing":
            return
        write_answer(memory, at, tables, **expected)
        head = np.ndarray(1, ANSWER, memory.view(), at)
        if fault == "port":
            memory.view()[int(head["lft_at"][0]) + 3] = 200
        elif fault == "tree":
            np.ndarray(1, np.int32, memory.view(), int(head["parent_at"][0]))[0] = 1 << 20
        else:
            name, value = HEADS[fault]
            head[name] = value

    return write


class SlowHandler(request_handler.RequestHandler):
    """Handler that computes for some seconds before it returns tables.

    The worker counts as computing if its CPU time changes between two samples.  So a tenth of the time is enough.
    """

    def _route(self, request, config):
        if f"ibnue-{os.environ.get('IBNUE_TEST_FAST')}" == request["engine"]:
            return super()._route(request, config)
        end = time.monotonic() + float(os.environ["IBNUE_TEST_SECONDS"])
        while time.monotonic() < end or Path(os.environ.get("IBNUE_TEST_ENDLESS", "/nonexistent")).exists():
            used = time.process_time()
            while time.process_time() < used + 0.01:  # the unit of the samples: a clock tick
                pass
            time.sleep(0.1)
        return super()._route(request, config)


class MortalHandler(request_handler.RequestHandler):
    """Handler that kills its process if the folder IBNUE_TEST_DEADLY has a file with the name of the requested
    engine.
    """

    def _route(self, request, config):
        if Path(os.environ["IBNUE_TEST_DEADLY"], request["engine"]).exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._route(request, config)


def broken_engine(*_):
    raise ZeroDivisionError("by test")


def main(setup_text):
    fault, link = os.environ["IBNUE_TEST_FAULT"], socket.socket(fileno=json.loads(setup_text)["socket"])
    if fault == "early":
        sys.exit("no mood for work")
    if fault == "mute":
        time.sleep(600)
    if fault in {"nonsense", "hang up", "other words", "stranger"}:
        spoken = "another" if fault == "stranger" else real.protocol()
        names = [real.PREFIX + name for name in real.plugin_engines()]
        link.send(json.dumps({"engines": names, "about": "a bad one", "protocol": spoken}).encode())
        link.recv(1 << 16)
        if fault != "hang up":
            link.send(b"\xff{[" if fault == "nonsense" else b"[1, 2]")
        link.close()
        time.sleep(600)
    link.detach()
    if fault == "bug":
        request_handler.read_request = broken_engine
    elif fault == "slow":
        real.RequestHandler = SlowHandler
    elif fault == "unready":
        request_handler.RequestHandler.prepare = broken_engine
    elif fault == "poison":
        tables_in_force.read_state = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "mortal":
        real.RequestHandler = MortalHandler
    else:
        request_handler.write_answer = wrong_tables(fault)
    return real.main(setup_text)
