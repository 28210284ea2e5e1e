"""Dragonfly: balanced shortest paths; a packet changes its VL after a link between groups (hop class)."""

from __future__ import annotations

import contextlib
import time

import numpy as np
import numpy.typing as npt

from routing.engines.base import EngineOptions, Objective, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations
from routing.engines.dragonfly_detours import allows_detours, detour_routing
from routing.engines.dragonfly_groups import groups_of
from routing.engines.dragonfly_middles import Middles
from routing.engines.dragonfly_paths import over_one_link
from routing.engines.hop_classes import HopClasses, fallback, highest_all_to_all, hop_routing
from routing.engines.path_selection import PathSelector, PathSet
from routing.engines.uncounted import without_uncounted
from routing.errors import NotEnoughVLs
from routing.fabric import Fabric
from routing.tables import Routing

LONGEST = 3
"""Largest number of hops of a shortest path in a dragonfly: a local link, a link between groups, a local link."""


class Dragonfly:
    """Balanced shortest paths of a dragonfly, with a second VL for the hops after a link between groups.

    Parameters
    ----------
    detours
        Whether paths to the LIDs of a port, except its base LID, may lead over an intermediate group, if the number of
        VLs allows such paths.

    Notes
    -----
    After J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008.
    A minimal path of the paper has a link in the source's group, a link between groups, and a link in the destination's
    group.  Such paths need two VLs.  Differences:

    - The groups follow from the cables alone.  Links may be missing.
    - A path may also use two links between groups, if no path is shorter and if this balances the load better.
    - SL2VL distinguishes the hops by the link on which a packet enters a switch.
    - The load is balanced over all shortest paths, parallel links and all LIDs.
    - Paths of other forms occur where links are missing, or where they balance the load.  A path of another form keeps
      one VL on all hops, on which its dependencies close no cycle.  If too many links are missing, or if this balances
      the load better, all paths keep one VL, as in LASH.
    - If there are more VLs than needed, several pairs of VLs are used.
    - The paper chooses between minimal and non-minimal paths for each packet.  Here a sender chooses by the LID: with
      an LMC, further LIDs of a port have paths over an intermediate group, on three VLs.
    """

    name = "dragonfly"
    summary = (
        "minimal paths on dragonflies, and non-minimal ones for further LIDs, on 2 or 3 virtual lanes; replies are safe"
    )
    promise = Promise.DEADLOCK_FREE
    offers = Offers(options=("reversible", "objective"), needs_vls=True)

    def __init__(self, *, detours: bool = True) -> None:
        self.detours = detours

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: the cost of balanced shortest paths, and cycle searches for paths of other forms.

        Raises
        ------
        NotADragonfly
            The switches do not form groups.
        NotEnoughVLs
            The paths do not fit into the allowed VLs.
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        group = groups_of(fabric)
        destinations, channels = Destinations.of(fabric), fabric.channels
        between = group[channels.src] != group[channels.dst]
        facts = {"groups": int(group.max()) + 1}
        if self.detours and allows_detours(destinations, options):
            middles = Middles(fabric, group, options.seed)
            for base in _candidates(PathSelector(fabric, destinations.base(), options), group, between):
                with contextlib.suppress(NotEnoughVLs):
                    return detour_routing(self, middles, options, base, start, rule=base.name, **facts)
        selector = PathSelector(fabric, destinations, options)
        found = list[Routing]()
        for number, trees in enumerate(_candidates(selector, group, between)):
            paths = HopClasses(fabric, destinations, trees.next_channel, between)
            with contextlib.suppress(NotEnoughVLs):
                found.append(hop_routing(self, paths, options, start, rule=trees.name, **facts))
                # The first candidate has the best balance, so it is compared with no other paths.  With the option
                # `vls` = "min", few VLs count more than balance.
                if number == 0 or options.vls == "min" or options.objective is not Objective.ALLTOALL:
                    return found[0]
                break
        # The most balanced paths do not fit into the VLs if packets change their VL (hop classes).  Other balanced
        # paths, whose packets each keep one VL, may fit and carry more traffic.
        try:
            found.append(fallback(self, fabric, options, **facts))
        except NotEnoughVLs:
            if not found:
                raise
        return highest_all_to_all(found, fabric, options)


ENGINE = Dragonfly()
SHORTEST = Dragonfly(detours=False)
"""The engine without paths over an intermediate group, for the highest all-to-all share over all LIDs."""


def _candidates(selector: PathSelector, group: npt.NDArray[np.int64], between: npt.NDArray[np.bool_]) -> list[PathSet]:
    """Return candidate sets of paths, the most balanced set first.

    With the option ``vls`` = "min", the set without restrictions (:meth:`PathSelector.any_shortest`) is left out,
    because many of its paths are irregular and need further VLs.

    ``group`` (int64[S]) is the group of each switch; ``between`` (bool[C]) marks the channels between groups.
    """
    # If no link is missing, all paths of one or two hops are regular.  A path of three hops is regular if its first
    # link is within a group.  So channels within groups get rank 0, and channels between groups rank 1: three hops
    # before the destination, a switch then prefers channels within its group.
    found = [selector.by_rank("local first", between.astype(np.int32), rank_from=LONGEST)]
    if selector.options.objective is Objective.ALLTOALL:
        one = over_one_link(selector, group)
        found = found if one is None else [one, *found]
    if selector.options.vls != "min":
        found.append(selector.any_shortest)
    return sorted(found, key=lambda paths: round(paths.max_utilisation, 6))
