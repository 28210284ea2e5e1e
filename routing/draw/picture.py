"""Collect the contents of a picture: switches with coordinates, cables with their load, faults and a credit loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.deadlock.witness import CreditLoop
from routing.draw.layout import Layout, place
from routing.errors import OptionError
from routing.fabric import Fabric
from routing.quality import channel_loads
from routing.tables import Routing

STEPS = (0.25, 0.5, 0.75, 1.0)
"""Upper limits of the classes 1 to 4 of :attr:`Picture.classes`, as shares of the largest value of all cables."""


@dataclass(frozen=True, eq=False)
class Cables:
    """Cables between two different switches.

    Attributes
    ----------
    ends, ports
        int64[N, 2]: row numbers of both switches, and port numbers at both switches.
    rate
        float64[N], data rate in Gb/s.
    lost, added
        bool[N]: whether a fault has removed the cable, and whether a fault (a swap) has added the cable.
    load
        float64[N, 2], all-to-all flows from the first to the second switch, and in the opposite direction.  None
        without tables.
    """

    ends: npt.NDArray[np.int64]
    ports: npt.NDArray[np.int64]
    rate: npt.NDArray[np.float64]
    lost: npt.NDArray[np.bool_]
    added: npt.NDArray[np.bool_]
    load: npt.NDArray[np.float64] | None

    def __len__(self) -> int:
        return len(self.rate)

    @property
    def use(self) -> npt.NDArray[np.float64] | None:
        """Utilisation of each cable relative to the highest utilisation, float64[N]; None without tables.

        The utilisation of a cable is the load of its direction with the higher load, divided by the data rate.
        """
        if self.load is None:
            return None
        use: npt.NDArray[np.float64] = self.load.max(axis=1, initial=0.0) / self.rate
        return use / max(float(use.max(initial=0.0)), 1e-300)


@dataclass(frozen=True, eq=False)
class Colouring:
    """Values of cables that the colours of the lines show instead of the load.

    Attributes
    ----------
    title
        Title of the values, for the legend.
    values
        float64[N], one value for each cable of :attr:`Picture.cables`; NaN: unknown.
    texts
        The values as text.
    """

    title: str
    values: npt.NDArray[np.float64]
    texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Picture:
    """Contents of a picture of a fabric.

    Attributes
    ----------
    fabric
        The fabric before the faults.  It still has the devices and cables that the faults have removed.
    layout
        Coordinates of the switches.
    cables
        The cables between switches.
    lost_switches
        bool[S], switches that a fault has removed.
    lft
        uint8[S, L], out-ports.  The out-ports are 255 at switches that were lost.  None without tables.
    loop
        The cables on a credit loop, in the order of the loop.  Each element has the row of a cable, and the direction
        of its channel on the loop (0: from the cable's first end, 1: from its second end).
    loop_lines
        The credit loop in words.  Empty without a credit loop.
    colouring
        Values that the lines show instead of the load, or None.
    """

    fabric: Fabric
    layout: Layout
    cables: Cables
    lost_switches: npt.NDArray[np.bool_]
    lft: npt.NDArray[np.uint8] | None = None
    loop: tuple[tuple[int, int], ...] = ()
    loop_lines: tuple[str, ...] = ()
    colouring: Colouring | None = None

    @property
    def busiest(self) -> tuple[int, int] | None:
        """Row of the cable with the highest utilisation, and the direction of its higher load (0: from the first end).
        None if no cable carries traffic.

        If several channels have the highest utilisation, the channel that leaves the switch with the lowest row is
        taken.  If several such channels leave this switch, the channel with the lowest out-port is taken.
        """
        cables = self.cables
        if cables.load is None or not cables.load.any():
            return None
        use = cables.load / cables.rate[:, None]
        rows, directions = np.nonzero(use == use.max())
        first = np.lexsort((cables.ports[rows, directions], cables.ends[rows, directions]))[0]
        return int(rows[first]), int(directions[first])

    @property
    def values(self) -> npt.NDArray[np.float64] | None:
        """Values by which cables are coloured, float64[N]; None if all cables have one colour."""
        return self.cables.use if self.colouring is None else self.colouring.values

    @property
    def values_title(self) -> str:
        """Return the title, for the legend, of the values by which cables are coloured."""
        return "all-to-all load" if self.colouring is None else self.colouring.title

    @property
    def classes(self) -> npt.NDArray[np.int64]:
        """int64[N], class of each cable, which determines how the cable is drawn.

        The class is 0 for the value 0, 1 to 4 for higher values, 6 for lost cables, and 7 for unknown values.
        :data:`STEPS` has the upper limits of classes 1 to 4.  Without values, all cables that are not lost have class
        5.
        """
        values = self.values
        if values is None:
            found = np.full(len(self.cables), 5)
        else:
            known = np.nan_to_num(values, nan=0.0)
            share = known / max(float(known.max(initial=0.0)), 1e-300)
            found = 1 + np.searchsorted(np.array(STEPS) + 1e-9, share)
            found[share <= 0] = 0
            found[np.isnan(values)] = 7
        found[self.cables.lost] = 6
        return found.astype(np.int64)


def picture_of(
    fabric: Fabric,
    routing: Routing | None = None,
    *,
    after_faults: Fabric | None = None,
    loop: CreditLoop | None = None,
    threads: int = 2,
) -> Picture:
    """Collect the contents of a picture of a fabric and its tables.

    Parameters
    ----------
    fabric
        The fabric.
    routing
        Tables of the fabric, or None.  With ``after_faults``, the tables are tables of the fabric after the faults.
    after_faults
        The fabric that is left after faults.  Devices and cables that are missing in it are drawn as lost.
    loop
        Credit loop of the tables, to be drawn.
    threads
        Number of threads that compute the load.  This number never changes the result.

    Raises
    ------
    TableError
        The tables do not fit the fabric.
    OptionError
        ``after_faults`` has switches that ``fabric`` lacks.

    Notes
    -----
    Cost: the cost of the layout (:func:`routing.draw.layout.place`), plus O(S L) for the load.
    """
    present = fabric if after_faults is None else after_faults
    rows = np.searchsorted(fabric.switch_guid, present.switch_guid)
    if len(rows) and (rows.max() >= fabric.switches or (fabric.switch_guid[rows] != present.switch_guid).any()):
        raise OptionError("the fabric after the faults has other switches than the fabric before")
    lost_switches = np.ones(fabric.switches, bool)
    lost_switches[rows] = False
    cables = _cables(fabric, present, rows)
    lft = None
    if routing is not None:
        loads = channel_loads(present, routing, threads=threads)
        cables = _with_load(cables, present, rows, loads)
        lft = np.full((fabric.switches, routing.lft.shape[1]), 255, np.uint8)
        lft[rows] = routing.lft
    drawn, lines = ((), ()) if loop is None else (_drawn_loop(cables, fabric, loop), tuple(loop.describe()))
    return Picture(fabric, place(fabric), cables, lost_switches, lft, drawn, lines)


def _keys(fabric: Fabric, rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.int64]:
    """Return both ends of each cable between switches, int64[N, 4]: switch, port, switch, port.

    The end at the switch with the lower number comes first.  ``rows`` maps the row numbers of the switches in
    ``fabric`` to row numbers in the result; None: the numbers are unchanged.
    """
    channels = fabric.channels
    one = np.flatnonzero(channels.reverse > np.arange(len(channels)))
    ends = np.column_stack([channels.src[one], channels.dst[one]]).astype(np.int64)
    if rows is not None:
        ends = rows[ends]
    ports = np.column_stack([channels.port[one], channels.dst_port[one]]).astype(np.int64)
    turned = ends[:, 0] > ends[:, 1]
    ends[turned], ports[turned] = ends[turned][:, ::-1], ports[turned][:, ::-1]
    return np.column_stack([ends[:, 0], ports[:, 0], ends[:, 1], ports[:, 1]])


def _cables(fabric: Fabric, present: Fabric, rows: npt.NDArray[np.int64]) -> Cables:
    """Return all cables of ``fabric``, and then the cables that only ``present`` has, such as new cables.

    The loads of the cables are not set.

    Parameters
    ----------
    fabric, present
        Fabric before the faults, and after the faults.
    rows
        int64[S]: row in ``fabric`` of each switch of ``present``.
    """
    before, after = _keys(fabric), _keys(present, rows)
    known = set(map(tuple, before.tolist()))
    left = set(map(tuple, after.tolist()))
    extra = np.array([key for key in after.tolist() if tuple(key) not in known], np.int64).reshape(-1, 4)
    keys = np.concatenate([before, extra])
    lost = np.array([tuple(key) not in left for key in keys.tolist()], bool)
    added = np.arange(len(keys)) >= len(before)
    rate = np.concatenate([_rates(fabric, before, None), _rates(present, extra, rows)])
    return Cables(keys[:, [0, 2]], keys[:, [1, 3]], rate, lost, added, None)


def _rates(fabric: Fabric, keys: npt.NDArray[np.int64], rows: npt.NDArray[np.int64] | None) -> npt.NDArray[np.float64]:
    """Return the data rate of cables in Gb/s: float64[N].

    ``keys`` has the ends of the cables, as :func:`_keys` returns them.  ``rows`` must be the value of ``rows`` with
    which :func:`_keys` was called.
    """
    own = keys[:, 0] if rows is None else np.searchsorted(rows, keys[:, 0])
    return np.asarray(fabric.channels.capacity[fabric.channels.at_port[own, keys[:, 1]]], np.float64)


def _with_load(cables: Cables, present: Fabric, rows: npt.NDArray[np.int64], loads: npt.NDArray[np.float64]) -> Cables:
    """Return a copy of the cables to which the load of both directions is added.  Lost cables have the load 0.

    ``loads`` has the load of each channel of the fabric after the faults, ``present``.  ``rows`` has, for each
    switch of ``present``, its row in the fabric before the faults.
    """
    load = np.zeros((len(cables), 2))
    here = np.flatnonzero(~cables.lost)
    for end in (0, 1):
        own = np.searchsorted(rows, cables.ends[here, end])
        load[here, end] = loads[present.channels.at_port[own, cables.ports[here, end]]]
    return Cables(cables.ends, cables.ports, cables.rate, cables.lost, cables.added, load)


def _drawn_loop(cables: Cables, fabric: Fabric, loop: CreditLoop) -> tuple[tuple[int, int], ...]:
    """Return for each channel of a loop the row of its cable, and its direction (0: from the cable's first end)."""
    row_of = {guid: row for row, guid in enumerate(fabric.switch_guid.tolist())}
    at: dict[tuple[int, int], tuple[int, int]] = {}
    for cable in np.flatnonzero(~cables.lost).tolist():
        for end in (0, 1):
            at[int(cables.ends[cable, end]), int(cables.ports[cable, end])] = (cable, end)
    turns: Sequence[tuple[int, int]] = [(row_of[turn.switch.guid], turn.port) for turn in loop.turns]
    return tuple(at[turn] for turn in turns)
