"""Reports on a fabric with its picture: the fabric alone, with tables, and the effect of each fault."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from routing.deadlock.witness import CreditLoop
from routing.draw.picture import Colouring, Picture, picture_of
from routing.fabric import Fabric
from routing.formats.csv_table import Table
from routing.quality import channel_loads
from routing.tables import Routing
from routing.whatif import Effect

LOSS = "loss if it fails"


def loop_table(loop: CreditLoop | None) -> Table:
    """Return the channels of a credit loop, with traffic for each dependency; no rows if there is no loop."""
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
    """Return all channels with their all-to-all load, the fullest first."""
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


def effect_table(effects: Sequence[Effect]) -> Table:
    """Return the effects of fault scenarios, in the given order."""
    return Table.of("Faults", [effect.as_dict() for effect in effects], [*Effect.__dataclass_fields__])


def loss_picture(fabric: Fabric, effects: Sequence[Effect]) -> Picture:
    """Return a picture of a fabric whose cables show the all-to-all loss if they fail, where that is known."""
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
