"""Compute a lower bound of the all-to-all rate that is lost with stability ``full`` when a single link fails.

With ``full``, only broken entries and few other entries change.  This program assumes that only the broken entries
change.  Each broken entry takes one of the next hops from which a complete path leads to the LID without the lost
link.  An integer program searches for the next hops with the lowest value of the highest utilisation.  The solver
states a lower bound of this value, from which the lower bound of the loss follows.  Each column below has the mean and
the largest value over all links:

- full: loss after a re-route with ``full``, in percent of the all-to-all rate without faults.
- bound: lower bound of the loss with any next hops for the broken entries, in percent.
- with dependencies: the same bound, but next hops that would close a cycle with the allowed dependencies are left out.
  Each next hop is tested alone, with the SLs of the tables before the fault.
- no path: percentage of broken entries without a next hop.  Such an entry needs a change of another entry.  The bounds
  ignore the flow of broken entries without a next hop.

The program needs the package scipy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.link_loss import FABRICS, two
from benchmarks.quality_table import listed
from benchmarks.reroute import pulled
from benchmarks.usage import parser_of
from routing._kernels.repair import KEEP_VALID_ENTRIES, REPAIRED, SKIP, repair
from routing.cli import fabric_argument
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import NO_PORT, Fabric
from routing.reroute import Precomputed, Published, Stability, precompute, reroute
from routing.reroute.column_tree import ColumnTree
from routing.reroute.context import Request, RerouteContext
from routing.reroute.translate import translate_tables

GAP, NODES = 0.01, 20
"""The solver of the integer program stops at this relative gap, or after this number of search nodes."""


@dataclass
class Choices:
    """The next hops that broken entries can take.

    Attributes
    ----------
    load
        int64[C], flow on each channel without the flow of the broken entries.
    paths
        For each broken entry with a next hop: the flow of the entry, and the channels of each path that the entry can
        take.
    without
        Number of broken entries that have flow but no next hop.
    """

    load: np.ndarray
    paths: list[tuple[int, list[list[int]]]] = field(default_factory=list)
    without: int = 0


def choices(context: RerouteContext, *, dependencies: bool) -> Choices:
    """Return the next hops that the broken entries of a re-route can take.

    With ``dependencies``, next hops that close a cycle with the allowed dependencies are left out.
    """
    request, numbering = context.request, context.numbering
    fabric, before = numbering.repair_fabric, request.before
    lft, earlier = numbering.in_base_rows(context.start.lft), numbering.in_base_rows(before.routing.lft)
    channels, found = fabric.channels, Choices(before.load.astype(np.int64))
    for switch in np.unique(channels.src[fabric.alive == 0]).tolist():
        broken = (lft[switch] == NO_PORT) & (earlier[switch] != NO_PORT)
        broken &= (fabric.lid_switch >= 0) & (fabric.lid_switch != switch) & (fabric.weight > 0)
        for lid in np.flatnonzero(broken).tolist():
            tree = ColumnTree.of(fabric, earlier[:, lid], lid, switch)
            flow = tree.flow[switch]
            found.load[tree.path(tree.next_channel[switch])] -= flow
            paths = []
            for channel in range(int(channels.first[switch]), int(channels.first[switch + 1])):
                path = tree.path(channel) if int(channels.dst[channel]) not in tree.flow else None
                if path is None or not fabric.alive[path].all():
                    continue
                if not dependencies or is_allowed(context, earlier, switch, lid, channel):
                    paths.append(path)
            if paths and flow:
                found.paths.append((flow, paths))
            found.without += bool(flow and not paths)
    return found


def is_allowed(context: RerouteContext, earlier: np.ndarray, switch: int, lid: int, channel: int) -> bool:
    """Return whether a broken entry may be changed to a channel, with the SLs before the fault.

    The new path must close no cycle with the allowed dependencies.  ``earlier`` (uint8[S, L]) has the LFTs before the
    change.
    """
    numbering, lft, preferred = context.numbering, earlier.copy(), earlier.copy()
    rules = context.service_levels(numbering, context.certificate, context.start)
    dependencies = context.dependencies if context.reconnected is None else context.reconnected
    port = numbering.repair_fabric.channels.port[channel]
    lft[switch, lid], preferred[switch, lid] = NO_PORT, port
    treatment = np.full(lft.shape[1], SKIP, np.uint8)
    treatment[lid] = KEEP_VALID_ENTRIES
    done = repair(
        numbering.repair_fabric,
        rules,
        lft,
        preferred=preferred,
        masks=dependencies.masks,
        order=dependencies.order,
        load=context.request.before.load.astype(np.int64),
        treatment=treatment,
    )
    return bool(
        done.done[lid] == REPAIRED and done.lft[switch, lid] == port and np.array_equal(done.sl, rules.sl.table)
    )


def least_loss(context: RerouteContext, found: Choices) -> float:
    """Return a lower bound of the lost share of the all-to-all rate.

    Each broken entry takes one of its next hops in ``found``.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - no other benchmark needs scipy
    from scipy.sparse import coo_array  # noqa: PLC0415

    fabric = context.numbering.repair_fabric
    inverse, alive = fabric.inverse_capacity, fabric.alive > 0
    was = float((context.request.before.load * inverse).max())
    if not found.paths:
        return max(0.0, 1 - was / float((found.load * inverse)[alive].max()))
    entries, rows, columns, values = [], [], [], []
    for number, (flow, paths) in enumerate(found.paths):
        for path in paths:
            rows += path
            columns += [len(entries)] * len(path)
            values += [flow * int(inverse[channel]) / was for channel in path]
            entries.append(number)
    size, count = len(entries), len(inverse)
    rows, columns, values = rows + list(range(count)), columns + [size] * count, values + [-1.0] * count
    used = coo_array((values, (rows, columns)), shape=(count, size + 1)).tocsr()
    one = coo_array((np.ones(size), (entries, np.arange(size))), shape=(len(found.paths), size + 1)).tocsr()
    room = np.where(alive, -found.load * inverse / was, 0)
    solved = milp(
        np.append(np.zeros(size), 1),
        integrality=np.append(np.ones(size), 0),
        bounds=Bounds(0, np.append(np.ones(size), np.inf)),
        constraints=[LinearConstraint(used, -np.inf, room), LinearConstraint(one, 1, 1)],
        options={"mip_rel_gap": GAP, "node_limit": NODES},
    )
    return max(0.0, 1 - 1 / float(solved.mip_dual_bound))


