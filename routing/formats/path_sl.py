"""Service levels of paths as text: the form of ``ibdmchk -c``, and ``opensm-path-records.dump``.

Both say the SL by source and destination LID.  ``ibdmchk`` names the source by the GUID of its node, so that two ports
of one CA have one table there; the path records name the port.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.formats.atomic import atomic_write
from routing.formats.dump_lines import read_pieces
from routing.formats.lid_map import lid_owner
from routing.formats.opensm_order import encode, endport_kind, opensm_order
from routing.formats.path_rate import SLOWEST_FIRST, endport_step, path_step
from routing.formats.path_reader import SLS, UNKNOWN, PathReader

MTU_2048 = 4

_SL = np.frombuffer(b"".join(b"%-2d" % n for n in range(SLS)), np.uint8).reshape(SLS, 2)
_RATE = np.frombuffer(b"".join(b"%-4d" % n for n in range(256)), np.uint8).reshape(256, 4)


def sl_from(fabric: Fabric, sl: npt.NDArray[np.uint8], source: int) -> npt.NDArray[np.uint8]:
    """uint8[L], the SLs of one source: a switch (its row), or an end port (S + its row).

    A source without a LID or a switch to stand at gets SL 0 where the table goes by either.
    """
    end = source - fabric.switches
    if sl.ndim == 1:
        return sl
    if sl.shape[0] == fabric.switches:
        row = source if end < 0 else int(fabric.endport_switch[end])
        return sl[row] if row >= 0 else np.zeros(sl.shape[1], np.uint8)
    own: npt.NDArray[np.uint8] = sl[fabric.switch_lid[source] if end < 0 else fabric.endport_lid[end]]
    return own


def write_psl(path: str | Path, fabric: Fabric, sl: npt.NDArray[np.uint8]) -> None:
    """Write ``node-GUID LID SL`` lines for every switch, CA and router to every LID.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.

    Notes
    -----
    About 25 bytes for each pair of node and LID.  Of a CA with two ports the first one counts.
    """
    lids = np.flatnonzero(lid_owner(fabric)).tolist()
    first = np.unique(fabric.endport_terminal, return_index=True)[1].tolist() if fabric.endports else []
    sources = [*range(fabric.switches), *(fabric.switches + row for row in first)]
    guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid[fabric.endport_terminal[first]].tolist()]
    with atomic_write(path) as file:
        last: npt.NDArray[np.uint8] | None = None
        tails: list[bytes] = []
        for source, guid in zip(sources, guids, strict=True):
            row = sl_from(fabric, sl, source)
            if last is None or not np.array_equal(row, last):
                tails = [b" %d %d\n" % pair for pair in zip(lids, row[lids].tolist(), strict=True)]
                last = row
            head = b"0x%016x" % guid
            if tails:
                file.write(head + head.join(tails))


def write_path_records(
    path: str | Path,
    fabric: Fabric,
    lft: npt.NDArray[np.uint8],
    hops: npt.NDArray[np.uint8],
    sl: npt.NDArray[np.uint8],
    *,
    mtu: int = MTU_2048,
) -> None:
    """Write the path records of every port as the ``dump_pr`` plugin of OpenSM does.

    Parameters
    ----------
    path
        The file.
    fabric
        Gives GUIDs, names, LIDs and the rates of the links.
    lft, hops
        uint8[S, L] both, hops 255 where a LID is not reached.
    sl
        In any form of a routing.
    mtu
        MTU code for all paths, as fabrics do not say (4: 2048 bytes).

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.

    Notes
    -----
    25 bytes for each pair of port and LID.
    """
    lids = np.flatnonzero(lid_owner(fabric))
    step, own_step = path_step(fabric, lft, hops)[:, lids], endport_step(fabric)
    guid = np.concatenate([fabric.switch_guid, fabric.endport_guid])
    head = np.frombuffer(b"".join(b"0x%04X : " % lid for lid in lids.tolist()), np.uint8).reshape(-1, 9)
    with atomic_write(path) as file:
        for source in opensm_order(guid).tolist():
            end = source - fabric.switches
            switch = source if end < 0 else int(fabric.endport_switch[end])
            if switch >= 0:
                there, steps = hops[switch, lids] != 255, step[switch]
            else:  # cabled to another CA: no switch routes it
                there, steps = np.zeros(len(lids), bool), np.zeros(len(lids), np.int16)
            steps = steps if end < 0 else np.minimum(steps, own_step[end])
            file.write(_source_line(fabric, source))
            row = sl_from(fabric, sl, source)[lids]
            text = _records(head, row, SLOWEST_FIRST[steps], mtu)
            file.write(text.tobytes() if there.all() else _with_gaps(text, there, named=end >= 0))
            file.write(b"\n")


def _source_line(fabric: Fabric, source: int) -> bytes:
    end = source - fabric.switches
    if end < 0:
        kind, guid, lid = "Switch", fabric.switch_guid[source], fabric.switch_lid[source]
        name, port = fabric.switch_name[source], 0
    else:
        kind, guid, lid = endport_kind(fabric, end), fabric.endport_guid[end], fabric.endport_lid[end]
        name, port = fabric.endport_name[end], int(fabric.endport_port[end])
    form = b'%s 0x%016x, base LID %d, "%s", port %d\n# LID  : SL : MTU : RATE\n'
    return form % (kind.encode(), guid, lid, encode(name), port)


def _records(
    head: npt.NDArray[np.uint8], sl: npt.NDArray[np.uint8], rate: npt.NDArray[np.uint8], mtu: int
) -> npt.NDArray[np.uint8]:
    """uint8[n, 25], the lines of one source."""
    text = np.empty((len(head), 25), np.uint8)
    text[:, :9] = head
    text[:, 9:11] = _SL[sl]
    text[:, 11:20] = np.frombuffer(b" : %-3d : " % mtu, np.uint8)
    text[:, 20:24], text[:, 24] = _RATE[rate], ord("\n")
    return text


def _with_gaps(text: npt.NDArray[np.uint8], there: npt.NDArray[np.bool_], *, named: bool) -> bytes:
    """An unreachable LID has a line of its own where the source is a CA or router, none where it is a switch."""
    if not named:
        return text[there].tobytes()
    return b"".join(
        line.tobytes() if good else line[:9].tobytes() + b"UNREACHABLE\n"
        for line, good in zip(text, there.tolist(), strict=True)
    )


def read(path: str | Path, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Read service levels from either form; the LIDs have to be those of the fabric.

    Returns
    -------
    The smallest form of a routing that holds them: uint8[L] where all sources agree; uint8[S, L] where all sources at a
    switch (its own port 0 too, where stated) agree; else uint8[L, L].  SL 0 where nothing is said.

    Raises
    ------
    ParseError
        A line that is no line of such a file, an SL over 15, a LID that cannot be.
    TableError
        A source that the fabric does not have, or that has another LID there; a CA or router of the fabric that the
        file says nothing of.
    InputError, EnvironmentProblem
        The file is missing or unreadable.

    Notes
    -----
    A few million lines a second.
    """
    reader = PathReader(path, fabric)
    for piece in read_pieces(path):
        reader.take(piece)
    return smallest_form(fabric, reader.finish())


