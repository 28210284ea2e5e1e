"""Up*/Down*: up, then down, in an order of the switches; free of credit loops on any connected fabric, on one VL."""

from __future__ import annotations

import time

import numpy as np

from routing._kernels.balance import balance
from routing.engines.base import EngineOptions, Promise
from routing.engines.destinations import Destinations, forwarding_tables, slowness
from routing.engines.provenance import provenance
from routing.fabric import Fabric
from routing.tables import Routing, identity_sl2vl

DEFAULT_PASSES = 4


class UpDown:
    """Up*/Down* with a consistent choice of one next hop per switch and LID."""

    name = "updn"
    summary = "Up*/Down* on any fabric; free of credit loops on one VL"
    promise = Promise.DEADLOCK_FREE

    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`)."""
        start = time.perf_counter()
        destinations = Destinations.of(fabric)
        distance = np.asarray(fabric.graph.distances(source=[0], mode="out"), float)[0]
        position = np.empty(fabric.switches, np.int32)
        position[np.argsort(distance, kind="stable")] = np.arange(fabric.switches)
        trees = balance(
            fabric.channels,
            slowness(fabric),
            fabric.terminals_at.astype(np.float64),
            destinations.targets(),
            position=position.reshape(1, -1),
            passes=DEFAULT_PASSES if options.passes is None else options.passes,
            seed=options.seed,
            threads=options.threads,
            hop_cost=0.1,
        )
        lft = forwarding_tables(fabric, destinations, trees)
        return Routing(
            lft=lft,
            sl=np.zeros(len(fabric.lids), np.uint8),
            sl2vl=identity_sl2vl(1),
            vls=1,
            vls_needed=1,
            provenance=provenance(self.name, fabric, options, {"route": time.perf_counter() - start}),
        )
