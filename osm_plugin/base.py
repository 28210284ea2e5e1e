"""Determine the base of a change of tables: the forwarding tables now in the switches, and the SLs that senders use.

A change replaces the base by new tables.  While switches are being written, packets meet old entries in some switches
and new entries in other switches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from osm_plugin.returned import ReturnedGroup, are_entries_of, returned_groups, sls_after_return
from osm_plugin.snapshot import BLOCK, SwitchTables
from osm_plugin.state import SavedTables, fits
from routing.cdg.acyclic import Cdg
from routing.deadlock.lost import LostLids
from routing.fabric import NO_PORT, Fabric
from routing.numerals import count_noun
from routing.reroute.installed import installed, widened
from routing.tables import Provenance, Routing

Bytes = npt.NDArray[np.uint8]
Sls = Literal["published", "last", "state", "unknown"]
"""How the worker knows which SLs the senders use.  There are four possible values:

- "published": this OpenSM has published these SLs.
- "last": this OpenSM has published several tables, and the switches have entries of more than one of them.  The SLs of
  the tables published last are assumed, although some senders may still use SLs of tables published before.
- "state": the SLs are those of earlier tables, for example from a state file.
- "unknown": the SLs are unknown.
"""


@dataclass(frozen=True, eq=False)
class Base:
    """The tables in the switches before a change, with the rows and columns of the current fabric.

    Attributes
    ----------
    fabric
        The current fabric.  Its LID table also covers higher LIDs than those in use, if switches have entries for them.
    routing
        The forwarding tables in the switches, with one column per LID of ``fabric``.  Entries that are unknown or lead
        nowhere are 255.  If the SLs in use are known, ``routing`` has these SLs.  Otherwise ``routing`` has the SLs of
        the new tables.
    new
        The new tables, with one column per LID of ``fabric``.
    lost
        Former owners of the LIDs that no port has any more.
    unknown
        bool[S, L], whether each entry is unknown: OpenSM could not read it, or it leads over a link that is up but not
        in the fabric.
    changed
        Number of known entries in the switches that differ from the new tables.
    sls
        How the SLs in use are known (:data:`Sls`).
    cdg
        A channel dependency graph with all dependencies of packets that follow the old entries.  None means that the
        dependencies are unknown until the tables are traced.
    rewired
        bool[S, L], the entries over channels that did not exist when the tables were made, such as channels of cables
        that have changed places.  None: no such entries are known.
    strength
        Strength of the proof of the tables in the switches, if the worker remembers these tables from an earlier sweep
        or a state file; otherwise None.
    """

    fabric: Fabric
    routing: Routing
    new: Routing
    lost: LostLids
    unknown: npt.NDArray[np.bool_]
    changed: int
    sls: Sls
    cdg: Cdg | None
    rewired: npt.NDArray[np.bool_] | None
    strength: str | None

    @property
    def known(self) -> bool:
        """Return whether every entry is known."""
        return not self.unknown.any()

    @property
    def empty(self) -> bool:
        """Return whether all entries are known to be missing, as after all switches have been powered up."""
        return self.known and bool((self.routing.lft == NO_PORT).all())

    def silent(self, fabric: Fabric) -> frozenset[int]:
        """Return the GUIDs of the switches with unknown entries."""
        return frozenset(fabric.switch_guid[self.unknown.any(axis=1)].tolist())

    def describe_unknown(self, fabric: Fabric) -> str:
        """Describe the unknown entries for the log; return "" if every entry is known."""
        rows = np.flatnonzero(self.unknown.any(axis=1))
        if not len(rows):
            return ""
        names = ", ".join([*(fabric.labels[row] for row in rows[:3].tolist()), *["..."] * (len(rows) > 3)])
        entries = count_noun(int(np.count_nonzero(self.unknown)), "entry")
        return f"base unknown: {entries} of {count_noun(len(rows), 'switch')} ({names})"


def base_of(
    fabric: Fabric,
    tables: SwitchTables | None,
    new: Routing,
    remembered: Sequence[tuple[SavedTables, bool]] = (),
    left: Mapping[int, SavedTables | None] | None = None,
    *,
    earlier: Sequence[SavedTables] = (),
) -> Base:
    """Return the base of a change to new tables: the entries and SLs in use now.

    Parameters
    ----------
    fabric
        The current fabric.
    tables
        Forwarding tables in the switches, as OpenSM reported them.  None: OpenSM reported no tables, so every entry is
        unknown.
    new
        The tables to write.
    remembered
        Pairs of earlier tables and a bool.  True: this process has published the tables.  False: the tables were kept
        in another place, for example in a state file.  The tables are compared with the entries in the switches, one
        after the other.  The first tables that match determine the SLs in use.  If another OpenSM ended while it was
        writing the new tables, some switches already have entries of the new tables.  Earlier tables with the same SLs
        as the new tables then match, too.
    left
        The key is the GUID of a switch or end port that has left the fabric.  The value is the set of tables that was
        in force when this device left; None: these tables are not stored any more.  A switch that returns may still
        have entries of these tables, and open connections may use their SLs.
    earlier
        Tables that this process published before the tables in force.  If a fault has interrupted the writing of newer
        tables, some switches still have entries of these earlier tables.

    Notes
    -----
    Cost: a few passes over the tables, 13 to 24 ms for 1000 switches and 5000 LIDs on a busy machine.
    """
    wide = fabric if tables is None else fabric.with_lids(_columns(tables, len(fabric.lids)))
    new = widened(new, fabric, wide)
    lft, unknown, changed = _lft(wide, tables, new)
    for kept, published in remembered:
        if tables is None or tables.served == "other" or not fits(kept, fabric):
            continue
        own = earlier if published else ()
        groups = returned_groups(lft, wide, kept, left or {}, own)
        if groups is None or (groups and not published):
            continue
        staying = _without_rows(lft, groups)
        mixed = not are_entries_of(staying, kept, fabric)
        known = not mixed or are_entries_of(staying, kept, fabric, own)
        if not known and not are_entries_of(np.where(staying == new.lft, NO_PORT, staying), kept, fabric):
            continue
        sides = installed(kept.routing, kept.fabric, new, wide, present=lft)
        if not known and not _has_equal_sls(sides.old, new, wide):
            continue
        sl: Bytes | None = sides.old.sl
        if groups:
            before = [(g, installed(g.tables.routing, g.tables.fabric, new, wide, present=lft).old) for g in groups]
            sl = sls_after_return(sides.old, kept.fabric, before, wide)
        if sl is None:
            continue
        # After an aborted update schedule, the switches may have other entries than the remembered tables.  The CDG of
        # the remembered tables then lacks dependencies, and is not used below.
        whole = not mixed and (kept.deferred is None or are_entries_of(staying, replace(kept, deferred=None), fabric))
        partial = (known and not whole) or not all(_has_only(lft, group, fabric) for group in groups)
        source: Sls = "last" if partial else "published"
        return Base(
            fabric=wide, routing=replace(sides.old, sl=sl), new=new, lost=sides.lost, unknown=unknown, changed=changed,
            sls=source if published and tables.served == "ours" else "state",
            cdg=kept.proof.cdg_on(fabric) if whole and sides.rewired is None and not groups else None,
            rewired=sides.rewired, strength=kept.proof.strength,
        )  # fmt: skip
    plain = Routing(lft, new.sl, new.sl2vl, new.vls, new.vls, Provenance("switches"))
    return Base(wide, plain, new, LostLids.unknown(wide, new.sl), unknown, changed, "unknown", None, None, None)


def _without_rows(lft: Bytes, groups: Sequence[ReturnedGroup]) -> Bytes:
    """Return a copy of the LFTs ``lft`` without the entries of the switches that have returned to the fabric.

    Each of ``groups`` has switches that left the fabric while the same tables were in force.
    """
    staying = lft.copy()
    for group in groups:
        staying[group.rows] = NO_PORT
    return staying


def _has_only(lft: Bytes, group: ReturnedGroup, fabric: Fabric) -> bool:
    """Return whether every entry of the switches in ``group`` is missing or equals the entry of the old tables.

    ``group`` has switches that have returned to the fabric, and the old tables: the tables that were in force when
    these switches left.  ``lft`` has the entries of all switches of the fabric.
    """
    present = np.full_like(lft, NO_PORT)
    present[group.rows] = lft[group.rows]
    return are_entries_of(present, replace(group.tables, deferred=None), fabric)


def _columns(tables: SwitchTables, least: int) -> int:
    """Return how many LFT columns are needed for all entries of the switches.  The result is at least ``least``.

    The result exceeds ``least`` if a switch has a known entry for a higher LID.  Entries above
    :attr:`SwitchTables.top` do not count, because the switch does not use them.
    """
    beyond = np.arange(least, max(least, tables.lft.shape[1]))
    used = (tables.lft[:, beyond] != NO_PORT) & (beyond <= tables.top[:, None]) & tables.known[:, beyond // BLOCK]
    return int(beyond[used.any(axis=0)].max(initial=least - 1)) + 1


def _lft(fabric: Fabric, tables: SwitchTables | None, new: Routing) -> tuple[Bytes, npt.NDArray[np.bool_], int]:
    """Return the entries that the switches have, and compare them with the new tables.

    Returns
    -------
    lft
        uint8[S, L], the entries in the switches; 255 if an entry leads nowhere or is unknown.
    unknown
        bool[S, L], whether each entry is unknown.
    changed
        Number of known entries that differ from the new tables.
    """
    lft, unknown = new.lft.copy(), np.zeros(new.lft.shape, bool)
    if tables is None:
        unknown[:, 1:] = True
        lft[:] = NO_PORT
        return lft, unknown, 0
    lids = min(lft.shape[1], tables.lft.shape[1])
    if lids < lft.shape[1] or not tables.known[:, : -(-lids // BLOCK)].all():
        unknown[:, lids:] = True
        unknown[:, :lids] = ~np.repeat(tables.known, BLOCK, axis=1)[:, :lids]
        unknown[:, 0] = False
    own, now = tables.lft[:, :lids], lft[:, :lids]
    missing = (own == NO_PORT) & (now != NO_PORT)
    np.putmask(now, missing, NO_PORT)
    # An entry may lead nowhere, for example to a port without a cable.  Only entries that differ from the new tables
    # are checked for this, because all entries of the new tables lead to a neighbour or an end port.
    row, lid = np.divmod(np.flatnonzero(own != now), lids)
    port = tables.lft[row, lid]
    certain = ~unknown[row, lid] & (lid > 0)
    forwarded = np.where(lid > tables.top[row], np.uint8(NO_PORT), port)
    changed = int(np.count_nonzero(certain & (forwarded != lft[row, lid])))
    changed += int(np.count_nonzero((missing & ~unknown[:, :lids])[:, 1:]))
    delivers = (fabric.lids.switch[lid] == row) & (fabric.lids.port[lid] == port)
    leads = (fabric.channels.at_port[row, port] >= 0) | delivers
    # OpenSM may avoid a link that is up, so that the fabric does not have this link.  Switches may still forward over
    # it, but the fabric does not show where it leads.  So entries over such links count as unknown.
    if tables.left_out is not None:
        beyond = ~leads & tables.left_out[row, port]
        unknown[row[beyond], lid[beyond]] = True
    lft[row, lid] = np.where(leads, port, np.uint8(NO_PORT))
    lft[unknown] = NO_PORT
    return lft, unknown, changed


def _has_equal_sls(old: Routing, new: Routing, fabric: Fabric) -> bool:
    """Return whether two tables have equal SLs for each LID of the fabric, and equal SL2VL tables."""
    if old.sl.shape != new.sl.shape or not np.array_equal(old.sl2vl, new.sl2vl):
        return False
    used = fabric.lids.switch >= 0
    differ = (old.sl != new.sl)[..., used]
    return not (differ[used] if new.service_levels.by_source_lid else differ).any()
