"""DOR: dimension-ordered paths on meshes, tori, HyperX and hypercubes.  The coordinates are found from the cables."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.engines.base import EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import forwarding_tables
from routing.engines.grid_tables import BALANCED, MOST_FAILED, GridRoutes, VlPlacement, place
from routing.engines.provenance import LOOP_FREE, provenance
from routing.engines.uncounted import without_uncounted
from routing.engines.vl_assignment import round_robin_sls, vl_tables, vls_allowed
from routing.errors import InputWarning
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.tables import Routing

VISITS = 400_000_000
"""Number of channels that cycle searches may visit."""


@dataclass(frozen=True, eq=False)
class SlSearchResult:
    """Result of a search for SLs with which paths close no cycle of dependencies.

    Attributes
    ----------
    sl
        SL by source switch and LID, uint8[S, L]; uint8[L] by LID if the paths need no particular VL.  If the search
        found no SLs, all are 0.
    needed
        Number of VLs on which the paths close no cycle; 0 if the search found no VLs for some paths.
    unplaceable
        Whether too many paths have no VL (:data:`.grid_tables.MOST_FAILED`).  Balanced versions of the paths are then
        not tried, because they would hardly fit into the VLs, either.
    exhausted
        Whether a search reached its work limit before each path had a VL.
    """

    sl: npt.NDArray[np.uint8]
    needed: int
    unplaceable: bool = False
    exhausted: bool = False

    def reason(self, routes: GridRoutes, vls: int) -> str:
        """Return why tables on up to ``vls`` VLs may have a credit loop, as a text for the provenance."""
        what = "the rings" if routes.paths.regular.all() else "the rings and the detours around missing links"
        if self.exhausted:
            return f"no: the search for VLs reached its work limit; {what} may need more VLs than {vls}"
        if vls == 1:
            return f"no: {what} need more VLs than 1"
        return f"no: the search found no {vls} VLs on which {what} close no cycle"


class DimensionOrder:
    """Paths that use one dimension after the other.

    Notes
    -----
    After W. J. Dally, C. L. Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", IEEE
    Trans. Computers 36, 1987.  Differences:

    - The coordinates follow from the cables alone (:mod:`routing.grids.coordinates`).  Links and switches may be
      missing, and links that fit no coordinates are named.
    - Paths first use the dimension whose links carry the most traffic.
    - The load is balanced over parallel links, and over both sides of a ring where these are equally long.
    - Where a ring is broken, paths take the other side.  Where the links of a dimension do not connect two positions,
      paths take a detour.

    On meshes, HyperX and hypercubes one VL is enough.  On a torus one VL has credit loops, so paths are spread over VLs
    on which they close no cycle.  If there are too few VLs, the provenance says so (``loop_free``), and the proof names
    a loop.
    """

    name = "dor"
    summary = "dimension order on meshes, tori, HyperX and hypercubes; on tori free of credit loops if VLs suffice"
    promise = Promise.NONE
    offers = Offers(options=("reversible",))

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: O(S^2) table lookups; O(S^2 hops) and cycle searches if paths are spread over VLs.

        Raises
        ------
        NotAGrid
            The fabric has no coordinates of a mesh, torus, HyperX or hypercube.
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        vls = vls_allowed(options)
        routes = GridRoutes.of(fabric, options)
        warn_of_miscabled(routes)
        found = time.perf_counter()
        levels = self._service_levels(routes, vls, sequences=(False, True), visits=VISITS)
        # Balanced routes mostly need more VLs than the first routes.  If the first routes do not fit into the VLs,
        # balanced routes hardly fit either.  So in this case, each search has a lower work limit.
        sequences, visits = ((False,), VISITS) if levels.needed else ((False, True), VISITS // BALANCED)
        for balanced in routes.balanced() if vls > 1 and not levels.unplaceable else ():
            moved = self._service_levels(balanced, vls, sequences=sequences, visits=visits)
            if moved.needed:
                routes, levels = balanced, moved
                break
        facts, needed = routes.facts(), levels.needed
        if needed == 0:
            facts[LOOP_FREE] = levels.reason(routes, vls)
        seconds = {"paths": found - start, "tables": time.perf_counter() - found}
        return Routing(
            lft=forwarding_tables(fabric, routes.destinations, routes.next_channel),
            **vl_tables(levels.sl, vls if needed == 1 else max(needed, 1), options),
            vls_needed=max(needed, 1),
            provenance=provenance(self.name, fabric, options, seconds, **facts),
        )

    @staticmethod
    def _service_levels(routes: GridRoutes, vls: int, *, sequences: tuple[bool, ...], visits: int) -> SlSearchResult:
        """Search for SLs of paths that close no cycle.

        Each element of ``sequences`` states whether paths with a detour get their VLs before all other paths.  The
        elements are tried one after the other.  ``visits`` limits the work of each search (see :func:`place`).
        """
        paths, lids = routes.paths, len(routes.fabric.lids)
        if not paths.rings and paths.regular.all():
            return SlSearchResult(round_robin_sls(routes.destinations, lids, vls), 1)
        every, zero = np.ones(paths.hop.shape, bool), np.zeros_like(paths.crossing)
        # A path tries its start VL first.  If the datelines that a path crosses (`paths.crossing`) determine its start
        # VL, the paths are spread over the VLs.  If every path starts with VL 0, more paths fit.  Some fabrics need
        # fewer VLs if paths with a detour get their VLs first, other fabrics if these paths get their VLs last.
        regular, found = bool(paths.regular.all()), dict[tuple[bool, bool], VlPlacement]()

        def placement(start: npt.NDArray[np.uint8], *, detours_first: bool = False) -> VlPlacement:
            # Without detours, `detours_first` has no effect.  On one VL, the start VLs (`start`) have no effect.
            # Searches that differ only in an argument without effect share one result.
            key = bool((start % vls).any()), detours_first and not regular
            if key not in found:
                found[key] = place(routes, every, start, vls, visits=visits, detours_first=key[1])
            return found[key]

        placed = placement(paths.crossing) if regular else None
        for detours_first in sequences:
            if placed is None or placed.failed:
                placed = placement(zero, detours_first=detours_first)
        if placed is None or placed.failed:
            unplaceable = all(each.failed > MOST_FAILED for each in found.values())
            return SlSearchResult(
                np.zeros(lids, np.uint8), 0, unplaceable, any(each.exhausted for each in found.values())
            )
        if not regular:
            spread = placement(paths.crossing)
            placed = placed if spread.failed else spread
        if placed.used <= 1:
            return SlSearchResult(round_robin_sls(routes.destinations, lids, vls), 1)
        vl = np.where(placed.vl == 255, 0, placed.vl).astype(np.uint8)
        if routes.options.reversible:
            vl[1] = vl[0]
        return SlSearchResult(routes.by_lid(vl), placed.used)


ENGINE = DimensionOrder()


WARNINGS = {
    "miscabled": "fits no coordinates: it may be miscabled",
    "miscabled_instead": "may be miscabled: after a swap of this cable, other coordinates fit as well",
    "surplus": "has more parallel links than usual, and other neighbours lack a link: it may be miscabled",
}
"""Text of the warning about a link, by its key in :func:`routing.grids.miscabled.facts`."""


def warn_of_miscabled(routes: GridRoutes) -> None:
    """Issue a warning for each link that may be miscabled: it fits no coordinates, or may fit them only by chance.

    Links to attached switches, such as I/O switches, get one warning together.
    """
    if attached := routes.links_named("attached"):
        text = (
            f"{count_noun(len(attached), 'link leads', 'links lead')} to attached switches, which have no coordinates"
        )
        warnings.warn(f"{text}, such as link {attached[0]}", InputWarning, stacklevel=3)
    for key, text in WARNINGS.items():
        for name in routes.links_named(key):
            warnings.warn(f"link {name} {text}", InputWarning, stacklevel=3)
