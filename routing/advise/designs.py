"""Compare designs: the price of each fabric, and the traffic that its tables carry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routing.advise.candidates import Candidate, Refused, try_engine
from routing.engines.base import Engine, EngineOptions
from routing.errors import OptionError
from routing.fabric import Fabric, NodeKind
from routing.faults import Fault, FaultKind, apply_faults


@dataclass(frozen=True)
class Prices:
    """Prices of the parts of a fabric, in any currency or unit.

    Attributes
    ----------
    switch
        Price of a switch.  The default is 100, so that the other prices are in percent of the price of a switch.
    cable
        Price of a cable between switches.
    ca_cable
        Price of a cable between a switch and a CA.
    """

    switch: float = 100.0
    cable: float = 5.0
    ca_cable: float = 2.0

    def of(self, fabric: Fabric) -> float:
        """Return the price of all switches and cables of a fabric."""
        cables, ca_cables = cable_counts(fabric)
        return self.switch * fabric.switches + self.cable * cables + self.ca_cable * ca_cables


@dataclass(frozen=True, eq=False)
class Design:
    """A design (a planned fabric) with its price and the figures of its tables.

    Attributes
    ----------
    text
        The design as the user named it.
    fabric
        The fabric.
    hosts
        Number of CAs.
    cables, ca_cables
        Number of cables between switches, and number of all other cables.
    cost
        Price of all switches and cables.
    result
        Proven tables and their figures, or the reason why the engine has no tables.
    """

    text: str
    fabric: Fabric
    hosts: int
    cables: int
    ca_cables: int
    cost: float
    result: Candidate | Refused

    @property
    def cost_per_host(self) -> float | None:
        """Price for each CA; None without CAs."""
        return self.cost / self.hosts if self.hosts else None


def cable_counts(fabric: Fabric) -> tuple[int, int]:
    """Return the number of cables between switches, and the number of all other cables."""
    between = int(np.count_nonzero((fabric.link_device < fabric.switches).all(axis=1)))
    return between, fabric.links - between


def hosts_of(fabric: Fabric) -> int:
    """Return the number of CAs of a fabric."""
    return int(np.count_nonzero(fabric.terminal_kind == NodeKind.CA))


def with_hosts(fabric: Fabric, hosts: int) -> Fabric:
    """Return a fabric with only some of the CAs.  The removed CAs are evenly distributed in the order of the GUIDs.

    Parameters
    ----------
    fabric
        The fabric.
    hosts
        Number of CAs to keep, at least 1.

    Raises
    ------
    OptionError
        The fabric has fewer CAs than ``hosts``, or ``hosts`` is below 1.
    """
    rows = np.flatnonzero(fabric.terminal_kind == NodeKind.CA)
    if not 1 <= hosts <= len(rows):
        raise OptionError(f"{fabric.name} has {len(rows)} CAs, not {hosts}", remedy="take a larger design")
    kept = rows[np.arange(hosts) * len(rows) // hosts]
    lost = np.setdiff1d(rows, kept)
    guids = tuple(int(guid) for guid in fabric.terminal_guid[lost])
    if not guids:
        return fabric
    return apply_faults(fabric, [Fault(FaultKind.CA, f"{len(guids)} CAs", devices=guids)])


def evaluate_design(
    text: str, fabric: Fabric, engine: Engine, options: EngineOptions, *, prices: Prices, links: int
) -> Design:
    """Route a design with an engine, prove the tables, measure them, and compute the price.

    Parameters
    ----------
    text, fabric
        The design, and its fabric.
    engine, options
        The engine and its options.
    prices
        Prices of the parts.
    links
        Number of links that are removed, one at a time, to measure the worst loss (:func:`routing.advise.try_engine`).
    """
    cables, ca_cables = cable_counts(fabric)
    result = try_engine(engine, options, fabric, links=links)
    return Design(text, fabric, hosts_of(fabric), cables, ca_cables, prices.of(fabric), result)
