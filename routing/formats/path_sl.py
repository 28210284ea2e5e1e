"""Read and write SLs of paths as text, in the format of ``ibdmchk -c`` and as ``opensm-path-records.dump``.

Both formats state the SL of the path from a source to a destination LID.  In the format of ``ibdmchk``, the source is a
node GUID, so all ports of a CA have the same SLs.  In path records, the source is a port.  The output of ``saquery PR``
can be read as well, but not written.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT, Fabric
from routing.formats.atomic import atomic_write
from routing.formats.dump_lines import read_pieces
from routing.formats.lid_map import lid_owner
from routing.formats.opensm_order import encode, endport_kind, opensm_order
from routing.formats.path_rate import SLOWEST_FIRST, endport_step, path_step
from routing.formats.path_reader import SLS, UNKNOWN, PathReader
from routing.formats.saquery_paths import is_saquery, read_saquery
from routing.tables import ServiceLevels

MTU_2048 = 4

_SL = np.frombuffer(b"".join(b"%-2d" % n for n in range(SLS)), np.uint8).reshape(SLS, 2)
_RATE = np.frombuffer(b"".join(b"%-4d" % n for n in range(256)), np.uint8).reshape(256, 4)


def sl_from(fabric: Fabric, sl: npt.NDArray[np.uint8], source: int) -> npt.NDArray[np.uint8]:
    """Return the SLs from one source to each LID, uint8[L].

    ``source`` is the row of a switch, or S + the row of an end port.  If ``sl`` gives SLs by source switch, an end port
    that is not cabled to a switch gets SL 0 for all LIDs.
    """
    end, sls = source - fabric.switches, ServiceLevels.of(sl, fabric.switches)
    if end < 0:
        return sls.from_sender(source, int(fabric.switch_lid[source]))
    switch = int(fabric.endport_switch[end])
    if sls.by_switch and switch < 0:
        return np.zeros(sl.shape[-1], np.uint8)
    return sls.from_sender(switch, int(fabric.endport_lid[end]))


def write_psl(path: str | Path, fabric: Fabric, sl: npt.NDArray[np.uint8]) -> None:
    """Write the SLs for ``ibdmchk -c``, as lines ``node-GUID LID SL`` from every switch, CA and router to every LID.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.

    Notes
    -----
    The file has about 25 bytes per pair of node and LID.  For a CA with two ports, the SLs of its first port are
    written.
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
    """Write the path records from every port to every LID, in the format of OpenSM's ``dump_pr`` plugin.

    Parameters
    ----------
    path
        The file to write.
    fabric
        Fabric with GUIDs, names, LIDs and link rates.
    lft, hops
        uint8[S, L] each: the forwarding tables, and the number of channels of each path; 255 if the LID is unreachable.
    sl
        SLs in any shape that :class:`~routing.tables.Routing` allows.
    mtu
        MTU code of all paths (4 means 2048 bytes).  The fabric does not state the MTU.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.

    Notes
    -----
    The file has 25 bytes per pair of port and LID.
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
            else:  # The port is cabled to another CA, so no switch has a path to it.
                there, steps = np.zeros(len(lids), bool), np.zeros(len(lids), np.int16)
            steps = steps if end < 0 else np.minimum(steps, own_step[end])
            file.write(_source_line(fabric, source))
            row = sl_from(fabric, sl, source)[lids]
            text = _records(head, row, SLOWEST_FIRST[steps], mtu)
            file.write(text.tobytes() if there.all() else _with_gaps(text, there, named=end >= 0))
            file.write(b"\n")


def write_stated(path: str | Path, fabric: Fabric, sl: npt.NDArray[np.uint8]) -> None:
    """Write the SLs that a file has stated for each source, so that :func:`read_stated` can read them again.

    The format is that of OpenSM's ``dump_pr`` plugin, but without MTU and rate.

    Parameters
    ----------
    path
        The file to write.
    fabric
        Fabric with GUIDs, names and LIDs.
    sl
        uint8[S + E, L], the SLs as :func:`read_stated` returns them; 255 for a path that the file leaves out.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.
    """
    with atomic_write(path) as file:
        for source, row in enumerate(sl):
            lids = np.flatnonzero(row != UNKNOWN)
            file.write(_source_line(fabric, source))
            file.writelines(b"0x%04X : %d\n" % pair for pair in zip(lids.tolist(), row[lids].tolist(), strict=True))
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
    """Return the path records of one source as text, uint8[n, 25]: a line of 25 characters for each of n LIDs.

    ``head`` has the characters of each line before the SL.  ``sl`` and ``rate`` have the SL and the rate code of each
    path.  ``mtu`` is the MTU code of all paths.
    """
    text = np.empty((len(head), 25), np.uint8)
    text[:, :9] = head
    text[:, 9:11] = _SL[sl]
    text[:, 11:20] = np.frombuffer(b" : %-3d : " % mtu, np.uint8)
    text[:, 20:24], text[:, 24] = _RATE[rate], ord("\n")
    return text


def _with_gaps(text: npt.NDArray[np.uint8], there: npt.NDArray[np.bool_], *, named: bool) -> bytes:
    """Return the path records of a source that cannot reach every LID.

    ``text`` has the record of each LID, and ``there`` is bool[n], whether each LID is reachable.  ``named`` is true if
    the source is a CA or router.  For such a source, an unreachable LID gets a line with the word UNREACHABLE.  For a
    switch, an unreachable LID gets no line.
    """
    if not named:
        return text[there].tobytes()
    return b"".join(
        line.tobytes() if good else line[:9].tobytes() + b"UNREACHABLE\n"
        for line, good in zip(text, there.tolist(), strict=True)
    )


def read(path: str | Path, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Read SLs from a text file, and return the smallest table that can represent them.

    The file states destinations only by LID.  So the fabric must have the LIDs that were in use when the file was
    written.

    Returns
    -------
    uint8[L], uint8[S, L] or uint8[L, L]
        The first of these tables that can represent all SLs in the file:

        - uint8[L] by destination LID, if the SLs of all sources are equal.
        - uint8[S, L] by source switch and destination LID, if the SLs of all sources at the same switch are equal.  The
          switch itself counts as a source if the file states its SLs.
        - uint8[L, L] by source LID and destination LID.

        SLs that the file does not state do not matter for this choice.  An element for which the file states no SL is
        0.

    Raises
    ------
    ParseError
        A line is invalid, an SL is over 15, or a LID is invalid.
    TableError
        A source is not in the fabric or has another LID there, or the file lacks a CA or router.
    InputError, EnvironmentProblem
        The file is missing or unreadable.

    Notes
    -----
    The function reads a few million lines per second.
    """
    return smallest_form(fabric, read_stated(path, fabric))


