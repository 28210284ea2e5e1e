"""Tables of paths whose VL depends on the hop class of each hop: SL2VL finds the hop class from in-port, out-port and
SL.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.engines.base import Engine, EngineOptions
from routing.engines.destinations import Destinations, forwarding_tables
from routing.engines.dor import VISITS
from routing.engines.hop_classes import SLS, PairGroups
from routing.engines.provenance import engine_tables
from routing.engines.vl_assignment import VlTables, most_vls, round_robin_sls
from routing.errors import NotEnoughVLs
from routing.fabric import Fabric
from routing.tables import Routing, identity_sl2vl


@dataclass(frozen=True, eq=False)
class ClassedPaths:
    """Trees, and the hop class of each hop.

    Attributes
    ----------
    fabric, destinations
        The fabric, and the destinations of the trees.
    next_channel
        uint8[D, S], index of the next channel among the channels of the switch, 255 for none.
    irregular
        bool[S, S], symmetric: pairs of switches with a path whose hop classes may close a cycle.  The packets of such a
        pair keep one VL, which no regular path uses.
    pattern
        int64[S, S], symmetric: number of the pattern of each pair of switches, from 0 to K - 1.  A pattern gives a hop
        class to each hop.  Each pattern has its own SLs.
    hop_class
        uint8[K, S, P, P], hop class of each hop by pattern, switch, in-port and out-port.
    classes
        Number of hop classes, which is the number of VLs that the regular paths need.
    """

    fabric: Fabric
    destinations: Destinations
    next_channel: npt.NDArray[np.uint8]
    irregular: npt.NDArray[np.bool_]
    pattern: npt.NDArray[np.int64]
    hop_class: npt.NDArray[np.uint8]
    classes: int

    def routing(self, engine: Engine, options: EngineOptions, start: float, **facts: object) -> Routing:
        """Return the tables of an engine.

        Parameters
        ----------
        engine, options
            The engine, and the options of the run.
        start
            Start of the run, by ``time.perf_counter``.
        facts
            Further results for the provenance.

        Raises
        ------
        NotEnoughVLs
            The classes and the irregular paths do not fit into the allowed VLs.
        """
        fabric, vls, patterns = self.fabric, most_vls(options), len(self.hop_class)
        lft = forwarding_tables(fabric, self.destinations, self.next_channel)
        groups = PairGroups.of(fabric, self.destinations, self.irregular)
        most = min(vls - self.classes, SLS - options.first_vl - patterns)
        if most < 0:
            raise NotEnoughVLs(self.classes, vls)
        vl = groups.on_spare_vls(fabric, lft, most, visits=VISITS)
        spare = 1 + int(vl.max(initial=-1))
        copies = min((vls - spare) // self.classes, (SLS - options.first_vl - spare) // patterns)
        tables = self._vl_tables(groups, vl, copies=1 if options.vls == "min" else copies, first=options.first_vl)
        return engine_tables(
            engine, fabric, options, start, lft=lft, tables=tables, vls_needed=self.classes + spare, **facts,
            irregular_pairs=len(vl),
        )  # fmt: skip

    def _vl_tables(self, groups: PairGroups, vl: npt.NDArray[np.int64], *, copies: int, first: int) -> VlTables:
        """Return the SLs and the SL2VL tables.

        Regular paths use ``copies`` sets of SLs, one after the other from SL ``first`` on.  A set has one SL for each
        pattern.  The SLs of a set share the set's VLs, one VL for each hop class.  Each LID uses one of the sets.
        Irregular paths use the SLs after all sets.  Each of these SLs has one VL, so packets on irregular paths keep
        their VL.  ``groups`` holds the G pairs of switches with irregular paths.  ``vl`` (int64[G]) is the VL of each
        pair, counted from 0 among the VLs of irregular paths.
        """
        fabric, destinations, patterns = self.fabric, self.destinations, len(self.hop_class)
        by_lid = round_robin_sls(destinations, len(fabric.lids), copies) * np.uint8(patterns) + np.uint8(first)
        spare, regular = 1 + int(vl.max(initial=-1)), copies * patterns
        sl = by_lid
        if spare or patterns > 1:
            sl = np.tile(by_lid, (fabric.switches, 1))
            sl[:, destinations.lid] += self.pattern[:, destinations.root].astype(np.uint8)
            extra = np.zeros((fabric.switches, fabric.switches), np.uint8)
            extra[groups.high, groups.low] = extra[groups.low, groups.high] = vl + regular + first
            of_lid = extra[:, destinations.root]
            sl[:, destinations.lid] = np.where(of_lid > 0, of_lid, sl[:, destinations.lid])
        vls = first + self.classes * copies + spare
        if self.classes == 1:
            return {"sl": sl, "sl2vl": identity_sl2vl(vls), "vls": vls}
        row = (np.arange(SLS) % vls).astype(np.uint8)
        row[first + regular : first + regular + spare] = first + self.classes * copies + np.arange(spare)
        table = np.tile(row, (*self.hop_class.shape[1:], 1))
        for number in range(regular):
            copy, pattern = divmod(number, patterns)
            table[..., first + number] = self.hop_class[pattern] + np.uint8(first + self.classes * copy)
        return {"sl": sl, "sl2vl": table, "vls": vls}
