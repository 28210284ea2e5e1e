"""Compute the tables of one engine only for comparison, while another engine's tables are in force (shadow mode).

The shadow engine runs in a separate worker process with separate shared memory.  No other process waits for it.  The
process proves the tables in force and the shadow engine's tables, compares them, and reports the result in one line.
The process cannot write to OpenSM or to a switch.

If no shadow engine is configured, this process is started only if the ibnue engines have failed and OpenSM uses one of
its own engines.  The process then only searches the tables in force for credit loops.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from osm_plugin.answer import SharedMemory
from osm_plugin.config import PluginConfig
from osm_plugin.decision import decide
from osm_plugin.last_good import from_message
from osm_plugin.opensm_conf import OpensmConf, foreign_options, take_over
from osm_plugin.options import admit_to_opensm, describe_proof, loop_line, options_of, roots_there, threads_of
from osm_plugin.policies import as_routing, read_lft
from osm_plugin.process_setup import exit_with_parent, reset_signals
from osm_plugin.report import Reporter, all_to_all
from osm_plugin.request_handler import PREFIX
from osm_plugin.route_or_reroute import options_key, route_or_reroute
from osm_plugin.snapshot import Snapshot, read_request
from osm_plugin.state import SavedTables, fits
from osm_plugin.worker_log import WorkerLog, next_message
from routing.deadlock.proof import Proof, prove
from routing.engines import ENGINES
from routing.errors import IbnueError, OptionError
from routing.fabric import NO_PORT
from routing.numerals import count_noun
from routing.publish import VerifiedTables
from routing.reroute import Stability
from routing.tables import Routing

NICE = 15
"""Nice value of the shadow engine's worker process, so that OpenSM and the normal worker have priority."""

Verdict = Literal["no loop", "loop", "unknown", "incomplete"]


