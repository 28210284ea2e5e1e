"""Chain: each part of a fabric is routed by its own engine, and traffic between parts by Up*/Down*."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing.engines import ENGINES
from routing.engines.base import EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations
from routing.engines.dor import VISITS
from routing.engines.hop_classes import SLS, PairGroups
from routing.engines.provenance import engine_tables
from routing.engines.vl_assignment import VlTables, most_vls
from routing.errors import NotEnoughVLs, OptionError, RoutingError
from routing.fabric import NO_PORT, Fabric
from routing.faults.choose import every_switch
from routing.faults.model import apply_faults
from routing.formats.parts_file import FabricPart, read_parts
from routing.tables import Routing

CROSSING_VLS = 2
"""Number of VLs that are reserved for traffic between parts, if there are at least :data:`ENOUGH_VLS` VLs.  With fewer
VLs, one VL is reserved.

If the traffic between parts does not fit, twice as many VLs are reserved.  This second attempt is left out if the
option ``vls`` is "min", or if no VL would be left for traffic within parts.
"""
ENOUGH_VLS = 4


class Chain:
    """Tables that combine the tables of several engines, one for each part of the fabric.

    Notes
    -----
    Within a part, paths and VLs come from the part's engine.  A path to another part follows the Up*/Down* tables of
    the whole fabric until the path enters the destination's part, and then the tables of that part.  Such paths use VLs
    that no part uses.  On each of these VLs, the paths in both directions together close no cycle.
    """

    name = "chain"
    summary = "one engine for each part of the fabric, and Up*/Down* on separate VLs between parts"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(options=("parts", "reversible"), needs_vls=True, chooses=True)

    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: the cost of the engines, and cycle searches for each pair of switches of different parts.

        Raises
        ------
        OptionError
            There is no parts file, or the engine of a part is unknown, can have credit loops or lacks an option.
        RoutingError
            The engine of a part cannot route the part; the message names the part.
        NotEnoughVLs
            The traffic between parts does not fit into the remaining VLs.
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        if options.parts is None:
            raise OptionError("chain needs a file with the parts of the fabric", remedy="name it with --parts FILE")
        vls = most_vls(options)
        if vls < CROSSING_VLS:
            raise NotEnoughVLs(CROSSING_VLS, vls)
        crossing = CROSSING_VLS if vls >= ENOUGH_VLS else 1
        try:
            return self._combined(fabric, options, vls, crossing, start)
        except NotEnoughVLs:
            if options.vls == "min" or vls <= 2 * crossing:
                raise
            return self._combined(fabric, options, vls, 2 * crossing, start)

    def _combined(self, fabric: Fabric, options: EngineOptions, vls: int, crossing: int, start: float) -> Routing:
        """Compute the tables on ``vls`` VLs, of which ``crossing`` VLs are reserved for traffic between parts.

        ``start`` is the time at which the run began, in seconds.
        """
        assert options.parts is not None
        own = replace(options, parts=None, vls="min" if options.vls == "min" else "auto",
                      port_vls=options.first_vl + vls - crossing)  # fmt: skip
        parts = [_Part.route(fabric, part, own) for part in read_parts(options.parts, fabric)]
        between = ENGINES["updn"].route(fabric, replace(own, vls="min", first_vl=0))
        destinations = Destinations.of(fabric)
        lft, inside = between.lft.copy(), np.zeros((fabric.switches, len(fabric.lids)), bool)
        for part in parts:
            routed = part.routing.lft[:, part.lids] != NO_PORT
            here = np.ix_(part.switches, part.lids)
            lft[here] = np.where(routed, part.routing.lft[:, part.lids], lft[here])
            inside[here] = routed
        spare = vls + options.first_vl - max(part.routing.vls for part in parts)
        groups, vl = _assign(fabric, destinations, lft, inside, spare)
        return engine_tables(
            self, fabric, options, start, lft=lft,
            tables=_tables(fabric, parts, _crossing(fabric, destinations, groups, vl)),
            vls_needed=max(part.routing.vls_needed for part in parts) + 1 + int(vl.max(initial=-1)),
            parts=[f"{part.engine}: {len(part.switches)} switches" for part in parts],
        )  # fmt: skip


ENGINE = Chain()


@dataclass(frozen=True, eq=False)
class _Part:
    """Part with its tables.

    Attributes
    ----------
    engine, routing
        The engine, and its tables, with a row for each switch of the part.
    switches, lids
        int64[N] and int64[M], the N switches of the part, and the M LIDs that they deliver.
    """

    engine: str
    routing: Routing
    switches: npt.NDArray[np.int64]
    lids: npt.NDArray[np.int64]

    @classmethod
    def route(cls, fabric: Fabric, part: FabricPart, options: EngineOptions) -> _Part:
        """Route a part alone, with its engine."""
        path, line = part.where
        others = [fault for fault, own in zip(every_switch(fabric), part.switches.tolist(), strict=True) if not own]
        alone = apply_faults(fabric, others).with_lids(len(fabric.lids)) if others else fabric
        try:
            engine = ENGINES[part.engine]
            if engine.promise is not Promise.DEADLOCK_FREE or engine.name == Chain.name:
                raise OptionError("a part needs one engine without credit loops", remedy="use another engine")
            routing = engine.route(alone, options)
        except OptionError as error:
            problem = f"{part.engine} cannot route this part: {error.problem}"
            raise OptionError(problem, path=path, line=line, remedy=error.remedy) from error
        except RoutingError as error:
            raise RoutingError(f"{path}:{line}: {part.engine} cannot route this part: {error}") from error
        if routing.service_levels.by_source_lid:
            raise RoutingError(f"{path}:{line}: the SLs of {part.engine} depend on the source LID (use another engine)")
        lids = np.flatnonzero(np.isin(fabric.lids.switch, np.flatnonzero(part.switches)))
        return cls(part.engine, routing, np.flatnonzero(part.switches), lids)


def _assign(
    fabric: Fabric, destinations: Destinations, lft: npt.NDArray[np.uint8], inside: npt.NDArray[np.bool_], spare: int
) -> tuple[PairGroups, npt.NDArray[np.int64]]:
    """Return the pairs of switches whose paths lead from one part to another, and the VL of each pair.

    The VLs are numbered from 0 to ``spare`` - 1.  ``inside`` (bool[S, L]) marks the paths that stay within a part, by
    source switch and LID.

    Raises
    ------
    NotEnoughVLs
        The paths of the pairs do not fit into ``spare`` VLs.
    """
    component = fabric.component
    outside = np.zeros((fabric.switches, fabric.switches), bool)
    connected = component[:, None] == component[destinations.root][None, :]
    np.logical_or.at(outside.T, destinations.root, (connected & ~inside[:, destinations.lid]).T)
    groups = PairGroups.of(fabric, destinations, outside | outside.T)
    return groups, groups.on_spare_vls(fabric, lft, spare, visits=VISITS)


def _crossing(
    fabric: Fabric, destinations: Destinations, groups: PairGroups, vl: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return int64[S, L], the VL for traffic between parts, by source switch and LID; -1 for traffic within a part.

    ``groups`` holds the pairs of switches, and ``vl`` the VL of each pair (see :func:`_assign`).
    """
    pairs = np.full((fabric.switches, fabric.switches), -1, np.int64)
    pairs[groups.high, groups.low] = pairs[groups.low, groups.high] = vl
    found = np.full((fabric.switches, len(fabric.lids)), -1, np.int64)
    found[:, destinations.lid] = pairs[:, destinations.root]
    return found


