"""Write fabrics as ``opensm-subnet.lst``, which ibdmchk and :mod:`routing.formats.subnet_lst` read."""

from __future__ import annotations

import warnings

import numpy as np

from routing.errors import InputWarning
from routing.fabric import Fabric, NodeKind
from routing.names import escape_control
from routing.numerals import count_noun
from routing.rates import printed_speed

_WORDS = {NodeKind.SWITCH: "SW", NodeKind.CA: "CA", NodeKind.ROUTER: "Rt"}


def lst_text(fabric: Fabric) -> str:
    """Return the fabric as the text of ``opensm-subnet.lst``: one line for each direction of each link.

    The format has no LMC.  The fields of vendor, device and revision are 0.

    Warns
    -----
    InputWarning
        The fabric has devices without links, which the format leaves out.
    """
    devices, left = fabric.switches + fabric.terminals, len(np.unique(fabric.link_device))
    if left < devices:
        what = f"{fabric.name}: {count_noun(devices - left, 'device')} without links are not in an opensm-subnet.lst"
        warnings.warn(what, InputWarning, stacklevel=2)
    ends, lines = _end_texts(fabric), []
    rates = zip(fabric.link_width.tolist(), fabric.link_speed.tolist(), strict=True)
    links = zip(fabric.link_device.tolist(), fabric.link_port.tolist(), rates, strict=True)
    for (a, b), (p, q), (width, speed) in links:
        one, other, rate = ends[a, p], ends[b, q], f"PHY={width}x LOG=ACT SPD={printed_speed(speed)}"
        lines += [f"{one} {other} {rate}\n", f"{other} {one} {rate}\n"]
    return "".join(lines)


def _end_texts(fabric: Fabric) -> dict[tuple[int, int], str]:
    """Return the text of each port with a link, by device number and port."""
    guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
    kinds = [NodeKind.SWITCH] * fabric.switches + [NodeKind(kind) for kind in fabric.terminal_kind.tolist()]
    counts = [*fabric.switch_ports.tolist(), *fabric.terminal_ports.tolist()]
    names = [*fabric.switch_name, *fabric.terminal_name]
    devices = (fabric.switches + fabric.endport_terminal).tolist()
    endports = zip(devices, fabric.endport_port.tolist(), strict=True)
    addresses = zip(fabric.endport_guid.tolist(), fabric.endport_lid.tolist(), strict=True)
    address_of = dict(zip(endports, addresses, strict=True))
    texts = {}
    for device, port in zip(fabric.link_device.ravel().tolist(), fabric.link_port.ravel().tolist(), strict=True):
        guid = guids[device]
        own = (guid, int(fabric.switch_lid[device])) if device < fabric.switches else address_of[device, port]
        texts[device, port] = (
            f"{{ {_WORDS[kinds[device]]} Ports:{counts[device]:02X} SystemGUID:{guid:016X} NodeGUID:{guid:016X}"
            f" PortGUID:{own[0]:016X} VenID:000000 DevID:0000 Rev:00000000 {{{escape_control(names[device])}}}"
            f" LID:{own[1]:04X} PN:{port:02X} }}"
        )
    return texts