@dataclass(frozen=True)
class Inspection:
    """Result of comparing the tables in force with the shadow engine's tables, in one sweep.

    Attributes
    ----------
    engine_in_force
        The engine whose tables are in force.
    engine
        The shadow engine, which computes tables only for comparison; None if no shadow engine is configured.
    fabric_digest
        Digest (checksum) of the fabric.
    verdict
        Verdict on the tables in force.  "no loop" or "loop": whether the tables have a credit loop.  "unknown": the SLs
        of these tables are unknown, and the tables would have a credit loop if all paths used one VL.  "incomplete":
        the tables have no credit loop, but routes are missing.
    certified
        Whether the shadow engine's tables are proven free of credit loops; None if it computed no tables.
    problem
        Reason why the shadow engine computed no tables; None if it computed tables, or without a shadow engine.
    vls
        Number of data VLs that the shadow engine's tables use.
    all_to_all_in_force
        Rate of every end port under all-to-all traffic with the tables in force, as a share of the reference rate.
        None if no channel limits the rate.
    all_to_all
        Rate of every end port as in ``all_to_all_in_force``, but with the shadow engine's tables.  None also if the
        shadow engine computed no tables.
    entries_differing
        Number of LFT entries that differ between the tables in force and the shadow engine's tables.
    entries
        Number of LFT entries that at least one of these two tables has.
    seconds
        Time to compute and prove the shadow engine's tables, in seconds.
    """

    engine_in_force: str
    engine: str | None
    fabric_digest: str
    verdict: Verdict
    certified: bool | None = None
    problem: str | None = None
    vls: int | None = None
    all_to_all_in_force: float | None = None
    all_to_all: float | None = None
    entries_differing: int | None = None
    entries: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables in the switches, which are proven and compared with tables of the shadow engine.

    Attributes
    ----------
    snapshot
        The fabric.
    routing
        The tables.
    in_force
        Name of the engine that computed the tables.
    own_sls
        Whether this engine assigns SLs.
    fell_back
        Whether this engine is a fallback, after ibnue engines have failed.
    """

    snapshot: Snapshot
    routing: Routing
    in_force: str
    own_sls: bool
    fell_back: bool


class Shadow:
    """The shadow engine.  In each sweep it re-routes from its own previous tables, as if these tables were in force."""

    def __init__(self) -> None:
        self._before: SavedTables | None = None

    def inspect(self, tables: Tables, config: PluginConfig) -> tuple[Inspection, str]:
        """Prove the tables in force, compute the shadow engine's tables, and compare both tables.

        If no shadow engine is configured, only prove the tables in force.

        Returns
        -------
        inspection
            The result with all figures.
        line
            The result in words, as a line for the log.
        """
        engine = None if config.shadow is None else config.shadow.removeprefix(PREFIX)
        fabric, threads = tables.snapshot.fabric, threads_of(config)
        proof = prove(fabric, tables.routing, threads=threads, explain=False)
        verdict, words = analyse_tables(proof, own_sls=tables.own_sls)
        share = all_to_all(fabric, tables.routing)
        inspection = Inspection(tables.in_force, engine, fabric.digest, verdict, all_to_all_in_force=share)
        error = "ERR IBN32: " if tables.fell_back and verdict == "loop" else ""
        if engine is None:
            return inspection, error + fallback_line(inspection, words)
        line = f"{error}shadow: fabric {fabric.digest[:12]}; in force {tables.in_force}: {words}, {_share(share)}"
        start = time.perf_counter()
        try:
            made, how = self._made(engine, tables.snapshot, config)
        except IbnueError as problem:
            return replace(inspection, problem=str(problem)), f"{line}; {engine} has no tables: {problem}"
        seconds = time.perf_counter() - start
        differing, entries = differences(tables.routing, made.routing)
        inspection = replace(
            inspection, certified=made.proof.certified, vls=made.routing.vls,
            all_to_all=all_to_all(fabric, made.routing),
            entries_differing=differing, entries=entries, seconds=round(seconds, 6),
        )  # fmt: skip
        own = describe_proof(made.proof)
        line += f"; {engine}: {own}, {count_noun(made.routing.vls, 'VL')}, {_share(inspection.all_to_all)}, {how}"
        verb = "differs" if differing == 1 else "differ"
        return inspection, f"{line}; {differing} of {entries} entries {verb}; computed in {1e3 * seconds:.1f} ms"

    def _made(self, name: str, snapshot: Snapshot, config: PluginConfig) -> tuple[VerifiedTables, str]:
        """Compute the shadow engine's tables as if for OpenSM.  Return the tables, and a description of how they were
        computed.

        ``name`` is the name of the shadow engine, and ``snapshot`` the request with the fabric.
        """
        if name not in ENGINES:
            raise OptionError(f"unknown engine {name!r}", remedy=f"set shadow to one of {', '.join(ENGINES)}")
        engine, fabric = ENGINES[name], snapshot.fabric
        conf = OpensmConf({**foreign_options(snapshot.conf.get("config_file")), **snapshot.conf.values})
        taken, _ = take_over(conf, name, config.options_of(name))
        options = options_of(name, config, snapshot, taken.options)
        key = options_key(options, fabric.port_classes)
        options = roots_there(options, fabric) if taken.optional_roots else options
        before, stability = self._before, Stability(config.stability)
        same = before is not None and (before.engine, before.options) == (name, key) and fits(before, fabric)
        before = before if same and stability is not Stability.FRESH else None
        made = route_or_reroute(engine, options, fabric, decide(fabric, before, stability=stability))
        tables = admit_to_opensm(made.tables, snapshot, config)
        self._before = SavedTables(fabric, tables.routing, tables.proof, name, key)
        return tables, made.how


def analyse_tables(proof: Proof, *, own_sls: bool) -> tuple[Verdict, str]:
    """Return the verdict on tables in force, from a proof in which all paths use one VL.

    Tables without a credit loop on one VL have no credit loop on several VLs either, whatever the SLs are.  ``own_sls``
    states whether the engine in force assigns SLs.  These SLs are unknown here.

    Returns
    -------
    verdict
        The verdict, see :class:`Inspection`.
    words
        The verdict in words, for the log.
    """
    loop: Verdict = "unknown" if own_sls else "loop"
    if proof.credit_loop is not None:
        words = loop_line(proof)
        if own_sls:
            return loop, f"its SLs are unknown; if all packets used one VL, there would be a {words}"
        return loop, words
    if not proof.complete:
        return "incomplete", "no credit loop, but routes are missing"
    return "no loop", f"no credit loop ({proof.strength})"


def fallback_line(inspection: Inspection, words: str) -> str:
    """Return a line for the log on tables of OpenSM's own engine, which routes because the ibnue engines have failed.

    ``words`` is the verdict on the tables in words.
    """
    engine = inspection.engine_in_force
    return (
        f"OpenSM's engine {engine} routes fabric {inspection.fabric_digest[:12]}, because the ibnue engines in "
        f"routing_engine had no tables; tables of {engine}: {words}"
    )


def differences(one: Routing, other: Routing) -> tuple[int, int]:
    """Return how many LFT entries differ between two tables, and how many are present in at least one table."""
    used = (one.lft != NO_PORT) | (other.lft != NO_PORT)
    return int(np.count_nonzero(one.lft != other.lft)), int(np.count_nonzero(used))


def _share(share: float | None) -> str:
    return "all-to-all without limit" if share is None else f"all-to-all {share:.3f}"


def tables_in(memory: SharedMemory, message: Mapping[str, Any]) -> Tables | None:
    """Return a copy of the fabric and of the tables in force, which are in the shared memory.

    Return None if the next sweep has begun to overwrite the shared memory.
    """
    sequence = int(message["sequence"])
    try:
        snapshot = read_request(memory.view())
        lft = read_lft(memory.view(), snapshot.fabric)
        again = read_request(memory.view(), [snapshot]).sequence
    except (IbnueError, ValueError, LookupError):
        return None
    if not snapshot.sequence == again == sequence:
        return None
    # A host of an earlier version does not send "fell_back".  Then the value is false.
    in_force, own_sls, fell_back = str(message["in_force"]), bool(message["own_sls"]), bool(message.get("fell_back"))
    return Tables(snapshot, as_routing(snapshot.fabric, lft, in_force), in_force, own_sls, fell_back)


def serve(link: socket.socket, memory: SharedMemory, reporter: Reporter) -> None:
    """Compare tables whenever a message arrives, until OpenSM closes the socket.

    The shared memory contains only the tables of the last message, so earlier messages are skipped.

    ``link`` is the socket to OpenSM, and ``reporter`` sends results to the status file.
    """
    shadow, log = Shadow(), WorkerLog()
    while message := next_message(link):
        try:
            request = json.loads(message)
            tables = tables_in(memory, request)
            if tables is None:
                continue
            config = from_message(request.get("config"))
            log.level = config.log_level
            inspection, line = shadow.inspect(tables, config)
        except Exception as error:
            log.bug()
            line = f"shadow: bug in its worker: {type(error).__name__}: {error} (the worker's log has the traceback)"
            inspection = None
        log.info(line)
        if inspection is not None:
            reporter.send({"shadow": asdict(inspection)})
        with suppress(OSError):  # The line is lost if OpenSM has ended, or if the socket is full.
            link.send(json.dumps({"remark": line}).encode(), socket.MSG_DONTWAIT)
        gc.collect()


def main(setup_text: str) -> int:
    """Run the process of shadow mode.  ``setup_text`` is a JSON object with the keys that
    :func:`osm_plugin.worker.main` describes.
    """
    setup = json.loads(setup_text)
    reset_signals()
    exit_with_parent(int(setup["parent"]))
    os.nice(NICE)
    gc.freeze()
    gc.enable()  # worker_process.PRELUDE, the first code of the process, has disabled Python's garbage collector.
    reporter = Reporter(socket.socket(fileno=int(setup["reports"])))
    serve(socket.socket(fileno=int(setup["socket"])), SharedMemory(int(setup["memory"])), reporter)
    return 0
