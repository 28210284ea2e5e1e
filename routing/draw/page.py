"""Write one HTML page with a picture and tables.  The page needs no network, no library and no server.

The tables of the report and the LFT columns are embedded as compressed data, which the script of the page unpacks.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from routing.draw.picture import Picture
from routing.draw.svg import STYLE, svg_text
from routing.formats.csv_table import Cell, Table
from routing.names import escape_control, guid_text

MOST_BYTES = 1_000_000
"""Maximum size in bytes of a page with embedded forwarding tables."""
MOST_ENTRIES = 40_000_000
"""Maximum number of LFT entries that are compressed for a page."""


@dataclass(frozen=True, eq=False)
class _EmbeddedPaths:
    """LFT columns that an HTML page contains, so that the script of the page can show paths.

    Attributes
    ----------
    lids
        LIDs whose columns the page contains, in the order of the columns.
    what
        Kind of these LIDs.  "all": all LIDs of CAs and routers.  "switches": for each switch with CAs or routers, only
        the lowest LID of these CAs and routers.  "none": the columns are too large.  "no tables": there are no tables.
    data
        Compressed entries, in base64: out-port by switch and column.
    """

    lids: tuple[int, ...] = ()
    what: str = "none"
    data: str = ""


def page_text(
    title: str,
    summary: Sequence[tuple[str, str]] = (),
    tables: Sequence[Table] = (),
    picture: Picture | None = None,
    *,
    most_bytes: int = MOST_BYTES,
) -> str:
    """Return an HTML page.

    Parameters
    ----------
    title
        Heading of the page.
    summary
        Rows of a name and a text, printed below the heading.
    tables
        Tables of the report.  The tables of the picture's switches, cables and end ports are added.
    picture
        The picture, or None.
    most_bytes
        Maximum size in bytes of a page with embedded LFT columns, from which the page shows paths.  If the columns of
        all LIDs of CAs and routers do not fit, only one column for each switch with CAs or routers is embedded.  If
        these columns do not fit either, no columns are embedded.
    """
    drawn = "" if picture is None else svg_text(picture, title, alone=False)
    every = [*tables, *([] if picture is None else picture_tables(picture))]
    content = {
        "tables": [{"title": t.title, "columns": t.columns, "rows": t.rows} for t in every],
        **({} if picture is None else _fabric_data(picture)),
    }
    rest = len(_page(title, summary, drawn, content, _EmbeddedPaths()).encode()) + 1000
    paths = _EmbeddedPaths() if picture is None else _paths(picture, most_bytes - rest)
    return _page(title, summary, drawn, content, paths)


def _page(
    title: str, summary: Sequence[tuple[str, str]], drawn: str, content: dict[str, object], paths: _EmbeddedPaths
) -> str:
    data = _packed(json.dumps({**content, "lids": paths.lids, "paths": paths.what}, separators=(",", ":")).encode())
    rows = "".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in summary)
    return _asset("page.html").format(
        title=_text(title),
        style=_asset("page.css") + STYLE,
        summary=f"<dl>{rows}</dl>" if rows else "",
        picture=_asset("picture.html").format(svg=drawn) if drawn else "",
        data=data,
        lft=paths.data,
        script=_asset("page.js"),
    )


def _text(text: str) -> str:
    return escape(escape_control(text))


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _packed(data: bytes) -> str:
    """Return bytes compressed as zlib data, in base64."""
    return base64.b64encode(zlib.compress(data, 9)).decode()


def picture_tables(picture: Picture) -> list[Table]:
    """Return tables with the contents of a picture: the switches, the cables, and the end ports."""
    return [_switch_table(picture), cable_table(picture), _endport_table(picture)]


def _switch_table(picture: Picture) -> Table:
    fabric, level = picture.fabric, picture.layout.level
    cabled = np.bincount(fabric.link_device.reshape(-1), minlength=fabric.switches).tolist()
    columns: tuple[str, ...] = ("switch", "GUID", "LID", "ports", "cabled", "end ports")
    columns += ("level",) * (level is not None) + ("state",) * bool(picture.lost_switches.any())
    rows = []
    for row in range(fabric.switches):
        cells: list[Cell] = [fabric.labels[row], guid_text(int(fabric.switch_guid[row])), int(fabric.switch_lid[row])]
        cells += [int(fabric.switch_ports[row]), cabled[row], int(fabric.terminals_at[row])]
        cells += [int(level[row])] if level is not None else []
        cells += ["lost" if picture.lost_switches[row] else ""] if picture.lost_switches.any() else []
        rows.append(tuple(cells))
    return Table("Switches", columns, tuple(rows))


def cable_table(picture: Picture) -> Table:
    """Return a table of the cables between switches: ports, data rate, load and state.

    The state of a cable is "lost", "added", "credit loop" or empty.  If the picture has a colouring, the table also has
    the values of the colouring.  The cables are sorted by the values that their colours show, with the highest value
    first.  Cables without a value come last.
    """
    cables, labels, colouring = picture.cables, picture.fabric.labels, picture.colouring
    load, use = cables.load, cables.use
    columns: tuple[str, ...] = ("switch", "port", "to switch", "to port", "Gb/s")
    columns += ("load", "load back", "% of the fullest") if load is not None else ()
    columns += (colouring.title,) if colouring is not None else ()
    columns += ("state",)
    turned = {cable for cable, _ in picture.loop}
    rows = []
    values = np.zeros(len(cables)) if picture.values is None else np.nan_to_num(picture.values, nan=-1.0)
    for row in np.argsort(-values, kind="stable").tolist():
        (a, b), (p, q) = cables.ends[row].tolist(), cables.ports[row].tolist()
        cells: list[Cell] = [labels[a], p, labels[b], q, round(float(cables.rate[row]), 1)]
        if load is not None and use is not None:
            cells += [*(round(value, 2) for value in load[row].tolist()), round(100 * float(use[row]), 1)]
        cells += [colouring.texts[row]] if colouring is not None else []
        state = "lost" if cables.lost[row] else "added" if cables.added[row] else "credit loop" * (row in turned)
        rows.append((*cells, state))
    return Table("Cables between switches", columns, tuple(rows))


def _endport_table(picture: Picture) -> Table:
    fabric = picture.fabric
    rows = []
    for row, switch in enumerate(fabric.endport_switch.tolist()):
        where: tuple[Cell, Cell] = ("", None)
        if switch >= 0:
            where = (fabric.labels[switch], int(fabric.endport_switch_port[row]))
        rows.append((fabric.endport_label[row], int(fabric.endport_port[row]), int(fabric.endport_lid[row]), *where))
    return Table("End ports of CAs and routers", ("CA or router", "port", "LID", "switch", "switch port"), tuple(rows))


def _fabric_data(picture: Picture) -> dict[str, object]:
    """Return the data that the script of the page needs, in addition to the tables, to find switches and
    follow paths.
    """
    fabric, cables = picture.fabric, picture.cables
    ends = np.column_stack([cables.ends[:, 0], cables.ports[:, 0], cables.ends[:, 1], cables.ports[:, 1]])
    places = zip(fabric.endport_switch.tolist(), fabric.endport_switch_port.tolist(), strict=True)
    return {
        "names": fabric.labels[: fabric.switches],
        "cables": [row for row, lost in zip(ends.tolist(), cables.lost.tolist(), strict=True) if not lost],
        "cas": [
            [name, port, lid, 1 << lmc, *place]
            for name, port, lid, lmc, place in zip(
                fabric.endport_label,
                fabric.endport_port.tolist(),
                fabric.endport_lid.tolist(),
                fabric.endport_lmc.tolist(),
                places,
                strict=True,
            )
        ],
        "loop": list(picture.loop_lines),
    }


def _paths(picture: Picture, budget: int) -> _EmbeddedPaths:
    """Return LFT columns that fit into ``budget`` bytes.

    The columns of all LIDs of CAs and routers are tried first.  If they do not fit, only one column for each switch is
    tried: the column of the lowest LID of its CAs and routers.  If these columns do not fit either, the result has no
    columns.
    """
    fabric, lft = picture.fabric, picture.lft
    if lft is None:
        return _EmbeddedPaths(what="no tables")
    lids = fabric.lids
    owned = np.flatnonzero((lids.endport >= 0) & (lids.switch >= 0))
    owned = owned[owned < lft.shape[1]]
    _, first = np.unique(lids.switch[owned], return_index=True)
    for what, columns in (("all", owned), ("switches", owned[np.sort(first)])):
        if len(columns) and len(lft) * len(columns) <= MOST_ENTRIES:
            data = _packed_lft(lft, columns)
            if len(data) <= budget:
                return _EmbeddedPaths(tuple(columns.tolist()), what, data)
    return _EmbeddedPaths()


def _packed_lft(lft: npt.NDArray[np.uint8], columns: npt.NDArray[np.int64]) -> str:
    return _packed(np.ascontiguousarray(lft[:, columns]).tobytes())
