"""Simulate messages of several sizes on a fabric whose CAs have two LIDs: one for short paths, one for longer paths.

The default fabric is a HyperX.  The experiment follows PARX (J. Domke et al., SC 2019).  Each CA sends one message to
its partner, another CA.  All messages go to the partners' base LIDs, or all go to their second LIDs.  The pattern
determines the partners:

- neighbours: all CAs of a switch send to the CAs of the next switch in the same row.
- groups: all CAs of a switch send to the CAs of one switch in the next group.  Both switches have the same number in
  their groups.  This pattern is for dragonflies.
- switches: all CAs of a switch send to the CAs of another switch, which is drawn at random.
- CAs: each CA sends to a random other CA.

The output is a Markdown table with the simulated time in microseconds until all messages have arrived, for each size
of the messages.  The column all-to-all has the all-to-all share if only base LIDs, or only second LIDs, are used.
Switches have virtual output queues, and a buffer of 4 packets of 2 KiB for each VL and input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from benchmarks.quality_table import line, listed
from benchmarks.usage import parser_of
from routing.cli import fabric_argument
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import Fabric
from routing.simulate.network import build_network
from routing.simulate.run import simulate
from routing.simulate.state import StopReason
from routing.simulate.traffic import Flow, Traffic, base_lids, senders
from routing.tables import Routing

PATTERNS = ("neighbours", "groups", "switches", "CAs")
LIMIT = 10**9


def partners(fabric: Fabric, pattern: str, seed: int) -> list[int]:
    """Return the partner of each sender, as a position in the list of senders.

    All switches must have equal numbers of CAs.  ``pattern`` is one of :data:`PATTERNS`.
    """
    rows = np.array(senders(fabric))
    count = len(rows) // fabric.switches
    by_switch = np.argsort(fabric.endport_switch[rows], kind="stable").reshape(fabric.switches, count)
    generator = np.random.default_rng(seed)
    if pattern == "CAs":
        order = generator.permutation(len(rows))
        to = np.empty(len(rows), np.int64)
        to[order] = np.roll(order, 1)
        return to.tolist()
    if pattern in ("neighbours", "groups"):
        row = [name.rpartition(".")[0 if pattern == "neighbours" else 2] for name in fabric.switch_name]
        ends = [[s for s in range(fabric.switches) if row[s] == row[own]] for own in range(fabric.switches)]
        other = np.array([ends[s][(ends[s].index(s) + 1) % len(ends[s])] for s in range(fabric.switches)])
    else:
        order = generator.permutation(fabric.switches)
        other = np.empty(fabric.switches, np.int64)
        other[order] = np.roll(order, 1)
    to = np.empty(len(rows), np.int64)
    to[by_switch] = by_switch[other]
    return to.tolist()


def exchange(fabric: Fabric, routing: Routing, to: Sequence[int], offset: int, size: int) -> float:
    """Simulate one message from each sender to its partner, and return the simulated time in microseconds.

    Parameters
    ----------
    fabric, routing
        Fabric and its tables.
    to
        Partner of each sender, as a position in the list of senders.
    offset
        Number that is added to the partner's base LID to get the destination LID.
    size
        Size of a message in bytes.
    """
    lids = base_lids(fabric).tolist()
    flows = (Flow(row, (lids[to[n]] + offset,), bytes=size, messages=1) for n, row in enumerate(senders(fabric)))
    simulation = simulate(build_network(fabric, routing), Traffic(tuple(flows)))
    stop = simulation.run(LIMIT, stop_at_standstill=True)
    simulation.check()
    if stop.reason is not StopReason.FINISHED:
        raise RuntimeError(f"the exchange did not finish: {stop.reason.name}")
    return stop.time / 1000


def all_to_all(fabric: Fabric, routing: Routing, offset: int) -> float:
    """Return the all-to-all share if each CA is addressed only by its base LID plus ``offset``."""
    channels, lids = fabric.channels, base_lids(fabric) + offset
    load = np.zeros(len(channels))
    for lid in lids.tolist():
        flow, at = fabric.source_weight_at.astype(float), np.arange(fabric.switches)
        flow[fabric.lids.switch[lid]] = 0.0
        while (moving := at != fabric.lids.switch[lid]).any():
            channel = channels.at_port[at[moving], routing.lft[at[moving], lid]]
            np.add.at(load, channel, flow[moving])
            at[moving] = channels.dst[channel]
    return float((len(lids) - 1) / load.max())


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_of("message_sizes", __doc__)
    parser.add_argument("fabric", nargs="?", default="hyperx:12x8,cas=7,lmc=1")
    parser.add_argument("--engines", type=listed, default=["hyperx", "dfsssp"], help="engines, separated by commas")
    parser.add_argument(
        "--sizes",
        type=listed,
        default=["64", "2048", "65536", "1048576"],
        help="sizes of messages in bytes, separated by commas",
    )
    parser.add_argument(
        "--patterns", type=listed, default=["neighbours", "switches", "CAs"], help="patterns, separated by commas"
    )
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Simulate every pattern with every engine, kind of LID and message size, and print the table."""
    arguments = parsed(words)
    fabric = fabric_argument.read(arguments.fabric)
    head = ["engine", "LIDs", "VLs", "all-to-all", "pattern", *(f"{size} B" for size in arguments.sizes)]
    print(line(head), line(["---"] * len(head)), sep="\n", flush=True)
    for engine in arguments.engines:
        routing = ENGINES[engine].route(fabric, EngineOptions())
        if not prove(fabric, routing).certified:
            raise RuntimeError(f"the tables of {engine} have a credit loop")
        for offset, name in ((0, "base"), (1, "second")):
            share = f"{all_to_all(fabric, routing, offset):.3f}"
            for pattern in arguments.patterns:
                to = partners(fabric, pattern, arguments.seed)
                times = [f"{exchange(fabric, routing, to, offset, int(size)):.2f}" for size in arguments.sizes]
                print(line([engine, name, str(routing.vls_needed), share, pattern, *times]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
