"""Torus-2QoS: dimension order on tori with two VLs.  A packet may change its VL from dimension to dimension; datelines
decide which VL it uses.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from routing.engines.base import EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import forwarding_tables
from routing.engines.dor import VISITS, warn_of_miscabled
from routing.engines.grid_tables import BALANCED, MOST_FAILED, GridRoutes, place
from routing.engines.provenance import REPLIES, engine_tables
from routing.engines.vl_assignment import most_vls, vl_tables
from routing.errors import NotEnoughVLs, RoutingError
from routing.fabric import Fabric
from routing.grids.coordinates import Kind, axes_inside
from routing.grids.paths import dimension_order
from routing.tables import Routing

SLS = 16


class TorusTwoQos:
    """Dimension-ordered paths on tori and meshes, free of credit loops on two VLs by datelines.

    Notes
    -----
    After torus-2QoS of OpenSM by J. Schutt (``man torus-2QoS``), and the datelines of W. J. Dally, C. L. Seitz, 1987.
    An SL has one bit for each dimension with rings.  The bit states whether the path crosses a dateline of this
    dimension.  At each hop, the switch selects VL 0 or VL 1 by the bit of the dimension in which the out-port leads.
    So a path uses one VL in each ring.  Paths on VL 0 do not cross the dateline.  Paths on VL 1 cross the dateline, and
    are too short to pass the opposite side of the ring as well.  So no dependencies of one VL close a cycle around the
    ring.  If a ring is broken, paths take the other side of the ring, on the same SL.

    Differences:

    - Coordinates and dimensions follow from the cables alone, so no configuration file is needed.  A torus-2QoS.conf
      (``torus_config``) fixes the order of dimensions, their directions and the datelines.
    - The number of dimensions is not limited.  At most four dimensions may have rings of five switches or more.  A ring
      of four counts as two dimensions of two switches.
    - Paths that need a turn against the dimension order use separate SLs and VLs, on which they close no cycle.  So any
      number of missing links and switches is possible as long as VLs suffice.
    - The load is balanced over both sides of a ring and over parallel links.

    The VLs below the option ``first_vl`` stay free for other traffic.
    """

    name = "torus-2qos"
    summary = "dimension order on tori and meshes; free of credit loops on two VLs by datelines"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(options=("reversible", "torus_config"), needs_vls=True)

    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: O(S^2) table lookups; O(hops) and cycle searches for each path with a detour.

        Raises
        ------
        NotAGrid
            The fabric has no coordinates of a mesh, torus, HyperX or hypercube.
        NotEnoughVLs
            Rings need two VLs, or the detours around missing links and switches need more VLs.
        RoutingError
            There are too few SLs for the dimensions with rings.
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        vls = most_vls(options)
        routes = GridRoutes.of(fabric, options)
        warn_of_miscabled(routes)
        datelines = 1 << routes.paths.rings
        needed = 1 if routes.paths.rings == 0 else 2
        if needed > vls:
            raise NotEnoughVLs(needed, vls)
        if options.first_vl + datelines > SLS:
            raise RoutingError(f"{routes.paths.rings} dimensions with rings need {datelines} SLs, there are too few")
        routes, code, spare = self._fitting(routes, datelines, needed, vls)
        used = needed + spare
        tables = vl_tables(routes.by_lid(code), used, options)
        if routes.paths.rings:
            tables["sl2vl"] = _sl2vl(routes, datelines, spare)
        facts = routes.facts()
        if not routes.is_mutual(code):
            facts[REPLIES] = self._reply_risk(routes)
        lft = forwarding_tables(fabric, routes.destinations, routes.next_channel)
        return engine_tables(self, fabric, options, start, lft=lft, tables=tables, vls_needed=used, **facts)

    @classmethod
    def _fitting(
        cls, routes: GridRoutes, datelines: int, needed: int, vls: int
    ) -> tuple[GridRoutes, npt.NDArray[np.uint8], int]:
        """Balance the paths of ``routes`` around missing links, if the balanced paths fit into the VLs.

        Returns
        -------
        routes : GridRoutes
            The balanced routes, or the routes that were given.
        code : uint8[2, S, S]
            SL of each path, by set of paths (see :class:`routing.grids.paths.GridPaths`), destination and source.
        spare : int
            Number of VLs for detours.

        Raises
        ------
        NotEnoughVLs
            Neither the given routes nor balanced routes fit.
        """
        code, spare, failed = cls._codes(routes, datelines, needed, vls)
        # If a ring is broken, all of its paths take the side that is left, and the rate of all-to-all traffic may
        # halve.  So some paths are moved to other links, for a better balance.  Moved paths need further VLs besides
        # the VLs of the datelines.
        move = routes.options.vls != "min" if failed == 0 else failed <= MOST_FAILED
        # If replies are safe with the given paths, the moved paths get VLs with which replies stay safe, if possible.
        # Otherwise the moved paths get VLs without regard to replies.
        reversible = failed == 0 and routes.is_mutual(code)
        if move and cls._vls_for_detours(routes, datelines, needed, vls) > 0:
            # Balanced routes mostly need more VLs than the given routes.  If the given routes do not fit into the VLs,
            # balanced routes hardly fit either.  So in this case, each search has a lower work limit.
            visits = VISITS // BALANCED if failed else VISITS
            for balanced in routes.balanced():
                moved, used, unplaced = cls._codes(balanced, datelines, needed, vls, visits=visits)
                if unplaced == 0 and reversible:
                    both, more, unplaced = cls._codes(balanced, datelines, needed, vls, visits=visits, mutual=True)
                    return (balanced, moved, used) if unplaced else (balanced, both, more)
                if unplaced == 0:
                    return balanced, moved, used
        if failed:
            raise NotEnoughVLs(None, vls, what="detours around missing links without credit loops")
        return routes, code, spare

    @staticmethod
    def _reply_risk(routes: GridRoutes) -> str:
        """Return the provenance text that states why replies on the SL of the request may close a credit loop."""
        if not routes.is_mutual(routes.paths.crossing):
            return "not ensured on the request's SL: some paths and their reply paths use opposite sides of a ring"
        return "not ensured on the request's SL: some paths with a detour and their reply paths have different SLs"

    @staticmethod
    def _vls_for_detours(routes: GridRoutes, datelines: int, needed: int, vls: int) -> int:
        """Return the number of VLs that paths with a detour may use.  For the parameters, see :meth:`_codes`."""
        if not routes.paths.rings:
            return min(vls, SLS - routes.options.first_vl)
        return min(vls - needed, SLS - routes.options.first_vl - datelines)

    @staticmethod
    def _codes(
        routes: GridRoutes, datelines: int, needed: int, vls: int, *, visits: int = VISITS, mutual: bool = False
    ) -> tuple[npt.NDArray[np.uint8], int, int]:
        """Compute the SLs of all paths.

        ``datelines`` is the number of SLs that encode which datelines a path crosses, ``needed`` the number of VLs of
        these SLs, and ``vls`` the number of allowed VLs.  ``visits`` limits the search (see :func:`place`).  With
        ``mutual``, all paths between two switches use one VL if one of these paths has a detour.

        Returns
        -------
        code : uint8[2, S, S]
            SL of each path, by set of paths (see :class:`routing.grids.paths.GridPaths`), destination and source.
        spare : int
            Number of VLs for detours.
        failed : int
            Number of detours without a VL.  If this number is positive, the other results have no meaning.

        Raises
        ------
        NotEnoughVLs
            No VL is left for detours.  Balanced routes would fail for the same reason.
        """
        paths = routes.paths
        code, detours = paths.crossing, ~paths.regular & routes.used[..., None]
        if not paths.rings and detours.any():  # Without datelines, detours may share the VL of all other paths.
            detours = np.ones_like(detours)
            datelines = 0
        if routes.options.reversible:
            detours[0] |= detours[0].T
            detours[1] = detours[0]
        elif mutual:
            detours[:] = (detours | detours.transpose(0, 2, 1)).any(axis=0)
        if not detours.any():
            return code, 0, 0
        spare = TorusTwoQos._vls_for_detours(routes, datelines, needed, vls)
        if spare < 1:
            raise NotEnoughVLs(needed + 1, vls)
        placed = place(routes, detours, np.zeros_like(code), spare, visits=visits, mutual=mutual)
        vl = placed.vl if not routes.options.reversible else placed.vl[[0, 0]]
        code = np.where(vl == 255, code, datelines + vl).astype(np.uint8)
        return code, placed.used - (0 if paths.rings else 1), placed.failed


ENGINE = TorusTwoQos()


def _sl2vl(routes: GridRoutes, datelines: int, spare: int) -> npt.NDArray[np.uint8]:
    """Return uint8[S, P, P, 16], the VL by switch, in-port, out-port and SL.

    The first ``datelines`` SLs state which datelines a path crosses, one bit for each dimension.  On such an SL, the VL
    towards another switch is the bit of the dimension in which the out-port leads.  Each of the next SLs, which are for
    detours, has one VL.  ``spare`` is the number of VLs for detours.
    """
    fabric, first = routes.fabric, routes.options.first_vl
    channels, ports = fabric.channels, 1 + int(fabric.switch_ports.max(initial=0))
    bit = np.full((fabric.switches, ports), -1)
    for grid in routes.coordinates.grids:
        inside, axis = axes_inside(grid, channels.src, channels.dst)
        rings = [one for one in dimension_order(grid, fabric, routes.bundles) if grid.kind[one] is Kind.RING]
        bit_of = np.array([rings.index(one) if one in rings else -1 for one in range(grid.dimensions)] + [-1])
        bit[channels.src[inside], channels.port[inside]] = bit_of[axis]
    code = np.arange(SLS) - first
    is_dateline = (code >= 0) & (code < datelines)
    row_of_sl = np.where(is_dateline, 0, np.clip(2 + code - datelines, 0, 1 + spare))
    by_port = np.where(
        is_dateline & (bit >= 0)[..., None], (np.maximum(code, 0) >> np.maximum(bit, 0)[..., None]) & 1, row_of_sl
    )
    return (by_port + first).astype(np.uint8)[:, None].repeat(ports, axis=1)