def measured(before: Published, less: Fabric, engine: str, ahead: Precomputed) -> tuple[float, ...]:
    """Measure the loss of one link, and return the values for the table.

    ``before`` are the tables before the loss, and ``less`` is the fabric without the link.  ``ahead`` has data for a
    re-route of ``before`` that do not depend on the lost link.

    Returns
    -------
    tuple[float, ...]
        Four shares (0 to 1): the loss with stability ``full``; the lower bound of the loss with any next hops; the
        lower bound with next hops that close no cycle with the allowed dependencies; and the share of the broken
        entries for which there is no next hop.
    """
    options = EngineOptions(threads=1)
    found = reroute(
        ENGINES[engine], options, before, less, stability=Stability.FULL, baseline=before, precomputed=ahead
    )
    tables = translate_tables(before.routing, before.fabric, less)
    request = Request(ENGINES[engine], options, before, less, Stability.FULL, before, tables)
    context = RerouteContext.of(request, ahead).prepared()
    every, allowed = (choices(context, dependencies=regarded) for regarded in (False, True))
    share = every.without / max(1, every.without + len(every.paths))
    kept = 1.0 if found.kept is None else found.kept
    return max(0.0, 1 - kept), least_loss(context, every), least_loss(context, allowed), share


def main(words: Sequence[str] | None = None) -> int:
    """Compute the bounds for all engines on all fabrics, and print the table."""
    parser = parser_of("least_full", __doc__)
    parser.add_argument("fabrics", nargs="*", default=FABRICS)
    parser.add_argument(
        "-e", "--engines", type=listed, default=["updn", "nue", "dfsssp"], help="engines, separated by commas"
    )
    parser.add_argument(
        "--links", type=int, default=24, help="number of links of each fabric, at even distances; 0: all links"
    )
    arguments: argparse.Namespace = parser.parse_args(words)
    head = ["fabric", "engine", "links", "full", "bound", "with dependencies", "no path"]
    print(f"| {' | '.join(head)} |", "|---" * len(head) + "|", sep="\n", flush=True)
    for name in arguments.fabrics:
        for engine in arguments.engines:
            fabric = fabric_argument.read(name)
            routing = ENGINES[engine].route(fabric, EngineOptions(threads=1))
            before = Published(fabric, routing, prove(fabric, routing, threads=1))
            ahead, links = precompute(before, before), pulled(fabric, arguments.links)
            rows = [measured(before, fabric.without_links([link]), engine, ahead) for link in links]
            cells = [name, engine, str(len(links)), *(two(column) for column in np.transpose(rows))]
            print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
