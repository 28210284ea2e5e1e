"""What a re-route needs of the tables in force, whatever the fault will be: made once, and ahead of the question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.load import all_to_all, routes_of
from routing._kernels.recheck import turns_against
from routing._kernels.repair import Waits
from routing.deadlock.cdg import common_lanes, vl_bits
from routing.deadlock.proof import Proof
from routing.fabric import Fabric
from routing.reroute.ground import known_waits, lid_weights, moved_masks
from routing.reroute.translate import same_devices
from routing.reroute.values import Published
from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Standing:
    """Tables in force, and those of home, as ground to mend on.

    Attributes
    ----------
    base
        The fabric whose channels count: that of home, or that of the tables if there is no home.
    home
        The proof of home, which tells homes apart; None if there is none.
    waits
        What may wait for what; None if VLs change on the way.
    with_home
        Whether all that home makes wait is among it.
    climbing
        Whether all that the proof allows for was seen to climb in its order.
    level
        uint8[V], the lowest SL in use that rides each VL of the certificate, 255 where none does.
    load
        int64[C] by the channels of the tables' own fabric: flow when every end port sends to every other.
    apart
        int64[N], LIDs whose entries or SLs differ from home's; None if home has other devices.
    """

    base: Fabric
    home: Proof | None
    waits: Waits | None
    with_home: bool
    climbing: bool
    level: npt.NDArray[np.uint8]
    load: npt.NDArray[np.int64]
    apart: npt.NDArray[np.intp] | None


def prepare(before: Published, home: Published | None = None, *, threads: int = 2) -> Standing:
    """Compute what :func:`routing.reroute.reroute` from these tables needs before it knows the fault.

    It is kept with ``before``, for one home at a time, where the next re-route finds it; a re-route that does not
    does it first.

    Notes
    -----
    Cost: for two sets of tables an order of all that waits for anything, and a pass over both; for 768 switches and
    4864 LIDs 5 ms with the tables at home, 40 ms away from it; and 30 ms for the load.
    """
    known = before.__dict__.get("_standing")
    if isinstance(known, Standing) and known.home is (None if home is None else home.proof):
        return known
    base = before.fabric if home is None else home.fabric
    waits, with_home = allowed(base, before, home, threads=threads)
    made = Standing(
        base=base,
        home=None if home is None else home.proof,
        waits=waits,
        with_home=with_home,
        climbing=waits is not None and _climbs(base, before, waits),
        level=_levels(before.routing, before.proof),
        load=flow_of(before.fabric, before.routing, threads=threads),
        apart=None if home is None else _apart(before, home),
    )
    before.__dict__["_standing"] = made  # like a cached property, but for the home
    return made


def flow_of(fabric: Fabric, routing: Routing, *, threads: int) -> npt.NDArray[np.int64]:
    """int64[C], flow on each channel when every end port sends to every other: ``WHOLE`` for each pair."""
    routes = routes_of(fabric, np.ascontiguousarray(routing.lft))
    return all_to_all(routes, lid_weights(fabric), fabric.terminals_at, threads, hops=False)[0]


def allowed(base: Fabric, before: Published, home: Published | None, *, threads: int) -> tuple[Waits | None, bool]:
    """What may wait for what in the channels of a fabric, and whether all that home makes wait is among it."""
    proof = before.proof
    if proof.certificate is None:
        return Waits(np.zeros(0, np.uint16), np.zeros((0, len(base.channels)), np.int32)), True
    if proof.waits is None:
        return None, False
    if home is None or home is before:
        both = [before]
    elif home.proof.waits is not None and _alike(home.proof, proof):
        both = [before, home]
    else:
        both = []
    found = known_waits(base, both, threads=threads) if both else None
    if found is not None:
        return found, True
    return known_waits(base, [before], threads=threads), False


def _alike(one: Proof, other: Proof) -> bool:
    return (one.strength, one.scope) == (other.strength, other.scope)


def _climbs(base: Fabric, before: Published, waits: Waits) -> bool:
    masks = before.proof.waits
    if masks is None:
        return False
    return turns_against(base.channels, moved_masks(masks, before.fabric, base), waits.order) == 0


def _levels(routing: Routing, proof: Proof) -> npt.NDArray[np.uint8]:
    row = common_lanes(routing)
    if proof.certificate is None or row is None:
        return np.zeros(0, np.uint8)
    used, vl_bit = np.unique(routing.sl), vl_bits(row)
    level = np.full(len(proof.certificate.order), 255, np.uint8)
    for lane in range(len(level)):
        riding = used[vl_bit[used] == 1 << lane]
        level[lane] = riding[0] if len(riding) else 255
    return level


def _apart(before: Published, home: Published) -> npt.NDArray[np.intp] | None:
    if before is home:
        return np.zeros(0, np.intp)
    if not same_devices(before.fabric, home.fabric) or before.routing.sl.shape != home.routing.sl.shape:
        return None
    other_sl = before.routing.sl != home.routing.sl
    other = (before.routing.lft != home.routing.lft).any(axis=0)
    return np.flatnonzero(other | (other_sl if other_sl.ndim == 1 else other_sl.any(axis=0)))