def _tables(fabric: Fabric, parts: Sequence[_Part], crossing: npt.NDArray[np.int64]) -> VlTables:
    """Return the SLs and the SL2VL tables of the whole fabric.

    Traffic within a part has the SLs and VLs of the part's engine.  Traffic between parts gets higher SLs and VLs than
    any traffic within a part.  ``crossing`` is the result of :func:`_crossing`.

    Raises
    ------
    RoutingError
        There are too few SLs.
    """
    sl = np.zeros(crossing.shape, np.uint8)
    for part in parts:
        here = np.ix_(part.switches, part.lids)
        sl[here] = part.routing.service_levels.with_rows(len(part.switches))[:, part.lids]
    first_sl, first_vl = 1 + int(sl.max(initial=0)), max(part.routing.vls for part in parts)
    count = 1 + int(crossing.max(initial=-1))
    if first_sl + count > SLS:
        raise RoutingError(f"the parts use {first_sl} SLs, and traffic between parts needs {count} more")
    sl = np.where(crossing >= 0, first_sl + crossing, sl).astype(np.uint8)
    ports = 1 + int(fabric.switch_ports.max(initial=0))
    table = np.zeros((fabric.switches, ports, ports, SLS), np.uint8)
    for part in parts:
        own = part.routing.sl2vl
        if own.ndim == 1:
            table[part.switches] = own
        else:
            width = own.shape[1]
            table[part.switches[:, None, None], np.arange(width)[:, None], np.arange(width)] = own
    table[..., first_sl : first_sl + count] = first_vl + np.arange(count)
    table[..., first_sl + count :] = first_vl
    plain = table[0, 0, 0]
    return {"sl": sl, "sl2vl": plain if (table == plain).all() else table, "vls": first_vl + count}
