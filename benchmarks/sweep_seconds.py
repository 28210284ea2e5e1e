"""Measure the seconds that a sweep of OpenSM spends on routing, with engines of OpenSM and with engines of ibnue.

A fabric is given as a file, or as a generator with its arguments (torus:10x10x10,cas=4).  The seconds are the time
between two messages in OpenSM's log, "building routing with" and "tables configured".  For ibnue, the seconds include
the request to the worker process, its answer, the proof, and sending the tables.  An engine of OpenSM and an engine of
ibnue form a pair.  Both engines run alternately, and the medians of their seconds are compared.  With --vls above 1,
QoS is on, and OpenSM may use this number of data VLs.  OpenSM's engine torus-2QoS gets a file torus-2QoS.conf.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.torus_conf import torus_conf
from benchmarks.usage import parser_of
from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm import OpenSM, Plugin, Setting
from osm_plugin.install import install
from routing.cli import fabric_argument
from routing.formats.fabric_files import write_net

FABRICS = ("kary-ntree:16,3", "torus:10x10x10,cas=4")
PAIRS = "minhop:ibnue-minhop,updn:ibnue-updn,sssp:ibnue-updn"
TORUS_CONF = "torus-2QoS.conf"
TOML = "allow_credit_loops = true\ndeadline = 300\n[engine]\nvls = {vls}\n"


def settings(vls: int, net: Path) -> dict[str, Setting]:
    """Return OpenSM's settings for a number of data VLs and a fabric file.  If torus-2QoS.conf is in the same folder,
    the settings name it.
    """
    qos: dict[str, Setting] = {"qos": True, "qos_max_vls": vls, "nue_max_num_vls": vls} if vls > 1 else {"qos": False}
    conf = net.with_name(TORUS_CONF)
    return qos | ({"torus_config": conf} if conf.exists() else {})


def built_plugin(folder: Path, vls: int) -> Plugin:
    """Build ibnue's OpenSM plugin and its configuration file in a folder, and return the plugin."""
    installed = install(libdir=folder)
    config = folder / "ibnue.toml"
    config.write_text(TOML.format(vls=vls))
    return Plugin("ibnue", f"--config {config}", folder, installed.environment)


def routing_seconds(net: Path, engine: str, plugin: Plugin | None, vls: int) -> tuple[float, str]:
    """Start OpenSM with an engine, and measure its first sweep.

    Parameters
    ----------
    net, engine
        File of the fabric, and ``routing_engine`` of opensm.conf.
    plugin
        Plugin with the engine; None for an engine of OpenSM.
    vls
        Number of data VLs that OpenSM may use.

    Returns
    -------
    seconds
        Routing seconds of the first sweep.
    used
        Engine whose tables OpenSM has used, which may be its fallback engine.
    """
    with (
        Ibsim(net, timeout=300.0) as ibsim,
        OpenSM(ibsim, routing_engine=engine, config=settings(vls, net), plugin=plugin, timeout=300.0) as opensm,
    ):
        sweep = opensm.last_sweep
        assert sweep is not None and sweep.routing_seconds is not None
        return sweep.routing_seconds, sweep.engine or "none"


def compare(name: str, net: Path, pair: tuple[str, str], plugin: Plugin, arguments: argparse.Namespace) -> str:
    """Measure an engine of OpenSM and an engine of ibnue on one fabric, and return the table row.

    Parameters
    ----------
    name, net
        Name of the fabric, and its file.
    pair
        Engine of OpenSM, and engine of ibnue.
    plugin
        Plugin with the engine of ibnue.
    arguments
        Arguments of the command line.
    """
    theirs, ours = pair
    seconds: dict[str, list[float]] = {theirs: [], ours: []}
    used = {}
    for _ in range(arguments.rounds):
        for engine in (theirs, ours):
            spent, used[engine] = routing_seconds(net, engine, plugin if engine == ours else None, arguments.vls)
            seconds[engine].append(spent)
    a, b = statistics.median(seconds[theirs]), statistics.median(seconds[ours])
    fallen = "" if used[theirs] == theirs else f" (then {used[theirs]})"
    cells = [name, theirs + fallen, f"{a:.2f}", used[ours], f"{b:.2f}", f"{b / a:.2f}"]
    return f"| {' | '.join(cells)} |"


def main(words: Sequence[str] | None = None) -> None:
    """Measure all pairs of engines on all fabrics, and print the table."""
    parser = parser_of("sweep_seconds", __doc__)
    parser.add_argument("fabrics", nargs="*", default=FABRICS)
    parser.add_argument("--pairs", default=PAIRS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--vls", type=int, default=1)
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        plugin = built_plugin(folder, arguments.vls)
        print("| fabric | OpenSM's | s | ours | s | ratio |\n|---|---|---|---|---|---|", flush=True)
        for name in arguments.fabrics:
            net = folder / "fabric.net"
            fabric = fabric_argument.read(name)
            write_net(fabric, net)
            conf = torus_conf(fabric, fabric)
            net.with_name(TORUS_CONF).unlink(missing_ok=True)
            if conf is not None:
                net.with_name(TORUS_CONF).write_text(conf)
            for pair in arguments.pairs.split(","):
                theirs, _, ours = pair.partition(":")
                print(compare(name, net, (theirs, ours), plugin, arguments), flush=True)


if __name__ == "__main__":
    main()