def smallest_form(fabric: Fabric, sl: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The smallest form of a routing that holds SLs given by source.

    Parameters
    ----------
    fabric
        Says where sources are attached.
    sl
        uint8[S + E, L], by switches, then end ports; 255: not stated.
    """
    least, most = _range(sl)
    if (least == most).all():
        return _stated(most)
    group = np.concatenate([np.arange(fabric.switches), fabric.endport_switch])
    by_switch = np.full((fabric.switches, sl.shape[1]), UNKNOWN, np.uint8)
    uniform = True
    for switch in range(-1, fabric.switches):
        least, most = _range(sl[group == switch])
        uniform = uniform and bool((least == most).all())
        if switch >= 0:
            by_switch[switch] = most
    if uniform and bool((sl[group < 0] == UNKNOWN).all()):
        return _stated(by_switch)
    by_lid = np.zeros((sl.shape[1], sl.shape[1]), np.uint8)
    by_lid[fabric.switch_lid] = _stated(sl[: fabric.switches])
    owned = np.flatnonzero(fabric.lids.endport >= 0)
    by_lid[owned] = _stated(sl[fabric.switches + fabric.lids.endport[owned]])
    by_lid[0] = 0
    return by_lid


def _range(sl: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """The least and the greatest stated SL of each column, both 255 where none is."""
    least = sl.min(axis=0, initial=UNKNOWN)
    most = np.where(sl == UNKNOWN, 0, sl).max(axis=0, initial=0)
    return least, np.where(least == UNKNOWN, UNKNOWN, most).astype(np.uint8)


def _stated(sl: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return np.where(sl == UNKNOWN, 0, sl).astype(np.uint8)
