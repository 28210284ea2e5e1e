"""List undelivered traffic: pairs of a switch and a LID that the tables do not connect, and the reasons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routing.cdg.analysis import Findings
from routing.deadlock.traffic_sources import lid_name
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.tables import Routing

NAMED = 5
"""Largest number of undelivered pairs that a report lists by name."""


@dataclass(frozen=True)
class Pair:
    """A pair of a switch and a LID for which the tables do not deliver packets.

    Attributes
    ----------
    source
        Name of the switch at which the packets enter.
    destination, lid
        Name and LID of the receiver.
    reason
        Why the packets are not delivered.
    """

    source: str
    destination: str
    lid: int
    reason: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} (LID {self.lid}): {self.reason}"


@dataclass(frozen=True)
class Unreachable:
    """Undelivered traffic, counted in pairs of a switch at which packets enter and a LID.

    Attributes
    ----------
    pairs
        Number of undelivered pairs whose switch and LID are in one connected component of the fabric.
    first
        The first few pairs that ``pairs`` counts, with names.
    looping
        Number of pairs whose route ends in a forwarding loop.  Switch and LID may be in one component or in different
        components.
    dropped
        Number of pairs with a complete route, whose packets are dropped because the SL2VL tables give VL 15 to their
        SL.
    expected
        Number of pairs in different components, which no tables can connect.
    first_expected
        The first few pairs in different components, with names.
    unattached
        LIDs of CAs and routers that are not cabled to a switch.
    """

    pairs: int = 0
    first: tuple[Pair, ...] = ()
    looping: int = 0
    dropped: int = 0
    expected: int = 0
    first_expected: tuple[Pair, ...] = ()
    unattached: tuple[int, ...] = ()

    def describe(self) -> list[str]:
        """Return lines to print that describe the undelivered traffic; no lines if everything is delivered."""
        lines = []
        if self.pairs:
            text = count_noun(self.pairs, "pair of switch and LID is", "pairs of switch and LID are")
            lines += [f"{text} not delivered:", *(f"  {pair}" for pair in self.first)]
        if self.looping:
            lines.append(count_noun(self.looping, "route ends in a forwarding loop", "routes end in a forwarding loop"))
        if self.dropped:
            lines.append(f"{count_noun(self.dropped, 'pair is', 'pairs are')} sent on an SL that is dropped (VL 15)")
        if self.expected:
            text = f"{count_noun(self.expected, 'pair lies', 'pairs lie')} in different parts of the fabric"
            lines += [f"{text}, which is not a fault of the tables:", *(f"  {pair}" for pair in self.first_expected)]
        if self.unattached:
            lines.append(f"{count_noun(len(self.unattached), 'LID is', 'LIDs are')} cabled to no switch")
        return lines


def unreachable(fabric: Fabric, routing: Routing, found: Findings) -> Unreachable:
    """Return the undelivered traffic with the names of the first few pairs.

    ``found`` holds the findings of the analysis of the tables.  Cost: O(S L) if some traffic is undelivered, else none.
    """
    nowhere = np.flatnonzero((fabric.lids.endport >= 0) & (fabric.lids.switch < 0))
    return Unreachable(
        pairs=found.undelivered,
        first=_name_pairs(fabric, routing, found, same_part=True) if found.undelivered else (),
        looping=found.looping,
        dropped=found.dropped,
        expected=found.split,
        first_expected=_name_pairs(fabric, routing, found, same_part=False) if found.split else (),
        unattached=tuple(nowhere.tolist()),
    )


def _name_pairs(fabric: Fabric, routing: Routing, found: Findings, *, same_part: bool) -> tuple[Pair, ...]:
    """Return the first few undelivered pairs of switch and LID.

    If ``same_part``, the switch and the LID of each pair are in one connected component of the fabric, otherwise in
    different components.  ``found`` holds the findings of the analysis of the tables.
    """
    lids = fabric.lids
    pairs: list[Pair] = []
    for lid in np.flatnonzero(lids.switch >= 0).tolist():
        same = fabric.component == fabric.component[lids.switch[lid]]
        lost = np.flatnonzero((found.hops[:, lid] == 255) & (same == same_part))
        for switch in lost[: NAMED - len(pairs)].tolist():
            reason = _classify_failure(fabric, routing, switch, lid) if same_part else "in another part of the fabric"
            pairs.append(Pair(fabric.labels[switch], lid_name(fabric, lid), lid, reason))
        if len(pairs) == NAMED:
            break
    return tuple(pairs)


def _classify_failure(fabric: Fabric, routing: Routing, switch: int, lid: int) -> str:
    seen: set[int] = set()
    while True:
        port, name = int(routing.lft[switch, lid]), fabric.labels[switch]
        channel = int(fabric.channels.at_port[switch, port])
        if switch in seen:
            return f"forwarding loop through {name} port {port}"
        if channel < 0:
            break
        seen.add(switch)
        switch = int(fabric.channels.dst[channel])
    if port == 255:
        return f"{name} has no route"
    back = (fabric.link_device == switch).all(axis=1) & (fabric.link_port == port).any(axis=1)
    if back.any():
        return f"forwarding loop over the loop-back cable at {name} port {port}"
    ends = (fabric.link_device == switch) & (fabric.link_port == port)
    if port and not ends.any():
        return f"{name} sends it to port {port}, which is not cabled"
    return f"{name} delivers it at port {port}, where the LID is not"
