"""Make reports on a fabric with its picture: the fabric alone, the fabric with tables, and the effect of each fault."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing.deadlock.witness import CreditLoop
from routing.draw.picture import Colouring, Picture, picture_of
from routing.fabric import NO_PORT, Fabric
from routing.formats.csv_table import Table
from routing.quality import channel_loads
from routing.tables import Routing
from routing.whatif import Effect

LOSS = "loss if it fails"


def loop_table(loop: CreditLoop | None) -> Table:
    """Return a table of the channels of a credit loop.  The table has no rows if there is no loop.

    Each row also names the traffic (source, destination and SL) that uses this channel and then the next channel of the
    loop.
    """
    columns = ("switch", "port", "to switch", "to port", "VL", "from", "from LID", "to", "to LID", "SL")
    rows = tuple(
        (
            turn.switch.label,
            turn.port,
            turn.peer.label,
            turn.peer_port,
            turn.vl,
            turn.traffic.source,
            turn.traffic.source_lid,
            turn.traffic.destination,
            turn.traffic.destination_lid,
            turn.traffic.sl,
        )
        for turn in (() if loop is None else loop.turns)
    )
    return Table("Credit loop", columns, rows)


def channel_table(fabric: Fabric, routing: Routing, *, threads: int = 2) -> Table:
    """Return a table of all channels with their all-to-all load, the highest load first."""
    loads, channels = channel_loads(fabric, routing, threads=threads), fabric.channels
    rows = tuple(
        (
            fabric.labels[channels.src[row]],
            int(channels.port[row]),
            fabric.labels[channels.dst[row]],
            int(channels.dst_port[row]),
            round(float(channels.capacity[row]), 4),
            float(loads[row]),
        )
        for row in np.argsort(-loads, kind="stable").tolist()
    )
    return Table("Channels by load", ("switch", "port", "to switch", "to port", "Gb/s", "load"), rows)


def busiest_channel(fabric: Fabric, loads: npt.NDArray[np.float64]) -> str | None:
    """Describe the channel with the highest utilisation: its two ports, and its utilisation relative to the mean.

    ``loads`` is float64[C].  None if no channel carries traffic.
    """
    channels = fabric.channels
    use = loads / channels.capacity
    if not use.size or use.max() <= 0:
        return None
    row = int(use.argmax())
    near, far = fabric.labels[channels.src[row]], fabric.labels[channels.dst[row]]
    times = use[row] / use.mean()
    return f"{near} port {channels.port[row]} -> {far} port {channels.dst_port[row]}, {times:.2f} times the mean load"


def effect_table(effects: Sequence[Effect]) -> Table:
    """Return a table of the effects of fault scenarios: one row for each of ``effects``, in their order."""
    return Table.of("Faults", [{"fault": effect.fault, **effect.as_dict()} for effect in effects])


def loss_picture(fabric: Fabric, effects: Sequence[Effect]) -> Picture:
    """Return a picture of a fabric in which the colour of a cable shows the all-to-all loss after a failure of this
    cable.  A cable whose loss is not in ``effects`` has an unknown value.
    """
    picture = picture_of(fabric)
    row_of = {}
    for row, ((a, b), (p, q)) in enumerate(
        zip(picture.cables.ends.tolist(), picture.cables.ports.tolist(), strict=True)
    ):
        names = f"{fabric.labels[a]}/{p}", f"{fabric.labels[b]}/{q}"
        row_of[f"{names[0]} - {names[1]}"] = row_of[f"{names[1]} - {names[0]}"] = row
    values, texts = np.full(len(picture.cables), math.nan), [""] * len(picture.cables)
    for effect in effects:
        cable = row_of.get(effect.faults[0]) if len(effect.faults) == 1 else None
        if cable is not None and effect.loss is not None:
            values[cable], texts[cable] = max(effect.loss, 0.0), f"{100 * effect.loss + 0.0:.1f} %"
    if np.isnan(values).all():
        return picture
    return replace(picture, colouring=Colouring(LOSS, values, tuple(texts)))


def link_table(fabric: Fabric) -> Table:
    """Return a table of all links of a fabric: both ports, width, speed of a physical lane, and data rate."""
    rows = tuple(
        (fabric.labels[a], p, fabric.labels[b], q, width, speed, round(rate, 4))
        for ((a, b), (p, q), width, speed), rate in zip(fabric.cables(), fabric.link_capacity.tolist(), strict=True)
    )
    return Table("Links", ("device", "port", "to device", "to port", "width", "speed", "Gb/s"), rows)


def entry_table(fabric: Fabric, routing: Routing) -> Table:
    """Return a table of all LFT entries towards LIDs in use: switch, LID, owner of the LID, and out-port (None: no
    entry).

    Cost: O(S L) rows.
    """
    lids = np.flatnonzero(fabric.lids.switch >= 0).tolist()
    switch, endport = fabric.lids.switch.tolist(), fabric.lids.endport.tolist()
    owner = {
        lid: fabric.labels[switch[lid]] if endport[lid] < 0 else fabric.endport_label[endport[lid]] for lid in lids
    }
    rows = tuple(
        (fabric.labels[row], lid, owner[lid], None if ports[lid] == NO_PORT else ports[lid])
        for row, ports in enumerate(routing.lft.tolist())
        for lid in lids
    )
    return Table("LFT entries", ("switch", "LID", "owner", "port"), rows)