def read_stated(path: str | Path, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Read the SLs that a file states, by source and destination LID.

    The result is uint8[S + E, L].  The rows are first switches, then end ports.  255 means that the file states no SL.

    Raises
    ------
    ParseError, TableError, InputError, EnvironmentProblem
        A line is invalid; a source does not fit the fabric; or the file is missing or unreadable.
    """
    if is_saquery(path):
        return read_saquery(path, fabric)
    reader = PathReader(path, fabric)
    for piece in read_pieces(path):
        reader.take(piece)
    return reader.finish()


def unstated_pairs(fabric: Fabric, lft: npt.NDArray[np.uint8], sl: npt.NDArray[np.uint8]) -> int:
    """Count the paths that could be part of a credit loop and whose SL the file does not state.

    Such a path leads from a source to a LID at another switch.  At least one of its ends is a CA or router, and the
    source's switch has an LFT entry for the LID.

    Parameters
    ----------
    fabric
        Fabric with the switches of the sources.
    lft
        uint8[S, L], the forwarding tables.
    sl
        uint8[S + E, L], the SLs as :func:`read_stated` returns them.
    """
    lids, switches = fabric.lids, np.arange(fabric.switches)
    at = np.concatenate([switches, fabric.endport_switch])
    lid = np.concatenate([fabric.switch_lid, fabric.endport_lid])
    sends = np.flatnonzero((at >= 0) & (lid > 0))
    missing = (sl[sends] == UNKNOWN) & (lids.switch >= 0) & (lids.switch != at[sends, None])
    missing &= (sends >= fabric.switches)[:, None] | (lids.endport >= 0)
    return int(np.count_nonzero(missing & (lft[at[sends]] != NO_PORT)))


def smallest_form(fabric: Fabric, sl: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Convert SLs given for each source to the smallest table that represents them, as :func:`read` describes.

    Parameters
    ----------
    fabric
        Fabric with the switches of the sources.
    sl
        uint8[S + E, L].  The rows are first switches, then end ports.  255 means that no SL is stated.
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
    """Return the lowest and the highest SL in each column.  SLs that are not stated do not count.

    Returns
    -------
    least, most : uint8[L]
        The lowest and the highest SL; both are 255 if no SL is stated.
    """
    least = sl.min(axis=0, initial=UNKNOWN)
    most = np.where(sl == UNKNOWN, 0, sl).max(axis=0, initial=0)
    return least, np.where(least == UNKNOWN, UNKNOWN, most).astype(np.uint8)


def _stated(sl: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return np.where(sl == UNKNOWN, 0, sl).astype(np.uint8)
