"""Write OpenSM's file ``guid2lid``, which keeps LIDs over a restart."""

from __future__ import annotations

from pathlib import Path

from routing.fabric import Fabric
from routing.formats.atomic import write_text_atomically


def write_guid2lid(path: str | Path, fabric: Fabric) -> None:
    """Write the LIDs of a fabric as ``guid2lid``.  OpenSM restores these LIDs if it finds the file in its cache folder.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.
    """
    owners = [(guid, lid, 0) for guid, lid in zip(fabric.switch_guid.tolist(), fabric.switch_lid.tolist(), strict=True)]
    ends = (fabric.endport_guid.tolist(), fabric.endport_lid.tolist(), fabric.endport_lmc.tolist())
    owners += list(zip(*ends, strict=True))
    text = "".join(
        f"0x{guid:016x} 0x{lid:04x} 0x{lid + (1 << lmc) - 1:04x}\n\n" for guid, lid, lmc in sorted(owners) if lid
    )
    write_text_atomically(path, text)
